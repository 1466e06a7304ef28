-- Answers of management tools. Their JSON is made here, whole, since admind
-- parses none. A schema goes in as the bytes that were hashed. A function that
-- makes a change first makes it, and then shows the result.

-- mcpbox_get_server. p_timeout is the configured limit of a call. `stopped` is
-- the sentence that a caller is told, or null.
CREATE FUNCTION manage_get_server(p_id uuid, p_timeout bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', s.name,
	    'description', s.description, 'status', s.status,
	    'stopped', CASE s.status WHEN 'stopped' THEN server_stop_words(s, 'start') END,
	    'expose', s.expose,
	    'allowed_hosts', server_hosts(s.id),
	    'default_timeout_ms', coalesce((SELECT l.timeout_ms FROM server_limits l
		WHERE l.server_id = s.id), p_timeout),
	    'created_at', json_time(s.created_at), 'updated_at', json_time(s.updated_at),
	    'tools', (SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name,
		'description', v.description, 'enabled', t.enabled,
		'approval_status', v.state) ORDER BY t.name), '[]')
		FROM (SELECT * FROM tools x WHERE x.server_id = s.id AND x.object = 'tool'
		    AND x.deleted_at IS NULL ORDER BY x.name LIMIT 50) t
		JOIN LATERAL (SELECT * FROM tool_versions y WHERE y.tool_id = t.id
		    ORDER BY y.version_no DESC LIMIT 1) v ON true),
	    'tool_count', (SELECT count(*) FROM tools t WHERE t.server_id = s.id
		AND t.object = 'tool' AND t.deleted_at IS NULL),
	    'pending_requests', (SELECT json_build_object(
		'modules', count(*) FILTER (WHERE a.kind = 'module'),
		'network', count(*) FILTER (WHERE a.kind = 'network'),
		'tools', count(*) FILTER (WHERE a.kind = 'tool'))
		FROM approval_requests a WHERE a.server_id = s.id AND a.state = 'pending'))
	    FROM servers s WHERE s.id = p_id AND s.deleted_at IS NULL);
END $$;

-- mcpbox_get_tool: one whole version of an object (p_version null: the newest).
CREATE FUNCTION manage_get_tool(p_id uuid, p_version bigint, p_timeout bigint)
RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	v tool_versions;
BEGIN
	SELECT * INTO t FROM tools WHERE id = p_id AND deleted_at IS NULL;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	SELECT * INTO v FROM tool_versions x WHERE x.tool_id = p_id
	    AND (p_version IS NULL OR x.version_no = p_version)
	    ORDER BY x.version_no DESC LIMIT 1;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'it has no version ' || p_version);
	END IF;
	RETURN json_members((SELECT json_build_object('id', t.id, 'server_id', t.server_id,
	    'server_name', s.name, 'name', v.name, 'exposed_name', v.exposed_name,
	    'object', t.object, 'enabled', t.enabled,
	    'timeout_ms', coalesce(v.timeout_ms, l.timeout_ms, p_timeout),
	    'version', v.version_no, 'current_version', (SELECT max(x.version_no)
		FROM tool_versions x WHERE x.tool_id = p_id),
	    'serving_version', (SELECT x.version_no FROM tool_versions x
		WHERE x.id = t.serving_version),
	    'approval_status', v.state, 'version_hash', encode(v.hash, 'hex'),
	    'change_source', v.change_source, 'change_summary', v.change_note,
	    'created_by', v.created_by, 'created_at', json_time(v.created_at))
	    FROM servers s LEFT JOIN server_limits l ON l.server_id = s.id
	    WHERE s.id = t.server_id), version_content(v));
END $$;

-- mcpbox_list_tool_versions
CREATE FUNCTION manage_list_versions(p_id uuid, p_page bigint, p_size bigint)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('tool_id', t.id, 'tool_name', t.name,
	    'current_version', (SELECT max(x.version_no) FROM tool_versions x
		WHERE x.tool_id = t.id),
	    'serving_version', (SELECT x.version_no FROM tool_versions x
		WHERE x.id = t.serving_version),
	    'total_versions', (SELECT count(*) FROM tool_versions x WHERE x.tool_id = t.id),
	    'versions', (SELECT coalesce(json_agg(version_line(v, t.serving_version)
		ORDER BY v.version_no DESC), '[]') FROM (SELECT x.* FROM tool_versions x
		WHERE x.tool_id = t.id ORDER BY x.version_no DESC
		LIMIT p_size OFFSET (p_page - 1) * p_size) v),
	    'page', p_page, 'page_size', p_size)
	    FROM tools t WHERE t.id = p_id AND t.deleted_at IS NULL);
END $$;

