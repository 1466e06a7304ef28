-- 0015: records: redaction, search, retention.
SET LOCAL search_path = mcpbox, pg_temp;
