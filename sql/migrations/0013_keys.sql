-- 0013: versions of secrets; values under two keys.
SET LOCAL search_path = mcpbox, pg_temp;