CREATE FUNCTION manage_get_logs(p_id uuid, p_limit bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	longest int := greatest(500, least(4000, 20000 / p_limit));
BEGIN
	RETURN (SELECT json_build_object('tool_id', t.id, 'tool_name', t.name,
	    'logs', coalesce(l.logs, '[]'), 'total', coalesce(json_array_length(l.logs), 0))
	    FROM tools t LEFT JOIN LATERAL (SELECT json_agg(json_build_object('id', x.id,
		'kind', x.kind, 'success', CASE x.state WHEN 'closed' THEN x.outcome = 'done' END,
		'outcome', x.outcome, 'failure_mode', x.failure,
		'duration_ms', (extract(epoch FROM x.ended_at
		    - coalesce(x.started_at, x.created_at)) * 1000)::bigint,
		'version', x.version_no,
		'error', CASE WHEN x.outcome <> 'done' THEN
		    coalesce(left(x.result, longest), replace(x.failure, '_', ' ')) END,
		'input_args', json_or_text(left(x.arguments, longest)),
		'result', CASE WHEN x.outcome = 'done' THEN
		    json_or_text(left(x.result, longest)) END,
		'stdout', left(x.stdout, longest),
		'network', (SELECT coalesce(json_agg(k.c ORDER BY k.i), '[]') FROM (SELECT c, i,
		    sum(length(c::text)) OVER (ORDER BY i) AS n
		    FROM json_array_elements(coalesce(x.network, '[]')) WITH ORDINALITY a (c, i)) k
		    WHERE k.n <= longest),
		'executed_by', x.principal,
		'created_at', json_time(x.created_at)) ORDER BY x.created_at DESC, x.id DESC) AS logs
		FROM (SELECT e.*, v.version_no FROM
		    (SELECT DISTINCT n.exposed_name FROM tool_versions n WHERE n.tool_id = t.id) k
		    CROSS JOIN LATERAL executions_of_tool(k.exposed_name,
			'{tool,test,management}', p_limit) e
		    JOIN tool_versions v ON v.id = e.version_id AND v.tool_id = t.id
		    ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit) x) l ON true
	    WHERE t.id = p_id AND t.deleted_at IS NULL);
END $$;

-- mcpbox_get_server_modules, with the state of requests.
CREATE FUNCTION manage_get_modules(p_page bigint, p_size bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint := (SELECT count(*) FROM modules WHERE state = 'available');
BEGIN
	RETURN json_build_object('is_custom_config', n > 0,
	    'allowed_modules', (SELECT coalesce(json_agg(m.name || '==' || m.version
		ORDER BY m.name, m.version), '[]') FROM (SELECT * FROM modules x
		WHERE x.state = 'available' ORDER BY x.name, x.version
		LIMIT p_size OFFSET (p_page - 1) * p_size) m),
	    'default_modules', '["the Python standard library"]'::json,
	    'total_allowed', n, 'page', p_page, 'page_size', p_size,
	    'installing', (SELECT coalesce(json_agg(json_build_object('module', x.name
		|| CASE x.version WHEN '' THEN '' ELSE '==' || x.version END,
		'state', x.state, 'error', x.error) ORDER BY x.updated_at DESC), '[]')
		FROM (SELECT * FROM module_installs i WHERE i.state <> 'done'
		ORDER BY i.updated_at DESC LIMIT 50) x),
	    'description', 'Each tool has the whole standard library. The packages of'
	    ' allowed_modules are in the store; a tool may use one once an administrator'
	    ' granted it to that tool (mcpbox_request_module). What is asked for and not'
	    ' there is fetched from the package index, if one is configured, and its'
	    ' dependencies are asked for with it: name them all in modules.');
END $$;

-- mcpbox_list_server_secrets
CREATE FUNCTION manage_list_secrets(p_id uuid, p_page bigint, p_size bigint)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('server_id', s.id, 'server_name', s.name,
	    'secrets', (SELECT coalesce(json_agg(json_build_object('key', k.key,
		'description', k.description, 'has_value', k.value IS NOT NULL)
		ORDER BY k.key), '[]') FROM (SELECT * FROM server_secrets x
		WHERE x.server_id = s.id ORDER BY x.key
		LIMIT p_size OFFSET (p_page - 1) * p_size) k),
	    'total', (SELECT count(*) FROM server_secrets x WHERE x.server_id = s.id),
	    'page', p_page, 'page_size', p_size)
	    FROM servers s WHERE s.id = p_id AND s.deleted_at IS NULL);
END $$;

-- mcpbox_list_external_sources
CREATE FUNCTION manage_list_sources(p_id uuid, p_page bigint, p_size bigint)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('server_id', s.id, 'server_name', s.name,
	    'sources', (SELECT coalesce(json_agg(source_json(k) ORDER BY k.name), '[]')
		FROM (SELECT x.* FROM external_sources x WHERE x.server_id = s.id
		ORDER BY x.name LIMIT p_size OFFSET (p_page - 1) * p_size) k),
	    'total', (SELECT count(*) FROM external_sources x WHERE x.server_id = s.id),
	    'page', p_page, 'page_size', p_size)
	    FROM servers s WHERE s.id = p_id AND s.deleted_at IS NULL);
END $$;

-- mcpbox_validate_code. p_schema was made from the signature of the code.
CREATE FUNCTION manage_validated(p_schema bytea) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s json := json_bytes(p_schema);
	needed jsonb := coalesce((s -> 'required')::jsonb, '[]');
