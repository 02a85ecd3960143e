-- Values of some attributes that stand in more than one trace: $paths are JSON paths, one an attribute.
SELECT value
FROM (
    SELECT DISTINCT trace_id, unnest(json_extract_string(attributes, $paths)) AS value
    FROM span_rows
)
WHERE value IS NOT NULL
GROUP BY value
HAVING count(*) > 1
