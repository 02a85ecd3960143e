DELETE FROM origins
WHERE rowid NOT IN (SELECT min(rowid) FROM origins GROUP BY origin)
    OR origin NOT IN (SELECT origin FROM span_rows UNION ALL SELECT origin FROM log_rows);