BEGIN
	RETURN json_build_object('valid', true, 'has_main', true, 'error', NULL,
	    'parameters', (SELECT coalesce(json_agg(json_build_object('name', p.key,
		'type', CASE json_typeof(p.value -> 'type') WHEN 'string' THEN p.value ->> 'type'
		    WHEN 'array' THEN (SELECT string_agg(x, '|')
			FROM json_array_elements_text(p.value -> 'type') x)
		    ELSE 'any' END,
		'required', needed ? p.key)), '[]')
		FROM json_each(coalesce(s -> 'properties', '{}')) p),
	    'input_schema', s);
END $$;

-- mcpbox_test_code. p_body is a CallToolResult and p_meta its _meta; the runner
-- made both. U+0000 is text in JSON, but not in PostgreSQL.
CREATE FUNCTION manage_tested(p_body bytea, p_meta bytea, p_failure text, p_ms bigint,
    p_version bigint, p_execution uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	body json := json_bytes(p_body);
	readable json := replace(body::text, '\u0000', '\ufffd')::json;
	meta json := replace(convert_from(p_meta, 'UTF8'), '\u0000', '\ufffd')::json;
	good boolean := p_failure IS NULL AND coalesce(readable ->> 'isError', 'false') <> 'true';
BEGIN
	RETURN json_build_object('success', good,
	    'result', CASE WHEN good THEN body END,
	    'error', CASE WHEN NOT good THEN coalesce(readable -> 'content' -> 0 ->> 'text',
		replace(p_failure, '_', ' '), 'it failed') END,
	    'failure_mode', coalesce(p_failure, CASE WHEN NOT good THEN 'exception' END),
	    'stdout', coalesce(meta -> 'mcpbox/execution' ->> 'stdout', ''),
	    'duration_ms', p_ms, 'version', p_version, 'execution_id', p_execution);
END $$;

CREATE FUNCTION manage_update_server(p_id uuid, p_description text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM update_server(p_id, p_description, p_actor);
	RETURN (SELECT json_build_object('success', true, 'id', s.id, 'name', s.name,
	    'description', s.description, 'message', 'The description is changed.')
	    FROM servers s WHERE s.id = p_id);
END $$;

CREATE FUNCTION manage_delete_server(p_id uuid, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint := delete_server(p_id, p_actor);
	gone text := (SELECT split_part(name, '@', 1) FROM servers WHERE id = p_id);
BEGIN
	RETURN json_build_object('success', true, 'server_id', p_id, 'name', gone,
	    'deleted_tools', n, 'message', 'The server is deleted with all it had, and its'
	    ' name is free. Versions and records are kept.');
END $$;

CREATE FUNCTION manage_rollback(p_new uuid, p_id uuid, p_version bigint, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made record;
BEGIN
	SELECT * INTO made FROM rollback_version(p_new, p_id, p_version::int, p_actor);
	RETURN json_build_object('success', true, 'tool_id', p_id, 'name', made.name,
	    'current_version', made.version_no, 'from_version', p_version,
	    'approval_status', 'draft', 'version_hash', encode(made.hash, 'hex'),
	    'message', 'Version ' || made.version_no || ' is a draft with the content of version '
	    || p_version || '. It needs review: mcpbox_request_publish. An approved version,'
	    ' if there is one, serves on.');
END $$;

-- Makes the name of a secret. An administrator sets its value.
CREATE FUNCTION manage_create_secret(p_server uuid, p_key text, p_description text,
    p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_server);
BEGIN
	PERFORM secret_create(p_server, p_key, coalesce(p_description, ''), p_actor);
	RETURN json_build_object('success', true, 'server_id', s.id, 'key', p_key,
	    'description', coalesce(p_description, ''), 'has_value', false,
	    'message', 'The secret has a name and no value yet: an administrator sets it'
	    ' (mcpboxctl secret set ' || s.name || ' ' || p_key || '). Name it in secrets of'
	    ' the tool that reads it.');
END $$;

-- mcpbox_add_external_source
CREATE FUNCTION manage_add_source(p_id uuid, p_server uuid, p_name text, p_url text,
    p_auth text, p_secret text, p_header text, p_transport text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM add_source(p_id, p_server, p_name, p_url, coalesce(p_auth, 'none'), p_secret,
	    p_header, coalesce(p_transport, 'streamable_http'), p_actor);
	RETURN (SELECT json_build_object('success', true, 'source_id', x.id, 'name', x.name,
	    'url', x.url, 'auth_type', x.auth_type, 'transport_type', x.transport_type,
	    'tool_id', x.tool_id, 'approval_status', 'pending_review',
	    'message', 'The source waits for an administrator, as does network access to its'
	    || ' host (mcpbox_list_pending_requests). Once both are approved,'
	    || ' mcpbox_discover_external_tools lists what it has.')
	    FROM external_sources x WHERE x.id = p_id);
END $$;

GRANT EXECUTE ON FUNCTION manage_get_server, manage_get_tool,
    manage_list_versions, manage_get_logs, manage_get_modules,
    manage_list_secrets, manage_list_sources, manage_validated, manage_tested,
    manage_update_server, manage_delete_server, manage_rollback,
    manage_create_secret, manage_add_source TO mcpbox_app;
