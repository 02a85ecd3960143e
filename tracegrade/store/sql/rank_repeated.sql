-- Which copy stays (keep), and whether each copy is the first of its id, a duplicate of an earlier one, or a conflict.
CREATE OR REPLACE TEMP TABLE ranked AS
SELECT
    row_no, trace_id, span_id, digest,
    row_number() OVER (
        PARTITION BY trace_id, span_id ORDER BY unfinished, precision_ns, size DESC, digest, text_digest, flags DESC, row_no
    ) = 1 AS keep,
    CASE
        WHEN row_no = min(row_no) OVER (PARTITION BY trace_id, span_id) THEN 'first'
        WHEN row_no = min(row_no) OVER (PARTITION BY trace_id, span_id, digest) THEN 'conflict'
        ELSE 'duplicate'
    END AS role
FROM repeated;
