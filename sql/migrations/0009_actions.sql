-- 0009: what administrators change, each by one function.
SET LOCAL search_path = mcpbox, pg_temp;
