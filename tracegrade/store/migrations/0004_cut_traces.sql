-- Traces of which a limit of the readers left spans out: what was not seen there shows nothing.
CREATE TABLE cut_traces (
    trace_id VARCHAR PRIMARY KEY,
    left_out BIGINT NOT NULL
);
