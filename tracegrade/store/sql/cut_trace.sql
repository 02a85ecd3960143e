DELETE FROM span_rows WHERE row_no IN (
    SELECT row_no FROM span_rows WHERE trace_id = $trace_id
    ORDER BY start_ns NULLS LAST, end_ns NULLS LAST, span_id
    OFFSET $limit
);
