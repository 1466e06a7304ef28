-- 0002: limits of calls per tool and per server; commands; modules.
--
-- As in 0001: mcpbox_app reads, and changes only by the functions below.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Limits. Names and bounds are common/limit.h's; a test compares the two.

ALTER TABLE tool_versions
	ADD COLUMN cpu_ms bigint GENERATED ALWAYS AS (version_number(preimage, 29)) STORED
	    CHECK (cpu_ms BETWEEN 100 AND 3600000),
	ADD COLUMN files bigint GENERATED ALWAYS AS (version_number(preimage, 30)) STORED
	    CHECK (files BETWEEN 16 AND 4096),
	ADD COLUMN file_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 31)) STORED
	    CHECK (file_bytes BETWEEN 4096 AND 17179869184),
	ADD COLUMN stdout_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 32)) STORED
	    CHECK (stdout_bytes BETWEEN 1024 AND 65536),
	ADD COLUMN argument_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 33)) STORED
	    CHECK (argument_bytes BETWEEN 64 AND 1048576),
	ADD COLUMN log_rate bigint GENERATED ALWAYS AS (version_number(preimage, 34)) STORED
	    CHECK (log_rate BETWEEN 1 AND 1000),
	ADD COLUMN progress_rate bigint GENERATED ALWAYS AS (version_number(preimage, 35)) STORED
	    CHECK (progress_rate BETWEEN 1 AND 100),
	ADD COLUMN modules text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 17)) STORED
	    CHECK (cardinality(modules) <= 64),
	ADD COLUMN executable text GENERATED ALWAYS AS (version_text(preimage, 18)) STORED
	    CHECK (length(executable) <= 4096);
-- What an administrator set for all tools of a server that don't say it
-- themselves. A missing row or null: the configured default.
CREATE TABLE server_limits (
	server_id uuid PRIMARY KEY REFERENCES servers (id),
	timeout_ms bigint CHECK (timeout_ms BETWEEN 100 AND 600000),
	memory_bytes bigint CHECK (memory_bytes BETWEEN 33554432 AND 17179869184),
	processes bigint CHECK (processes BETWEEN 1 AND 1024),
	tmp_bytes bigint CHECK (tmp_bytes BETWEEN 65536 AND 17179869184),
	result_bytes bigint CHECK (result_bytes BETWEEN 1024 AND 1048576),
	cpu_ms bigint CHECK (cpu_ms BETWEEN 100 AND 3600000),
	files bigint CHECK (files BETWEEN 16 AND 4096),
	file_bytes bigint CHECK (file_bytes BETWEEN 4096 AND 17179869184),
	stdout_bytes bigint CHECK (stdout_bytes BETWEEN 1024 AND 65536),
	argument_bytes bigint CHECK (argument_bytes BETWEEN 64 AND 1048576),
	log_rate bigint CHECK (log_rate BETWEEN 1 AND 1000),
	progress_rate bigint CHECK (progress_rate BETWEEN 1 AND 100),
	code_bytes bigint CHECK (code_bytes BETWEEN 1000 AND 100000),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by))
);

