-- 0010: servers, versions and tools over their whole life: deletion of a
-- server, where a version came from, going back, keeping not too many,
-- sources elsewhere, and what management tools and administrators are shown.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Servers can be deleted. The row stays, for versions and records refer to it;
-- it lets its name go by bearing one that no server can be given (name@id), so
-- whoever looks a server up by name finds one that is there.

ALTER TABLE servers
	ADD COLUMN deleted_at timestamptz,
	ADD COLUMN deleted_by text CHECK (actor_ok(deleted_by)),
	ADD CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
	ADD CHECK (deleted_at IS NULL OR status = 'stopped'),
	DROP CONSTRAINT servers_name_check,
	ADD CONSTRAINT servers_name_check CHECK (CASE WHEN deleted_at IS NULL
	    THEN name_ok(name, 24)
	    ELSE name_ok(split_part(name, '@', 1), 24)
		AND name = split_part(name, '@', 1) || '@' || id END);
CREATE INDEX ON servers (name) WHERE deleted_at IS NULL;

-- 0001's, and: deleted once it is, and named otherwise only then.
CREATE OR REPLACE FUNCTION servers_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.deleted_at IS NOT NULL THEN
		PERFORM mcpbox.fail('not_found', 'the server was deleted');
	END IF;
	IF NEW.id <> OLD.id OR NEW.created_at <> OLD.created_at
	    OR NEW.created_by <> OLD.created_by OR NEW.name <> (CASE
	    WHEN NEW.deleted_at IS NULL THEN OLD.name ELSE OLD.name || '@' || OLD.id END) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a server''s id, name and origin are immutable';
	END IF;
	IF NEW.deleted_at IS NOT NULL AND EXISTS (SELECT 1 FROM mcpbox.tools t
	    WHERE t.server_id = NEW.id AND t.deleted_at IS NULL) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a deleted server has no tools';
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;
CREATE TRIGGER no_delete BEFORE DELETE ON servers
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON servers EXECUTE FUNCTION refuse();

-- 0004's, and: nothing is made on a deleted server.
CREATE OR REPLACE FUNCTION tools_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

-- Nothing is asked for, for a server that was deleted.
CREATE FUNCTION approval_requests_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM mcpbox.servers s WHERE s.id = NEW.server_id
	    AND s.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'the server was deleted');
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard_server BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_server();

-- A server's row, locked, of a server that is there.
CREATE FUNCTION server_locked(p_id uuid) RETURNS servers
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_id FOR UPDATE;
	IF NOT FOUND OR s.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	RETURN s;
END $$;

