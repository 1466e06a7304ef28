-- Objects: tools, prompts, resources, resource templates and sources, with their
-- names and URIs, and the catalogue of what lists show.
--
-- A row of `tools` is an object. All objects share names, versions, review and
-- records. The catalogue keeps the revision of each list as columns and as a mask
-- (1 tools, 2 prompts, 4 resources, 8 templates) in the NOTIFY.

CREATE TABLE tools (
	id uuid PRIMARY KEY,
	server_id uuid NOT NULL REFERENCES servers (id),
	-- that of the newest version
	name text COLLATE "C" NOT NULL CHECK (name_ok(name, 64)),
	enabled boolean NOT NULL DEFAULT true,
	serving_version uuid,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	object text NOT NULL DEFAULT 'tool'
	    CHECK (object IN ('tool', 'prompt', 'resource', 'template', 'source')),
	deleted_at timestamptz,
	deleted_by text CHECK (actor_ok(deleted_by)),
	-- the author of the disabling; decision 0066
	disabled_by text CHECK (actor_ok(disabled_by)),
	disabled_authority text
	    CHECK (disabled_authority IN ('principal', 'administrator', 'root')),
	disabled_at timestamptz,
	disabled_reason text CHECK (stop_reason_ok(disabled_reason)),
	CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
	CHECK (deleted_at IS NULL OR (serving_version IS NULL AND NOT enabled)),
	CONSTRAINT tools_disabled_check CHECK (CASE
	    WHEN enabled THEN coalesce(disabled_by, disabled_authority, disabled_reason) IS NULL
		AND disabled_at IS NULL
	    WHEN deleted_at IS NULL THEN disabled_by IS NOT NULL AND disabled_authority IS NOT NULL
		AND disabled_at IS NOT NULL
	    ELSE true END)
);

-- A deleted object keeps its row and its history, but its name becomes free.
CREATE UNIQUE INDEX tools_server_id_name_key ON tools (server_id, name)
    WHERE deleted_at IS NULL;
CREATE INDEX ON tools (server_id);
-- For counting and listing a server's objects without reading rows of the
-- table.
CREATE INDEX tools_of_server_idx ON tools (server_id, object) WHERE deleted_at IS NULL;
-- Finds the tool that a version serves, after the version was found by its
-- words.
CREATE INDEX tools_serving ON tools (serving_version) WHERE serving_version IS NOT NULL;
-- Finds prompts, resources and templates for the catalogue without reading
-- entries of tools.
CREATE INDEX tools_other ON tools (object, serving_version)
    WHERE object <> 'tool' AND serving_version IS NOT NULL;

-- The holder of an exposed name: the tool whose serving, pending or newest
-- version bears it. One primary key makes two tools of one name impossible.
CREATE TABLE tool_names (
	exposed_name text COLLATE "C" PRIMARY KEY
	    CHECK (exposed_name = 'web_fetch' OR exposed_name !~ '^(mcpbox|sandbox|web)_'),
	tool_id uuid NOT NULL REFERENCES tools (id)
);

CREATE INDEX ON tool_names (tool_id);

-- One row: the revision of the catalogue, and the revision of each of its
-- lists.
CREATE TABLE catalogue (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	revision bigint NOT NULL,
	tools bigint NOT NULL DEFAULT 1,
	prompts bigint NOT NULL DEFAULT 1,
	resources bigint NOT NULL DEFAULT 1,
	templates bigint NOT NULL DEFAULT 1
);

-- The holder of a URI (or URI template): the resource whose serving or pending
-- version bears it. A draft may bear any URI, because it concerns only its
-- author.
CREATE TABLE resource_uris (
	uri text COLLATE "C" PRIMARY KEY,
	tool_id uuid NOT NULL REFERENCES tools (id)
);

CREATE INDEX ON resource_uris (tool_id);

