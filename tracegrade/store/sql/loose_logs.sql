SELECT l.trace_id, l.span_id, l.time_ns, l.event_name, l.severity, l.body, l.attributes, l.origin
FROM log_rows l
WHERE NOT EXISTS (SELECT 1 FROM span_rows s WHERE s.trace_id = l.trace_id AND s.span_id = l.span_id)
ORDER BY l.time_ns NULLS LAST, l.trace_id NULLS LAST, l.span_id NULLS LAST, l.event_name NULLS LAST,
    l.severity, l.body, l.attributes, l.origin;
