-- Copies of one span whose texts differ: they may still be equal as JSON.
SELECT r.row_no, s.attributes, s.events, s.links, s.parent_span_id, s.name, s.kind, s.start_ns, s.end_ns, s.status_code,
    s.status_message, s.origin, s.trace_state, s.dropped_attributes, s.dropped_events, s.dropped_links, s.precision_ns
FROM repeated r
JOIN span_rows s ON s.row_no = r.row_no
WHERE (r.trace_id, r.span_id) IN (
    SELECT (trace_id, span_id) FROM repeated GROUP BY trace_id, span_id HAVING count(DISTINCT digest) > 1
)
ORDER BY r.row_no;
