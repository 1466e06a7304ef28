-- 0018: lists of tools by words and by kind of object
-- (tests/database/test_scale.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- Finds objects of one kind in the order of their ids.
CREATE INDEX tools_object_idx ON tools (object, id);
-- Finds versions in any state by their words. tool_versions_words_idx has only
-- approved ones, which clients search.
CREATE INDEX tool_versions_all_words_idx ON tool_versions USING gin (words);

-- Makes a query for all of these words: "red shirt" becomes 'red':* & 'shirt':*.
-- A word may be the beginning of another. Without words, nothing is found.
CREATE FUNCTION every_word(p_words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT SET search_path = mcpbox, pg_temp AS $$
	SELECT replace(search_query(p_words)::text, ' | ', ' & ')::tsquery
$$;

REVOKE ALL ON FUNCTION every_word FROM PUBLIC;
GRANT EXECUTE ON FUNCTION every_word TO mcpbox_app;
