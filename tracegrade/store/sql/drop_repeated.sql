DELETE FROM span_rows WHERE row_no IN (SELECT row_no FROM ranked WHERE NOT keep);