-- Guards an object. An object keeps its kind. A deleted object stays deleted.
-- Nothing is made on a deleted server. A disabling by a person at psql counts
-- as root's.
CREATE FUNCTION tools_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND (NEW.id <> OLD.id OR NEW.server_id <> OLD.server_id
	    OR NEW.object <> OLD.object) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a tool''s id, server and object are immutable';
	END IF;
	IF TG_OP = 'UPDATE' AND OLD.deleted_at IS NOT NULL THEN
		PERFORM mcpbox.fail('not_found', 'the ' || OLD.object || ' was deleted');
	END IF;
	IF TG_OP = 'INSERT' AND EXISTS (SELECT 1 FROM mcpbox.servers s
	    WHERE s.id = NEW.server_id AND s.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'there is no such server');
	END IF;
	IF NEW.serving_version IS NOT NULL AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.serving_version
	    AND v.tool_id = NEW.id AND v.state = 'approved') THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only an approved version may serve';
	END IF;
	IF NEW.enabled THEN
		NEW.disabled_by := NULL;
		NEW.disabled_authority := NULL;
		NEW.disabled_at := NULL;
		NEW.disabled_reason := NULL;
	ELSIF NEW.disabled_by IS NULL THEN
		NEW.disabled_by := 'root';
		NEW.disabled_authority := 'root';
		NEW.disabled_at := clock_timestamp();
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

-- Keeps names and URIs in step with versions. An object claims a name when a
-- version that bears it is inserted, and keeps it as long as its serving, a
-- pending or its newest version bears it. It claims a URI when it asks for
-- review, and keeps it as long as its serving or a pending version bears it. A
-- deleted object loses all of them. A version is approved a moment before it
-- serves, in the same transaction, so nothing is let go at that moment.
CREATE FUNCTION tool_names_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	t uuid;
BEGIN
	IF TG_TABLE_NAME = 'tool_versions' THEN
		t := NEW.tool_id;
		IF NEW.state = 'approved' THEN
			RETURN NULL;
		ELSIF TG_OP = 'INSERT' THEN
			INSERT INTO mcpbox.tool_names VALUES (NEW.exposed_name, t)
			    ON CONFLICT DO NOTHING;
			IF NOT EXISTS (SELECT 1 FROM mcpbox.tool_names n
			    WHERE n.exposed_name = NEW.exposed_name AND n.tool_id = t) THEN
				PERFORM mcpbox.fail('conflict', 'something else has the name '
				    || NEW.exposed_name);
			END IF;
		ELSIF NEW.state = 'pending_review' AND NEW.uri IS NOT NULL THEN
			INSERT INTO mcpbox.resource_uris VALUES (NEW.uri, t)
			    ON CONFLICT DO NOTHING;
			IF NOT EXISTS (SELECT 1 FROM mcpbox.resource_uris u
			    WHERE u.uri = NEW.uri AND u.tool_id = t) THEN
				PERFORM mcpbox.fail('conflict', 'another resource has the URI '
				    || NEW.uri);
			END IF;
		END IF;
	ELSE
		t := NEW.id;
	END IF;
	DELETE FROM mcpbox.tool_names n WHERE n.tool_id = t AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v JOIN mcpbox.tools o ON o.id = v.tool_id
	    WHERE v.tool_id = t AND o.deleted_at IS NULL
	    AND v.exposed_name = n.exposed_name AND (v.state = 'pending_review'
	    OR v.id = o.serving_version
	    OR v.version_no = (SELECT max(version_no) FROM mcpbox.tool_versions
	    WHERE tool_id = t)));
	DELETE FROM mcpbox.resource_uris u WHERE u.tool_id = t AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v JOIN mcpbox.tools o ON o.id = v.tool_id
	    WHERE v.tool_id = t AND o.deleted_at IS NULL AND v.uri = u.uri
	    AND (v.state = 'pending_review' OR v.id = o.serving_version));
	RETURN NULL;
END $$;

-- Makes the next revision of the catalogue and tells every admind. The row lock
-- makes revision order commit order.
CREATE FUNCTION catalogue_bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_TABLE_NAME = 'servers' THEN
		PERFORM mcpbox.catalogue_changed((SELECT coalesce(bit_or(mcpbox.list_bit(t.object)), 0)
		    FROM mcpbox.tools t WHERE t.server_id = NEW.id AND t.enabled
		    AND t.serving_version IS NOT NULL));
	ELSIF TG_TABLE_NAME = 'tool_versions' THEN
		PERFORM mcpbox.catalogue_changed(0);
	ELSE
		PERFORM mcpbox.catalogue_changed(CASE WHEN
		    (OLD.serving_version IS NOT NULL AND OLD.enabled)
		    OR (NEW.serving_version IS NOT NULL AND NEW.enabled)
		    THEN mcpbox.list_bit(NEW.object) ELSE 0 END);
	END IF;
	RETURN NULL;
