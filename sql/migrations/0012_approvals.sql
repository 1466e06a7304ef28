-- 0012: modules, network access and policies of review.
SET LOCAL search_path = mcpbox, pg_temp;
