-- Export and import (docs/decisions/0033). An export is text, a JSON object a
-- line, and one SHA-256 over all of it, which the vault seals. An import is
-- kept as pieces until all of it is there, and becomes drafts in one
-- transaction.
--
-- A refusal inside an import is an exception, and a block that catches one is a
-- subtransaction. Each subtransaction left a version of the audit log's head
-- that several transactions had locked, and each reader of the head has to pass
-- all of these versions. So fifty objects are tried in one block. If one of
-- them fails, those before it are tried in one block again, and those after it
-- in another.
--
-- A server that was stopped is imported as stopped. The importer is the author
-- of this stop, and of the disabling of objects that came disabled. Both have
-- his own authority, which is root's or an administrator's.

-- An export or an import is deleted if nobody fetched or finished it within a
-- day.
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
	used_at timestamptz NOT NULL DEFAULT clock_timestamp(),	-- when a piece was last put
	-- where the next piece begins; 128 MiB are 10,000 tools of 12 kB
	bytes bigint NOT NULL DEFAULT 0 CHECK (bytes BETWEEN 0 AND 134217728)
);

CREATE TABLE import_parts (
	import uuid NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
	at bigint NOT NULL CHECK (at >= 0),
	part text NOT NULL,
	PRIMARY KEY (import, at)
);

-- Keeps at most eight exports and eight imports. The oldest exports are
-- deleted. An import in work is not ended for the sake of another one. But
-- imports whose program died would fill the eight places for a day, so an
-- import to which nothing was put for ten minutes gives way.
CREATE FUNCTION transfer_sweep() RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM exports WHERE made_at < clock_timestamp() - interval '1 day';
	DELETE FROM imports WHERE made_at < clock_timestamp() - interval '1 day';
	DELETE FROM exports WHERE id IN (SELECT id FROM exports ORDER BY made_at DESC OFFSET 7);
	DELETE FROM imports WHERE used_at < clock_timestamp() - interval '10 minutes'
	    AND id IN (SELECT id FROM imports ORDER BY used_at DESC OFFSET 7);
END $$;

CREATE FUNCTION export_server(s servers) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('server', json_build_object('name', s.name,
	    'description', s.description, 'expose', s.expose, 'status', s.status,
	    'limits', json_strip_nulls(server_limits_json(s.id::text)::json -> 'limits'),
	    'secrets', (SELECT coalesce(json_agg(json_build_object('key', x.key,
	        'description', x.description) ORDER BY x.key), '[]')
	        FROM server_secrets x WHERE x.server_id = s.id)))::text
$$;

-- Returns the form in which an object is exported: the very bytes of the
-- version that serves, or else of the newest one. A source is not exported,
-- because it is this instance's decision, as grants are. A tool that was
-- imported from a source is exported as any tool.
CREATE FUNCTION export_object(t tools, p_server text) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('object', json_build_object('server', p_server,
	    'kind', t.object, 'name', v.name, 'enabled', t.enabled,
	    'version', v.version_no, 'state', v.state, 'hash', encode(v.hash, 'hex'),
	    'preimage', replace(encode(v.preimage, 'base64'), E'\n', '')))::text
	FROM tool_versions v WHERE t.object <> 'source' AND v.tool_id = t.id
	    AND v.id = coalesce(t.serving_version,
	    (SELECT w.id FROM tool_versions w WHERE w.tool_id = t.id
	    ORDER BY w.version_no DESC LIMIT 1))
$$;

-- Makes an export. p_servers has names; an empty list means all servers. One
-- statement fills the export, so it has the state of one moment. Returns the
-- SHA-256 that the vault seals and that the file's head says.
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

