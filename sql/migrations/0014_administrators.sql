-- 0014: administrators, their logins; the audit chain.
SET LOCAL search_path = mcpbox, pg_temp;
