-- 0010: servers, versions and tools over their whole life.
SET LOCAL search_path = mcpbox, pg_temp;
