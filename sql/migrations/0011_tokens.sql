-- 0011: API tokens and what they may.
SET LOCAL search_path = mcpbox, pg_temp;
