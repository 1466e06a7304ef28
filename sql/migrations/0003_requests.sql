-- 0003: requests say what is in their way, and the requests of one principal do
-- not fill a queue (tests/database/test_requests.py).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Bounds pending requests for modules and hosts, as publish_room() bounds those
-- for versions. So far only the requests of each tool or of each server were
-- bounded, and one principal makes as many tools and servers as it likes. 256
-- is as much as eight tools or servers may have. Sources ask for their review
-- and their hosts by the same functions.

CREATE FUNCTION grants_pending_max() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 256';
CREATE INDEX approval_requests_grants_idx ON approval_requests (requested_by, kind)
    WHERE kind IN ('module', 'network') AND state = 'pending';

-- Returns whether this principal may have one more request. As for
-- publish_room(), two at once may both be the last.
CREATE FUNCTION grants_room(p_kind text, p_actor text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT count(*) < grants_pending_max() FROM (SELECT FROM approval_requests a
	    WHERE a.requested_by = p_actor AND a.kind = p_kind AND a.state = 'pending'
	    AND a.kind IN ('module', 'network') LIMIT grants_pending_max()) x
$$;

-- This is a trigger, so that it covers every way to ask. A request that
-- grants_refresh() puts in the place of another of its subject needs no room.
-- Otherwise a principal beyond the bound (because of two requests at once)
-- would make other people's decisions fail. An administrator has no bound,
-- because he is not a client that hides requests from administrators.
CREATE FUNCTION approval_requests_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF mcpbox.authority_now() = 'principal'
	    AND NOT mcpbox.grants_room(NEW.kind, NEW.requested_by)
	    AND NOT EXISTS (SELECT FROM mcpbox.approval_requests a
	    WHERE a.kind = NEW.kind AND a.subject = NEW.subject) THEN
		PERFORM mcpbox.fail('limit', mcpbox.grants_pending_max() || ' of your requests for '
		    || CASE NEW.kind WHEN 'module' THEN 'modules' ELSE 'network access' END
		    || ' wait for review, which is the limit: wait until an administrator has'
		    || ' decided some (mcpbox_list_pending_requests)'
		    || CASE NEW.kind WHEN 'module' THEN ', or delete with mcpbox_delete_tool the tools'
		    || ' that are not needed any more' ELSE '' END);
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER room BEFORE INSERT ON approval_requests FOR EACH ROW
    WHEN (NEW.kind IN ('module', 'network')) EXECUTE FUNCTION approval_requests_room();

-- Replaces the function of sql/schema/store.sql. For a principal without room
-- it asks for nothing more, but it still asks for the needs of other
-- principals.
CREATE OR REPLACE FUNCTION module_need_ask() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	q record;
BEGIN
	SELECT a.tool_id, a.requested_by, m.name, m.version, n.value ->> 'name' AS need,
	    n.value ->> 'version' AS need_version INTO q
	FROM approval_requests a JOIN module_requests r ON r.id = a.subject
	    JOIN LATERAL (SELECT * FROM modules x WHERE x.name = r.name AND x.state = 'available'
	        AND (r.version = '' OR x.version = r.version)
	        ORDER BY x.added_at DESC, x.version DESC LIMIT 1) m ON true
	    JOIN module_wheels w ON w.name = m.name AND w.version = m.version
	    JOIN tools t ON t.id = a.tool_id AND t.deleted_at IS NULL
	    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(w.about -> 'needs')
	        WHEN 'array' THEN w.about -> 'needs' ELSE '[]' END) n
	WHERE a.kind = 'module' AND a.state = 'pending'
	    AND n.value ->> 'name' ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(n.value ->> 'name') <= 128
	    AND n.value ->> 'version' ~ '^[0-9A-Za-z][0-9A-Za-z.!+_-]*$'
	    AND length(n.value ->> 'version') <= 64
	    AND NOT EXISTS (SELECT 1 FROM module_requests o WHERE o.tool_id = a.tool_id
	        AND o.name = n.value ->> 'name')
	    AND NOT EXISTS (SELECT 1 FROM tool_modules g JOIN modules x USING (name, version, digest)
	        WHERE g.tool_id = a.tool_id AND g.name = n.value ->> 'name'
	        AND g.revoked_at IS NULL AND x.state = 'available')
	    AND (SELECT count(*) FROM approval_requests p WHERE p.kind = 'module'
	        AND p.tool_id = a.tool_id AND p.state = 'pending') < 32
	    AND grants_room('module', a.requested_by)
	ORDER BY a.id, n.value ->> 'name' LIMIT 1;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM request_module(request_uuid(), request_uuid(), q.tool_id, q.need, q.need_version,
	    'needed by ' || q.name || '==' || q.version, q.requested_by);
	RETURN true;
END $$;

---------------------------------------------------------------------------
-- The circumstances of a request.

-- Returns secrets that a version names and that its server lacks. They are
-- absent, or empty because their tokens or values are still to come. A call of
-- the version fails then. A reviewer should know this: the name may be
-- misspelt, and somebody who later makes a secret of this name gives its value
-- to this version.
CREATE FUNCTION secrets_missing(v tool_versions) RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(json_agg(json_build_object('name', k.key, 'state',
	    CASE WHEN x.key IS NULL THEN 'absent' ELSE 'empty' END) ORDER BY k.key COLLATE "C"), '[]')
	FROM unnest(v.secrets) AS k (key) LEFT JOIN server_secrets x
	    ON x.server_id = v.server_id AND x.key = k.key WHERE x.value IS NULL
