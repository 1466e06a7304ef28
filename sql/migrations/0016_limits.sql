-- 0016: rate limits that hold across nodes.
SET LOCAL search_path = mcpbox, pg_temp;
