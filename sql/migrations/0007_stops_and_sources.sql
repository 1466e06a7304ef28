-- 0007: a stopped resource keeps its URI. A source speaks only for its own
-- address, and fills only its own part of the queue (docs/decisions/0092, 0093;
-- tests/database/test_objects.py and test_sources.py).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Stopped resources.

-- Replaces the function of sql/schema/tools.sql. Gateways know which URIs
-- belong to a disabled resource. So a new version of such a resource, or its
-- end, also changes that list.
CREATE OR REPLACE FUNCTION catalogue_bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_TABLE_NAME = 'servers' THEN
		PERFORM mcpbox.catalogue_changed((SELECT coalesce(bit_or(mcpbox.list_bit(t.object)), 0)
		    FROM mcpbox.tools t WHERE t.server_id = NEW.id AND t.enabled
		    AND t.serving_version IS NOT NULL));
	ELSIF TG_TABLE_NAME = 'tool_versions' THEN
		PERFORM mcpbox.catalogue_changed(0);
	ELSE
		PERFORM mcpbox.catalogue_changed(CASE WHEN
		    (OLD.serving_version IS NOT NULL AND (OLD.enabled OR OLD.object = 'resource'))
		    OR (NEW.serving_version IS NOT NULL AND (NEW.enabled OR NEW.object = 'resource'))
		    THEN mcpbox.list_bit(NEW.object) ELSE 0 END);
	END IF;
	RETURN NULL;
END $$;

---------------------------------------------------------------------------
-- The tools that a source's listing judges.

-- Returns the address of the server of an imported tool's version. Null: the
-- version is no tool of another server.
CREATE FUNCTION version_url(v tool_versions) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN v.kind = 'mcp' THEN
	    mcpbox.version_text(v.preimage, 16)::json ->> 'url' END
$$;

-- Replaces the function of 0004. A version for another address than the
-- source's is not the same.
CREATE OR REPLACE FUNCTION source_same(p_tool uuid, p_sha256 text) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT coalesce(bool_or(mcpbox.version_pin(v) = p_sha256
	    AND mcpbox.version_url(v) = e.url), false)
	FROM mcpbox.tools t JOIN mcpbox.imported_tools i ON i.tool_id = t.id
	JOIN mcpbox.external_sources e ON e.id = i.source_id CROSS JOIN LATERAL (
	    (SELECT x.* FROM mcpbox.tool_versions x WHERE x.tool_id = t.id
		ORDER BY x.version_no DESC LIMIT 1)
	    UNION ALL SELECT x.* FROM mcpbox.tool_versions x WHERE x.id = t.serving_version) v
	WHERE t.id = p_tool
$$;

-- Replaces the function of 0004. It now judges only tools whose version goes to
-- the address that was listed. No statement changes a source's address. But an
-- administrator may delete the source, anybody may add it again under its name
-- with another address, and its tools are found again. Their approved versions
-- name the old address, and calls go there: no approval moves to the new one.
-- The new server can't say anything about the old server's tool. So the new
-- server neither takes a tool of the old one out of service, nor brings it out
-- of quarantine, nor supersedes requests that wait for a person.
CREATE OR REPLACE FUNCTION source_discovered(p_source uuid, p_body bytea, p_actor text) RETURNS text
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
	    WHERE i.source_id = p_source AND version_url(v) = x.url ORDER BY i.tool_id LOOP
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

-- Replaces the function of 0004. A definition that the server at the new
-- address has is put before a person, even if that definition was approved for
-- the old address.
CREATE OR REPLACE FUNCTION quarantine_wanted(p_source uuid) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT i.upstream FROM imported_tools i
	    JOIN external_sources x ON x.id = i.source_id
	    JOIN tools t ON t.id = i.tool_id AND t.deleted_at IS NULL
	    JOIN source_tools k ON k.source_id = p_source AND k.name = i.upstream
	    JOIN tool_versions s ON s.id = i.quarantined_version
	WHERE i.source_id = p_source
	    AND (version_pin(s), version_url(s)) IS DISTINCT FROM (k.sha256, x.url)
	    AND NOT EXISTS (SELECT 1 FROM tool_versions v JOIN approval_requests a
	    ON a.kind = 'tool' AND a.subject = v.id WHERE v.tool_id = t.id
	    AND a.state IN ('pending', 'rejected') AND version_pin(v) = k.sha256
	    AND version_url(v) = x.url)
	ORDER BY i.upstream LIMIT 200	-- SOURCE_NAMES_MAX
$$;

---------------------------------------------------------------------------
-- The queue.

-- Returns how many changed definitions of one source may wait for review at our
-- own request. All sources share publish_pending_max(), 256, since all are
-- asked for by one name, mcpbox. Otherwise one server that changes 200
-- definitions would keep those of every other server out of the queue. 32 is an
-- eighth of 256. A tool may have as many requests for modules, and a server as
-- many for hosts. A reviewer has 32 definitions to read, and the next listing
-- brings the others. Imports by a person or a client are not counted, because
-- these requests are their own.
CREATE FUNCTION source_pending_max() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 32';

-- Returns whether one more of this source's tools may wait for review. p_tool
-- is not counted, because its new request replaces the one that waits. The
-- caller has locked the source's server.
CREATE FUNCTION source_room(p_source uuid, p_tool uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT count(*) < source_pending_max() FROM imported_tools i
	    JOIN approval_requests a ON a.tool_id = i.tool_id AND a.kind = 'tool'
	    AND a.state = 'pending' AND a.requested_by = 'mcpbox'
	    WHERE i.source_id = p_source AND i.tool_id IS DISTINCT FROM p_tool
$$;

-- Replaces the function of 0004. A listing at our own request asks for no more
-- reviews than the source has room for. The other tools stay in quarantine.
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
	names text[] := '{}';
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
		CONTINUE WHEN p_actor = 'mcpbox' AND NOT source_room(p_source, t);
		names := names || k.name;
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
	-- a listing that found no room imported nothing
	IF p_actor <> 'mcpbox' OR cardinality(made) > 0 THEN
		PERFORM audit_append(p_actor, 'source_imported', 'source ' || s.name || '/' || x.name,
		    json_build_object('source_id', p_source, 'tools', to_json(names))::text);
	END IF;
	RETURN json_build_object('success', cardinality(made) > 0,
	    'imported_tools', array_to_json(made), 'count', cardinality(made),
	    'skipped_tools', p_skipped::json, 'skipped_count', json_array_length(p_skipped::json),
	    'message', cardinality(made) || ' tools wait for an administrator'
	    || CASE json_array_length(p_skipped::json) WHEN 0 THEN '.' ELSE '; '
	    || json_array_length(p_skipped::json) || ' were skipped, each with its reason.' END)::text;
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION version_url, source_pending_max, source_room FROM PUBLIC;
GRANT EXECUTE ON FUNCTION version_url TO mcpbox_app;
