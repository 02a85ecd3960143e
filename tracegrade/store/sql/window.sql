SELECT row_no, trace_id, span_id, parent_span_id, name, kind, coalesce(start_ns, -1) AS start_ns,
    coalesce(end_ns, -1) AS end_ns, status_code, status_message, attributes, events, links, origin, trace_state,
    flags, dropped_attributes, dropped_events, dropped_links, precision_ns
FROM span_rows
WHERE row_no BETWEEN $low AND $high
