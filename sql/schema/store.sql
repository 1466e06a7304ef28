-- The module store and its installer (docs/decisions/0052).
--
-- A request for a module that is not recorded makes a row of module_installs.
-- The admind of any node takes the row, has an installer in its sandbox fetch
-- and store a wheel, and records the result. Only then does the request have a
-- digest, and only then can it be approved. Nothing here gives a right, because
-- an entry of the store runs only if an approved version names its digest.

-- Modules to fetch. version '': the newest that fits.
CREATE TABLE module_installs (
	name text COLLATE "C" NOT NULL
	    CHECK (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' AND length(name) <= 128),
	version text COLLATE "C" NOT NULL
	    CHECK (version ~ '^([0-9A-Za-z][0-9A-Za-z.!+_-]*)?$' AND length(version) <= 64),
	state text NOT NULL DEFAULT 'waiting'
	    CHECK (state IN ('waiting', 'running', 'done', 'failed')),
	attempts int NOT NULL DEFAULT 0 CHECK (attempts >= 0),
	-- waiting: no attempt before this; running: others may take it after this
	due timestamptz NOT NULL DEFAULT clock_timestamp(),
	node text,
	execution uuid,	-- the last attempt's
	resolved text,	-- done: the version it found
	error text CHECK (length(error) <= 1000),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (name, version)
);

CREATE INDEX module_installs_due_idx ON module_installs (due)
    WHERE state IN ('waiting', 'running');

-- An installer's report about the wheel that an entry came from. A stranger
-- wrote these words. They were read in a runner, and a person judges them. The
-- digest of the entry is the store's own, in modules.
CREATE TABLE module_wheels (
	name text COLLATE "C" NOT NULL,
	version text COLLATE "C" NOT NULL,
	filename text NOT NULL CHECK (length(filename) BETWEEN 1 AND 255),
	sha256 bytea NOT NULL CHECK (length(sha256) = 32),
	url text NOT NULL CHECK (length(url) <= 8192),
	bytes bigint NOT NULL CHECK (bytes > 0),
	-- summary, license, requires_python, requires, needs
	about jsonb NOT NULL CHECK (jsonb_typeof(about) = 'object'
	    AND length(about::text) <= 262144),
	-- null: no feed is configured; else known and more, or error
	advisories jsonb CHECK (length(advisories::text) <= 131072),
	installed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	execution uuid NOT NULL,
	PRIMARY KEY (name, version),
	FOREIGN KEY (name, version) REFERENCES modules (name, version)
);

-- Asks for a module to be fetched. A failed attempt is made again at the next request.
CREATE FUNCTION module_want(p_name text, p_version text) RETURNS void
LANGUAGE sql SET search_path = mcpbox, pg_temp AS $$
	INSERT INTO module_installs (name, version) SELECT p_name, p_version
	    WHERE NOT EXISTS (SELECT 1 FROM modules m WHERE m.name = p_name
	    AND m.state = 'available' AND (p_version = '' OR m.version = p_version))
	    ON CONFLICT (name, version) DO UPDATE SET state = 'waiting', attempts = 0,
	    due = clock_timestamp(), error = NULL, updated_at = clock_timestamp()
	    WHERE module_installs.state IN ('failed', 'done')
$$;

CREATE FUNCTION module_requests_want() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM module_want(NEW.name, NEW.version);
	RETURN NULL;
END $$;

-- Returns the next module to fetch, which is this node's until p_lease_ms is
-- over. No row: there is none. A module that an admind had begun before it died
-- is returned again after that time.
CREATE FUNCTION module_install_next(p_node text, p_execution uuid, p_lease_ms bigint)
RETURNS TABLE (name text, version text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN QUERY UPDATE module_installs i SET state = 'running', node = p_node,
	    execution = p_execution, attempts = i.attempts + 1, updated_at = clock_timestamp(),
	    due = clock_timestamp() + p_lease_ms * interval '1 ms'
	WHERE (i.name, i.version) = (SELECT x.name, x.version FROM module_installs x
	    WHERE x.state IN ('waiting', 'running') AND x.due <= clock_timestamp()
	    ORDER BY x.due LIMIT 1 FOR UPDATE SKIP LOCKED)
	RETURNING i.name, i.version;
END $$;

-- Notes that an attempt failed. p_again: the reason was not the package itself,
-- so the attempt is repeated, later each time, five times in all.
CREATE FUNCTION module_install_failed(p_name text, p_version text, p_execution uuid,
    p_error text, p_again boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	UPDATE module_installs i SET
	    state = CASE WHEN p_again AND i.attempts < 5 THEN 'waiting' ELSE 'failed' END,
	    due = clock_timestamp() + 15 * power(2, least(i.attempts, 5)) * interval '1 s',
	    error = left(regexp_replace(p_error, '[\u0001-\u001f\u007f]+', ' ', 'g'), 1000),
	    updated_at = clock_timestamp()
	WHERE i.name = p_name AND i.version = p_version AND i.execution = p_execution
	    AND i.state = 'running'
$$;

-- Returns the sentence in a runner's error (a CallToolResult), or p_else if
-- there is none.
CREATE FUNCTION module_error(p_body bytea, p_else text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN coalesce(replace(json_bytes(p_body)::text, '\u0000', ' ')::json
	    -> 'content' -> 0 ->> 'text', p_else);
EXCEPTION WHEN data_exception THEN
	RETURN p_else;
END $$;

-- Returns why an installer's report can't be used. Null: it can be used.
CREATE FUNCTION module_said_wrong(p_name text, p_version text, said json) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT CASE WHEN said ->> 'name' IS DISTINCT FROM p_name
	    OR p_version NOT IN ('', coalesce(said ->> 'version', ''))
	        THEN 'another package came than the one asked for'
	    WHEN said ->> 'version' !~ '^[0-9A-Za-z][0-9A-Za-z.!+_-]*$'
	    OR length(said ->> 'version') > 64 THEN 'its version is too long'
	    WHEN said ->> 'sha256' !~ '^[0-9a-f]{64}$' OR said ->> 'sha256' IS NULL
	    OR said ->> 'version' IS NULL OR said ->> 'size' !~ '^[0-9]{1,12}$'
	    OR said ->> 'size' IS NULL OR coalesce(said ->> 'filename', '') = ''
	    OR said ->> 'url' IS NULL THEN 'the installer''s report lacks a part' END
$$;

-- Stores an installer's report, with what the store said of the files. p_body
-- is a CallToolResult. Pending requests for the module get its digest in this
-- transaction (trigger `approvals` of modules). Returns the module's version,
-- or why it failed.
CREATE FUNCTION module_installed(p_name text, p_version text, p_execution uuid,
    p_body bytea, p_digest bytea, p_files bigint, p_bytes bigint,
    OUT version text, OUT wrong text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said json := replace((json_bytes(p_body) -> 'structuredContent')::text,
	    '\u0000', '\ufffd')::json;
	known modules;
BEGIN
	PERFORM module_turn(true);
	PERFORM 1 FROM module_installs i WHERE i.name = p_name AND i.version = p_version
	    AND i.execution = p_execution AND i.state = 'running' FOR UPDATE;
	IF NOT FOUND THEN
		wrong := 'another attempt took its place';
		RETURN;
	END IF;
	wrong := module_said_wrong(p_name, p_version, said);
	version := said ->> 'version';
	IF wrong IS NULL THEN
		SELECT * INTO known FROM modules m WHERE m.name = p_name
		    AND m.version = module_installed.version;
		-- A name and a version mean the same bytes for ever.
		IF known.digest <> p_digest THEN
			wrong := p_name || '==' || version || ' is recorded with the digest '
			    || encode(known.digest, 'hex') || ', and the index has another one now';
		ELSIF known.state = 'withdrawn' THEN
			wrong := 'an administrator withdrew ' || p_name || '==' || version;
		END IF;
	END IF;
	IF wrong IS NOT NULL THEN
		PERFORM module_install_failed(p_name, p_version, p_execution, wrong, false);
		RETURN;
	END IF;
	UPDATE module_installs i SET state = 'done', resolved = said ->> 'version', error = NULL,
	    updated_at = clock_timestamp() WHERE i.name = p_name AND i.version = p_version;
	PERFORM add_module(p_name, version, p_digest, p_files, p_bytes, 'installer');
	INSERT INTO module_wheels (name, version, filename, sha256, url, bytes, about,
	    advisories, execution)
	    VALUES (p_name, version, left(said ->> 'filename', 255), decode(said ->> 'sha256', 'hex'),
	    left(said ->> 'url', 8192), (said ->> 'size')::bigint,
	    jsonb_build_object('summary', left(said ->> 'summary', 300),
	        'license', left(said ->> 'license', 300),
	        'requires_python', left(said ->> 'requires_python', 300),
	        'requires', said -> 'requires', 'needs', said -> 'needs'),
	    nullif((said -> 'advisories')::jsonb, 'null'), p_execution)
	    ON CONFLICT DO NOTHING;
END $$;

-- Returns whether an advisory is known for the module that a request of this
-- name and version would get, or whether the feed that is configured could not
-- be asked. Then a person weighs this, and no policy approves.
CREATE FUNCTION module_doubted(p_name text, p_version text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce((SELECT w.advisories IS NOT NULL AND NOT (w.advisories ? 'known'
	    AND jsonb_array_length(w.advisories -> 'known') = 0)
	    FROM modules m LEFT JOIN module_wheels w USING (name, version)
	    WHERE m.name = module_name(p_name) AND m.state = 'available'
	    AND (p_version = '' OR m.version = p_version)
	    ORDER BY m.added_at DESC, m.version DESC LIMIT 1), false)
$$;

-- Returns requests that wait for a module and that an automatic policy may
-- approve.
CREATE FUNCTION module_waiting(p_name text, p_version text) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT a.id FROM approval_requests a JOIN module_requests r ON r.id = a.subject
	    JOIN module_wheels w ON w.name = r.name AND w.version = p_version
	WHERE a.kind = 'module' AND a.state = 'pending' AND r.name = p_name
	    AND r.version IN ('', p_version) AND review_mode('module') = 'automatic'
	    AND NOT module_doubted(r.name, r.version)
	ORDER BY a.id LIMIT 256
$$;

-- Finds a module that a requested module needs, that its tool lacks and that
-- nobody asked for. It becomes a request of its own for that tool, in the name
-- of the principal that asked for the first module. Each request takes the
-- locks of a request, so only one is made. Returns true if it should be called
-- again.
CREATE FUNCTION module_need_ask() RETURNS boolean
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
	ORDER BY a.id, n.value ->> 'name' LIMIT 1;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM request_module(request_uuid(), request_uuid(), q.tool_id, q.need, q.need_version,
	    'needed by ' || q.name || '==' || q.version, q.requested_by);
	RETURN true;
END $$;

-- Returns the wheel that a recorded module came from. Null: it came otherwise.
CREATE FUNCTION module_wheel_json(p_name text, p_version text) RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('filename', w.filename, 'sha256', encode(w.sha256, 'hex'),
	    'url', w.url, 'bytes', w.bytes, 'summary', w.about ->> 'summary',
	    'license', w.about ->> 'license', 'requires_python', w.about ->> 'requires_python',
	    'requires', w.about -> 'requires', 'needs', w.about -> 'needs',
	    'advisories', w.advisories, 'installed_at', approval_time(w.installed_at),
	    'execution', w.execution)
	FROM module_wheels w WHERE w.name = p_name AND w.version = p_version
$$;

CREATE FUNCTION module_install_json(i module_installs) RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('name', i.name, 'version', nullif(i.version, ''),
	    'state', i.state, 'attempts', i.attempts, 'resolved', i.resolved,
	    'error', i.error, 'node', i.node, 'execution', i.execution,
	    'next_at', CASE WHEN i.state = 'waiting' THEN approval_time(i.due) END,
	    'updated_at', approval_time(i.updated_at))
$$;

-- Returns what is shown beside the content of a request for a module: JSON
-- members with a comma before them. For other requests it returns nothing.
CREATE FUNCTION module_circumstances(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce((SELECT ',"wheel":' || coalesce(module_wheel_json(m.name, m.version)::text,
	    'null') || ',"install":' || coalesce((SELECT module_install_json(i)::text
	    FROM module_installs i WHERE i.name = r.name AND i.version = r.version), 'null')
	    FROM module_requests r LEFT JOIN LATERAL (SELECT x.name, x.version FROM modules x
	        WHERE x.name = r.name AND x.state = 'available'
	        AND (r.version = '' OR x.version = r.version)
	        ORDER BY x.added_at DESC, x.version DESC LIMIT 1) m ON true
	    WHERE r.id = a.subject AND a.kind = 'module'), '')
$$;

-- Puts a module into the queue of the installer, even if nobody asked for the
-- module, and also to try again after a failure.
CREATE FUNCTION act_module_install(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n text := module_name(p_id);
	v text := coalesce(p_body ->> 'version', '');
	i module_installs;
BEGIN
	IF n !~ '^[a-z0-9]+(-[a-z0-9]+)*$' OR length(n) > 128
	    OR v !~ '^([0-9A-Za-z][0-9A-Za-z.!+_-]*)?$' OR length(v) > 64 THEN
		PERFORM fail('invalid_params', 'that is no name or version of a package');
	ELSIF EXISTS (SELECT 1 FROM modules m WHERE m.name = n AND m.state = 'available'
	    AND v <> '' AND m.version = v) THEN
		PERFORM fail('conflict', n || '==' || v || ' is in the store already');
	END IF;
	INSERT INTO module_installs (name, version) VALUES (n, v)
	    ON CONFLICT (name, version) DO UPDATE SET state = 'waiting', attempts = 0,
	    due = clock_timestamp(), error = NULL, updated_at = clock_timestamp()
	    WHERE module_installs.state <> 'running';
	SELECT * INTO STRICT i FROM module_installs x WHERE x.name = n AND x.version = v;
	PERFORM audit_append(p_actor, 'module_install', 'module ' || n
	    || CASE v WHEN '' THEN '' ELSE '==' || v END, '{}');
	RETURN module_install_json(i);
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON module_wheels
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON module_wheels EXECUTE FUNCTION refuse();
CREATE TRIGGER want AFTER INSERT ON module_requests
    FOR EACH ROW EXECUTE FUNCTION module_requests_want();

GRANT EXECUTE ON FUNCTION module_install_next, module_install_failed,
    module_error, module_installed, module_doubted, module_waiting,
    module_need_ask, module_wheel_json, module_install_json,
    module_circumstances TO mcpbox_app;
