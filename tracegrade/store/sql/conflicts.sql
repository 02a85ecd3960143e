SELECT trace_id, span_id, count(DISTINCT digest) AS versions
FROM ranked
GROUP BY trace_id, span_id
HAVING count(DISTINCT digest) > 1
ORDER BY trace_id, span_id;
