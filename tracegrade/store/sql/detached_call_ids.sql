-- Call ids that stand in traces of a few spans: tool calls that may have lost the trace that asked for them.
WITH small AS (SELECT trace_id FROM span_rows GROUP BY trace_id HAVING count(*) <= $most_spans)
SELECT DISTINCT value
FROM (
    SELECT unnest(json_extract_string(attributes, $paths)) AS value
    FROM span_rows
    SEMI JOIN small USING (trace_id)
)
WHERE value IS NOT NULL
