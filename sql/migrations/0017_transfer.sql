-- 0017: export and import.
SET LOCAL search_path = mcpbox, pg_temp;
