-- 0006: help for authors: names where ids are taken, contradictions between a
-- schema and main, one whole record, and the needs of an imported document's
-- tools (tests/database/test_authors.py, tests/integration/test_authors.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- Each line of p_refs is a kind and a name. Returns a row for each line, in
-- their order: how many objects the line can mean, the id of one, and the whole
-- names of the first few. A server is named by its own name. Any other object
-- is named by its name in its server, or by server__name. Only objects that the
-- token may name are found (null, null: everything).
CREATE FUNCTION manage_named(p_refs text, p_allow text, p_deny text)
RETURNS TABLE (n bigint, id uuid, likes text)
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT count(x.id), min(x.id::text)::uuid, coalesce(string_agg(x.whole, ', '
	    ORDER BY x.whole) FILTER (WHERE x.nth <= 5), '')
	FROM unnest(string_to_array(p_refs, E'\n')) WITH ORDINALITY r(ref, pos)
	CROSS JOIN LATERAL (SELECT split_part(r.ref, ' ', 1) AS kind,
	    split_part(r.ref, ' ', 2) COLLATE "C" AS name) k
	LEFT JOIN LATERAL (SELECT y.*, row_number() OVER (ORDER BY y.whole) AS nth FROM (
		SELECT s.id, s.name AS whole FROM servers s
		WHERE k.kind = 'server' AND s.name = k.name AND s.deleted_at IS NULL
		    AND token_permits_ids(p_allow, p_deny, s.id, NULL)
		UNION ALL
		SELECT t.id, s.name || '__' || t.name FROM tools t
		    JOIN servers s ON s.id = t.server_id
		WHERE (t.name = k.name OR (s.name = split_part(k.name, '__', 1)
			AND t.name = substr(k.name, length(s.name) + 3)))
		    AND (k.kind = 'tool' OR (k.kind = 'prompt' AND t.object = 'prompt')
			OR (k.kind = 'resource' AND t.object IN ('resource', 'template')))
		    AND t.deleted_at IS NULL AND s.deleted_at IS NULL
		    AND token_permits_ids(p_allow, p_deny, NULL, t.id)
		UNION ALL
		SELECT e.id, s.name || '__' || e.name FROM external_sources e
		    JOIN servers s ON s.id = e.server_id
		WHERE k.kind = 'source' AND (e.name = k.name OR (s.name = split_part(k.name, '__', 1)
			AND e.name = substr(k.name, length(s.name) + 3)))
		    AND s.deleted_at IS NULL
		    AND token_permits_ids(p_allow, p_deny, s.id, NULL)) y) x ON true
	GROUP BY r.pos ORDER BY r.pos
$$;

-- Returns the JSON Schema types that a schema names outright, or null.
CREATE FUNCTION schema_types(p json) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT CASE WHEN 'number' = ANY (t) THEN t || 'integer'::text ELSE t END
	FROM (SELECT CASE json_typeof(p -> 'type')
	    WHEN 'string' THEN ARRAY[p ->> 'type']
	    WHEN 'array' THEN ARRAY(SELECT json_array_elements_text(p -> 'type')) END AS t) x
$$;

-- Returns where the schema that an author gave (p_given) contradicts the schema
-- of main's signature (p_main): it lets in what main does not take, or leaves
-- out what main needs. Null: nowhere. Only certain contradictions are found:
-- names of properties, types that both schemas name and that have nothing in
-- common, and required properties if no other keyword could require them.
CREATE FUNCTION schema_contradiction(p_given bytea, p_main bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	given json := replace(convert_from(p_given, 'UTF8'), '\u0000', '\ufffd')::json;
	main json := replace(convert_from(p_main, 'UTF8'), '\u0000', '\ufffd')::json;
	said text[] := '{}';
	p record;
BEGIN
	IF json_typeof(given) <> 'object' OR json_typeof(main) <> 'object' THEN
		RETURN NULL;
	END IF;
	FOR p IN SELECT g.key, g.value, m.value AS main FROM json_each(CASE
		json_typeof(given -> 'properties') WHEN 'object' THEN given -> 'properties' END) g
	    LEFT JOIN json_each(main -> 'properties') m USING (key) ORDER BY g.key LIMIT 200 LOOP
		IF p.main IS NULL THEN
			IF (main ->> 'additionalProperties') = 'false' THEN
				said := said || format('it has %s, which main does not take',
				    left(p.key, 80));
			END IF;
		ELSIF json_typeof(p.value) = 'object' AND json_typeof(p.main) = 'object'
		    AND NOT schema_types(p.value) && schema_types(p.main) THEN
			said := said || format('%s is %s there and %s in main', left(p.key, 80),
			    array_to_string(ARRAY(SELECT json_array_elements_text(CASE
			    json_typeof(p.value -> 'type') WHEN 'array' THEN p.value -> 'type'
			    ELSE json_build_array(p.value -> 'type') END)), ' or '),
			    array_to_string(ARRAY(SELECT json_array_elements_text(CASE
			    json_typeof(p.main -> 'type') WHEN 'array' THEN p.main -> 'type'
			    ELSE json_build_array(p.main -> 'type') END)), ' or '));
		END IF;
	END LOOP;
	IF NOT EXISTS (SELECT 1 FROM json_object_keys(given) k WHERE k IN ('$ref', '$dynamicRef',
	    'allOf', 'anyOf', 'oneOf', 'not', 'if', 'minProperties')) THEN
		FOR p IN SELECT m AS key FROM json_array_elements_text(CASE
			json_typeof(main -> 'required') WHEN 'array' THEN main -> 'required' END) m
		    WHERE m NOT IN (SELECT json_array_elements_text(CASE
			json_typeof(given -> 'required') WHEN 'array' THEN given -> 'required' END))
		    ORDER BY 1 LIMIT 200 LOOP
			said := said || format('main needs %s, which it does not require',
			    left(p.key, 80));
		END LOOP;
	END IF;
	RETURN CASE WHEN said <> '{}' THEN left(array_to_string(said, '; '), 600) END;
END $$;

-- mcpbox_get_tool_logs. Replaces the function of sql/schema/manage.sql. With
-- p_execution it returns that execution alone, with its whole output.
DROP FUNCTION manage_get_logs(uuid, bigint);
CREATE FUNCTION manage_get_logs(p_id uuid, p_limit bigint, p_execution uuid DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	longest int := CASE WHEN p_execution IS NULL
	    THEN greatest(500, least(4000, 20000 / p_limit)) ELSE 20000 END;
BEGIN
	IF p_execution IS NOT NULL AND NOT EXISTS (SELECT 1 FROM executions e
	    JOIN tool_versions v ON v.id = e.version_id
	    WHERE e.id = p_execution AND v.tool_id = p_id) THEN
		-- as fail(), which who calls this may not
		RAISE EXCEPTION USING ERRCODE = 'MB001', MESSAGE = 'not_found: this tool has no'
		    ' record with this execution_id (any more): without it the last ones are shown';
	END IF;
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
		-- alone: all that a record keeps
		'stdout', CASE WHEN p_execution IS NULL THEN left(x.stdout, longest)
		    ELSE x.stdout END,
		'network', (SELECT coalesce(json_agg(k.c ORDER BY k.i), '[]') FROM (SELECT c, i,
		    sum(length(c::text)) OVER (ORDER BY i) AS n
		    FROM json_array_elements(coalesce(x.network, '[]')) WITH ORDINALITY a (c, i)) k
		    WHERE k.n <= longest),
		'executed_by', x.principal,
		'created_at', json_time(x.created_at)) ORDER BY x.created_at DESC, x.id DESC) AS logs
		FROM ((SELECT e.*, v.version_no FROM
		    (SELECT DISTINCT n.exposed_name FROM tool_versions n WHERE n.tool_id = t.id) k
		    CROSS JOIN LATERAL executions_of_tool(k.exposed_name,
			'{tool,test,management}', p_limit) e
		    JOIN tool_versions v ON v.id = e.version_id AND v.tool_id = t.id
		    WHERE p_execution IS NULL ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit)
		    UNION ALL (SELECT e.*, v.version_no FROM executions e
		    JOIN tool_versions v ON v.id = e.version_id AND v.tool_id = t.id
		    WHERE e.id = p_execution)) x) l ON true
	    WHERE t.id = p_id AND t.deleted_at IS NULL);