CREATE OR REPLACE FUNCTION set_server_status(p_id uuid, p_status text, p_actor text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
BEGIN
	IF s.status = p_status THEN
		RETURN false;
	END IF;
	UPDATE servers SET status = p_status WHERE id = p_id;
	PERFORM audit_append(p_actor, CASE p_status WHEN 'running' THEN 'server_started'
	    ELSE 'server_stopped' END, 'server ' || s.name,
	    json_build_object('server_id', p_id)::text);
	RETURN true;
END $$;

CREATE FUNCTION update_server(p_id uuid, p_description text, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
BEGIN
	IF s.description = p_description THEN
		RETURN;
	END IF;
	UPDATE servers SET description = p_description WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_updated', 'server ' || s.name,
	    json_build_object('server_id', p_id, 'description', left(p_description, 1000))::text);
END $$;

-- Deletes a server and all that is its own; returns how many objects went with
-- it. As delete_object() of each, in one transaction: no call of any begins
-- after this commit, those that run are withdrawn, all names and URIs are free.
-- Stopped first, so that callable empties once and not object by object.
CREATE FUNCTION delete_server(p_id uuid, p_actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
	n bigint;
BEGIN
	UPDATE servers SET status = 'stopped' WHERE id = p_id AND status <> 'stopped';
	PERFORM 1 FROM tools WHERE server_id = p_id ORDER BY id FOR UPDATE;
	UPDATE tool_versions v SET state = 'rejected' FROM tools t
	    WHERE t.server_id = p_id AND v.tool_id = t.id AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id IN
	    (SELECT t.serving_version FROM tools t WHERE t.server_id = p_id);
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.server_id = p_id AND a.state = 'pending';
	UPDATE tools t SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor
	    WHERE t.server_id = p_id AND t.deleted_at IS NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	DELETE FROM external_sources WHERE server_id = p_id;
	PERFORM secrets_drop(p_id, p_actor);	-- 0013
	UPDATE servers SET name = name || '@' || id, deleted_at = clock_timestamp(),
	    deleted_by = p_actor WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_deleted', 'server ' || s.name,
	    json_build_object('server_id', p_id, 'objects', n)::text);
	RETURN n;
END $$;

-- Counting and listing what a server has: no row of the table is read.
CREATE INDEX tools_of_server_idx ON tools (server_id, object) WHERE deleted_at IS NULL;

---------------------------------------------------------------------------
-- Versions: where they came from, and how many are kept.

ALTER TABLE tool_versions ADD COLUMN change_source text NOT NULL DEFAULT 'llm'
    CHECK (change_source IN ('manual', 'llm', 'import', 'rollback'));

CREATE OR REPLACE FUNCTION tool_versions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id <> OLD.id OR NEW.version_no <> OLD.version_no
	    OR NEW.preimage <> OLD.preimage OR NEW.hash <> OLD.hash
	    OR NEW.created_at <> OLD.created_at OR NEW.created_by <> OLD.created_by
	    OR NEW.change_note <> OLD.change_note
	    OR NEW.change_source <> OLD.change_source THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a version''s content is immutable';
	END IF;
	IF (OLD.state, NEW.state) NOT IN (('draft', 'pending_review'),
	    ('pending_review', 'approved'), ('pending_review', 'rejected'),
	    ('approved', 'revoked')) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'a version never goes from ' || OLD.state || ' to ' || NEW.state;
	END IF;
	IF NEW.state = 'approved' AND NOT EXISTS (SELECT 1 FROM mcpbox.approval_seals a
	    WHERE a.subject = NEW.id AND a.hash = NEW.hash) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'no approval without a seal';
	END IF;
	IF NEW.state = 'revoked' THEN
		UPDATE mcpbox.tools SET serving_version = NULL
		    WHERE id = OLD.tool_id AND serving_version = OLD.id;
	END IF;
	RETURN NEW;
END $$;

-- The floor: what was ever approved, waits for review, was refused by a person
-- with a reason, or is the newest stays, whoever deletes. So numbers are never
-- given twice, and what ran can always be shown.
CREATE FUNCTION tool_versions_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.state NOT IN ('draft', 'rejected')
	    OR EXISTS (SELECT 1 FROM mcpbox.approval_seals a WHERE a.subject = OLD.id)
	    OR EXISTS (SELECT 1 FROM mcpbox.approval_requests a WHERE a.subject = OLD.id
	    AND a.kind = 'tool' AND a.state NOT IN ('superseded'))
	    OR NOT EXISTS (SELECT 1 FROM mcpbox.tool_versions v
	    WHERE v.tool_id = OLD.tool_id AND v.version_no > OLD.version_no) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only old drafts can be deleted';
	END IF;
	RETURN OLD;
END $$;
DROP TRIGGER no_delete ON tool_versions;
CREATE TRIGGER guard_delete BEFORE DELETE ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_delete();

INSERT INTO setting_keys (key, type, min, max, "default", doc) VALUES
    ('versions_kept', 'integer', 10, 10000, '100', 'newest versions of a tool that'
    ' are kept whatever they are; of older ones those that were approved, wait for'
    ' review or were rejected with a reason');

-- Deletes drafts of a tool behind its p_keep newest versions, a few at a time:
-- it is called with each new version. Returns how many.
CREATE FUNCTION prune_versions(p_tool uuid, p_keep int) RETURNS bigint
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	DELETE FROM tool_versions WHERE id IN (SELECT v.id FROM tool_versions v
	    WHERE v.tool_id = p_tool AND v.state IN ('draft', 'rejected')
	    AND v.version_no <= (SELECT x.version_no FROM tool_versions x
		WHERE x.tool_id = p_tool ORDER BY x.version_no DESC
		OFFSET greatest(p_keep, 10) LIMIT 1)
	    AND NOT EXISTS (SELECT 1 FROM approval_requests a WHERE a.subject = v.id
		AND a.kind = 'tool' AND a.state <> 'superseded')
	    ORDER BY v.version_no LIMIT 200);
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

-- 0004's and 0001's, with where the version came from.
DROP FUNCTION create_tool(uuid, bytea, text);
CREATE FUNCTION create_tool(p_version uuid, p_preimage bytea, p_actor text,
    p_source text DEFAULT 'llm') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n text := version_text(p_preimage, 5);
	o text := coalesce(version_text(p_preimage, 36), 'tool');
BEGIN
	-- the server must stay as it is until the version stands
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

DROP FUNCTION add_version(uuid, bytea, text, text, int);
CREATE FUNCTION add_version(p_version uuid, p_preimage bytea, p_note text,
    p_actor text, p_base int DEFAULT NULL, p_source text DEFAULT 'llm') RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n int;
BEGIN
	PERFORM 1 FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	PERFORM 1 FROM tools WHERE id = t FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	SELECT max(version_no) + 1 INTO n FROM tool_versions WHERE tool_id = t;
	IF p_base IS NOT NULL AND p_base <> n - 1 THEN
		PERFORM fail('conflict', 'the tool was changed meanwhile: version '
		    || n - 1 || ' is there now; look at it and try again');
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by, change_note,
	    change_source) VALUES (p_version, n, p_preimage, sha256(p_preimage), p_actor,
	    p_note, p_source);
	BEGIN
		UPDATE tools SET name = version_text(p_preimage, 5) WHERE id = t
		    AND name <> version_text(p_preimage, 5);
	EXCEPTION WHEN unique_violation THEN
		PERFORM fail('conflict', 'the server has a tool named '
		    || version_text(p_preimage, 5));
	END;
	PERFORM prune_versions(t, setting('versions_kept')::int);
	PERFORM audit_append(p_actor, 'tool_updated',
	    'tool ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', n, 'source', p_source,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
	RETURN n;
END $$;

-- A new draft with an older version's bytes. It has that version's hash and
-- none of its seals: those belong to a version's id, so it is reviewed anew,
-- also when the older one was approved, or revoked since.
CREATE FUNCTION rollback_version(p_version uuid, p_tool uuid, p_to int, p_actor text,
    OUT version_no int, OUT name text, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	v tool_versions;
	newest tool_versions;
BEGIN
	SELECT x.* INTO s FROM servers x JOIN tools t ON t.server_id = x.id
	    WHERE t.id = p_tool AND t.deleted_at IS NULL FOR SHARE OF x;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	PERFORM 1 FROM tools WHERE id = p_tool FOR UPDATE;
	SELECT * INTO v FROM tool_versions x WHERE x.tool_id = p_tool AND x.version_no = p_to;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'the tool has no version ' || p_to);
	END IF;
	SELECT * INTO STRICT newest FROM tool_versions x WHERE x.tool_id = p_tool
	    ORDER BY x.version_no DESC LIMIT 1;
	IF newest.hash = v.hash THEN
		PERFORM fail('conflict', 'version ' || newest.version_no
		    || ', the newest, has the content of version ' || p_to || ' already');
	END IF;
	IF v.exposed_name <> (CASE s.expose WHEN 'bare' THEN v.name
	    ELSE s.name || '__' || v.name END) THEN
		PERFORM fail('conflict', 'the server names its tools otherwise since version '
		    || p_to || ' was made: make a new version of its content instead');
	END IF;
	version_no := add_version(p_version, v.preimage, 'back to version ' || p_to, p_actor,
	    newest.version_no, 'rollback');
	name := v.exposed_name;
	hash := v.hash;
END $$;

---------------------------------------------------------------------------
-- Other MCP servers as sources of tools. What is recorded here is connected to
-- by nothing yet; a secret is named, never held.

CREATE TABLE external_sources (
	id uuid PRIMARY KEY,
	server_id uuid NOT NULL REFERENCES servers (id),
	name text COLLATE "C" NOT NULL CHECK (name_ok(name, 24)),
	url text NOT NULL CHECK (octet_length(url) BETWEEN 8 AND 2048),
	auth_type text NOT NULL CHECK (auth_type IN ('none', 'bearer', 'header')),
	auth_secret_name text COLLATE "C",
	auth_header_name text CHECK (auth_header_name ~ '^[A-Za-z][A-Za-z0-9-]{0,63}$'),
	transport_type text NOT NULL CHECK (transport_type IN ('streamable_http', 'sse')),
	status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'error', 'disabled')),
	tool_count int NOT NULL DEFAULT 0 CHECK (tool_count >= 0),
	last_discovered_at timestamptz,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	CHECK ((auth_type = 'none') = (auth_secret_name IS NULL)),
	CHECK ((auth_type = 'header') = (auth_header_name IS NOT NULL)),
	UNIQUE (server_id, name)
);