-- What REST and mcpboxctl show of a server (by id or name); the SHA-256 of
-- these bytes is the ETag that a change must name. Null: no such server.
CREATE FUNCTION server_limits_json(p_server text) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT json_build_object('server_id', s.id, 'server', s.name, 'limits',
	    json_build_object('timeout_ms', l.timeout_ms, 'memory_bytes', l.memory_bytes,
    'processes', l.processes, 'tmp_bytes', l.tmp_bytes, 'result_bytes', l.result_bytes,
    'cpu_ms', l.cpu_ms, 'files', l.files, 'file_bytes', l.file_bytes, 'stdout_bytes',
    l.stdout_bytes, 'argument_bytes', l.argument_bytes, 'log_rate', l.log_rate,
    'progress_rate', l.progress_rate, 'code_bytes', l.code_bytes),
	    'updated_at', to_char(l.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
	    'updated_by', l.updated_by)::text
	FROM mcpbox.servers s LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id
	WHERE s.name = p_server OR s.id::text = p_server
$$;

-- Replaces all of them (null: not set); returns the new server_limits_json.
-- p_expected: the SHA-256 of the JSON that the change was made from, so that
-- of two administrators at once the later one is told.
CREATE FUNCTION set_server_limits(p_server uuid, p_expected bytea, p_actor text,
    p_timeout_ms bigint, p_memory_bytes bigint, p_processes bigint, p_tmp_bytes bigint,
    p_result_bytes bigint, p_cpu_ms bigint, p_files bigint, p_file_bytes bigint,
    p_stdout_bytes bigint, p_argument_bytes bigint, p_log_rate bigint,
    p_progress_rate bigint, p_code_bytes bigint)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	l text;
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_server FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF sha256(convert_to(server_limits_json(p_server::text), 'UTF8')) IS DISTINCT FROM p_expected THEN
		PERFORM fail('hash_mismatch', 'the limits were changed meanwhile: read them again');
	END IF;
	INSERT INTO server_limits VALUES (p_server, p_timeout_ms, p_memory_bytes, p_processes,
    p_tmp_bytes, p_result_bytes, p_cpu_ms, p_files, p_file_bytes, p_stdout_bytes,
    p_argument_bytes, p_log_rate, p_progress_rate, p_code_bytes,
	    clock_timestamp(), p_actor)
	    ON CONFLICT (server_id) DO UPDATE SET
	    timeout_ms = excluded.timeout_ms, memory_bytes = excluded.memory_bytes,
    processes = excluded.processes, tmp_bytes = excluded.tmp_bytes,
    result_bytes = excluded.result_bytes, cpu_ms = excluded.cpu_ms,
    files = excluded.files, file_bytes = excluded.file_bytes,
    stdout_bytes = excluded.stdout_bytes, argument_bytes = excluded.argument_bytes,
    log_rate = excluded.log_rate, progress_rate = excluded.progress_rate,
    code_bytes = excluded.code_bytes,
	    updated_at = excluded.updated_at, updated_by = excluded.updated_by;
	l := server_limits_json(p_server::text);
	PERFORM audit_append(p_actor, 'server_limits_set', 'server ' || s.name,
	    json_build_object('server_id', p_server, 'limits',
	    json_strip_nulls(l::json -> 'limits'))::text);
	RETURN l;
END $$;

---------------------------------------------------------------------------
-- Modules: entries of the content-addressed store that an administrator
-- recorded, and to which tools they are granted. A version names them in its
-- pre-image as "name version digest", so what is mounted is what was reviewed.

-- PEP 503: one spelling of a name.
CREATE FUNCTION module_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT lower(regexp_replace(name, '[-_.]+', '-', 'g'))
$$;

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

-- A row stays when its grant is withdrawn: who had it, and when.
CREATE TABLE tool_modules (
	tool_id uuid NOT NULL REFERENCES tools (id),
	name text COLLATE "C" NOT NULL,
	version text COLLATE "C" NOT NULL,
	digest bytea NOT NULL,
	granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	granted_by text NOT NULL CHECK (actor_ok(granted_by)),
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
	PRIMARY KEY (tool_id, name, version),
	FOREIGN KEY (name, version, digest) REFERENCES modules (name, version, digest)
);

-- What a model asked for; approval_requests.subject of kind module. preimage
-- is what the request's hash is of: "mcpbox module request 1" NUL, then u8 tag, u32be
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

-- A name and a version mean the same bytes for ever: a grant must not come to
-- mean another content.
CREATE FUNCTION modules_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.name <> OLD.name OR NEW.version <> OLD.version OR NEW.digest <> OLD.digest
	    OR NEW.added_at <> OLD.added_at OR NEW.added_by <> OLD.added_by THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a module''s content is immutable';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON modules
    FOR EACH ROW EXECUTE FUNCTION modules_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON modules
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON modules EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON module_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON module_requests EXECUTE FUNCTION refuse();

-- The first of a version's lock lines ("name version digest") that the tool
-- may not use; null: it may use them all.
CREATE FUNCTION module_missing(p_tool uuid, p_lock text[]) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT k.line FROM unnest(p_lock) k (line) WHERE NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_modules g JOIN mcpbox.modules m USING (name, version, digest)
	    WHERE g.tool_id = p_tool AND g.revoked_at IS NULL AND m.state = 'available'
	    AND g.name || ' ' || g.version || ' ' || encode(g.digest, 'hex') = k.line)
	ORDER BY k.line COLLATE "C" LIMIT 1
$$;

-- "name" or "name==version" to lock lines, sorted. A name alone means the
-- version granted last.
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

