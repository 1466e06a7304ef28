-- 0020: tools of kind http (decision 0048).
SET LOCAL search_path = mcpbox, pg_temp;