-- What is wrong with a source's URL; null: nothing. It is only a form, judged
-- strictly so that no two readers of it ever disagree on its host: ASCII, no
-- user, no fragment, a plain host name or address. Names and addresses of this
-- machine and of cloud metadata are refused at once; whether what a name means
-- may be reached is asked of each connection, not here.
CREATE FUNCTION source_url_wrong(p_url text) RETURNS text
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
			IF inet(trim(host, '[]')) <<= ANY (ARRAY['::/127', 'fe80::/10', 'ff00::/8',
			    '::ffff:0:0/96', 'fd00:ec2::254/128']::inet[]) THEN
				RETURN 'the URL''s address is not one of another machine';
			END IF;
		EXCEPTION WHEN data_exception OR invalid_text_representation THEN
			RETURN 'the URL''s host is not an IPv6 address';
		END;
	ELSIF host ~ '^[0-9.]+$|(^|\.)(0x[0-9a-f]*|[0-9]+)$' THEN
		-- a host whose last label is a number is an address (WHATWG URL), and
		-- only the usual form of one has one meaning
		IF host !~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.|$)){4}$' THEN
			RETURN 'the URL''s host is not an IPv4 address';
		END IF;
		IF inet(host) <<= ANY (ARRAY['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16',
		    '224.0.0.0/3']::inet[]) THEN
			RETURN 'the URL''s address is not one of another machine';
		END IF;
	ELSIF length(host) > 253 OR host !~
	    '^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$' THEN
		RETURN 'the URL''s host is not a host name';
	ELSIF host ~ '(^|\.)(localhost|local|internal)$' THEN
		RETURN 'the URL''s host is not one of another machine';
	END IF;
	RETURN NULL;
