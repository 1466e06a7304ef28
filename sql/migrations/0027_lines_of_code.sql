-- 0027: no version holds code whose lines are not the lines that its reviewer reads
-- (common/version_gate.c, docs/decisions/0065; tests/database/test_lines.py).
--
-- For versions that are made here (imports, rollbacks), and a sentence for their
-- authors. The vault asks again before it seals an approval, and does not ask us.
-- Versions that are there already stay as they are: what was approved serves on,
-- what was not is not approved any more.
SET LOCAL search_path = mcpbox, pg_temp;

CREATE FUNCTION tool_versions_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	code text := mcpbox.version_text(NEW.preimage, 15);
	-- up to the first of: C0 but tab and newline, DEL, C1, the two separators
	-- and the byte order mark
	fine text := substring(code FROM
	    '^[^\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]*');
BEGIN
	IF length(fine) < length(code) THEN
		PERFORM mcpbox.fail('invalid_arguments', format('code: character %s of line %s is U+%s,'
		    ' which ends a line for some readers and not for others, or shows nothing: end'
		    ' lines with U+000A alone, and write an escape (\r, \f, \x85, \u2028) in a string',
		    length(fine) - length(substring(fine FROM '^(?:.*\n)?')) + 1,
		    length(fine) - length(replace(fine, E'\n', '')) + 1,
		    upper(lpad(to_hex(ascii(substr(code, length(fine) + 1, 1))), 4, '0'))));
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER lines BEFORE INSERT ON tool_versions FOR EACH ROW
    EXECUTE FUNCTION tool_versions_lines();
REVOKE ALL ON FUNCTION tool_versions_lines FROM PUBLIC;
