-- Span ids that occur more than once, with everything that decides which copy is kept.
CREATE OR REPLACE TEMP TABLE repeated AS
WITH ids AS (
    SELECT trace_id, span_id FROM span_rows GROUP BY trace_id, span_id HAVING count(*) > 1
)
SELECT
    s.row_no, s.trace_id, s.span_id, s.end_ns IS NULL AS unfinished, s.precision_ns, s.flags,
    s.size,
    md5(concat_ws(
        chr(31), coalesce(s.parent_span_id, ''), s.name, s.kind, coalesce(s.start_ns, 0), coalesce(s.end_ns, 0),
        s.status_code, s.status_message, s.attributes, coalesce(s.events, ''), coalesce(s.links, ''), s.origin,
        s.trace_state, s.dropped_attributes, s.dropped_events, s.dropped_links, s.precision_ns
    )) AS text_digest,
    text_digest AS digest
FROM span_rows s
JOIN ids ON ids.trace_id = s.trace_id AND ids.span_id = s.span_id;