END $$;

CREATE FUNCTION add_source(p_id uuid, p_server uuid, p_name text, p_url text,
    p_auth text, p_secret text, p_header text, p_transport text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	wrong text := source_url_wrong(p_url);
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_server AND deleted_at IS NULL FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF NOT name_ok(p_name, 24) THEN
		wrong := 'the name must be lower-case words joined by single underscores';
	ELSIF p_auth NOT IN ('none', 'bearer', 'header')
	    OR p_transport NOT IN ('streamable_http', 'sse') THEN
		wrong := 'auth_type is none, bearer or header; transport_type is streamable_http or sse';
	ELSIF (p_auth = 'none') <> (p_secret IS NULL) THEN
		wrong := 'auth_secret_name belongs to auth_type bearer and header, and they need it';
	ELSIF (p_auth = 'header') <> (p_header IS NOT NULL) THEN
		wrong := 'auth_header_name belongs to auth_type header, and it needs it';
	ELSIF p_header !~ '^[A-Za-z][A-Za-z0-9-]{0,63}$' OR lower(p_header) IN ('host', 'connection', 'content-length',
	    'content-type', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'accept',
	    'proxy-authorization', 'proxy-connection', 'keep-alive', 'cookie', 'origin')
	    OR lower(p_header) LIKE 'mcp-%' THEN
		wrong := 'that header says something else: choose the one the other server asks for';
	END IF;
	IF wrong IS NOT NULL THEN
		PERFORM fail('invalid_arguments', wrong);
	END IF;
	IF p_secret IS NOT NULL AND NOT EXISTS (SELECT 1 FROM server_secrets x
	    WHERE x.server_id = p_server AND x.key = p_secret) THEN
		PERFORM fail('not_found', 'the server has no secret named ' || p_secret
		    || ': make it with mcpbox_create_server_secret first');
	END IF;
	IF (SELECT count(*) FROM external_sources x WHERE x.server_id = p_server) >= 100 THEN
		PERFORM fail('limit', 'a server has at most 100 sources');
	END IF;
	INSERT INTO external_sources (id, server_id, name, url, auth_type, auth_secret_name,
	    auth_header_name, transport_type, created_by) VALUES (p_id, p_server, p_name, p_url,
	    p_auth, p_secret, p_header, p_transport, p_actor)
	    ON CONFLICT (server_id, name) DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'the server has a source named ' || p_name);
	END IF;
	PERFORM audit_append(p_actor, 'source_added', 'source ' || s.name || '/' || p_name,
	    json_build_object('source_id', p_id, 'server_id', p_server, 'url', p_url,
	    'auth_type', p_auth, 'secret', p_secret)::text);
END $$;

