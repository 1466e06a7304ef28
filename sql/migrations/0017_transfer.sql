-- 0017: figures for the dashboard and for health; export and import.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Figures. Of calls (of tools; not of management tools, inspections and tests)
-- they come from execution_stats (0015), by hours: an hour that is not over is
-- counted as far as it went.

CREATE FUNCTION dashboard(p_period text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	word text := coalesce(nullif(p_period, ''), '24h');
	span interval := CASE word WHEN '1h' THEN interval '1 hour'
	    WHEN '6h' THEN interval '6 hours' WHEN '24h' THEN interval '24 hours'
	    WHEN '7d' THEN interval '7 days' END;
	f timestamptz := date_trunc('hour', clock_timestamp() - span, 'UTC');
	calls json;
BEGIN
	IF span IS NULL THEN
		PERFORM fail('invalid_params', 'period is 1h, 6h, 24h or 7d');
	END IF;
	calls := execution_statistics(f, NULL, 'hour', '', '', '', 'tool', '')::json;
	RETURN json_build_object('period', word, 'since', calls -> 'since', 'until', calls -> 'until',
	    'servers', (SELECT json_build_object('all', count(*),
	        'running', count(*) FILTER (WHERE status = 'running')) FROM servers
	        WHERE deleted_at IS NULL),
	    'tools', (SELECT json_build_object('all', count(*),
	        'serving', count(*) FILTER (WHERE serving_version IS NOT NULL AND enabled),
	        'disabled', count(*) FILTER (WHERE NOT enabled)) FROM tools
	        WHERE object = 'tool' AND deleted_at IS NULL),
	    'prompts', (SELECT count(*) FROM tools WHERE object = 'prompt' AND deleted_at IS NULL),
	    'resources', (SELECT count(*) FROM tools WHERE object = 'resource' AND deleted_at IS NULL),
	    'pending', (SELECT json_build_object('all', coalesce(sum(n), 0),
	        'tool', coalesce(sum(n) FILTER (WHERE kind = 'tool'), 0),
	        'module', coalesce(sum(n) FILTER (WHERE kind = 'module'), 0),
	        'network', coalesce(sum(n) FILTER (WHERE kind = 'network'), 0),
	        'call', coalesce(sum(n) FILTER (WHERE kind = 'call'), 0))
	        FROM (SELECT kind, count(*) AS n FROM approval_requests
	        WHERE state = 'pending' GROUP BY 1) p),
	    'calls', calls -> 'total', 'calls_over_time', calls -> 'periods',
	    'outcomes', calls -> 'outcomes', 'failures', calls -> 'failures',
	    'top_tools', (SELECT coalesce(json_agg(t.value), '[]') FROM (SELECT value
	        FROM json_array_elements(calls -> 'tools') WITH ORDINALITY o(value, n)
	        ORDER BY n LIMIT 5) t),
	    'busiest_servers', (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name,
	        'status', s.status, 'calls', c.calls, 'errors', c.errors)
	        ORDER BY c.calls DESC, s.name), '[]')
	        FROM (SELECT t.server_id, sum(x.calls) AS calls,
	        coalesce(sum(x.calls) FILTER (WHERE x.outcome <> 'done'), 0) AS errors
	        FROM execution_stats x JOIN tool_names n ON n.exposed_name = x.tool
	        JOIN tools t ON t.id = n.tool_id WHERE x.hour >= f AND x.kind = 'tool'
	        GROUP BY 1 ORDER BY 2 DESC LIMIT 10) c JOIN servers s ON s.id = c.server_id),
	    'recent_errors', (SELECT coalesce(json_agg(json_build_object('id', r.id, 'tool', r.tool,
	        'principal', r.principal, 'outcome', r.outcome, 'failure_mode', r.failure,
	        'created_at', to_char(r.created_at AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY r.created_at DESC, r.id DESC), '[]')
	        FROM (SELECT e.* FROM unnest(ARRAY['failed', 'killed', 'refused', 'lost']) o(outcome)
	        CROSS JOIN LATERAL executions_of_outcome(o.outcome, f, 10) e
	        ORDER BY e.created_at DESC, e.id DESC LIMIT 10) r))::text;
END $$;

-- What of the database tells whether all is well.
CREATE FUNCTION health_figures() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('postgresql', current_setting('server_version'),
	    'database_bytes', pg_database_size(current_database()),
	    'schema', (SELECT max(version) FROM schema_migrations),
	    'nodes', (SELECT coalesce(json_agg(json_build_object('node', node, 'kind', kind,
	        'since', to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
	        ORDER BY node, kind), '[]') FROM epochs WHERE ended_at IS NULL),
	    'open_executions', (SELECT count(*) FROM executions WHERE state = 'open'),
	    'overdue_executions', (SELECT count(*) FROM executions WHERE state = 'open'
	        AND deadline < clock_timestamp() - interval '5 minutes'),
	    'waiting_statistics', (SELECT count(*) FROM (SELECT 1 FROM execution_queue
	        LIMIT 100000) q),
	    'audit_rows', (SELECT seq FROM audit_head),
	    'audit_not_anchored', (SELECT seq FROM audit_head)
	        - coalesce((SELECT max(seq) FROM audit_anchors), 0),
	    'pending_approvals', (SELECT count(*) FROM approval_requests WHERE state = 'pending'))::text
$$;

---------------------------------------------------------------------------
-- Export and import (decision 0033). What leaves is text, a JSON object a line,
-- and one SHA-256 over all of it, which the vault seals; what comes in lies as
-- pieces until all of it is there, and becomes drafts in one transaction.

-- Both are gone when nobody fetched or finished them within a day.
CREATE TABLE exports (
	id uuid PRIMARY KEY,
	made_by text NOT NULL CHECK (actor_ok(made_by)),
	made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	lines bigint NOT NULL CHECK (lines >= 0),
	bytes bigint NOT NULL CHECK (bytes BETWEEN 0 AND 134217728),
	sha256 bytea NOT NULL CHECK (length(sha256) = 32)
);
CREATE TABLE export_lines (
	export uuid NOT NULL REFERENCES exports (id) ON DELETE CASCADE,
	n bigint NOT NULL,
	line text NOT NULL,
	PRIMARY KEY (export, n)
);
CREATE TABLE imports (
	id uuid PRIMARY KEY,
	made_by text NOT NULL CHECK (actor_ok(made_by)),
	made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	used_at timestamptz NOT NULL DEFAULT clock_timestamp(),	-- when a piece was put
	-- where the next piece begins; 128 MiB are 10,000 tools of 12 kB
	bytes bigint NOT NULL DEFAULT 0 CHECK (bytes BETWEEN 0 AND 134217728)
);
CREATE TABLE import_parts (
	import uuid NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
	at bigint NOT NULL CHECK (at >= 0),
	part text NOT NULL,
	PRIMARY KEY (import, at)
);

-- Eight of each at once. Of exports the oldest go; an import in work does not
-- end for another's sake, but those whose program died would fill the eight
-- places for a day: one to which nothing was put for ten minutes gives way.
CREATE FUNCTION transfer_sweep() RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM exports WHERE made_at < clock_timestamp() - interval '1 day';
	DELETE FROM imports WHERE made_at < clock_timestamp() - interval '1 day';
	DELETE FROM exports WHERE id IN (SELECT id FROM exports ORDER BY made_at DESC OFFSET 7);
	DELETE FROM imports WHERE used_at < clock_timestamp() - interval '10 minutes'
	    AND id IN (SELECT id FROM imports ORDER BY used_at DESC OFFSET 7);
END $$;

-- What travels of a server. Secrets by name alone, grants and modules not at
-- all: they are decisions of this instance.
CREATE FUNCTION export_server(s servers) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('server', json_build_object('name', s.name,
	    'description', s.description, 'expose', s.expose,
	    'limits', json_strip_nulls(server_limits_json(s.id::text)::json -> 'limits'),
	    'secrets', (SELECT coalesce(json_agg(json_build_object('key', x.key,
	        'description', x.description) ORDER BY x.key), '[]')
	        FROM server_secrets x WHERE x.server_id = s.id)))::text
$$;

-- Of an object: what serves, else the newest version; as its very bytes.
CREATE FUNCTION export_object(t tools, p_server text) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('object', json_build_object('server', p_server,
	    'kind', t.object, 'name', v.name, 'enabled', t.enabled,
	    'version', v.version_no, 'state', v.state, 'hash', encode(v.hash, 'hex'),
	    'preimage', replace(encode(v.preimage, 'base64'), E'\n', '')))::text
	FROM tool_versions v WHERE v.tool_id = t.id AND v.id = coalesce(t.serving_version,
	    (SELECT w.id FROM tool_versions w WHERE w.tool_id = t.id
	    ORDER BY w.version_no DESC LIMIT 1))
$$;

-- p_servers: names, an empty list: all. One statement fills it, so it is one
-- moment's state. Answers what the vault seals and the file's head says.
CREATE FUNCTION export_begin(p_id uuid, p_servers text[], p_actor text)
RETURNS bytea
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	missing text;
	x exports;
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox transfer'));
	PERFORM transfer_sweep();
	SELECT n INTO missing FROM unnest(p_servers) n WHERE NOT EXISTS (SELECT 1
	    FROM servers s WHERE s.name = n AND s.deleted_at IS NULL) LIMIT 1;
	IF FOUND THEN
		PERFORM fail('not_found', 'there is no server named ' || missing);
	END IF;
	INSERT INTO exports (id, made_by, lines, bytes, sha256)
	    VALUES (p_id, p_actor, 0, 0, sha256('')) RETURNING * INTO x;
	WITH s AS MATERIALIZED (
		SELECT * FROM servers WHERE deleted_at IS NULL
		    AND (p_servers = '{}' OR name = ANY (p_servers))
	), all_lines AS (
		SELECT s.name AS server, 0 AS rank, ''::text AS name, export_server(s) AS line FROM s
		UNION ALL
		SELECT s.name, 1, t.name, export_object(t, s.name) FROM s
		JOIN tools t ON t.server_id = s.id WHERE t.deleted_at IS NULL
	)
	INSERT INTO export_lines SELECT p_id,
	    row_number() OVER (ORDER BY server COLLATE "C", rank, name COLLATE "C"), line FROM all_lines
	    WHERE line IS NOT NULL;
	IF (SELECT coalesce(sum(octet_length(line) + 1), 0) FROM export_lines WHERE export = p_id)
	    > 134217728 THEN
		PERFORM fail('limit', 'an export has at most 128 MiB: name fewer servers');
	END IF;
	UPDATE exports e SET lines = l.lines, bytes = l.bytes, sha256 = l.sha256
	    FROM (SELECT count(*) AS lines, coalesce(sum(octet_length(line) + 1), 0) AS bytes,
	    sha256(convert_to(coalesce(string_agg(line || E'\n', '' ORDER BY n), ''), 'UTF8'))
	    AS sha256 FROM export_lines WHERE export = p_id) l
	    WHERE e.id = p_id RETURNING e.* INTO x;
	-- five hundred names fit into an audit row
	PERFORM audit_append(p_actor, 'exported', 'export ' || p_id, json_build_object(
	    'servers', p_servers[1:500], 'named', cardinality(p_servers), 'lines', x.lines, 'sha256', encode(x.sha256, 'hex'))::text);
	RETURN x.sha256;
END $$;

-- With the vault's seal: what REST answers, and what begins the file.
CREATE FUNCTION export_head(p_id uuid, p_seal bytea) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('mcpbox_export', 1, 'id', x.id, 'lines', x.lines,
	    'bytes', x.bytes, 'sha256', encode(x.sha256, 'hex'), 'exported_at',
	    to_char(x.made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'exported_by', x.made_by, 'signature', encode(p_seal, 'hex'))::text
	    FROM exports x WHERE x.id = p_id
$$;

---------------------------------------------------------------------------
-- Coming in.

CREATE FUNCTION act_import_begin(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x imports;
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox transfer'));
	PERFORM transfer_sweep();
	IF (SELECT count(*) FROM imports) >= 8 THEN
		PERFORM fail('limit', 'eight imports are under way: finish or delete one');
	END IF;
	INSERT INTO imports (id, made_by) VALUES (gen_random_uuid(), p_actor) RETURNING * INTO x;
	RETURN json_build_object('id', x.id, 'bytes', x.bytes);
END $$;

-- The piece that begins at `from`. One that was put already is answered as
-- the first time, so that a lost answer does no harm; a gap is refused.
CREATE FUNCTION act_import_put(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x imports;
	piece text := p_body ->> 'text';
	place bigint := (p_body ->> 'from')::bigint;
BEGIN
	SELECT * INTO x FROM imports WHERE id = act_uuid(p_id, 'import') FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	IF EXISTS (SELECT 1 FROM import_parts p WHERE p.import = x.id AND p.at = place
	    AND p.part = piece) THEN
		RETURN json_build_object('id', x.id, 'bytes', x.bytes);
	END IF;
	IF place <> x.bytes OR piece = '' THEN
		PERFORM fail('conflict', 'the next piece begins at byte ' || x.bytes);
	END IF;
	IF x.bytes + octet_length(piece) > 134217728 THEN
		PERFORM fail('too_large', 'an import has at most 128 MiB');
	END IF;
	INSERT INTO import_parts VALUES (x.id, place, piece);
	UPDATE imports SET bytes = x.bytes + octet_length(piece), used_at = clock_timestamp()
	    WHERE id = x.id RETURNING * INTO x;
	RETURN json_build_object('id', x.id, 'bytes', x.bytes);
END $$;

CREATE FUNCTION act_import_drop(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM imports WHERE id = act_uuid(p_id, 'import');
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	RETURN NULL;
END $$;

CREATE FUNCTION import_text(p_id uuid) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(string_agg(part, '' ORDER BY at), '') FROM import_parts WHERE import = p_id
$$;

-- Of all that was put: the vault is asked whether it sealed these bytes.
CREATE FUNCTION import_digest(p_id uuid) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM imports WHERE id = p_id) THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	RETURN sha256(convert_to(import_text(p_id), 'UTF8'));
END $$;

-- A version's bytes under another server and tool. Its modules are left out:
-- they are entries of the other instance's store, and granted there.
CREATE FUNCTION import_preimage(pre bytea, p_server uuid, p_tool uuid, p_name text,
    p_exposed text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made bytea := substring(pre FROM 1 FOR 17);
	pos bigint := 17;
	total bigint := length(pre);
	tag int;
	n bigint;
	value bytea;
BEGIN
	IF total < 17 OR made <> convert_to('mcpbox version 1', 'UTF8') || '\x00' THEN
		PERFORM fail('invalid_params', 'not a version');
	END IF;
	WHILE pos < total LOOP
		IF total - pos < 5 THEN
			PERFORM fail('invalid_params', 'a field is cut off');
		END IF;
		tag := get_byte(pre, pos::int);
		-- << and | bind alike, from the left
		n := (get_byte(pre, pos::int + 1)::bigint << 24)
		    | (get_byte(pre, pos::int + 2) << 16) | (get_byte(pre, pos::int + 3) << 8)
		    | get_byte(pre, pos::int + 4);
		IF n > total - pos - 5 THEN
			PERFORM fail('invalid_params', 'a field is cut off');
		END IF;
		value := CASE tag WHEN 2 THEN uuid_send(p_server) WHEN 3 THEN uuid_send(p_tool)
		    WHEN 4 THEN convert_to(p_name, 'UTF8') WHEN 6 THEN convert_to(p_exposed, 'UTF8')
		    ELSE substring(pre FROM pos::int + 6 FOR n::int) END;
		IF tag <> 17 THEN
			made := made || set_byte('\x00', 0, tag)
			    || int4send(length(value)) || value;
		END IF;
		pos := pos + 5 + n;
	END LOOP;
	RETURN made;
END $$;

-- A name for a server that no server has: name, name_imported, name_imported_2.
CREATE FUNCTION import_name(p_name text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	suffix text := '';
	tried text := p_name;
	i int := 1;
BEGIN
	IF NOT coalesce(name_ok(p_name, 24), false) THEN
		PERFORM fail('invalid_params', 'a server has no valid name');
	END IF;
	WHILE tried IN ('mcpbox', 'sandbox', 'web')
	    OR EXISTS (SELECT 1 FROM servers s WHERE s.name = tried) LOOP
		suffix := '_imported' || CASE WHEN i > 1 THEN '_' || i ELSE '' END;
		tried := rtrim(left(p_name, 24 - length(suffix)), '_') || suffix;
		i := i + 1;
		IF i > 100 THEN
			PERFORM fail('conflict', 'no name is free for the server ' || p_name);
		END IF;
	END LOOP;
	RETURN tried;
END $$;

-- One server of an import; its id.
CREATE FUNCTION import_server(j json, p_actor text) RETURNS servers
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made servers;
	l json := coalesce(j -> 'limits', '{}');
	x json;
BEGIN
	IF NOT coalesce(j ->> 'expose', '') IN ('prefixed', 'bare') THEN
		PERFORM fail('invalid_params', 'a server''s line is not one of an export');
	END IF;
	made.id := gen_random_uuid();
	made.name := import_name(j ->> 'name');
	PERFORM create_server(made.id, made.name, coalesce(j ->> 'description', ''), p_actor);
	UPDATE servers SET expose = j ->> 'expose' WHERE id = made.id RETURNING * INTO made;
	IF l::text <> '{}' THEN
		PERFORM set_server_limits(made.id,
		    sha256(convert_to(server_limits_json(made.id::text), 'UTF8')), p_actor,
		    (l ->> 'timeout_ms')::bigint, (l ->> 'memory_bytes')::bigint,
		    (l ->> 'processes')::bigint, (l ->> 'tmp_bytes')::bigint,
		    (l ->> 'result_bytes')::bigint, (l ->> 'cpu_ms')::bigint, (l ->> 'files')::bigint,
		    (l ->> 'file_bytes')::bigint, (l ->> 'stdout_bytes')::bigint,
		    (l ->> 'argument_bytes')::bigint, (l ->> 'log_rate')::bigint,
		    (l ->> 'progress_rate')::bigint, (l ->> 'code_bytes')::bigint);
	END IF;
	FOR x IN SELECT value FROM json_array_elements(coalesce(j -> 'secrets', '[]')) LOOP
		PERFORM secret_create(made.id, x ->> 'key', coalesce(x ->> 'description', ''), p_actor);
	END LOOP;
	RETURN made;
END $$;

-- One object: a draft of its own. What another object's name or URI stands in
-- the way of is left out and said; anything else ends the whole import.
CREATE FUNCTION import_object(j json, s servers, p_actor text) RETURNS json
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := decode(j ->> 'preimage', 'base64');
	tool uuid := gen_random_uuid();
	name text := version_text(pre, 5);
	exposed text := CASE s.expose WHEN 'bare' THEN name ELSE s.name || '__' || name END;
	said text;
BEGIN
	IF pre IS NULL OR name IS NULL THEN
		PERFORM fail('invalid_params', 'an object''s line is not one of an export');
	END IF;
	BEGIN
		PERFORM create_tool(gen_random_uuid(),
		    import_preimage(pre, s.id, tool, s.name, exposed), p_actor, 'import');
		IF (j ->> 'enabled') = 'false' THEN
			PERFORM set_tool_enabled(tool, false, p_actor);
		END IF;
	EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'MB001' THEN
		GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
		RETURN json_build_object('skipped', json_build_object('server', s.name,
		    'name', name, 'why', left(said, 500)));
	END;
	RETURN json_build_object('made', json_build_object('id', tool, 'server', s.name,
	    'kind', coalesce(version_text(pre, 36), 'tool'), 'name', name, 'exposed_name', exposed,
	    'modules', (SELECT coalesce(json_agg(split_part(m, ' ', 1) || ' ' || split_part(m, ' ', 2)), '[]')
	        FROM unnest(version_texts(pre, 17)) m)));
END $$;

-- All of it or nothing. p_sha256: of what the vault said is sealed; pieces put
-- since then are another text.
CREATE FUNCTION import_finish(p_id uuid, p_sha256 bytea, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	whole text;
	line text;
	j json;
	s servers;
	from_name text;
	done json;
	hosts json[] := '{}';
	made json[] := '{}';
	skipped json[] := '{}';
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox transfer'));
	PERFORM 1 FROM imports WHERE id = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	whole := import_text(p_id);
	IF sha256(convert_to(whole, 'UTF8')) <> p_sha256 THEN
		PERFORM fail('conflict', 'the import was changed meanwhile');
	END IF;
	-- one transaction, and admind's statements end after 8 s
	IF length(whole) - length(replace(whole, E'\n', '')) > 2000 THEN
		PERFORM fail('too_large', 'an import has at most 2000 lines: export fewer servers at a time');
	END IF;
	FOR line IN SELECT l FROM string_to_table(rtrim(whole, E'\n'), E'\n') l LOOP
		j := line::json;
		IF j -> 'server' IS NOT NULL THEN
			s := import_server(j -> 'server', p_actor);
			from_name := j -> 'server' ->> 'name';
			hosts := hosts || json_build_object('id', s.id, 'name', s.name,
			    'exported_as', from_name);
		ELSIF j -> 'object' IS NOT NULL AND from_name = j -> 'object' ->> 'server' THEN
			done := import_object(j -> 'object', s, p_actor);
			IF done -> 'made' IS NOT NULL THEN
				made := made || (done -> 'made');
			ELSE
				skipped := skipped || (done -> 'skipped');
			END IF;
		ELSE
			PERFORM fail('invalid_params', 'a line is not one of an export');
		END IF;
	END LOOP;
	DELETE FROM imports WHERE id = p_id;
	PERFORM audit_append(p_actor, 'imported', 'import ' || p_id, json_build_object(
	    'sha256', encode(p_sha256, 'hex'), 'servers', cardinality(hosts),
	    'objects', cardinality(made), 'skipped', cardinality(skipped))::text);
	RETURN json_build_object('servers', array_to_json(hosts), 'objects', cardinality(made),
	    'skipped', array_to_json(skipped[1:100]), 'skipped_count', cardinality(skipped),
	    'needs_modules', (SELECT coalesce(json_agg(json_build_object('tool', m ->> 'exposed_name',
	    'id', m ->> 'id', 'modules', m -> 'modules')), '[]') FROM (SELECT m FROM unnest(made) m
	    WHERE json_array_length(m -> 'modules') > 0 LIMIT 1000) x));
END $$;

---------------------------------------------------------------------------
-- Backups (decision 0034). pg_dump knows what a function needs only where its
-- body was parsed when it was made: 0001's and 0004's, on which generated
-- columns stand, in that form; else a restore makes the table before them.

CREATE OR REPLACE FUNCTION version_bytes(preimage bytea, wanted int) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT
RETURN (mcpbox.version_fields(preimage, wanted))[1];

CREATE OR REPLACE FUNCTION version_text(preimage bytea, wanted int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
RETURN convert_from((mcpbox.version_fields(preimage, wanted))[1], 'UTF8');

CREATE OR REPLACE FUNCTION version_texts(preimage bytea, wanted int) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT
RETURN (SELECT coalesce(array_agg(convert_from(f, 'UTF8')), '{}')
	FROM unnest(mcpbox.version_fields(preimage, wanted)) f);

CREATE OR REPLACE FUNCTION version_uuid(preimage bytea, wanted int) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT
RETURN encode((mcpbox.version_fields(preimage, wanted))[1], 'hex')::uuid;

CREATE OR REPLACE FUNCTION version_content_bytes(preimage bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
RETURN (SELECT coalesce(length(mcpbox.version_bytes(preimage, 40)),
	    length(b) / 4 * 3 - (length(b) - length(rtrim(b, '='))))
	FROM (SELECT mcpbox.version_text(preimage, 41)) AS x (b));

---------------------------------------------------------------------------
REVOKE ALL ON FUNCTION dashboard, health_figures, transfer_sweep, export_server,
    export_object, export_begin, export_head, act_import_begin, act_import_put,
    act_import_drop, import_text, import_digest, import_preimage, import_name,
    import_server, import_object, import_finish FROM PUBLIC;
GRANT SELECT ON exports, export_lines TO mcpbox_app;
GRANT EXECUTE ON FUNCTION dashboard, health_figures, export_begin, export_head,
    import_digest, import_finish TO mcpbox_app;