-- Returns the head of an export, with the vault's seal. REST answers it, and
-- the file begins with it.
CREATE FUNCTION export_head(p_id uuid, p_seal bytea) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('mcpbox_export', 1, 'id', x.id, 'lines', x.lines,
	    'bytes', x.bytes, 'sha256', encode(x.sha256, 'hex'), 'exported_at',
	    to_char(x.made_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'exported_by', x.made_by, 'signature', encode(p_seal, 'hex'))::text
	    FROM exports x WHERE x.id = p_id
$$;

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

-- Stores the piece that begins at `from`. If it was stored already, the answer
-- is that of the first time, so that a lost answer does no harm. A gap is
-- refused.
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

-- Returns the digest of all that was put. The vault is asked whether it sealed
-- these bytes.
CREATE FUNCTION import_digest(p_id uuid) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM imports WHERE id = p_id) THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	RETURN sha256(convert_to(import_text(p_id), 'UTF8'));
END $$;

-- Returns a version's bytes under another server and tool. Its modules are left
-- out, because they are entries of the other instance's store and are granted
-- there.
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

-- Returns a name for a server that no server has: name, name_imported,
-- name_imported_2.
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

CREATE FUNCTION import_server(j json, p_actor text) RETURNS servers
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made servers;
	l json := coalesce(j -> 'limits', '{}');
	x json;
BEGIN
	IF NOT coalesce(j ->> 'expose', '') IN ('prefixed', 'bare')
	    OR j ->> 'status' NOT IN ('running', 'stopped') THEN
		PERFORM fail('invalid_params', 'a server''s line is not one of an export');
	END IF;
	-- until the transaction ends: its objects follow in it
	PERFORM set_config('mcpbox.role', CASE p_actor WHEN 'root' THEN 'root'
	    ELSE 'administrator' END, true);
	made.id := gen_random_uuid();
	made.name := import_name(j ->> 'name');
	PERFORM create_server(made.id, made.name, coalesce(j ->> 'description', ''), p_actor);
	IF j ->> 'status' = 'stopped' THEN	-- an export of an older mcpbox does not say
		PERFORM set_server_status(made.id, 'stopped', p_actor, 'imported so');
	END IF;
	UPDATE servers SET expose = j ->> 'expose' WHERE id = made.id RETURNING * INTO made;
	IF l::text <> '{}' THEN
		PERFORM set_server_limits(made.id,
		    sha256(convert_to(server_limits_json(made.id::text), 'UTF8')), p_actor,
		    (l ->> 'timeout_ms')::bigint, (l ->> 'memory_bytes')::bigint,
		    (l ->> 'processes')::bigint, (l ->> 'tmp_bytes')::bigint,
		    (l ->> 'result_bytes')::bigint, (l ->> 'cpu_ms')::bigint, (l ->> 'files')::bigint,
		    (l ->> 'file_bytes')::bigint, (l ->> 'stdout_bytes')::bigint,
		    (l ->> 'argument_bytes')::bigint, (l ->> 'log_rate')::bigint,
		    (l ->> 'progress_rate')::bigint, (l ->> 'connections')::bigint,
		    (l ->> 'network_bytes')::bigint, (l ->> 'network_rate')::bigint,
		    (l ->> 'code_bytes')::bigint);
	END IF;
	FOR x IN SELECT value FROM json_array_elements(coalesce(j -> 'secrets', '[]')) LOOP
		PERFORM secret_create(made.id, x ->> 'key', coalesce(x ->> 'description', ''), p_actor);
	END LOOP;
	RETURN made;
END $$;