END $$;

-- Finds a tool by id or exposed name and locks its server, then its row.
CREATE FUNCTION tool_named(p_tool text) RETURNS tools
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	PERFORM 1 FROM servers WHERE id IN (SELECT x.server_id FROM tools x
	    WHERE x.id::text = p_tool OR x.id = (SELECT n.tool_id FROM tool_names n
	    WHERE n.exposed_name = p_tool)) FOR SHARE;
	SELECT x.* INTO t FROM tools x WHERE x.id::text = p_tool OR x.id =
	    (SELECT n.tool_id FROM tool_names n WHERE n.exposed_name = p_tool) FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	RETURN t;
END $$;

-- Makes the next revision of the lists in mask, and tells every admind. Mask 0:
-- no list changed, but some object may no longer run.
CREATE FUNCTION catalogue_changed(mask int) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r bigint;
BEGIN
	IF mask <> 0 THEN
		UPDATE catalogue c SET revision = c.revision + 1,
		    tools = CASE WHEN mask & 1 <> 0 THEN c.revision + 1 ELSE c.tools END,
		    prompts = CASE WHEN mask & 2 <> 0 THEN c.revision + 1 ELSE c.prompts END,
		    resources = CASE WHEN mask & 4 <> 0 THEN c.revision + 1 ELSE c.resources END,
		    templates = CASE WHEN mask & 8 <> 0 THEN c.revision + 1 ELSE c.templates END;
	END IF;
	SELECT revision INTO STRICT r FROM catalogue;
	PERFORM pg_notify('mcpbox_catalogue', r || ' ' || mask);
END $$;

-- Deletes an object: no call of it begins after this commit, its running calls
-- are withdrawn, its name and URI are free. Versions, requests and records
-- stay. p_object: tool, prompt, or resource (a template too). An object that a
-- higher authority disabled is not deleted. Nor is any object of a server that
-- a higher authority stopped: its URI, or its name without a prefix, would be
-- free for a server that runs.
CREATE FUNCTION delete_object(p_tool uuid, p_object text, p_actor text,
    OUT object text, OUT exposed_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	host servers;
BEGIN
	SELECT s.* INTO host FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = p_tool FOR SHARE OF s;
	SELECT * INTO t FROM tools x WHERE x.id = p_tool FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL
	    OR p_object <> (CASE t.object WHEN 'template' THEN 'resource' ELSE t.object END) THEN
		PERFORM fail('not_found', 'there is no such ' || p_object);
	END IF;
	PERFORM server_keeps(host);
	PERFORM tool_held(t, 'delete');
	SELECT v.exposed_name INTO STRICT exposed_name FROM tool_versions v
	    WHERE v.tool_id = p_tool ORDER BY v.version_no DESC LIMIT 1;
	object := t.object;
	UPDATE tool_versions v SET state = 'rejected'
	    WHERE v.tool_id = p_tool AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id = t.serving_version;
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.tool_id = p_tool AND a.state = 'pending';
	UPDATE tools x SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor,
	    disabled_by = coalesce(x.disabled_by, p_actor),
	    disabled_authority = coalesce(x.disabled_authority, authority_now()),
	    disabled_at = coalesce(x.disabled_at, clock_timestamp())
	    WHERE x.id = p_tool;
	PERFORM audit_append(p_actor, 'tool_deleted', t.object || ' ' || exposed_name,
	    json_build_object('tool_id', p_tool)::text);
END $$;

-- Makes an object with its first version, a draft. admind makes the ids; they
-- must be those of the pre-image.
CREATE FUNCTION create_tool(p_version uuid, p_preimage bytea, p_actor text,
    p_source text DEFAULT 'llm') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n text := version_text(p_preimage, 5);
	o text := coalesce(version_text(p_preimage, 36), 'tool');
BEGIN
	-- the server must stay as it is until the version is stored
	PERFORM 1 FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	INSERT INTO tools (id, server_id, name, object, created_by)
	    VALUES (t, version_uuid(p_preimage, 2), n, o, p_actor)
	    ON CONFLICT (server_id, name) WHERE deleted_at IS NULL DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'the server has a ' || (SELECT x.object FROM tools x
		    WHERE x.server_id = version_uuid(p_preimage, 2) AND x.name = n
		    AND x.deleted_at IS NULL) || ' named ' || n);
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by, change_source)
	    VALUES (p_version, 1, p_preimage, sha256(p_preimage), p_actor, p_source);
	PERFORM audit_append(p_actor, 'tool_created',
	    o || ' ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', 1, 'source', p_source,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
END $$;

CREATE FUNCTION find_tool(p_id text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_id ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN
		RETURN (SELECT id FROM tools WHERE id = p_id::uuid);
	END IF;
	RETURN (SELECT tool_id FROM tool_names WHERE exposed_name = p_id);
END $$;

-- Finds an object. Locks its server's row, then the object's row, in the usual
-- order.
CREATE FUNCTION act_tool(p_id text) RETURNS tools
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	PERFORM 1 FROM servers s WHERE s.id = (SELECT x.server_id FROM tools x
	    WHERE x.id = find_tool(p_id)) FOR SHARE;
	SELECT * INTO t FROM tools x WHERE x.id = find_tool(p_id) FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'there is no such tool, prompt or resource');
	END IF;
	RETURN t;
END $$;

-- Returns what a list shows of a tool, prompt or resource.
CREATE FUNCTION tool_item(p_id uuid) RETURNS json
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
	    'created_at', json_time(t.created_at), 'created_by', t.created_by,
	    'updated_at', json_time(t.updated_at),
	    'deleted_at', json_time(t.deleted_at), 'deleted_by', t.deleted_by)
	    FROM tools t JOIN servers s ON s.id = t.server_id
	    JOIN LATERAL (SELECT * FROM tool_versions v WHERE v.tool_id = t.id
		ORDER BY v.version_no DESC LIMIT 1) n ON true
	    LEFT JOIN tool_versions c ON c.id = t.serving_version WHERE t.id = p_id);
