-- Modules: entries of the content-addressed store that an administrator
-- recorded, and the tools to which they are granted. A version names its
-- modules in its pre-image as "name version digest". So the content that is
-- mounted is the content that was reviewed.

CREATE TABLE modules (
	name text COLLATE "C" NOT NULL
	    CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 128),
	version text COLLATE "C" NOT NULL
	    CHECK (version ~ '^[0-9A-Za-z][0-9A-Za-z.!+_-]*$' AND length(version) <= 64),
	digest bytea NOT NULL CHECK (length(digest) = 32),
	files bigint NOT NULL DEFAULT 0 CHECK (files >= 0),
	bytes bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),
	state text NOT NULL DEFAULT 'available' CHECK (state IN ('available', 'withdrawn')),
	added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	added_by text NOT NULL CHECK (actor_ok(added_by)),
	PRIMARY KEY (name, version),
	UNIQUE (name, version, digest)
);

-- A withdrawn grant keeps its row, which shows who had it, and when.
CREATE TABLE tool_modules (
	tool_id uuid NOT NULL REFERENCES tools (id),
	name text COLLATE "C" NOT NULL,
	version text COLLATE "C" NOT NULL,
	digest bytea NOT NULL,
	granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	granted_by text NOT NULL CHECK (actor_ok(granted_by)),
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	request_id uuid REFERENCES approval_seals (request_id),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
	PRIMARY KEY (tool_id, name, version),
	FOREIGN KEY (name, version, digest) REFERENCES modules (name, version, digest)
);

CREATE INDEX ON tool_modules (request_id);

-- A model's request. id is approval_requests.subject of kind module. preimage
-- has the request's words: "mcpbox module request 1" NUL, then u8 tag, u32be
-- length, bytes: 1 tool id, 2 name, 3 version (empty: any), 4 justification.
CREATE TABLE module_requests (
	id uuid PRIMARY KEY,
	tool_id uuid NOT NULL REFERENCES tools (id),
	name text COLLATE "C" NOT NULL
	    CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 128),
	version text COLLATE "C" NOT NULL
	    CHECK (version ~ '^([0-9A-Za-z][0-9A-Za-z.!+_-]*)?$' AND length(version) <= 64),
	justification text NOT NULL CHECK (length(justification) BETWEEN 1 AND 2000),
	preimage bytea NOT NULL
);

CREATE INDEX ON module_requests (tool_id);

-- Returns the one spelling of a name (PEP 503).
CREATE FUNCTION module_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT lower(regexp_replace(name, '[-_.]+', '-', 'g'))
$$;

-- Guards a module. A name and a version mean the same bytes for ever, because a
-- grant must not come to mean another content.
CREATE FUNCTION modules_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.name <> OLD.name OR NEW.version <> OLD.version OR NEW.digest <> OLD.digest
	    OR NEW.added_at <> OLD.added_at OR NEW.added_by <> OLD.added_by THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a module''s content is immutable';
	END IF;
	RETURN NEW;
END $$;

-- Returns the first of a version's lock lines ("name version digest") that the
-- tool may not use. Null: it may use them all.
CREATE FUNCTION module_missing(p_tool uuid, p_lock text[]) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT k.line FROM unnest(p_lock) k (line) WHERE NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_modules g JOIN mcpbox.modules m USING (name, version, digest)
	    WHERE g.tool_id = p_tool AND g.revoked_at IS NULL AND m.state = 'available'
	    AND g.name || ' ' || g.version || ' ' || encode(g.digest, 'hex') = k.line)
	ORDER BY k.line COLLATE "C" LIMIT 1
$$;

