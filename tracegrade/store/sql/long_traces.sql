SELECT trace_id, count(*) AS n FROM span_rows GROUP BY trace_id HAVING count(*) > $limit ORDER BY trace_id;
