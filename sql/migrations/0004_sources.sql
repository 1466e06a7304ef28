-- 0004: sources on this machine, and the quarantine of imported tools
-- (docs/decisions/0083; tests/database/test_sources.py, tests/egress).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Sources on this machine.

-- Replaces the function of sql/schema/sources.sql. The URL may now have an
-- address of this machine. Such an address is reached only if an administrator
-- grants it, with its port (host_private), and never if it is a listener of
-- this suite (egress). The URL must have the address itself and not
-- `localhost`, because each program decides for itself what that name means.
CREATE OR REPLACE FUNCTION source_url_wrong(p_url text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	m text[];
	host text;
BEGIN
	m := regexp_match(p_url,
	    '^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?([/?][\x21\x22\x24-\x5b\x5d-\x7e]*)?$');
	IF m IS NULL THEN
		RETURN 'the URL must be http(s)://host[:port][/path], in ASCII, without'
		    ' user, password and fragment';
	END IF;
	host := rtrim(lower(m[1]), '.');
	IF m[2] IS NOT NULL AND m[2]::int NOT BETWEEN 1 AND 65535 THEN
		RETURN 'the URL''s port must be 1 to 65535';
	END IF;
	IF host LIKE '[%' THEN
		BEGIN
			-- fails if it is no address
			IF inet(trim(host, '[]')) <> '::1' AND inet(trim(host, '[]')) <<= ANY (ARRAY['::/127',
			    'fe80::/10', 'ff00::/8', '::ffff:0:0/96', 'fd00:ec2::254/128']::inet[]) THEN
				RETURN 'the URL''s address is not one of a machine';
			END IF;
		EXCEPTION WHEN data_exception OR invalid_text_representation THEN
			RETURN 'the URL''s host is not an IPv6 address';
		END;
	ELSIF host ~ '^[0-9.]+$|(^|\.)(0x[0-9a-f]*|[0-9]+)$' THEN
		-- a host whose last label is a number is an address (WHATWG URL), and
		-- only the usual form of one has one meaning
		IF lower(m[1]) !~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.|$)){4}$'
		    OR (lower(m[1]) <> host AND inet(host) <<= '127.0.0.0/8') THEN
			RETURN 'the URL''s host is not an IPv4 address';
		END IF;
		IF inet(host) <<= ANY (ARRAY['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3']::inet[]) THEN
			RETURN 'the URL''s address is not one of a machine';
		END IF;
	ELSIF length(host) > 253 OR host !~
	    '^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$' THEN
		RETURN 'the URL''s host is not a host name';
	ELSIF host ~ '(^|\.)localhost$' THEN
		RETURN 'a server on this machine is named by its address and port, as'
		    ' http://127.0.0.1:8080/mcp: localhost is no name that can be granted';
	ELSIF host ~ '(^|\.)(local|internal)$' THEN
		RETURN 'a name that ends in .local or .internal means another machine to each'
		    ' that looks it up: name the server by its address and port';
	END IF;
	RETURN NULL;
END $$;

---------------------------------------------------------------------------
-- The quarantine. If the definition of an imported tool at the other server is
-- not the one that was approved, the tool does not serve: it is in no list, and
-- a caller is told why. The approved definition is not called either, because
-- each call compares it with the definition that the server has (decision
-- 0050). The quarantine ends when a version comes to serve. This is a version
-- that a person approved, or the former version, if the server has its
-- definition again.

ALTER TABLE imported_tools
	ADD COLUMN quarantined_at timestamptz,
	-- changed: the server has another definition; gone: it has none
	ADD COLUMN quarantined_why text CHECK (quarantined_why IN ('changed', 'gone')),
	ADD COLUMN quarantined_version uuid REFERENCES tool_versions (id), -- the one that served
	ADD CHECK ((quarantined_at IS NULL) = (quarantined_why IS NULL)
	    AND (quarantined_at IS NULL) = (quarantined_version IS NULL));

-- Returns the pin of a version: the SHA-256 of the definition that was read.
-- Null: the version is no tool of another server.
CREATE FUNCTION version_pin(v tool_versions) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN v.kind = 'mcp' THEN
	    mcpbox.version_text(v.preimage, 16)::json ->> 'sha256' END