END $$;

-- Returns what versions of one server need and the server does not have yet:
-- hosts without a grant, and secrets without a value. `made` has the secrets
-- that exist without a value.
CREATE FUNCTION needs_of(p_server uuid, p_preimages bytea[], OUT hosts text[],
    OUT secrets text[], OUT made text[])
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	WITH p AS (SELECT unnest(p_preimages) AS preimage)
	SELECT ARRAY(SELECT DISTINCT h COLLATE "C" FROM p
		CROSS JOIN LATERAL unnest(version_texts(p.preimage, 21)) h
		WHERE network_missing(p_server, ARRAY[h]) IS NOT NULL ORDER BY 1),
	    ARRAY(SELECT DISTINCT k COLLATE "C" FROM p
		CROSS JOIN LATERAL unnest(version_texts(p.preimage, 20)) k
		WHERE NOT EXISTS (SELECT 1 FROM server_secrets x WHERE x.server_id = p_server
		    AND x.key = k AND x.value IS NOT NULL) ORDER BY 1),
	    ARRAY(SELECT x.key FROM server_secrets x WHERE x.server_id = p_server
		AND x.value IS NULL)
$$;

-- Replaces the function of sql/schema/versions.sql. The answer now also names
-- what is still missing, and says who has to act.
CREATE OR REPLACE FUNCTION import_http_tools(p_server uuid, p_versions uuid[], p_requests uuid[],
    p_preimages bytea[], p_skipped text[], p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made json[] := '{}';
	stored bytea[] := '{}';
	skipped text[] := coalesce(p_skipped, '{}');
	pre bytea;
	tool uuid;
	said text;
	need record;
	places text[];
BEGIN
	PERFORM 1 FROM servers WHERE id = p_server AND deleted_at IS NULL FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	FOR i IN 1 .. coalesce(cardinality(p_preimages), 0) LOOP
		pre := p_preimages[i];
		tool := version_uuid(pre, 3);
		IF version_uuid(pre, 2) IS DISTINCT FROM p_server
		    OR version_text(pre, 14) IS DISTINCT FROM 'http' THEN
			PERFORM fail('invalid_params', 'this is no declared call of this server');
		END IF;
		BEGIN
			PERFORM create_tool(p_versions[i], pre, p_actor, 'import');
			PERFORM request_publish(p_requests[i], gen_random_uuid(), tool,
			    'imported from an OpenAPI document', p_actor);
			made := made || json_build_object('id', tool, 'name', version_text(pre, 5),
			    'exposed_name', version_text(pre, 6), 'request_id', p_requests[i],
			    'approval_status', 'pending_review', 'requires', version_texts(pre, 21),
			    'secrets', version_texts(pre, 20));
			stored := stored || pre;
		EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'MB001' THEN
			GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
			skipped := skipped || (version_text(pre, 5) || ': ' || left(said, 300));
		END;
	END LOOP;
	PERFORM audit_append(p_actor, 'openapi_imported', 'server ' || (SELECT name FROM servers
	    WHERE id = p_server), json_build_object('tools', cardinality(made),
	    'skipped', cardinality(skipped))::text);
	SELECT * INTO need FROM needs_of(p_server, stored);
	places := ARRAY(SELECT s FROM unnest(need.secrets) s WHERE s <> ALL (need.made));
	RETURN json_build_object('success', true, 'message', CASE WHEN cardinality(made) = 0
	    THEN 'No tool was made; `skipped` says why.'
	    ELSE 'An administrator approves each; mcpbox_get_tool_status tells how it stands.'
	    || CASE WHEN need.hosts <> '{}' THEN ' Not granted yet: '
		|| array_to_string(need.hosts, ', ')
		|| ' (ask with mcpbox_request_network_access).' ELSE '' END
	    || CASE WHEN places <> '{}' THEN ' Secrets without a place: '
		|| array_to_string(places, ', ')
		|| ' (make one with mcpbox_create_server_secret).' ELSE '' END
	    || CASE WHEN need.secrets <> '{}' THEN ' An administrator sets the value of: '
		|| array_to_string(need.secrets, ', ') || '.' ELSE '' END END,
	    'tools', array_to_json(made), 'count', cardinality(made),
	    'missing_hosts', need.hosts, 'missing_secrets', need.secrets,
	    'skipped', to_json(skipped[1:100]))::text;
END $$;

REVOKE ALL ON FUNCTION manage_named, schema_types, schema_contradiction, manage_get_logs,
    needs_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION manage_named, schema_types, schema_contradiction, manage_get_logs
    TO mcpbox_app;
