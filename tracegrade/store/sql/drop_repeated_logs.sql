DELETE FROM log_rows WHERE row_no IN (
    SELECT row_no FROM (
        SELECT row_no, row_number() OVER (
            PARTITION BY trace_id, span_id, time_ns, event_name, severity, origin, md5(body), md5(attributes)
            ORDER BY row_no
        ) AS copy
        FROM log_rows
    )
    WHERE copy > 1
);