-- Records an entry of the store. The same again changes nothing but makes a
-- withdrawn one available; another digest for a version is refused.
CREATE FUNCTION add_module(p_name text, p_version text, p_digest bytea,
    p_files bigint, p_bytes bigint, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m modules;
BEGIN
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

-- From this commit on no call mounts it, whoever was granted it.
CREATE FUNCTION withdraw_module(p_name text, p_version text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	UPDATE modules SET state = 'withdrawn' WHERE name = module_name(p_name)
	    AND version = p_version AND state = 'available';
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module');
	END IF;
	PERFORM audit_append(p_actor, 'module_withdrawn',
	    'module ' || module_name(p_name) || '==' || p_version, '{}');
END $$;

-- A tool by id or by exposed name, its row locked.
CREATE FUNCTION tool_named(p_tool text) RETURNS tools
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	SELECT x.* INTO t FROM tools x WHERE x.id::text = p_tool OR x.id =
	    (SELECT n.tool_id FROM tool_names n WHERE n.exposed_name = p_tool) FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	RETURN t;
END $$;

-- p_version '': the one recorded last. Returns "name==version".
CREATE FUNCTION grant_module(p_tool text, p_name text, p_version text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := tool_named(p_tool);
	m modules;
BEGIN
	SELECT * INTO m FROM modules x WHERE x.name = module_name(p_name)
	    AND (p_version = '' OR x.version = p_version) AND x.state = 'available'
	    ORDER BY x.added_at DESC LIMIT 1;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module: record it first');
	END IF;
	INSERT INTO tool_modules (tool_id, name, version, digest, granted_by)
	    VALUES (t.id, m.name, m.version, m.digest, p_actor)
	    ON CONFLICT (tool_id, name, version) DO UPDATE SET granted_at = clock_timestamp(),
	    granted_by = excluded.granted_by, revoked_at = NULL, revoked_by = NULL;
	PERFORM audit_append(p_actor, 'module_granted', 'tool ' || t.name,
	    json_build_object('tool_id', t.id, 'module', m.name || '==' || m.version,
	    'digest', encode(m.digest, 'hex'))::text);
	RETURN m.name || '==' || m.version;
END $$;

-- p_version '': every version of it. From this commit on no call of the tool
-- mounts it.
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

-- A model asks for a module; a person decides.
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
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND THEN
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
	    AND x.state IN ('pending', 'rejected') ORDER BY x.requested_at DESC LIMIT 1;
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
	INSERT INTO approval_requests (id, kind, subject, hash, server_id, tool_id,
	    requested_by, notes) VALUES (p_request, 'module', p_subject, sha256(pre),
	    t.server_id, p_tool, p_actor, p_justification);
	PERFORM audit_append(p_actor, 'module_requested', 'tool ' || t.name,
	    json_build_object('request_id', p_request, 'tool_id', p_tool, 'module', module)::text);
END $$;

---------------------------------------------------------------------------
-- Versions: 0001's trigger, and: what belongs to the kind is there and nothing
-- else; every module is granted.

CREATE OR REPLACE FUNCTION tool_versions_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	pre bytea := NEW.preimage;
	srv mcpbox.servers;
	wanted text;
	missing text;
BEGIN
	IF NEW.state <> 'draft' THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a version begins as a draft';
	END IF;
	SELECT s.* INTO srv FROM mcpbox.servers s JOIN mcpbox.tools t ON t.server_id = s.id
	    WHERE t.id = mcpbox.version_uuid(pre, 3) AND s.id = mcpbox.version_uuid(pre, 2);
	IF NOT FOUND THEN
		PERFORM mcpbox.fail('not_found', 'the version''s tool is not on that server');
	END IF;
	wanted := mcpbox.version_text(pre, 5);
	IF srv.expose = 'prefixed' THEN
		wanted := srv.name || '__' || wanted;
	END IF;
	IF mcpbox.version_text(pre, 4) IS DISTINCT FROM srv.name
	    OR mcpbox.version_text(pre, 6) IS DISTINCT FROM wanted THEN
		PERFORM mcpbox.fail('invalid_params', 'the version''s names are not its server''s');
	END IF;
	CASE mcpbox.version_text(pre, 14)
	WHEN 'python' THEN
		IF mcpbox.version_bytes(pre, 15) IS NULL OR mcpbox.version_bytes(pre, 16) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 18) IS NOT NULL OR mcpbox.version_bytes(pre, 19) IS NOT NULL THEN
			PERFORM mcpbox.fail('invalid_params', 'a python version has code and no command');
		END IF;
	WHEN 'command' THEN
		IF mcpbox.version_bytes(pre, 15) IS NOT NULL OR mcpbox.version_bytes(pre, 16) IS NULL
		    OR mcpbox.version_bytes(pre, 17) IS NOT NULL OR mcpbox.version_bytes(pre, 18) IS NULL
		    OR mcpbox.version_text(pre, 19) IS NULL OR mcpbox.version_bytes(pre, 20) IS NOT NULL
		    OR mcpbox.version_text(pre, 19) !~ '^[0-9a-f]{64}$' THEN
			PERFORM mcpbox.fail('invalid_params',
			    'a command version has spec, executable and its digest, but no code, modules and secrets');
		END IF;
	ELSE
		PERFORM mcpbox.fail('invalid_params', 'this kind of tool cannot be made yet');
	END CASE;
	-- 0001's columns have no bounds of their own; as constraints these could make
	-- an old version impossible to revoke
	IF coalesce(mcpbox.version_number(pre, 24), 100) NOT BETWEEN 100 AND 600000
	    OR coalesce(mcpbox.version_number(pre, 25), 33554432) NOT BETWEEN 33554432 AND 17179869184
	    OR coalesce(mcpbox.version_number(pre, 26), 1) NOT BETWEEN 1 AND 1024
	    OR coalesce(mcpbox.version_number(pre, 27), 65536) NOT BETWEEN 65536 AND 17179869184
	    OR coalesce(mcpbox.version_number(pre, 28), 1024) NOT BETWEEN 1024 AND 1048576 THEN
		PERFORM mcpbox.fail('limit', 'a limit of the version is out of bounds');
	END IF;
	IF cardinality(mcpbox.version_texts(pre, 17)) > 32 THEN
		PERFORM mcpbox.fail('limit', 'a version has at most 32 modules');
	END IF;
	missing := mcpbox.module_missing(mcpbox.version_uuid(pre, 3), mcpbox.version_texts(pre, 17));
	IF missing IS NOT NULL THEN
		PERFORM mcpbox.fail('missing_grant', 'the module ' || missing
		    || ' is not granted to this tool: ask for it with mcpbox_request_module');
	END IF;
	RETURN NEW;
END $$;

-- 0001's, and: its modules are still granted.
-- The intent row. Returns 'ok' or the failure mode that forbids the call. The
-- INSERT itself checks that the version is still callable and its owner's
-- epoch still lives: what a commit took away before can't come to run.
CREATE OR REPLACE FUNCTION execution_open(p_id uuid, p_kind text, p_version uuid,
    p_hash bytea, p_epoch uuid, p_principal text, p_listener text, p_tool text,
    p_args_sha256 bytea, p_arguments text, p_client text, p_protocol text,
    p_created timestamptz, p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	why text;
BEGIN
	INSERT INTO executions (id, kind, owner_epoch, principal, listener, tool,
	    version_id, version_hash, args_sha256, arguments, client, protocol,
	    created_at, deadline)
	SELECT p_id, p_kind, e.epoch, p_principal, p_listener, p_tool, p_version,
	    p_hash, p_args_sha256, p_arguments, p_client, p_protocol, p_created,
	    p_deadline
	FROM epochs e WHERE e.epoch = p_epoch AND e.ended_at IS NULL
	    AND e.kind = CASE p_kind WHEN 'management' THEN 'admind' ELSE 'sandboxd' END
	    AND (p_kind <> 'tool' OR EXISTS (SELECT 1 FROM tool_versions v
	    JOIN tools t ON t.serving_version = v.id AND t.enabled
	    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
	    WHERE v.id = p_version AND v.hash = p_hash AND v.state = 'approved'
	    AND v.exposed_name = p_tool AND (v.modules = '{}'
	    OR module_missing(v.tool_id, v.modules) IS NULL)));
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL) THEN
		RETURN 'sandbox_unavailable';
	END IF;
	SELECT CASE WHEN v.state = 'revoked' THEN 'revoked'
	    WHEN s.status = 'stopped' OR NOT t.enabled THEN 'stopped'
	    WHEN t.serving_version = v.id AND module_missing(v.tool_id, v.modules) IS NOT NULL
	    THEN 'missing_grant'
	    ELSE 'not_approved' END INTO why
	FROM tool_versions v JOIN tools t ON t.id = v.tool_id
	    JOIN servers s ON s.id = t.server_id WHERE v.id = p_version;
	RETURN coalesce(why, 'not_approved');
END $$;

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON server_limits, modules, tool_modules, module_requests FROM PUBLIC;
GRANT SELECT ON server_limits, modules, tool_modules, module_requests TO mcpbox_app;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mcpbox FROM PUBLIC;
-- those that only read, as whoever calls them
GRANT EXECUTE ON FUNCTION server_limits_json, module_missing TO mcpbox_app;
GRANT EXECUTE ON FUNCTION module_lock, set_server_limits, add_module, withdraw_module,
    grant_module, revoke_module, request_module TO mcpbox_app;
