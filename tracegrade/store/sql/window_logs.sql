SELECT trace_id, span_id, time_ns, event_name, severity, body, attributes, origin
FROM log_rows
WHERE trace_id IN (SELECT unnest($traces)) AND span_id IS NOT NULL
ORDER BY trace_id, span_id, time_ns NULLS LAST, event_name NULLS LAST, severity, body, attributes, origin;