-- Turns "name" or "name==version" into lock lines, sorted. A name alone means
-- the version that was granted last.
CREATE FUNCTION module_lock(p_tool uuid, p_wanted text[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	w text;
	g mcpbox.tool_modules;
	lock text[] := '{}';
	seen text[] := '{}';
BEGIN
	FOREACH w IN ARRAY p_wanted LOOP
		SELECT x.* INTO g FROM mcpbox.tool_modules x JOIN mcpbox.modules m USING (name, version, digest)
		    WHERE x.tool_id = p_tool AND x.revoked_at IS NULL AND m.state = 'available'
		    AND x.name = mcpbox.module_name(split_part(w, '==', 1))
		    AND (strpos(w, '==') = 0 OR x.version = split_part(w, '==', 2))
		    ORDER BY x.granted_at DESC, x.version DESC LIMIT 1;
		IF NOT FOUND THEN
			PERFORM mcpbox.fail('missing_grant', 'the module ' || w
			    || ' is not granted to this tool: ask for it with mcpbox_request_module');
		END IF;
		IF g.name = ANY (seen) THEN
			PERFORM mcpbox.fail('invalid_arguments', 'the module ' || g.name || ' is named twice');
		END IF;
		seen := seen || g.name;
		lock := lock || (g.name || ' ' || g.version || ' ' || encode(g.digest, 'hex'));
	END LOOP;
	RETURN QUERY SELECT k FROM unnest(lock) k ORDER BY k COLLATE "C";
END $$;

-- Records an entry of the store, taking turns (module_turn). If the same entry
-- is recorded already, it only becomes available again if it was withdrawn.
-- Another digest for the same version is refused.
CREATE FUNCTION add_module(p_name text, p_version text, p_digest bytea,
    p_files bigint, p_bytes bigint, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m modules;
BEGIN
	PERFORM module_turn(true);
	INSERT INTO modules (name, version, digest, files, bytes, added_by)
	    VALUES (module_name(p_name), p_version, p_digest, p_files, p_bytes, p_actor)
	    ON CONFLICT (name, version) DO NOTHING;
	SELECT * INTO STRICT m FROM modules WHERE name = module_name(p_name)
	    AND version = p_version FOR UPDATE;
	IF m.digest <> p_digest THEN
		PERFORM fail('conflict', m.name || '==' || m.version
		    || ' is recorded with the digest ' || encode(m.digest, 'hex'));
	END IF;
	UPDATE modules SET state = 'available', files = p_files, bytes = p_bytes
	    WHERE name = m.name AND version = m.version;
	PERFORM audit_append(p_actor, 'module_added', 'module ' || m.name || '==' || m.version,
	    json_build_object('digest', encode(m.digest, 'hex'))::text);
END $$;

CREATE FUNCTION withdraw_module(p_name text, p_version text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM module_turn(true);
	UPDATE modules SET state = 'withdrawn' WHERE name = module_name(p_name)
	    AND version = p_version AND state = 'available';
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module');
	END IF;
	PERFORM audit_append(p_actor, 'module_withdrawn',
	    'module ' || module_name(p_name) || '==' || p_version, '{}');
END $$;

CREATE FUNCTION grant_module(p_tool text, p_name text, p_version text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	m modules;
BEGIN
	PERFORM module_turn(false);
	t := tool_named(p_tool);
	SELECT * INTO m FROM modules x WHERE x.name = module_name(p_name)
	    AND (p_version = '' OR x.version = p_version) AND x.state = 'available'
	    ORDER BY x.added_at DESC LIMIT 1;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module: record it first');
	END IF;
	INSERT INTO tool_modules (tool_id, name, version, digest, granted_by)
	    VALUES (t.id, m.name, m.version, m.digest, p_actor)
	    ON CONFLICT (tool_id, name, version) DO UPDATE SET granted_at = clock_timestamp(),
	    granted_by = excluded.granted_by, revoked_at = NULL, revoked_by = NULL,
	    request_id = NULL;
	PERFORM audit_append(p_actor, 'module_granted', 'tool ' || t.name,
	    json_build_object('tool_id', t.id, 'module', m.name || '==' || m.version,
	    'digest', encode(m.digest, 'hex'))::text);
	RETURN m.name || '==' || m.version;
END $$;

-- Revokes a tool's grant of a module. p_version '' means every version of the
-- module. From this commit on no call of the tool mounts it.
CREATE FUNCTION revoke_module(p_tool text, p_name text, p_version text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := tool_named(p_tool);
	gone text;
BEGIN
	WITH done AS (UPDATE tool_modules SET revoked_at = clock_timestamp(), revoked_by = p_actor
	    WHERE tool_id = t.id AND name = module_name(p_name)
	    AND (p_version = '' OR version = p_version) AND revoked_at IS NULL
	    RETURNING name || '==' || version AS m)
	SELECT string_agg(m, ' ' ORDER BY m) INTO gone FROM done;
	IF gone IS NULL THEN
		PERFORM fail('not_found', 'the tool has no such grant');
	END IF;
	PERFORM audit_append(p_actor, 'module_revoked', 'tool ' || t.name,
	    json_build_object('tool_id', t.id, 'modules', gone)::text);
	RETURN gone;
END $$;

-- Asks for a module in a model's name. A person decides about the bytes of the
-- request.
CREATE FUNCTION request_module(p_request uuid, p_subject uuid, p_tool uuid,
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
		    || a.id::text);
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

-- Changes of the module store take turns with decisions and requests about a
-- module. A change goes from a module to the tools that asked for it, and a
-- decision or request goes from a tool to a module. So they would lock in
-- opposite orders.
CREATE FUNCTION module_turn(p_store boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF p_store THEN
		PERFORM pg_advisory_xact_lock(hashtextextended('mcpbox modules', 0));
	ELSE
		PERFORM pg_advisory_xact_lock_shared(hashtextextended('mcpbox modules', 0));
	END IF;
END $$;

-- Tells every admind that a module's grant was revoked or the module withdrawn,
-- so that it withdraws running calls.
CREATE FUNCTION tool_modules_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.catalogue_changed(0);
	RETURN NULL;
END $$;

-- p_id has the tool's id, then / and the module's name.
CREATE FUNCTION act_module_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := act_uuid(split_part(p_id, '/', 1), 'tool');
BEGIN
	RETURN json_build_object('tool_id', t, 'revoked', revoke_module(t::text,
	    split_part(p_id, '/', 2), coalesce(p_body ->> 'version', ''), p_actor))::text;
END $$;

-- Returns entries that came from a wheel and that a tool is granted. Each node
-- needs them. It fetches those that its own store lacks, by the SHA-256 of the
-- wheel.
CREATE FUNCTION modules_granted(p_after text) RETURNS TABLE
    (key text, name text, version text, digest bytea, sha256 bytea)
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT m.name || ' ' || m.version, m.name, m.version, m.digest, w.sha256
	FROM modules m JOIN module_wheels w ON w.name = m.name AND w.version = m.version
	WHERE m.state = 'available' AND m.name || ' ' || m.version > p_after COLLATE "C"
	    AND EXISTS (SELECT 1 FROM tool_modules g WHERE g.name = m.name
	    AND g.version = m.version AND g.revoked_at IS NULL)
	ORDER BY (m.name || ' ' || m.version) COLLATE "C" LIMIT 256
$$;

CREATE TRIGGER guard BEFORE UPDATE ON modules
    FOR EACH ROW EXECUTE FUNCTION modules_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON modules
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON modules EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON module_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON module_requests EXECUTE FUNCTION refuse();
CREATE TRIGGER approvals AFTER INSERT ON modules FOR EACH ROW
    EXECUTE FUNCTION grants_follow();
CREATE TRIGGER approvals_state AFTER UPDATE ON modules FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.files IS DISTINCT FROM NEW.files
    OR OLD.bytes IS DISTINCT FROM NEW.bytes) EXECUTE FUNCTION grants_follow();
CREATE TRIGGER tell AFTER UPDATE ON tool_modules FOR EACH ROW
    WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION tool_modules_tell();
CREATE TRIGGER tell AFTER UPDATE ON modules FOR EACH ROW
    WHEN (OLD.state = 'available' AND NEW.state <> 'available')
    EXECUTE FUNCTION tool_modules_tell();

GRANT EXECUTE ON FUNCTION module_missing, module_lock, add_module,
    withdraw_module, grant_module, revoke_module, request_module,
    modules_granted TO mcpbox_app;
