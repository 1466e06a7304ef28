-- 0006: administrators choose how a server's tools are named for clients. The
-- name is part of a version's hash (0001: tool_versions_insert), so only
-- versions made after this bear the other form.
SET LOCAL search_path = mcpbox, pg_temp;

-- What clients see has at most 64 characters (decision 0021); a name alone may
-- have as many, where nothing stands before it.
ALTER TABLE tools DROP CONSTRAINT tools_name_check,
	ADD CONSTRAINT tools_name_check CHECK (name_ok(name, 64));
ALTER TABLE tool_versions DROP CONSTRAINT tool_versions_name_check,
	ADD CONSTRAINT tool_versions_name_check CHECK (name_ok(name, 64)),
	ADD CONSTRAINT tool_versions_exposed_name_check CHECK (length(exposed_name) <= 64);

CREATE FUNCTION set_server_expose(p_server text, p_expose text, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
BEGIN
	SELECT * INTO s FROM servers WHERE name = p_server OR id::text = p_server FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF p_expose NOT IN ('prefixed', 'bare') THEN
		PERFORM fail('invalid_params', 'expose must be prefixed or bare');
	END IF;
	IF s.expose = p_expose THEN
		RETURN;
	END IF;
	UPDATE servers SET expose = p_expose WHERE id = s.id;
	PERFORM audit_append(p_actor, 'server_expose_set', 'server ' || s.name,
	    json_build_object('server_id', s.id, 'expose', p_expose)::text);
END $$;
REVOKE ALL ON FUNCTION set_server_expose FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_server_expose TO mcpbox_app;