CREATE FUNCTION delete_source(p_id uuid, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_id;
	SELECT * INTO s FROM servers WHERE id = x.server_id FOR SHARE;
	DELETE FROM external_sources WHERE id = p_id;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such source');
	END IF;
	PERFORM audit_append(p_actor, 'source_deleted', 'source ' || s.name || '/' || x.name,
	    json_build_object('source_id', p_id, 'server_id', s.id)::text);
END $$;

---------------------------------------------------------------------------
-- What is shown. JSON is made here, whole, since admind parses none; a schema
-- goes in as the bytes that were hashed.

CREATE FUNCTION json_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION json_bytes(b bytea) RETURNS json
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT convert_from(b, 'UTF8')::json
$$;

-- Text that may be JSON, or was cut in the middle of it.
CREATE FUNCTION json_or_text(t text) RETURNS json
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	RETURN t::json;
EXCEPTION WHEN OTHERS THEN
	RETURN to_json(t);
END $$;

-- The limits that a version sets itself.
CREATE FUNCTION version_limits(v tool_versions) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_strip_nulls(json_build_object('timeout_ms', v.timeout_ms,
	    'memory_bytes', v.memory_bytes, 'processes', v.processes,
	    'tmp_bytes', v.tmp_bytes, 'result_bytes', v.result_bytes,
	    'cpu_ms', v.cpu_ms, 'files', v.files, 'file_bytes', v.file_bytes,
	    'stdout_bytes', v.stdout_bytes, 'argument_bytes', v.argument_bytes,
	    'log_rate', v.log_rate, 'progress_rate', v.progress_rate))
$$;

-- The members of a version's content that are the same for all who may see it.
-- As its owner, since the run-time role may not take a pre-image apart.
CREATE FUNCTION version_content(v tool_versions) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := v.preimage;
BEGIN
	RETURN json_build_object('title', v.title, 'description', v.description,
	    'kind', v.kind, 'python_code', version_text(pre, 15),
	    'spec', json_bytes(version_bytes(pre, 16)),
	    'executable', v.executable, 'executable_digest', version_text(pre, 19),
	    'text', version_text(pre, 40), 'blob', version_text(pre, 41),
	    'uri', v.uri, 'mime_type', v.mime_type, 'ttl_ms', v.ttl_ms,
	    'arguments', json_bytes(v.arguments),
	    'input_schema', json_bytes(v.input_schema),
	    'output_schema', json_bytes(v.output_schema),
	    'annotations', json_bytes(v.annotations), 'icons', json_bytes(v.icons),
	    'meta', json_bytes(v.meta), 'secrets', to_json(v.secrets),
	    'modules', (SELECT coalesce(json_agg(split_part(m, ' ', 1) || '=='
		|| split_part(m, ' ', 2)), '[]') FROM unnest(v.modules) m),
	    'requires', to_json(version_texts(pre, 21)), 'task', v.task,
	    'confirm', coalesce(v.confirm, 0) = 1,
	    'client_capabilities', to_json(v.client_capabilities),
	    'limits', version_limits(v));
END $$;

-- Two JSON objects, made by json_build_object and neither empty, as one.
CREATE FUNCTION json_members(a json, b json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT left(a::text, -1) || ', ' || substr(b::text, 2)
$$;

-- One line of a list of versions.
CREATE FUNCTION version_line(v tool_versions, p_serving uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_build_object('version', v.version_no, 'approval_status', v.state,
	    'serving', coalesce(v.id = p_serving, false), 'change_summary', v.change_note,
	    'change_source', v.change_source, 'created_by', v.created_by,
	    'created_at', mcpbox.json_time(v.created_at),
	    'version_hash', encode(v.hash, 'hex'))
$$;

-- mcpbox_get_server. p_timeout: the configured limit of a call.
CREATE FUNCTION manage_get_server(p_id uuid, p_timeout bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', s.name,
	    'description', s.description, 'status', s.status, 'expose', s.expose,
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
CREATE INDEX approval_requests_pending_idx ON approval_requests (server_id)
    WHERE state = 'pending';

-- Hosts that were granted to a server.
CREATE FUNCTION server_hosts(p_server uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT '[]'::json
$$;

-- mcpbox_get_tool: one version (null: the newest) of an object, whole.
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

-- mcpbox_get_tool_logs: its calls under every name it ever had, and test runs.
-- Texts are cut so that the answer always fits.
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
		'stdout', left(x.stdout, longest), 'executed_by', x.principal,
		'created_at', json_time(x.created_at)) ORDER BY x.created_at DESC, x.id DESC) AS logs
		FROM (SELECT e.*, v.version_no FROM
		    (SELECT DISTINCT n.exposed_name FROM tool_versions n WHERE n.tool_id = t.id) k
		    CROSS JOIN LATERAL executions_of_tool(k.exposed_name,
			'{tool,test,management}', p_limit) e
		    JOIN tool_versions v ON v.id = e.version_id AND v.tool_id = t.id
		    ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit) x) l ON true
	    WHERE t.id = p_id AND t.deleted_at IS NULL);
END $$;

-- mcpbox_get_server_modules
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
	    'description', 'Each tool has the whole standard library. The packages of'
	    ' allowed_modules are in the store; a tool may use one once an administrator'
	    ' granted it to that tool (mcpbox_request_module).');
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

CREATE FUNCTION source_json(x external_sources) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_build_object('id', x.id, 'server_id', x.server_id, 'name', x.name, 'url', x.url,
	    'auth_type', x.auth_type, 'auth_secret_name', x.auth_secret_name,
	    'auth_header_name', x.auth_header_name, 'transport_type', x.transport_type,
	    'status', x.status, 'tool_count', x.tool_count,
	    'last_discovered_at', mcpbox.json_time(x.last_discovered_at),
	    'created_at', mcpbox.json_time(x.created_at), 'created_by', x.created_by)
$$;

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

-- mcpbox_validate_code, of code whose signature became this schema.
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

-- mcpbox_test_code. p_body: CallToolResult, p_meta: its _meta, both of the
-- runner's making. U+0000 is text in JSON but none here.
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

---------------------------------------------------------------------------
-- Changes by management tools: done, then shown.

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

-- The name alone; the value is an administrator's to set (0013).
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

