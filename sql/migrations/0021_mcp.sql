-- 0021: other MCP servers (decision 0050).
SET LOCAL search_path = mcpbox, pg_temp;