$$;

-- Puts a tool into quarantine. The caller has locked the tool's server and the
-- tool. Running calls are cancelled, as by any withdrawal.
CREATE FUNCTION quarantine(t tools, p_why text, p_actor text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	UPDATE imported_tools SET quarantined_at = clock_timestamp(), quarantined_why = p_why,
	    quarantined_version = t.serving_version WHERE tool_id = t.id;
	UPDATE tools SET serving_version = NULL WHERE id = t.id;
	PERFORM audit_append(p_actor, 'tool_quarantined', 'tool ' || (SELECT v.exposed_name
	    FROM tool_versions v WHERE v.id = t.serving_version),
	    json_build_object('tool_id', t.id, 'version_id', t.serving_version,
	    'definition', p_why)::text);
END $$;

-- Ends the quarantine of a tool, because the server has the approved definition
-- again. A version with another definition that waits for a decision is out of
-- date, so it is rejected.
CREATE FUNCTION quarantine_return(t tools, p_version uuid, p_actor text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	UPDATE approval_requests a SET state = 'superseded', decided_by = 'mcpbox',
	    decided_at = clock_timestamp(), reason = 'the other server has the approved definition again'
	    FROM tool_versions v, tool_versions s WHERE a.tool_id = t.id AND a.kind = 'tool'
	    AND a.state = 'pending' AND v.id = a.subject AND s.id = p_version
	    AND version_pin(v) IS DISTINCT FROM version_pin(s);
	UPDATE tool_versions v SET state = 'rejected' FROM tool_versions s WHERE v.tool_id = t.id
	    AND v.state = 'pending_review' AND s.id = p_version
	    AND version_pin(v) IS DISTINCT FROM version_pin(s);
	UPDATE tools SET serving_version = p_version WHERE id = t.id;
	PERFORM audit_append(p_actor, 'tool_returned', 'tool ' || (SELECT v.exposed_name
	    FROM tool_versions v WHERE v.id = p_version),
	    json_build_object('tool_id', t.id, 'version_id', p_version)::text);
END $$;

CREATE FUNCTION quarantine_over() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	UPDATE imported_tools SET quarantined_at = NULL, quarantined_why = NULL,
	    quarantined_version = NULL WHERE tool_id = NEW.id AND quarantined_at IS NOT NULL;
	RETURN NULL;
END $$;
-- The name of this trigger sorts before `callable`, because triggers fire by
-- name. The deletion of a source locks these rows before callable_turn, so all
-- others must do so, too.
CREATE TRIGGER back_from_quarantine AFTER UPDATE OF serving_version ON tools FOR EACH ROW
    WHEN (OLD.serving_version IS NULL AND NEW.serving_version IS NOT NULL AND NEW.object = 'tool')
    EXECUTE FUNCTION quarantine_over();

-- Returns what a caller of the tool is told. Null: the tool is not in
-- quarantine.
CREATE FUNCTION quarantine_words(p_tool uuid) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT 'this tool is in quarantine since ' || json_time(i.quarantined_at) || ': '
	    || CASE i.quarantined_why WHEN 'gone' THEN 'the other MCP server does not offer it any more'
	    ELSE 'the other MCP server changed its definition, and a person has to approve the'
	    || ' new one (mcpbox_list_pending_requests)' END
	    || '. mcpbox_discover_external_tools looks again'
	FROM imported_tools i WHERE i.tool_id = p_tool AND i.quarantined_at IS NOT NULL
$$;

-- Replaces the function of sql/schema/approvals.sql. A policy now never
-- approves a tool of another server. A person reads each of its definitions
-- (decision 0050), also one that a rollback or a client brings back.
CREATE OR REPLACE FUNCTION tool_automatic(p_tool uuid, p_version uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT v.kind <> 'mcp'
	    AND authority_rank(s.stopped_authority) = 0
	    AND authority_rank(t.disabled_authority) = 0
	    AND coalesce((SELECT a.state = 'approved' AND w.state <> 'revoked'
		FROM tool_versions w JOIN approval_requests a
		ON a.tool_id = w.tool_id AND a.subject = w.id
		WHERE (w.exposed_name = v.exposed_name OR w.tool_id = t.id) AND w.id <> v.id
		AND a.kind = 'tool' AND a.state IN ('approved', 'rejected')
		ORDER BY a.decided_at DESC, a.id DESC LIMIT 1), true)
	    AND NOT EXISTS (SELECT FROM tool_versions w LEFT JOIN approval_requests a
		ON a.tool_id = w.tool_id AND a.subject = w.id AND a.kind = 'tool'
		WHERE w.tool_id = t.id AND w.hash = v.hash
		AND (w.state = 'revoked' OR a.state = 'rejected'))
	FROM tools t JOIN servers s ON s.id = t.server_id JOIN tool_versions v ON v.tool_id = t.id
	WHERE t.id = p_tool AND v.id = p_version
$$;

-- Replaces the function of sql/schema/approvals.sql. For a tool in quarantine,
-- it revokes the version that would come back.
CREATE OR REPLACE FUNCTION act_tool_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	v uuid;
	why text := p_body ->> 'reason';
BEGIN
	PERFORM 1 FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = act_uuid(p_id, 'tool') FOR SHARE OF s;
	SELECT * INTO t FROM tools WHERE id = act_uuid(p_id, 'tool') FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	ELSIF length(btrim(why)) NOT BETWEEN 1 AND 2000 THEN
		PERFORM fail('invalid_params', 'a reason has 1 to 2000 characters');
	END IF;
	v := coalesce(t.serving_version, (SELECT i.quarantined_version FROM imported_tools i
	    JOIN tool_versions x ON x.id = i.quarantined_version AND x.state = 'approved'
	    WHERE i.tool_id = t.id));
	IF v IS NULL THEN
		PERFORM fail('conflict', 'no version of it serves');
	END IF;
	PERFORM revoke_version(v, why, p_actor);
	RETURN json_build_object('id', t.id, 'revoked_version_id', v)::text;
END $$;

-- Puts a tool into quarantine, because a call met another definition than the
-- one it was pinned to. sandboxd says so. With a wrong word it can put a tool
-- into quarantine, and nothing else. Returns the source to be listed. Null: the
-- version does not serve, or has no source any more.
CREATE FUNCTION source_changed(p_version uuid) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	i imported_tools;
BEGIN
	PERFORM 1 FROM servers s JOIN tool_versions v ON v.server_id = s.id
	    WHERE v.id = p_version FOR UPDATE OF s;
	SELECT x.* INTO t FROM tools x JOIN tool_versions v ON v.tool_id = x.id
	    WHERE v.id = p_version AND x.serving_version = v.id AND v.kind = 'mcp' FOR UPDATE OF x;
	SELECT * INTO i FROM imported_tools x WHERE x.tool_id = t.id;
	IF t.id IS NULL OR i.tool_id IS NULL THEN
		RETURN NULL;
	END IF;
	PERFORM quarantine(t, 'changed', 'mcpbox');
	RETURN i.source_id;
END $$;

-- Replaces the function of sql/schema/sources.sql. Serving tools that have
-- another definition now go into quarantine. Tools whose approved definition is
-- there again come out of it, if a person or a client had the source listed.
-- (So a server that changes a definition back and forth between calls does not
-- get its tool out.) The source's server is locked before the source, and
-- exclusively, as by source_import().
DROP FUNCTION source_discovered(uuid, bytea);
CREATE FUNCTION source_discovered(p_source uuid, p_body bytea, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	whole boolean;
	s json := convert_from(p_body, 'UTF8')::json -> 'structuredContent';
	c record;
	t tools;
	held text[];
BEGIN
	PERFORM 1 FROM servers y JOIN external_sources z ON z.server_id = y.id
	    WHERE z.id = p_source FOR UPDATE OF y;
	SELECT * INTO x FROM external_sources WHERE id = p_source FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'the source was deleted meanwhile');
	END IF;
	IF json_typeof(s -> 'tools') IS DISTINCT FROM 'array'
	    OR json_array_length(s -> 'tools') > 1000 THEN
		PERFORM fail('upstream_error', 'what came back is no list of tools');
	END IF;
	DELETE FROM source_tools WHERE source_id = p_source;
	INSERT INTO source_tools (source_id, name, sha256, definition)
	    SELECT p_source, e ->> 'name', e ->> 'sha256', e::text
	    FROM json_array_elements(s -> 'tools') e
	    WHERE octet_length(e::text) <= 262144 AND length(e ->> 'name') BETWEEN 1 AND 128
	    AND e ->> 'sha256' ~ '^[0-9a-f]{64}$' AND json_typeof(e -> 'input_schema') = 'object'
	    ON CONFLICT DO NOTHING;
	UPDATE external_sources SET status = 'active',
	    tool_count = (SELECT count(*) FROM source_tools k WHERE k.source_id = p_source),
	    era = CASE WHEN s ->> 'era' IN ('modern', 'legacy') THEN s ->> 'era' END,
	    protocol = left(s ->> 'protocol', 40), server_info = left((s -> 'server')::text, 2000),
	    last_discovered_at = clock_timestamp(), checked_at = clock_timestamp(),
	    last_failure = NULL, last_error = NULL WHERE id = p_source RETURNING * INTO x;
	-- all of them before the first takes the audit log's head
	PERFORM 1 FROM tools y JOIN imported_tools i ON i.tool_id = y.id
	    WHERE i.source_id = p_source AND y.deleted_at IS NULL ORDER BY y.id FOR UPDATE OF y;
	FOR c IN SELECT i.tool_id, i.quarantined_version, k.sha256 AS now,
	    version_pin(v) AS pin, v.state
	    FROM imported_tools i JOIN tools y ON y.id = i.tool_id AND y.deleted_at IS NULL
	    JOIN tool_versions v ON v.id = coalesce(y.serving_version, i.quarantined_version)
	    LEFT JOIN source_tools k ON k.source_id = p_source AND k.name = i.upstream
	    WHERE i.source_id = p_source ORDER BY i.tool_id LOOP
		SELECT * INTO t FROM tools y WHERE y.id = c.tool_id;
		IF t.serving_version IS NOT NULL AND c.now IS DISTINCT FROM c.pin THEN
			PERFORM quarantine(t, CASE WHEN c.now IS NULL THEN 'gone' ELSE 'changed' END,
			    p_actor);
		ELSIF t.serving_version IS NULL AND c.now = c.pin AND c.state = 'approved'
		    AND p_actor <> 'mcpbox' THEN
			PERFORM quarantine_return(t, c.quarantined_version, p_actor);
		ELSIF t.serving_version IS NULL THEN
			UPDATE imported_tools SET quarantined_why = CASE WHEN c.now IS NULL THEN 'gone'
			    ELSE 'changed' END WHERE tool_id = t.id AND quarantined_at IS NOT NULL;
		END IF;
	END LOOP;
	held := ARRAY(SELECT i.upstream FROM imported_tools i WHERE i.source_id = p_source
	    AND i.quarantined_at IS NOT NULL ORDER BY i.upstream);
	-- the definitions themselves as long as they fit into one answer
	whole := (SELECT sum(octet_length(k.definition)) FROM source_tools k
	    WHERE k.source_id = p_source) < 200000;
	RETURN json_build_object('success', true, 'source_id', x.id, 'source_name', x.name,
	    'protocol', x.protocol, 'server', s -> 'server',
	    'tools', (SELECT coalesce(json_agg(json_build_object('name', k.name,
		'description', left(k.definition::json ->> 'description', 300),
		'input_schema', CASE WHEN whole THEN k.definition::json -> 'input_schema' END,
		'sha256', k.sha256, 'imported', (SELECT json_build_object('tool_id', y.id,
		    'name', y.name, 'changed', NOT source_same(y.id, k.sha256))
		    FROM imported_tools i JOIN tools y ON y.id = i.tool_id AND y.deleted_at IS NULL
		    WHERE i.source_id = p_source AND i.upstream = k.name LIMIT 1)) ORDER BY k.name), '[]')
		FROM source_tools k WHERE k.source_id = p_source),
	    'total', x.tool_count, 'dropped', s -> 'dropped', 'quarantined', to_json(held),
	    'message', x.tool_count || ' tools. What they say of themselves is the other server''s'
	    || ' word. Import the ones that are wanted with mcpbox_import_external_tools; each is'
	    || ' then reviewed by an administrator.'
	    || CASE cardinality(held) WHEN 0 THEN '' ELSE ' In quarantine: what was approved of '
	    || left(array_to_string(held, ', '), 300) || ' is not what the server has now. A person'
	    || ' decides; nothing else is to be done.' END)::text;
END $$;

-- Returns the tools in quarantine that are to be put before a person: those of
-- which the server has a definition that neither waits nor was refused already.
CREATE FUNCTION quarantine_wanted(p_source uuid) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT i.upstream FROM imported_tools i
	    JOIN tools t ON t.id = i.tool_id AND t.deleted_at IS NULL
	    JOIN source_tools k ON k.source_id = p_source AND k.name = i.upstream
	    JOIN tool_versions s ON s.id = i.quarantined_version
	WHERE i.source_id = p_source AND version_pin(s) <> k.sha256
	    AND NOT EXISTS (SELECT 1 FROM tool_versions v JOIN approval_requests a
	    ON a.kind = 'tool' AND a.subject = v.id WHERE v.tool_id = t.id
	    AND a.state IN ('pending', 'rejected') AND version_pin(v) = k.sha256)
	ORDER BY i.upstream LIMIT 200	-- SOURCE_NAMES_MAX
$$;

-- Replaces the function of sql/schema/sources.sql. The definition may now also
-- be that of the version that serves.
CREATE OR REPLACE FUNCTION source_same(p_tool uuid, p_sha256 text) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT bool_or(mcpbox.version_pin(v) = p_sha256)
	FROM mcpbox.tools t CROSS JOIN LATERAL (
	    (SELECT x.* FROM mcpbox.tool_versions x WHERE x.tool_id = t.id
		ORDER BY x.version_no DESC LIMIT 1)
	    UNION ALL SELECT x.* FROM mcpbox.tool_versions x WHERE x.id = t.serving_version) v
	WHERE t.id = p_tool
$$;

-- Replaces the function of sql/schema/sources.sql. A request for a tool in
-- quarantine says that it is in quarantine.
CREATE OR REPLACE FUNCTION source_import(p_source uuid, p_names text[], p_arguments text[],
    p_skipped text, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
	k source_tools;
	t uuid;
	a json;
	pre bytea;
	made json[] := '{}';
	c record;
BEGIN
	SELECT y.* INTO x FROM external_sources y WHERE y.id = p_source;
	SELECT y.* INTO s FROM servers y WHERE y.id = x.server_id FOR UPDATE;
	SELECT y.* INTO x FROM external_sources y WHERE y.id = p_source FOR UPDATE;
	IF x.id IS NULL OR s.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'the source was deleted meanwhile');
	END IF;
	FOR c IN SELECT y.* FROM source_candidates(p_source, p_names) y LOOP
		IF c.arguments IS NULL OR c.arguments IS DISTINCT FROM
		    p_arguments[array_position(p_names, c.upstream)] THEN
			PERFORM fail('conflict', 'the source was listed anew meanwhile: import again');
		END IF;
		SELECT * INTO STRICT k FROM source_tools y WHERE y.source_id = p_source
		    AND y.name = c.upstream;
		a := c.arguments::json;
		SELECT i.tool_id INTO t FROM imported_tools i JOIN tools y ON y.id = i.tool_id
		    AND y.deleted_at IS NULL WHERE i.source_id = p_source AND i.upstream = c.upstream;
		pre := mcp_preimage(s, coalesce(t, gen_random_uuid()), a ->> 'name', a ->> 'title',
		    a ->> 'description', (a -> 'input_schema')::text, (a -> 'output_schema')::text,
		    (a -> 'annotations')::text, source_spec(x)
		    || coalesce(',"era":' || to_json(x.era), '')
		    || ',"tool":' || to_json(k.name) || ',"sha256":' || to_json(k.sha256) || '}',
		    ARRAY[x.auth_secret_name], ARRAY[(url_host(x.url)).require], NULL);
		IF t IS NULL THEN
			t := version_uuid(pre, 3);
			PERFORM create_tool(gen_random_uuid(), pre, p_actor, 'import');
			INSERT INTO imported_tools VALUES (t, p_source, s.id, x.name, k.name);
		ELSE
			PERFORM add_version(gen_random_uuid(), pre, 'imported again from ' || x.name,
			    p_actor, NULL, 'import');
		END IF;
		PERFORM request_publish(gen_random_uuid(), gen_random_uuid(), t,
		    CASE WHEN EXISTS (SELECT 1 FROM imported_tools i WHERE i.tool_id = t
		    AND i.quarantined_at IS NOT NULL) THEN 'IN QUARANTINE: the other server changed'
		    || ' the definition of this tool after it was approved. See the difference. '
		    ELSE '' END || 'Imported from the source ' || x.name || ' (' || x.url
		    || '): its tool ' || k.name || '.', p_actor);
		made := made || (SELECT json_build_object('id', y.id, 'name', y.name,
		    'exposed_name', version_text(pre, 6), 'upstream', k.name,
		    'description', a ->> 'description', 'tool_type', 'mcp_passthrough',
		    'approval_status', 'pending_review') FROM tools y WHERE y.id = t);
	END LOOP;
	PERFORM audit_append(p_actor, 'source_imported', 'source ' || s.name || '/' || x.name,
	    json_build_object('source_id', p_source, 'tools', to_json(p_names))::text);
	RETURN json_build_object('success', cardinality(made) > 0,
	    'imported_tools', array_to_json(made), 'count', cardinality(made),
	    'skipped_tools', p_skipped::json, 'skipped_count', json_array_length(p_skipped::json),
	    'message', cardinality(made) || ' tools wait for an administrator'
	    || CASE json_array_length(p_skipped::json) WHEN 0 THEN '.' ELSE '; '
	    || json_array_length(p_skipped::json) || ' were skipped, each with its reason.' END)::text;
END $$;

-- Replaces the function of sql/schema/tools.sql. The answer now says whether
-- the tool is in quarantine.
CREATE OR REPLACE FUNCTION tool_item(p_id uuid) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', t.id, 'server_id', t.server_id,
	    'server', split_part(s.name, '@', 1), 'name', t.name, 'enabled', t.enabled,
	    'disabled_by', t.disabled_by, 'disabled_authority', t.disabled_authority,
	    'disabled_at', json_time(t.disabled_at), 'disabled_reason', t.disabled_reason,
	    'object', t.object, 'uri', n.uri, 'exposed_name', n.exposed_name,
	    'description', n.description, 'kind', n.kind, 'approval_status', n.state,
	    'version', n.version_no, 'version_id', n.id, 'hash', encode(n.hash, 'hex'),
	    'serving_version', c.version_no, 'serving_version_id', c.id,
	    'callable', c.id IS NOT NULL AND t.enabled AND s.status = 'running',
	    'quarantined', quarantine_words(t.id),
	    'created_at', json_time(t.created_at), 'created_by', t.created_by,
	    'updated_at', json_time(t.updated_at),
	    'deleted_at', json_time(t.deleted_at), 'deleted_by', t.deleted_by)
	    FROM tools t JOIN servers s ON s.id = t.server_id
	    JOIN LATERAL (SELECT * FROM tool_versions v WHERE v.tool_id = t.id
		ORDER BY v.version_no DESC LIMIT 1) n ON true
	    LEFT JOIN tool_versions c ON c.id = t.serving_version WHERE t.id = p_id);
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION version_pin, quarantine, quarantine_return, quarantine_over,
    quarantine_words, source_changed, source_discovered, quarantine_wanted FROM PUBLIC;
GRANT EXECUTE ON FUNCTION version_pin, quarantine_words, source_changed, source_discovered,
    quarantine_wanted TO mcpbox_app;