CREATE FUNCTION manage_add_source(p_id uuid, p_server uuid, p_name text, p_url text,
    p_auth text, p_secret text, p_header text, p_transport text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM add_source(p_id, p_server, p_name, p_url, coalesce(p_auth, 'none'), p_secret,
	    p_header, coalesce(p_transport, 'streamable_http'), p_actor);
	RETURN (SELECT json_build_object('success', true, 'source_id', x.id, 'name', x.name,
	    'url', x.url, 'auth_type', x.auth_type, 'transport_type', x.transport_type,
	    'message', 'The source is recorded. Nothing connects to it yet.')
	    FROM external_sources x WHERE x.id = p_id);
END $$;

---------------------------------------------------------------------------
-- Changes by administrators (common/admin_action.def).

-- What administrators name: a server by its id or name, an object by its id or
-- the name clients see. Null: there is none.
CREATE FUNCTION find_server(p_id text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_id ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN
		RETURN (SELECT id FROM servers WHERE id = p_id::uuid);
	END IF;
	RETURN (SELECT id FROM servers WHERE name = p_id AND deleted_at IS NULL);
END $$;

CREATE FUNCTION find_tool(p_id text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_id ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN
		RETURN (SELECT id FROM tools WHERE id = p_id::uuid);
	END IF;
	RETURN (SELECT tool_id FROM tool_names WHERE exposed_name = p_id);
END $$;

CREATE FUNCTION act_server(p_id text) RETURNS uuid
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	id uuid := find_server(p_id);
BEGIN
	IF id IS NULL THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	RETURN id;
END $$;

-- Its server's row and its own are locked, in the usual order.
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

-- What GET shows of a server, and its ETag is the SHA-256 of.
CREATE FUNCTION server_json(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', split_part(s.name, '@', 1),
	    'description', s.description, 'status', s.status, 'expose', s.expose,
	    'created_at', json_time(s.created_at), 'created_by', s.created_by,
	    'updated_at', json_time(s.updated_at), 'deleted_at', json_time(s.deleted_at),
	    'deleted_by', s.deleted_by, 'tool_count', (SELECT count(*) FROM tools x
		WHERE x.server_id = s.id AND x.object = 'tool' AND x.deleted_at IS NULL))::text
	    FROM servers s WHERE s.id = p_id);
END $$;

CREATE FUNCTION act_server_create(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	id uuid := gen_random_uuid();
BEGIN
	IF NOT name_ok(p_body ->> 'name', 24) THEN
		PERFORM fail('invalid_params',
		    'a name is lower-case words joined by single underscores, at most 24 characters');
	END IF;
	IF length(p_body ->> 'description') > 2000 THEN
		PERFORM fail('invalid_params', 'a description has at most 2000 characters');
	END IF;
	PERFORM create_server(id, p_body ->> 'name', coalesce(p_body ->> 'description', ''), p_actor);
	RETURN server_json(id);
END $$;

CREATE FUNCTION act_server_update(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(act_server(p_id));
BEGIN
	PERFORM act_seen(p_seen, server_json(s.id));
	IF length(p_body ->> 'description') > 2000 THEN
		PERFORM fail('invalid_params', 'a description has at most 2000 characters');
	END IF;
	PERFORM update_server(s.id, p_body ->> 'description', p_actor);
	RETURN server_json(s.id);
END $$;

CREATE FUNCTION act_server_start(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM set_server_status(act_server(p_id), 'running', p_actor);
	RETURN server_json(find_server(p_id));
END $$;

CREATE FUNCTION act_server_stop(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM set_server_status(act_server(p_id), 'stopped', p_actor);
	RETURN server_json(find_server(p_id));
END $$;

CREATE FUNCTION act_server_delete(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(act_server(p_id));
BEGIN
	PERFORM act_seen(p_seen, server_json(s.id));
	PERFORM delete_server(s.id, p_actor);
	RETURN server_json(s.id);
END $$;

CREATE FUNCTION act_source_add(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made uuid := gen_random_uuid();
BEGIN
	PERFORM add_source(made, act_server(p_id), p_body ->> 'name', p_body ->> 'url',
	    coalesce(p_body ->> 'auth_type', 'none'), p_body ->> 'auth_secret_name',
	    p_body ->> 'auth_header_name',
	    coalesce(p_body ->> 'transport_type', 'streamable_http'), p_actor);
	RETURN (SELECT source_json(x)::text FROM external_sources x WHERE x.id = made);
END $$;

CREATE FUNCTION act_source_delete(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM delete_source(act_uuid(p_id, 'source'), p_actor);
	RETURN NULL;
END $$;

-- What a list shows of a tool, prompt or resource.
CREATE FUNCTION tool_item(p_id uuid) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', t.id, 'server_id', t.server_id,
	    'server', split_part(s.name, '@', 1), 'name', t.name, 'enabled', t.enabled,
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

-- What GET shows of one, and its ETag is the SHA-256 of: it changes with each
-- version, decision and switch.
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

-- One version whole, for administrators: of what was deleted, too.
CREATE FUNCTION version_json(p_tool uuid, p_version bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
BEGIN
	SELECT * INTO v FROM tool_versions x WHERE x.tool_id = p_tool AND x.version_no = p_version;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	RETURN json_members(json_build_object('tool_id', v.tool_id, 'version', v.version_no,
	    'name', v.name, 'exposed_name', v.exposed_name, 'object', v.object,
	    'approval_status', v.state, 'version_hash', encode(v.hash, 'hex'),
	    'serving', EXISTS (SELECT 1 FROM tools t WHERE t.serving_version = v.id),
	    'change_source', v.change_source, 'change_summary', v.change_note,
	    'created_by', v.created_by, 'created_at', json_time(v.created_at)),
	    version_content(v));
END $$;

-- "tool/number" and "tool/number-number", as a path has them.
CREATE FUNCTION version_named(p_name text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name !~ '^[^/]+/[0-9]{1,9}$' THEN
		RETURN NULL;
	END IF;
	RETURN version_json(find_tool(split_part(p_name, '/', 1)),
	    split_part(p_name, '/', 2)::bigint);
END $$;

CREATE FUNCTION version_pair(p_name text, OUT tool_id uuid, OUT name text, OUT from_no int,
    OUT from_pre bytea, OUT to_no int, OUT to_pre bytea)
RETURNS SETOF record
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name ~ '^[^/]+/[0-9]{1,9}-[0-9]{1,9}$' THEN
		RETURN QUERY SELECT t.id, t.name::text, a.version_no, a.preimage, b.version_no, b.preimage
		    FROM tools t JOIN tool_versions a ON a.tool_id = t.id
			AND a.version_no = split_part(split_part(p_name, '/', 2), '-', 1)::int
		    JOIN tool_versions b ON b.tool_id = t.id
			AND b.version_no = split_part(split_part(p_name, '/', 2), '-', 2)::int
		    WHERE t.id = find_tool(split_part(p_name, '/', 1));
	END IF;
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
	PERFORM set_tool_enabled(t.id, false, p_actor);
	RETURN tool_json(t.id);
END $$;

-- A pre-image with one text field more, less (null) or otherwise; in its place,
-- since fields stand in order.
CREATE FUNCTION version_with(preimage bytea, wanted int, value text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	p bytea := substring(preimage FROM 1);
	field bytea := set_byte('\x00'::bytea, 0, wanted) || int4send(octet_length(value))
	    || convert_to(value, 'UTF8');
	pos bigint := 17;
	size bigint;
BEGIN
	PERFORM version_fields(preimage, 255);	-- fails if it is none
	WHILE pos < length(p) AND get_byte(p, pos::int) < wanted LOOP
		pos := pos + 5 + ((get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16) | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4));
	END LOOP;
	size := 0;
	IF pos < length(p) AND get_byte(p, pos::int) = wanted THEN
		size := 5 + ((get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16) | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4));
	END IF;
	RETURN substring(p FROM 1 FOR pos::int) || coalesce(field, ''::bytea)
	    || substring(p FROM (pos + size)::int + 1);
END $$;

-- What an administrator may write of a version without its code: name, title,
-- description. A new draft like any other; its content is otherwise the newest
-- version's. An empty title is none.
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

CREATE FUNCTION act_version_rollback(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM act_seen(p_seen, tool_json(t.id));
	IF (p_body ->> 'version')::numeric NOT BETWEEN 1 AND 2147483647 THEN
		PERFORM fail('not_found', 'there is no such version');
	END IF;
	PERFORM rollback_version(gen_random_uuid(), t.id, (p_body ->> 'version')::int, p_actor);
	RETURN tool_json(t.id);
END $$;

CREATE FUNCTION act_versions_prune(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	keep int;
	n bigint;
	total bigint := 0;
BEGIN
	IF coalesce((p_body ->> 'keep')::numeric, 10) NOT BETWEEN 10 AND 10000 THEN
		PERFORM fail('invalid_params', 'keep is 10 to 10000');
	END IF;
	keep := coalesce((p_body ->> 'keep')::int, setting('versions_kept')::int);
	-- of what was deleted, too
	SELECT * INTO t FROM tools x WHERE x.id = find_tool(p_id) FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool, prompt or resource');
	END IF;
	LOOP
		n := prune_versions(t.id, keep);
		total := total + n;
		EXIT WHEN n = 0;
	END LOOP;
	IF total > 0 THEN
		PERFORM audit_append(p_actor, 'versions_pruned', t.object || ' ' || t.name,
		    json_build_object('tool_id', t.id, 'keep', keep, 'versions', total)::text);
	END IF;
	RETURN json_build_object('tool_id', t.id, 'pruned', total, 'total_versions',
	    (SELECT count(*) FROM tool_versions v WHERE v.tool_id = t.id));
END $$;

---------------------------------------------------------------------------
-- Searching tools: words of names, titles and descriptions of what may serve.

-- Weights as in the ranking: a word in the name counts most. Parted at whatever
-- addresses and paths are made of, for which PostgreSQL's parser is slow (0015).
CREATE FUNCTION search_words(exposed_name text, title text, description text)
RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
	SELECT setweight(to_tsvector('simple'::regconfig, translate(exposed_name, '_', ' ')), 'A')
	    || setweight(to_tsvector('simple'::regconfig, translate(coalesce(title, ''),
	        '.-+_/~@:<>&%?=#;', '                ')), 'B')
	    || setweight(to_tsvector('simple'::regconfig, translate(coalesce(description, ''),
	        '.-+_/~@:<>&%?=#;', '                ')), 'D')
$$;
-- Stored: ranking some hundreds would compute each anew. (A generated column
-- can't be made of others.)
ALTER TABLE tool_versions ADD COLUMN words tsvector NOT NULL GENERATED ALWAYS AS
    (search_words(version_text(preimage, 6), version_text(preimage, 7),
    version_text(preimage, 8))) STORED;
CREATE INDEX tool_versions_words_idx ON tool_versions USING gin (words)
    WHERE state = 'approved';

-- "red shirt" as 'red':* | 'shirt':*, from what a tokenizer makes of it, so
-- that no operator of the query language can be in it. Empty: no words.
CREATE FUNCTION search_query(p_words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT coalesce(string_agg(quote_literal(w) || ':*', ' | '), '')::tsquery
	FROM (SELECT w FROM unnest(tsvector_to_array(to_tsvector('simple'::regconfig,
	    translate(p_words, '.-+_/~@:<>&%?=#;', '                ')))) w LIMIT 16) x
$$;

-- Best first. Of very common words only some are ranked, so that a search
-- costs the same however many tools there are. What no word begins with is
-- looked for inside the names: a scan, but of an index of names alone, by
-- patterns made once.
CREATE FUNCTION search_tools(p_words text, p_limit bigint)
RETURNS TABLE (exposed_name text, title text, description text, server_name text)
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	q tsquery := search_query(p_words);
	inside text[];
BEGIN
	RETURN QUERY SELECT x.exposed_name, x.title, x.description, x.server_name
	    FROM (SELECT v.exposed_name::text, v.title, v.description, s.name::text AS server_name,
		v.words FROM tool_versions v
		JOIN tools t ON t.serving_version = v.id AND t.enabled AND t.object = 'tool'
		JOIN servers s ON s.id = t.server_id AND s.status = 'running'
		WHERE v.state = 'approved' AND v.words @@ q
		LIMIT greatest(250, p_limit * 10)) x
	    ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', x.words, q) DESC, x.exposed_name
	    LIMIT p_limit;
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

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON external_sources FROM PUBLIC;
GRANT SELECT ON external_sources TO mcpbox_app;
REVOKE ALL ON FUNCTION approval_requests_server, server_locked, update_server, delete_server,
    tool_versions_delete, prune_versions, create_tool, add_version,
    rollback_version, source_url_wrong, add_source, delete_source, json_time,
    json_bytes, json_or_text, version_limits, version_content, json_members,
    version_line, manage_get_server, server_hosts, manage_get_tool,
    manage_list_versions, manage_get_logs, manage_get_modules, manage_list_secrets,
    source_json, manage_list_sources, manage_validated, manage_tested,
    manage_update_server, manage_delete_server, manage_rollback,
    manage_create_secret, manage_add_source, find_server, find_tool, act_server,
    act_tool, server_json, act_server_create, act_server_update, act_server_start,
    act_server_stop, act_server_delete, act_source_add, act_source_delete,
    tool_item, tool_json, version_json, version_named, version_pair,
    act_tool_enable, act_tool_disable, version_with, act_tool_update, act_tool_delete, act_version_rollback,
    act_versions_prune, search_words, search_query, search_tools FROM PUBLIC;
-- those that only read, as whoever calls them, and what they use
GRANT EXECUTE ON FUNCTION json_time, json_bytes, json_or_text, version_limits,
    version_content, json_members, version_line, tool_item, find_server, find_tool,
    manage_get_server, server_hosts, manage_get_tool, manage_list_versions,
    manage_get_logs, manage_get_modules, manage_list_secrets, source_json,
    manage_list_sources, manage_validated, manage_tested, server_json, tool_json,
    version_json, version_named, version_pair, search_words, search_query,
    search_tools TO mcpbox_app;
GRANT EXECUTE ON FUNCTION create_tool, add_version, manage_update_server,
    manage_delete_server, manage_rollback, manage_create_secret, manage_add_source
    TO mcpbox_app;