$$;

-- Replaces the function of sql/schema/approvals.sql. For a version it also has
-- the secrets that are missing.
CREATE OR REPLACE FUNCTION approval_circumstances(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT '"review":' || to_json(review_mode(a.kind)) || ',"affected_tools":'
	    || coalesce((SELECT json_agg(json_build_object('exposed_name', v.exposed_name,
	    'version', v.version_no, 'hash', encode(v.hash, 'hex')) ORDER BY v.exposed_name)
	    FROM (SELECT x.* FROM tools t JOIN tool_versions x ON x.id = t.serving_version
	    LEFT JOIN network_requests n ON n.id = a.subject
	    WHERE t.server_id = a.server_id AND x.requires <> '{}' AND EXISTS
	    (SELECT 1 FROM unnest(x.requires) r CROSS JOIN LATERAL need_parts(r) d
	    WHERE grant_covers(n.proto, n.host, n.port, d.proto, d.host, d.port))
	    ORDER BY x.exposed_name LIMIT 100) v), '[]')::text
	    || CASE a.kind WHEN 'tool' THEN ',"secrets_missing":' || coalesce((SELECT
	    secrets_missing(v)::text FROM tool_versions v WHERE v.id = a.subject), '[]') ELSE '' END
$$;

-- Returns the state of the fetching of a requested module, for the principal
-- that asked. Null: the module is in the store. If there is no index, or
-- nothing in the index fits, the error says so. Then only an administrator can
-- bring the module here by hand.
CREATE FUNCTION module_fetch_json(p_name text, p_version text) RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('state', i.state, 'error', i.error)
	FROM module_installs i WHERE i.name = p_name AND i.version = p_version
	    AND i.state <> 'done'
$$;

-- Replaces the function of sql/schema/modules.sql. If a module is asked for
-- already, the error says what keeps it from being fetched.
CREATE OR REPLACE FUNCTION request_module(p_request uuid, p_subject uuid, p_tool uuid,
    p_name text, p_version text, p_justification text, p_actor text,
    OUT module text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	n text := module_name(p_name);
	pre bytea;
	a approval_requests;
BEGIN
	module := n || CASE p_version WHEN '' THEN '' ELSE '==' || p_version END;
	PERFORM module_turn(false);
	PERFORM 1 FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = p_tool FOR SHARE OF s;
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	IF EXISTS (SELECT 1 FROM tool_modules g JOIN modules m USING (name, version, digest)
	    WHERE g.tool_id = p_tool AND g.name = n AND (p_version = '' OR g.version = p_version)
	    AND g.revoked_at IS NULL AND m.state = 'available') THEN
		PERFORM fail('conflict', 'the module ' || module
		    || ' is granted to this tool already: name it in modules');
	END IF;
	SELECT x.* INTO a FROM approval_requests x JOIN module_requests r ON r.id = x.subject
	    WHERE x.kind = 'module' AND x.tool_id = p_tool AND r.name = n AND r.version = p_version
	    ORDER BY x.requested_at DESC, x.id DESC LIMIT 1;
	IF a.state = 'pending' THEN
		PERFORM fail('conflict', 'the module ' || module || ' is asked for already: request '
		    || a.id::text || coalesce((SELECT '; it could not be fetched: ' || i.error
		    FROM module_installs i WHERE i.name = n AND i.version = p_version
		    AND i.state <> 'done'), ''));
	ELSIF a.state = 'rejected' THEN
		PERFORM fail('conflict', 'an administrator refused the module ' || module
		    || ' for this tool: ' || a.reason);
	END IF;
	-- A client must not push other requests out of an administrator's sight.
	IF (SELECT count(*) FROM approval_requests x WHERE x.kind = 'module'
	    AND x.tool_id = p_tool AND x.state = 'pending') >= 32 THEN
		PERFORM fail('limit', 'this tool has 32 pending requests for modules, '
		    || 'which is the limit: an administrator decides them first');
	END IF;
	pre := convert_to('mcpbox module request 1', 'UTF8') || '\x00'::bytea
	    || '\x01'::bytea || int4send(16) || uuid_send(p_tool)
	    || '\x02'::bytea || int4send(octet_length(n)) || convert_to(n, 'UTF8')
	    || '\x03'::bytea || int4send(octet_length(p_version)) || convert_to(p_version, 'UTF8')
	    || '\x04'::bytea || int4send(octet_length(p_justification))
	    || convert_to(p_justification, 'UTF8');
	INSERT INTO module_requests VALUES (p_subject, p_tool, n, p_version, p_justification, pre);
	PERFORM grant_request(p_request, 'module', p_subject, t.server_id, p_tool, p_actor,
	    p_justification);
	PERFORM audit_append(p_actor, 'module_requested', 'tool ' || t.name,
	    json_build_object('request_id', p_request, 'tool_id', p_tool, 'module', module)::text);
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION grants_pending_max, grants_room, approval_requests_room,
    secrets_missing, module_fetch_json FROM PUBLIC;
GRANT EXECUTE ON FUNCTION secrets_missing, module_fetch_json TO mcpbox_app;
