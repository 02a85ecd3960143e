-- Every span's place: traces whole, by their first start, then id; spans by start, end and id.
WITH traces AS (
    SELECT trace_id, min(start_ns) AS first_ns FROM span_rows GROUP BY trace_id
), ordered AS (
    SELECT s.row_no, s.size, s.trace_id, t.first_ns, s.start_ns, s.end_ns, s.span_id
    FROM span_rows s
    JOIN traces t ON t.trace_id = s.trace_id
)
SELECT row_no, size, trace_id
FROM ordered
ORDER BY first_ns NULLS LAST, trace_id, start_ns NULLS LAST, end_ns NULLS LAST, span_id;