END $$;

-- Returns what GET shows of an object. The SHA-256 of this text is its ETag,
-- which changes with each version, each decision and each enabling or
-- disabling.
CREATE FUNCTION tool_json(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('tool', tool_item(t.id),
	    'input_schema', json_bytes(n.input_schema),
	    'output_schema', json_bytes(n.output_schema),
	    'secrets', to_json(n.secrets), 'modules', to_json(n.modules),
	    'limits', version_limits(n),
	    'versions', (SELECT json_agg(json_build_object('id', v.id,
		'version', v.version_no, 'state', v.state, 'serving',
		coalesce(v.id = t.serving_version, false), 'hash', encode(v.hash, 'hex'),
		'created_at', json_time(v.created_at), 'created_by', v.created_by,
		'change_note', v.change_note, 'change_source', v.change_source)
		ORDER BY v.version_no DESC) FROM (SELECT * FROM tool_versions w
		WHERE w.tool_id = t.id ORDER BY w.version_no DESC LIMIT 100) v),
	    'total_versions', (SELECT count(*) FROM tool_versions y WHERE y.tool_id = t.id))::text
	    FROM tools t JOIN LATERAL (SELECT * FROM tool_versions y WHERE y.tool_id = t.id
		ORDER BY y.version_no DESC LIMIT 1) n ON true
	    WHERE t.id = p_id);
END $$;

