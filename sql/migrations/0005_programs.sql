-- 0005: the program and the arguments of a command, for the export of records
-- (admind/adminq_records.c), and circuit breakers that open sooner
-- (docs/decisions/0082).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Commands. The version has the program and the places of its arguments. The
-- record has what the caller put into these places.

-- Returns one item of argv, with its places filled as by
-- sandboxd/runner/harness/mcpbox_command.py. Null: an argument was not given,
-- so the item was left out.
CREATE FUNCTION command_item(p_item text, p_given jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	out text := '';
	rest text := p_item;
	place text[];
	value jsonb;
BEGIN
	LOOP
		place := regexp_match(rest, '^(.*?)\{([A-Za-z_][A-Za-z0-9_]*)\}(.*)$');
		IF place IS NULL THEN
			RETURN out || rest;
		END IF;
		value := p_given -> place[2];
		IF value IS NULL OR jsonb_typeof(value) = 'null' THEN
			RETURN NULL;
		END IF;
		out := out || place[1] || CASE jsonb_typeof(value)
		    WHEN 'string' THEN value #>> '{}' ELSE value::text END;
		rest := place[3];
	END LOOP;
END $$;

-- Returns the program of a command's version and the program's arguments. Null:
-- the version is no command. If a record has cut the caller's arguments, they
-- are no JSON any more, and the places stay as they are. The function runs as
-- its owner, because the run-time role may not take a version apart itself.
CREATE FUNCTION command_argv(p_version uuid, p_arguments text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	version bytea := (SELECT v.preimage FROM tool_versions v WHERE v.id = p_version
	    AND version_text(v.preimage, 14) = 'command');
	given jsonb;
BEGIN
	IF version IS NULL THEN
		RETURN NULL;
	END IF;
	BEGIN
		given := p_arguments::jsonb;
	EXCEPTION WHEN data_exception THEN
		given := NULL;
	END;
	RETURN jsonb_build_array(version_text(version, 18)) || coalesce((
	    SELECT jsonb_agg(item ORDER BY at)
	    FROM (SELECT at, CASE WHEN given IS NULL THEN i ELSE command_item(i, given) END AS item
	        FROM jsonb_array_elements_text(version_text(version, 16)::jsonb -> 'argv')
	        WITH ORDINALITY AS x(i, at)) y
	    WHERE item IS NOT NULL), '[]');
END $$;

-- Returns the program's exit code in a record's result. Null: a signal ended
-- the program, the program did not begin, or the record was cut before the exit
-- code.
CREATE FUNCTION command_exit_code(p_result text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(
	    substring(p_result FROM '"structuredContent":\{"exit_code":([0-9]{1,3})[,}]'),
	    substring(p_result FROM 'The command ended with exit code ([0-9]{1,3})\.'))::int
$$;

---------------------------------------------------------------------------
-- Breakers. A value that an administrator has set stays.

UPDATE setting_keys SET "default" = x.value FROM (VALUES
    ('breaker_session_calls', '1000'), ('breaker_session_repeats', '20'),
    ('breaker_session_errors', '10'), ('breaker_principal_calls', '10000'),
    ('breaker_principal_repeats', '100'), ('breaker_principal_errors', '50')) AS x(key, value)
WHERE setting_keys.key = x.key;

---------------------------------------------------------------------------
REVOKE ALL ON FUNCTION command_item, command_argv, command_exit_code FROM PUBLIC;
GRANT EXECUTE ON FUNCTION command_argv, command_exit_code TO mcpbox_app;
