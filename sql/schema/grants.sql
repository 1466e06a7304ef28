-- Requests for modules and network access as bytes. grant_requests holds the
-- bytes of each request. The bytes contain what the request affects. If this
-- changes, another request with other bytes takes its place.

CREATE TABLE grant_requests (
	id uuid PRIMARY KEY REFERENCES approval_requests (id),
	preimage bytea NOT NULL CHECK (length(preimage) <= 262144)
);

CREATE FUNCTION grant_field(tag int, value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
	SELECT set_byte('\x00'::bytea, 0, tag) || int4send(length(value)) || value
$$;

-- Returns the bytes of request p_id of this kind and subject, as they would be
-- now. Null: there is no such subject.
CREATE FUNCTION grant_preimage(p_kind text, p_subject uuid, p_id uuid) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r module_requests;
	n network_requests;
	t tools;
	m modules;
	s servers;
	body bytea;
	affected bytea;
BEGIN
	IF p_kind = 'module' THEN
		SELECT * INTO r FROM module_requests WHERE id = p_subject;
		SELECT * INTO t FROM tools WHERE id = r.tool_id;
		SELECT * INTO m FROM modules x WHERE x.name = r.name AND x.state = 'available'
		    AND (r.version = '' OR x.version = r.version)
		    ORDER BY x.added_at DESC, x.version DESC LIMIT 1;
		SELECT * INTO s FROM servers WHERE id = t.server_id;
		body := grant_field(5, uuid_send(t.id)) || grant_field(6, convert_to(t.name, 'UTF8'))
		    || grant_field(7, convert_to(r.name, 'UTF8'));
		IF m.name IS NOT NULL THEN
			body := body || grant_field(8, convert_to(m.version, 'UTF8'))
			    || grant_field(9, m.digest) || grant_field(10, int8send(m.files))
			    || grant_field(11, int8send(m.bytes));
		END IF;
		affected := grant_affected('module', s.id, t.id, m.name || ' ' || m.version
		    || ' ' || encode(m.digest, 'hex'), NULL, NULL, NULL);
	ELSE
		SELECT * INTO n FROM network_requests WHERE id = p_subject;
		SELECT * INTO s FROM servers WHERE id = n.server_id;
		body := grant_field(12, convert_to(n.proto, 'UTF8'))
		    || grant_field(13, convert_to(n.host, 'UTF8'))
		    || grant_field(14, int8send(n.port));
		affected := grant_affected('network', s.id, NULL, NULL, n.proto, n.host, n.port);
	END IF;
	-- common/grantreq.h: GRANTREQ_AFFECTED_MAX of 37 bytes
	IF length(affected) > 4096 * 37 THEN
		PERFORM fail('limit', 'more than 4096 versions that serve need it');
	END IF;
	RETURN convert_to('mcpbox grant 1', 'UTF8') || '\x00'::bytea
	    || grant_field(1, int8send(CASE p_kind WHEN 'module' THEN 1 ELSE 2 END))
	    || grant_field(2, uuid_send(p_id)) || grant_field(3, uuid_send(s.id))
	    || grant_field(4, convert_to(split_part(s.name, '@', 1), 'UTF8')) || body || affected;
END $$;

-- Makes a request for a module or for network access, with its bytes.
CREATE FUNCTION grant_request(p_id uuid, p_kind text, p_subject uuid, p_server uuid,
    p_tool uuid, p_actor text, p_notes text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := grant_preimage(p_kind, p_subject, p_id);
BEGIN
	INSERT INTO approval_requests (id, kind, subject, hash, server_id, tool_id,
	    requested_by, notes) VALUES (p_id, p_kind, p_subject, sha256(pre), p_server,
	    p_tool, p_actor, p_notes);
	INSERT INTO grant_requests VALUES (p_id, pre);
END $$;

-- Supersedes pending requests (of one server, or for one module) whose bytes
-- would be different now, and makes new ones in their place, until none is
-- left. While we wait for a request, another transaction may renew it. Its
-- successor has that change but not ours, so the next round finds it. No audit
-- row is made, because the same principal still asks for the same thing. Also,
-- the lock of the audit head comes after the locks of our callers. The new row
-- refers to server and tool, so both are locked before the request.
CREATE FUNCTION grants_refresh(p_server uuid, p_module text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests;
	fresh uuid;
	missed boolean := true;
BEGIN
	WHILE missed LOOP
		missed := false;
		FOR a IN SELECT x.* FROM approval_requests x JOIN grant_requests g ON g.id = x.id
		    WHERE x.state = 'pending' AND x.kind IN ('module', 'network')
		    AND (p_server IS NULL OR x.server_id = p_server)
		    AND (p_module IS NULL OR x.subject IN (SELECT r.id FROM module_requests r
		    WHERE r.name = p_module))
		    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
		    AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.id = x.tool_id
		    AND t.deleted_at IS NOT NULL) ORDER BY x.server_id, x.tool_id, x.id LOOP
			PERFORM 1 FROM servers WHERE id = a.server_id FOR KEY SHARE;
			PERFORM 1 FROM tools WHERE id = a.tool_id FOR KEY SHARE;
			SELECT x.* INTO a FROM approval_requests x JOIN grant_requests g ON g.id = x.id
			    WHERE x.id = a.id AND x.state = 'pending'
			    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
			    FOR UPDATE OF x;
			IF NOT FOUND THEN
				missed := true;
				CONTINUE;
			END IF;
			fresh := request_uuid();
			UPDATE approval_requests SET state = 'superseded', decided_by = 'mcpbox',
			    decided_at = clock_timestamp(), reason = 'what it would change is another now:'
			    || ' request ' || fresh WHERE id = a.id;
			PERFORM grant_request(fresh, a.kind, a.subject, a.server_id, a.tool_id,
			    a.requested_by, a.notes);
		END LOOP;
	END LOOP;
END $$;

CREATE FUNCTION grants_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_TABLE_NAME = 'tools' THEN
		PERFORM mcpbox.grants_refresh(NEW.server_id, NULL);
	ELSE
		PERFORM mcpbox.grants_refresh(NULL, NEW.name);
	END IF;
	RETURN NULL;
END $$;

-- Returns a sentence for the caller about something that the version needs and
-- that is not granted, or that no grant could cover. Null: there is nothing.
CREATE FUNCTION grant_missing(p_server uuid, p_tool uuid, p_modules text[], p_requires text[])
RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT coalesce(CASE WHEN p_modules <> '{}' THEN
	    'the module ' || regexp_replace(mcpbox.module_missing(p_tool, p_modules),
	    ' [0-9a-f]{64}$', '') || ' is not granted to this tool (any more): ask for it with'
	    || ' mcpbox_request_module.' END,
	    CASE WHEN p_requires <> '{}' THEN (SELECT CASE WHEN n.wrong IS NOT NULL THEN
	    'requires names ' || m || ', which nothing can be granted for (' || n.wrong
	    || '): change it with mcpbox_update_tool.'
	    ELSE 'network access to ' || m || ' is not granted to this tool''s server (any'
	    || ' more): ask for it with mcpbox_request_network_access.' END
	    FROM mcpbox.network_missing(p_server, p_requires) m
	    CROSS JOIN LATERAL mcpbox.need_parts(m) n WHERE m IS NOT NULL) END)
$$;

-- Returns the hashes of the serving versions that a grant affects, ascending. A
-- grant of a module affects the tool's version if that version names exactly
-- this content. A grant of a host affects the versions of the server that need
-- the host.
CREATE FUNCTION grant_affected(p_kind text, p_server uuid, p_tool uuid, p_line text,
    p_proto text, p_host text, p_port int) RETURNS bytea
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(string_agg(grant_field(15, h.hash), ''::bytea ORDER BY h.hash), ''::bytea)
	FROM (SELECT DISTINCT v.hash FROM tools t JOIN tool_versions v ON v.id = t.serving_version
	    WHERE t.deleted_at IS NULL AND t.server_id = p_server AND CASE p_kind
	    WHEN 'module' THEN t.id = p_tool AND p_line = ANY (v.modules)
	    ELSE v.requires <> '{}' AND EXISTS (SELECT 1 FROM unnest(v.requires) r
	    CROSS JOIN LATERAL need_parts(r) n
	    WHERE grant_covers(p_proto, p_host, p_port, n.proto, n.host, n.port)) END LIMIT 4097) h
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON grant_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON grant_requests EXECUTE FUNCTION refuse();
-- Triggers fire in the order of their names. This one fires before `callable`,
-- because requests are locked before callable_turn.
CREATE TRIGGER approvals AFTER UPDATE ON tools FOR EACH ROW
    WHEN (OLD.serving_version IS DISTINCT FROM NEW.serving_version
    OR OLD.name <> NEW.name) EXECUTE FUNCTION grants_follow();

GRANT EXECUTE ON FUNCTION grant_missing TO mcpbox_app;