CREATE FUNCTION act_tool_enable(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM set_tool_enabled(t.id, true, p_actor);
	RETURN tool_json(t.id);
END $$;

CREATE FUNCTION act_tool_disable(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM set_tool_enabled(t.id, false, p_actor, p_body ->> 'reason');
	RETURN tool_json(t.id);
END $$;

-- Changes fields that an administrator may write without the code: name, title,
-- description. This makes a new draft like any other, whose other content is
-- that of the newest version. An empty title removes the title.
CREATE FUNCTION act_tool_update(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
	s servers;
	v tool_versions;
	pre bytea;
	n text := p_body ->> 'name';
	note text := '';
BEGIN
	PERFORM act_seen(p_seen, tool_json(t.id));
	SELECT * INTO STRICT s FROM servers WHERE id = t.server_id;
	SELECT * INTO STRICT v FROM tool_versions x WHERE x.tool_id = t.id
	    ORDER BY x.version_no DESC LIMIT 1;
	IF n IS NULL AND p_body ->> 'title' IS NULL AND p_body ->> 'description' IS NULL THEN
		PERFORM fail('invalid_params', 'give a name, a title or a description');
	END IF;
	IF n IS NOT NULL AND (NOT name_ok(n, 64)
	    OR length(CASE s.expose WHEN 'bare' THEN n ELSE s.name || '__' || n END) > 64) THEN
		PERFORM fail('invalid_params', 'a name is lower-case words joined by single'
		    ' underscores, at most 64 characters with the server''s name and __ before it');
	END IF;
	IF length(p_body ->> 'title') > 200 OR length(p_body ->> 'description') > 2000 THEN
		PERFORM fail('invalid_params',
		    'a title has at most 200 characters, a description at most 2000');
	END IF;
	n := coalesce(n, v.name);
	-- the server may name its tools otherwise since
	pre := version_with(version_with(v.preimage, 5, n), 6,
	    CASE s.expose WHEN 'bare' THEN n ELSE s.name || '__' || n END);
	IF p_body ->> 'title' IS NOT NULL THEN
		pre := version_with(pre, 7, nullif(p_body ->> 'title', ''));
	END IF;
	IF p_body ->> 'description' IS NOT NULL THEN
		pre := version_with(pre, 8, p_body ->> 'description');
	END IF;
	IF pre <> v.preimage THEN
		SELECT string_agg(k, ', ') INTO note FROM json_object_keys(p_body) k;
		PERFORM add_version(gen_random_uuid(), pre, note, p_actor, v.version_no, 'manual');
	END IF;
	RETURN tool_json(t.id);
END $$;

CREATE FUNCTION act_tool_delete(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM act_seen(p_seen, tool_json(t.id));
	PERFORM delete_object(t.id, CASE t.object WHEN 'template' THEN 'resource'
	    ELSE t.object END, p_actor);
	RETURN tool_json(t.id);
END $$;

-- Finds tools, best first. For very common words only 250 versions are ranked,
-- so that a search costs the same however many tools there are. Versions are
-- ranked before it is asked which of them serve, so that only the best few are
-- looked up, and not all. If too few of these serve (a tool has many approved
-- versions, but only one serves), only serving versions are ranked. If no word
-- begins with the term, the names that contain the term are found. This is a
-- scan, but only of an index of names, with patterns that are made once.
CREATE FUNCTION search_tools(p_words text, p_limit bigint)
RETURNS TABLE (exposed_name text, title text, description text, server_name text)
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	q tsquery := search_query(p_words);
	inside text[];
	best uuid[];
BEGIN
	best := ARRAY(SELECT x.id FROM (SELECT w.* FROM (SELECT v.id, v.exposed_name, v.words
		FROM tool_versions v WHERE v.state = 'approved' AND v.words @@ q
		LIMIT greatest(250, p_limit * 10)) w
		ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', w.words, q) DESC, w.exposed_name) x
	    CROSS JOIN LATERAL (SELECT FROM tools t JOIN servers s ON s.id = t.server_id
		WHERE t.serving_version = x.id AND t.enabled AND t.object = 'tool'
		AND s.status = 'running' OFFSET 0) y LIMIT p_limit);
	IF cardinality(best) < p_limit THEN
		best := ARRAY(SELECT x.id FROM (SELECT v.id, v.exposed_name, v.words
			FROM tool_versions v
			JOIN tools t ON t.serving_version = v.id AND t.enabled AND t.object = 'tool'
			JOIN servers s ON s.id = t.server_id AND s.status = 'running'
			WHERE v.state = 'approved' AND v.words @@ q
			LIMIT greatest(250, p_limit * 10)) x
		    ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', x.words, q) DESC, x.exposed_name
		    LIMIT p_limit);
	END IF;
	RETURN QUERY SELECT x.* FROM unnest(best) WITH ORDINALITY b (id, n)
	    CROSS JOIN LATERAL (SELECT v.exposed_name::text, v.title, v.description, s.name::text
		FROM tool_versions v JOIN tools t ON t.serving_version = v.id
		JOIN servers s ON s.id = t.server_id WHERE v.id = b.id OFFSET 0) x
	    ORDER BY b.n;
	IF NOT FOUND THEN
		SELECT array_agg('%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%') INTO inside
		    FROM regexp_split_to_table(lower(left(p_words, 200)), '\s+') w WHERE w <> '';
		RETURN QUERY SELECT v.exposed_name::text, v.title, v.description, s.name::text
		    FROM tool_names n
		    JOIN tools t ON t.id = n.tool_id AND t.enabled AND t.object = 'tool'
		    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
		    JOIN tool_versions v ON v.id = t.serving_version
			AND v.exposed_name = n.exposed_name
		    WHERE n.exposed_name LIKE ANY (inside)
		    ORDER BY n.exposed_name LIMIT p_limit;
	END IF;
END $$;

-- Enables or disables an object. Idempotent: returns true if it changed. The
-- server is locked before its tool, as in every change of a tool, because the
-- deletion of a server also locks the server before its tools. Only an equal or
-- higher authority enables what was disabled (docs/decisions/0066).
CREATE FUNCTION set_tool_enabled(p_tool uuid, p_enabled boolean, p_actor text,
    p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	mine text := authority_now();
	why text := stop_reason(p_reason);
BEGIN
	PERFORM 1 FROM servers WHERE id = (SELECT x.server_id FROM tools x WHERE x.id = p_tool)
	    FOR SHARE;
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	IF p_enabled THEN
		IF t.enabled THEN
			RETURN false;
		END IF;
		PERFORM tool_held(t, 'enable');
		UPDATE tools SET enabled = true WHERE id = p_tool;
		PERFORM audit_append(p_actor, 'tool_enabled', 'tool ' || t.name,
		    json_build_object('tool_id', p_tool, 'authority', mine,
		    'disabled_by', t.disabled_by, 'disabled_authority', t.disabled_authority)::text);
		RETURN true;
	END IF;
	IF NOT t.enabled AND (authority_rank(t.disabled_authority) > authority_rank(mine)
	    OR (t.disabled_authority = mine AND why IS NULL)) THEN
		RETURN false;
	END IF;
	UPDATE tools SET enabled = false, disabled_by = p_actor, disabled_authority = mine,
	    disabled_at = clock_timestamp(), disabled_reason = why WHERE id = p_tool;
	PERFORM audit_append(p_actor, 'tool_disabled', 'tool ' || t.name,
	    json_strip_nulls(json_build_object('tool_id', p_tool, 'authority', mine,
	    'reason', why, 'taken_over_from', t.disabled_by))::text);
	RETURN true;
END $$;

CREATE FUNCTION tool_names_reserved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.exposed_name <> 'web_fetch' AND NEW.exposed_name ~ '^(mcpbox|sandbox|web)_' THEN
		PERFORM mcpbox.fail('conflict', 'the name ' || NEW.exposed_name || ' is reserved: where'
		    ' a server shows its tools without a prefix, no name begins with mcpbox_, sandbox_'
		    ' or web_ (but web_fetch); choose another');
	END IF;
	RETURN NEW;
END $$;

CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON tools
    FOR EACH ROW EXECUTE FUNCTION tools_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON tools
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON tools EXECUTE FUNCTION refuse();
CREATE TRIGGER names AFTER UPDATE OF serving_version, deleted_at ON tools
    FOR EACH ROW EXECUTE FUNCTION tool_names_follow();
CREATE TRIGGER catalogue AFTER UPDATE OF status, expose ON servers
    FOR EACH ROW EXECUTE FUNCTION catalogue_bump();
CREATE TRIGGER catalogue AFTER UPDATE OF serving_version, enabled ON tools
    FOR EACH ROW EXECUTE FUNCTION catalogue_bump();
CREATE TRIGGER reserved BEFORE INSERT OR UPDATE ON tool_names
    FOR EACH ROW EXECUTE FUNCTION tool_names_reserved();

GRANT EXECUTE ON FUNCTION delete_object, create_tool, find_tool, tool_item,
    tool_json, search_tools, set_tool_enabled TO mcpbox_app;

INSERT INTO catalogue (revision) VALUES (1);
