-- 0019: network grants in contexts and records (decision 0047).
SET LOCAL search_path = mcpbox, pg_temp;
