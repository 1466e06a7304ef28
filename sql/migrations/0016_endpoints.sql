-- 0016: endpoints of the access document (docs/decisions/0102;
-- tests/database/access/test_endpoints.py).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Patterns in groups.

-- Replaces the function of sql/schema/tokens.sql. Lines of one form feed divide
-- p_allow into groups (admind/tooldef/permit.h): a name must be in each. A
-- client of an endpoint has what its token allows and the endpoint, too.
CREATE OR REPLACE FUNCTION token_permits(p_allow text, p_deny text, p_exposed text,
    p_server text, p_name text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_allow IS NULL OR (CASE WHEN strpos(p_allow, E'\f') = 0
	    THEN coalesce(mcpbox.token_matches(p_allow, p_exposed, p_server, p_name), false)
	    ELSE NOT EXISTS (SELECT 1 FROM unnest(string_to_array(p_allow, E'\f')) g
		WHERE NOT coalesce(mcpbox.token_matches(g, p_exposed, p_server, p_name), false))
	    END AND NOT coalesce(mcpbox.token_matches(p_deny, p_exposed, p_server,
	    p_name), false))
$$;

-- Likewise. Returns whether a token may see a server.
CREATE OR REPLACE FUNCTION token_permits_server(p_allow text, p_deny text, p_server text)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_allow IS NULL OR (p_allow <> '' AND NOT EXISTS (SELECT 1
	    FROM unnest(string_to_array(p_allow, E'\f')) g WHERE NOT EXISTS (SELECT 1
		FROM unnest(string_to_array(g, E'\n')) p
		WHERE p = '*' OR starts_with(p, p_server || '__')))
	    AND NOT EXISTS (SELECT 1 FROM unnest(string_to_array(p_deny, E'\n')) p
	    WHERE p = '*' OR p = p_server || '__*'))
$$;

-- Returns whether the tool of a task is one that these patterns permit.
CREATE FUNCTION task_permits(p_task uuid, p_allow text, p_deny text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT EXISTS (SELECT 1 FROM tasks k JOIN tool_names n ON n.exposed_name = k.tool
	    JOIN tools t ON t.id = n.tool_id JOIN servers s ON s.id = t.server_id
	    WHERE k.id = p_task AND token_permits(p_allow, p_deny, k.tool, s.name, t.name))
$$;

---------------------------------------------------------------------------
-- Names that endpoints have now.

-- Returns the endpoints of the stored document, each with the names that it has
-- now: of serving versions on running servers. At most p_names of a kind are
-- listed; the counts are whole. p_allow, p_deny: of the reader's token (null:
-- everything). "missing" are renamed tools that nothing serves. "hidden" are
-- tools that have no name there, because it was given to another. A reader whose
-- token is limited hears of no name that the token does not permit. So he is not
-- told of a missing name that no tool has or had, since no pattern can be asked
-- about it, nor of an endpoint that has nothing for him.
CREATE FUNCTION endpoint_rows(p_allow text, p_deny text, p_names bigint)
RETURNS TABLE (item text, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('name', e.j ->> 'name', 'path', '/mcp/' || (e.j ->> 'name'),
	    'mode', coalesce(e.j ->> 'mode', 'all'), 'set', e.j ->> 'set',
	    'listeners', coalesce(e.j -> 'listeners', '["local","tunnel"]'),
	    'tools', o.tools, 'tools_total', o.ntools, 'prompts', o.prompts,
	    'prompts_total', o.nprompts, 'resources', o.resources,
	    'resources_total', o.nresources, 'missing', r.missing,
	    'hidden', o.hidden)::text, e.j ->> 'name'
	FROM access_now a CROSS JOIN LATERAL json_array_elements(CASE
	    WHEN json_typeof(a.document::json -> 'endpoints') = 'array'
	    THEN a.document::json -> 'endpoints' ELSE '[]' END) e(j)
	CROSS JOIN LATERAL (SELECT
	    coalesce((SELECT string_agg(x, E'\n')
		FROM json_array_elements_text(e.j -> 'allow') x), '') AS allow,
	    (SELECT string_agg(x, E'\n')
		FROM json_array_elements_text(coalesce(e.j -> 'deny', '[]')) x) AS deny,
	    coalesce(e.j -> 'rename', '[]') AS renames) p
	CROSS JOIN LATERAL (SELECT
	    coalesce(json_agg(y.shown ORDER BY y.shown) FILTER (WHERE y.kind = 'tool'
		AND y.nth <= p_names), '[]') AS tools,
	    count(*) FILTER (WHERE y.kind = 'tool') AS ntools,
	    coalesce(json_agg(y.shown ORDER BY y.shown) FILTER (WHERE y.kind = 'prompt'
		AND y.nth <= p_names), '[]') AS prompts,
	    count(*) FILTER (WHERE y.kind = 'prompt') AS nprompts,
	    coalesce(json_agg(y.shown ORDER BY y.shown) FILTER (WHERE y.kind = 'resource'
		AND y.nth <= p_names), '[]') AS resources,
	    count(*) FILTER (WHERE y.kind = 'resource') AS nresources,
	    coalesce(json_agg(y.shown ORDER BY y.shown) FILTER (WHERE y.kind = 'hidden'),
		'[]') AS hidden
	    FROM (SELECT x.kind, x.shown COLLATE "C" AS shown, row_number() OVER
		(PARTITION BY x.kind ORDER BY x.shown COLLATE "C") AS nth
		FROM (SELECT CASE WHEN t.object = 'template' THEN 'resource'
		    WHEN t.object = 'tool' AND m.shown IS NULL AND EXISTS (SELECT 1
			FROM json_array_elements(p.renames) w
			WHERE w ->> 'as' = v.exposed_name) THEN 'hidden'
		    ELSE t.object END AS kind,
		CASE WHEN t.object IN ('resource', 'template') THEN v.uri
		    ELSE coalesce(m.shown, v.exposed_name::text) END AS shown
		FROM tools t JOIN servers s ON s.id = t.server_id AND s.status = 'running'
		JOIN tool_versions v ON v.id = t.serving_version
		LEFT JOIN LATERAL (SELECT w ->> 'as' AS shown
		    FROM json_array_elements(p.renames) w
		    WHERE t.object = 'tool' AND w ->> 'tool' = v.exposed_name LIMIT 1) m ON true
		WHERE t.enabled
		    AND token_permits(p.allow, p.deny, v.exposed_name, s.name, t.name)
		    AND token_permits(p_allow, p_deny, v.exposed_name, s.name, t.name)) x) y) o
	CROSS JOIN LATERAL (SELECT coalesce(json_agg(w ->> 'tool'), '[]') AS missing
	    FROM json_array_elements(p.renames) w WHERE NOT EXISTS (SELECT 1
		FROM tool_names n JOIN tools t ON t.id = n.tool_id
		JOIN servers s ON s.id = t.server_id AND s.status = 'running'
		WHERE n.exposed_name = w ->> 'tool' AND t.enabled
		    AND t.serving_version IS NOT NULL)
	    AND (p_allow IS NULL OR EXISTS (SELECT 1
		FROM tool_names n JOIN tools t ON t.id = n.tool_id
		JOIN servers s ON s.id = t.server_id
		WHERE n.exposed_name = w ->> 'tool'
		    AND token_permits(p_allow, p_deny, w ->> 'tool', s.name, t.name)))) r
	WHERE p_allow IS NULL OR o.ntools + o.nprompts + o.nresources
	    + json_array_length(o.hidden) + json_array_length(r.missing) > 0
$$;

-- mcpbox_list_endpoints. 25 names of a kind keep the result small.
CREATE FUNCTION manage_list_endpoints(p_allow text, p_deny text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('endpoints', coalesce(json_agg(r.item::json
	    ORDER BY r.name COLLATE "C"), '[]'), 'total', count(*))::text
	FROM endpoint_rows(p_allow, p_deny, 25) r
$$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION task_permits, endpoint_rows, manage_list_endpoints FROM PUBLIC;
GRANT EXECUTE ON FUNCTION task_permits, endpoint_rows, manage_list_endpoints TO mcpbox_app;
