-- 0022: the module store and its installer (decision 0052).
SET LOCAL search_path = mcpbox, pg_temp;
