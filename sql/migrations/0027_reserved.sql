-- 0027: nothing. The number is another branch's; this file goes when that is merged.
SET LOCAL search_path = mcpbox, pg_temp;