-- Imports all or nothing. p_sha256 is that of the text that the vault sealed.
-- If pieces were put since then, the text is another one, and the import fails.
-- The lines are taken in groups: a server's own line, or up to fifty of its
-- objects.
CREATE FUNCTION import_finish(p_id uuid, p_sha256 bytea, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	whole text;
	lines json[];
	objects json[];
	n int := 1;
	j json;
	s servers;
	from_name text;
	hosts json[] := '{}';
	made json[] := '{}';
	skipped json[] := '{}';
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox transfer'));
	-- The first server that is made has the audit head; what comes after it may
	-- need these, which everybody else has before the head.
	PERFORM 1 FROM master_key FOR SHARE;
	PERFORM 1 FROM callable_turn FOR UPDATE;
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
	lines := ARRAY(SELECT l::json FROM string_to_table(rtrim(whole, E'\n'), E'\n')
	    WITH ORDINALITY t (l, at) ORDER BY at);
	WHILE n <= cardinality(lines) LOOP
		j := lines[n];
		objects := '{}';
		IF j -> 'server' IS NOT NULL THEN
			s := import_server(j -> 'server', p_actor);
			from_name := j -> 'server' ->> 'name';
			hosts := hosts || json_build_object('id', s.id, 'name', s.name,
			    'exported_as', from_name);
			n := n + 1;
			CONTINUE;
		END IF;
		WHILE n <= cardinality(lines) AND cardinality(objects) < 50
		    AND lines[n] -> 'server' IS NULL AND lines[n] -> 'object' IS NOT NULL
		    AND from_name = lines[n] -> 'object' ->> 'server' LOOP
			objects := objects || (lines[n] -> 'object');
			n := n + 1;
		END LOOP;
		IF cardinality(objects) = 0 THEN
			PERFORM fail('invalid_params', 'a line is not one of an export');
		END IF;
		FOR j IN SELECT o FROM import_objects(objects, s, p_actor) o LOOP
			IF j -> 'made' IS NOT NULL THEN
				made := made || (j -> 'made');
			ELSE
				skipped := skipped || (j -> 'skipped');
			END IF;
		END LOOP;
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

-- Imports one object as a draft of its own.
CREATE FUNCTION import_object(j json, s servers, p_actor text) RETURNS json
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := decode(j ->> 'preimage', 'base64');
	tool uuid := gen_random_uuid();
	name text := version_text(pre, 5);
	exposed text := CASE s.expose WHEN 'bare' THEN name ELSE s.name || '__' || name END;
BEGIN
	PERFORM create_tool(gen_random_uuid(),
	    import_preimage(pre, s.id, tool, s.name, exposed), p_actor, 'import');
	IF (j ->> 'enabled') = 'false' THEN
		PERFORM set_tool_enabled(tool, false, p_actor);
	END IF;
	RETURN json_build_object('made', json_build_object('id', tool, 'server', s.name,
	    'kind', coalesce(version_text(pre, 36), 'tool'), 'name', name, 'exposed_name', exposed,
	    'modules', (SELECT coalesce(json_agg(split_part(m, ' ', 1) || ' ' || split_part(m, ' ', 2)), '[]')
	        FROM unnest(version_texts(pre, 17)) m)));
END $$;

-- Imports objects of one server, in their order. If another object holds the
-- name or URI of one, it is left out, and the answer says so. Any other failure
-- ends the whole import.
CREATE FUNCTION import_objects(p_objects json[], s servers, p_actor text) RETURNS SETOF json
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	j json;
	done json[] := '{}';
	kept int := 0;	-- of done, what is kept
	at int := 1;	-- the first that is neither made nor left out
	last int := cardinality(p_objects);
	i int;
	said text;
BEGIN
	FOREACH j IN ARRAY p_objects LOOP
		IF version_text(decode(j ->> 'preimage', 'base64'), 5) IS NULL THEN
			PERFORM fail('invalid_params', 'an object''s line is not one of an export');
		END IF;
	END LOOP;
	WHILE at <= cardinality(p_objects) LOOP
		BEGIN
			FOR i IN at..last LOOP
				done := done || import_object(p_objects[i], s, p_actor);
			END LOOP;
			at := last + 1;
			last := cardinality(p_objects);
		EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'MB001' THEN
			-- what the block made is gone, its variables are not
			GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
			i := at + cardinality(done) - kept;
			done := done[1:kept];
			IF i > at THEN
				last := i - 1;	-- those before it are kept by themselves
			ELSE
				done := done || json_build_object('skipped', json_build_object(
				    'server', s.name, 'name',
				    version_text(decode(p_objects[i] ->> 'preimage', 'base64'), 5),
				    'why', left(said, 500)));
				at := i + 1;
				last := cardinality(p_objects);
			END IF;
		END;
		kept := cardinality(done);
	END LOOP;
	RETURN QUERY SELECT unnest(done);
END $$;

GRANT EXECUTE ON FUNCTION export_begin, export_head, import_digest,
    import_finish TO mcpbox_app;
