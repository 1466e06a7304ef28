-- 0008: limits of servers, names of their tools and the module store are changed by
-- ADMIN_ACTION, as all else that administrators change without the vault
-- (common/admin/admin_action.def; tests/integration/admin/test_adminset.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- Sets all limits of a server. Each member of `limits` has the name of a limit,
-- and is a number or null. If a limit is null or absent, the configured default
-- holds. The table checks the bounds. p_seen is the SHA-256 of
-- server_limits_json(), and is required.
CREATE FUNCTION act_server_limits_set(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s uuid := act_server(p_id);
	known jsonb := server_limits_json(s::text)::jsonb -> 'limits';
	given json := p_body -> 'limits';
	l server_limits;
BEGIN
	IF json_typeof(given) IS DISTINCT FROM 'object' THEN
		PERFORM fail('invalid_params', 'member limits must be an object');
	END IF;
	IF EXISTS (SELECT FROM json_each(given) GROUP BY key HAVING count(*) > 1
	    OR NOT known ? key OR bool_or(json_typeof(value) NOT IN ('number', 'null'))) THEN
		PERFORM fail('invalid_params', 'limits has an unknown member, one member twice, or'
		    ' one that is neither null nor a number');
	END IF;
	l := json_populate_record(NULL::server_limits, given);
	RETURN set_server_limits(s, p_seen, p_actor, l.timeout_ms, l.memory_bytes, l.processes,
	    l.tmp_bytes, l.result_bytes, l.cpu_ms, l.files, l.file_bytes, l.stdout_bytes,
	    l.argument_bytes, l.log_rate, l.progress_rate, l.connections, l.network_bytes,
	    l.network_rate, l.code_bytes);
END $$;

-- The name for clients is part of the reviewed hash (version.h), so this never
-- changes the name of an approved version. The answer is empty, and REST
-- answers 204.
CREATE FUNCTION act_server_expose_set(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM set_server_expose(act_server(p_id)::text, p_body ->> 'expose', p_actor);
	RETURN '';
END $$;

-- Only uid 0 may do this: admind asks for the role root. The files are put into
-- the store separately, by contrib/module-add or by the installer (decision
-- 0052).
CREATE FUNCTION act_module_add(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM add_module(p_body ->> 'name', p_body ->> 'version',
	    decode(p_body ->> 'digest', 'hex'), coalesce((p_body ->> 'files')::bigint, 0),
	    coalesce((p_body ->> 'bytes')::bigint, 0), p_actor);
	RETURN NULL;
END $$;

CREATE FUNCTION act_module_withdraw(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM withdraw_module(p_body ->> 'name', p_body ->> 'version', p_actor);
	RETURN NULL;
END $$;

CREATE FUNCTION act_module_grant(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN json_build_object('granted', grant_module(p_body ->> 'tool', p_body ->> 'name',
	    coalesce(p_body ->> 'version', ''), p_actor))::text;
END $$;

-- Replaces the function of sql/schema/modules.sql. uid 0 may also name a tool
-- by the name that clients see.
CREATE OR REPLACE FUNCTION act_module_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said text := split_part(p_id, '/', 1);
	t tools;
BEGIN
	IF current_setting('mcpbox.role') <> 'root' OR NOT EXISTS (SELECT FROM tool_names n
	    WHERE n.exposed_name = said) THEN
		said := act_uuid(said, 'tool')::text;
	END IF;
	t := tool_named(said);
	RETURN json_build_object('tool_id', t.id, 'revoked', revoke_module(said,
	    split_part(p_id, '/', 2), coalesce(p_body ->> 'version', ''), p_actor))::text;
END $$;

REVOKE ALL ON FUNCTION act_server_limits_set, act_server_expose_set, act_module_add,
    act_module_withdraw, act_module_grant FROM PUBLIC;
