-- The author of a stop or a disabling, and who may undo it
-- (docs/decisions/0066-a-stop-keeps-its-authority.md).
--
-- A stop keeps its author: an authority (root by mcpboxctl, an administrator by
-- a login, a principal by a management tool), a name, a time and perhaps a
-- reason. Equal or higher authority undoes it, lower authority is refused.
--
-- A reason has at most 200 characters and 600 bytes. So it fits with two names,
-- a time and the next step into the 1024 bytes of an error (ERR_TEXT_MAX). The
-- error names an administrator, so that people can ask him about his act. It
-- does not name another client, because the name of a token does not concern
-- other tokens.

-- A higher rank undoes what a lower one did, not the other way round.
CREATE FUNCTION authority_rank(authority text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE authority WHEN 'root' THEN 2 WHEN 'administrator' THEN 1 ELSE 0 END
$$;

-- Returns the authority of this transaction. admin_act() sets mcpbox.role,
-- until the transaction ends, to the role that the vault told for the login.
-- import_server() sets it, too. Every other statement of admind acts for a
-- principal. A model can't set the role, since it only supplies arguments of
-- constant statements. A taken-over admind can set it, but gains nothing: it
-- could call act_server_start() just as well.
CREATE FUNCTION authority_now() RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN current_setting('mcpbox.role', true) IN ('administrator', 'root')
	    THEN current_setting('mcpbox.role', true) ELSE 'principal' END
$$;

CREATE FUNCTION stop_told(p_what text, p_done text, p_by text, p_authority text,
    p_at timestamptz, p_reason text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT p_what || ' was ' || p_done || CASE p_authority WHEN 'root' THEN
	    ' by root (mcpboxctl)' WHEN 'administrator' THEN ' by the administrator ' || p_by
	    ELSE ' by a client' END || ' at ' || mcpbox.json_time(p_at)
	    || coalesce(', reason: "' || p_reason || '"', '')
$$;

-- p_ctl: root's command; p_tool: the management tool that undoes a client's act.
CREATE FUNCTION stop_next(p_authority text, p_verb text, p_ctl text, p_tool text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE p_authority WHEN 'root' THEN '; only root can ' || p_verb || ' it, with '
	    || p_ctl || ': ask whoever administers this machine, no management tool does it'
	    WHEN 'administrator' THEN '; only an administrator can ' || p_verb
	    || ' it: ask one, no management tool does it'
	    ELSE '; ' || p_tool || ' undoes that' END
$$;

CREATE FUNCTION server_stop_words(s servers, p_verb text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT mcpbox.stop_told('the server ' || s.name, 'stopped', s.stopped_by,
	    s.stopped_authority, s.stopped_at, s.stopped_reason)
	    || mcpbox.stop_next(s.stopped_authority, p_verb, 'mcpboxctl servers ' || p_verb || ' '
	    || s.name, 'mcpbox_start_server')
$$;

CREATE FUNCTION tool_stop_words(t tools, p_verb text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT mcpbox.stop_told('the ' || t.object || ' ' || v.exposed_name, 'disabled',
	    t.disabled_by, t.disabled_authority, t.disabled_at, t.disabled_reason)
	    || mcpbox.stop_next(t.disabled_authority, p_verb, 'mcpboxctl tools '
	    || CASE p_verb WHEN 'rename' THEN 'describe' ELSE p_verb END || ' ' || v.exposed_name,
	    'mcpbox_update_' || CASE t.object WHEN 'template' THEN 'resource' ELSE t.object END
	    || ' with enabled: true')
	FROM mcpbox.tool_versions v WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1
$$;

-- Returns the sentence for a caller if the server is stopped or the tool is
-- disabled, otherwise null. If both are, the sentence tells of the act of the
-- higher authority. Otherwise somebody would undo the act of the lower one in
-- vain.
CREATE FUNCTION call_stopped(p_server uuid, p_tool uuid) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN s.status = 'stopped' AND (t.enabled
	    OR mcpbox.authority_rank(s.stopped_authority)
	    >= mcpbox.authority_rank(t.disabled_authority))
	    THEN mcpbox.server_stop_words(s, 'start')
	    WHEN NOT t.enabled THEN mcpbox.tool_stop_words(t, 'enable') END
	FROM mcpbox.servers s, mcpbox.tools t WHERE s.id = p_server AND t.id = p_tool
$$;

-- Fails if a higher authority than this one stopped the server. p_verb says
-- what the caller wants to do: start, enable, delete, rename.
CREATE FUNCTION server_held(s servers, p_verb text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF s.status = 'stopped'
	    AND authority_rank(s.stopped_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', server_stop_words(s, p_verb));
	END IF;
END $$;

-- Fails in the same case, for a change that would free a name or a URI of one
-- of the server's objects.
CREATE FUNCTION server_keeps(s servers) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF s.status = 'stopped'
	    AND authority_rank(s.stopped_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', 'nothing of a stopped server is deleted or renamed: '
		    || server_stop_words(s, 'start'));
	END IF;
END $$;

CREATE FUNCTION tool_held(t tools, p_verb text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT t.enabled
	    AND authority_rank(t.disabled_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', tool_stop_words(t, p_verb));
	END IF;
END $$;

CREATE FUNCTION stop_reason(p_reason text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said text := nullif(btrim(p_reason, E' \t\r\n'), '');
BEGIN
	IF NOT stop_reason_ok(said) THEN
		PERFORM fail('invalid_params', 'a reason has at most 200 characters and 600 bytes, none of them'
		    ' a control character: clients are shown it');
	END IF;
	RETURN said;
END $$;

GRANT EXECUTE ON FUNCTION authority_rank, stop_told, stop_next,
    server_stop_words, tool_stop_words, call_stopped TO mcpbox_app;
