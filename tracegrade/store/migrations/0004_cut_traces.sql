-- Traces of which a limit of the readers left spans out: what was not seen there shows nothing. Once a later load has
-- brought as many spans as were found, the trace is whole again.
CREATE TABLE cut_traces (
    trace_id VARCHAR PRIMARY KEY,
    spans_found BIGINT NOT NULL
);
