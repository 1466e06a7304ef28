-- 0018: indexes for a million records and ten thousand tools.
SET LOCAL search_path = mcpbox, pg_temp;
