-- Servers.
--
-- The row of a deleted server stays, because versions and records refer to it.
-- The server is renamed to name@id, which no server can be given. So its name
-- is free, and a search by name finds a server that exists.
--
-- A stop keeps its author, which decides who may undo it: docs/decisions/0066,
-- stops.sql. An administrator chooses how a server's tools are named for
-- clients (expose). The name is part of a version's hash, so only versions made
-- after the choice have the other form.

CREATE TABLE servers (
	id uuid PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE
	    CONSTRAINT servers_name_check1 CHECK (name NOT IN ('mcpbox', 'sandbox', 'web')),
	description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
	expose text NOT NULL DEFAULT 'prefixed' CHECK (expose IN ('prefixed', 'bare')),
	status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'stopped')),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	deleted_at timestamptz,
	deleted_by text CHECK (actor_ok(deleted_by)),
	-- the author of the stop; decision 0066
	stopped_by text CHECK (actor_ok(stopped_by)),
	stopped_authority text
	    CHECK (stopped_authority IN ('principal', 'administrator', 'root')),
	stopped_at timestamptz,
	stopped_reason text CHECK (stop_reason_ok(stopped_reason)),
	CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
	CHECK (deleted_at IS NULL OR status = 'stopped'),
	CONSTRAINT servers_name_check CHECK (CASE WHEN deleted_at IS NULL
	    THEN name_ok(name, 24)
	    ELSE name_ok(split_part(name, '@', 1), 24)
		AND name = split_part(name, '@', 1) || '@' || id END),
	CONSTRAINT servers_stopped_check CHECK (CASE
	    WHEN status = 'running' THEN coalesce(stopped_by, stopped_authority, stopped_reason) IS NULL
		AND stopped_at IS NULL
	    WHEN deleted_at IS NULL THEN stopped_by IS NOT NULL AND stopped_authority IS NOT NULL
		AND stopped_at IS NOT NULL
	    ELSE true END)
);

CREATE INDEX ON servers (name) WHERE deleted_at IS NULL;

-- Guards a server. A deleted server stays deleted, and only a deleted server
-- changes its name. A stop by a person at psql counts as root's. A running
-- server has no author of a stop.
CREATE FUNCTION servers_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
	IF NEW.status = 'running' THEN
		NEW.stopped_by := NULL;
		NEW.stopped_authority := NULL;
		NEW.stopped_at := NULL;
		NEW.stopped_reason := NULL;
	ELSIF NEW.stopped_by IS NULL THEN
		NEW.stopped_by := 'root';
		NEW.stopped_authority := 'root';
		NEW.stopped_at := clock_timestamp();
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

-- Makes a server. p_id is a UUID of version 7 that admind made.
CREATE FUNCTION create_server(p_id uuid, p_name text, p_description text,
    p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name IN ('mcpbox', 'sandbox', 'web') THEN
		PERFORM fail('conflict', 'the name ' || p_name || ' is reserved');
	END IF;
	INSERT INTO servers (id, name, description, created_by)
	    VALUES (p_id, p_name, p_description, p_actor) ON CONFLICT (name) DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'there is a server named ' || p_name);
	END IF;
	PERFORM audit_append(p_actor, 'server_created', 'server ' || p_name,
	    json_build_object('server_id', p_id)::text);
END $$;

CREATE FUNCTION set_server_expose(p_server text, p_expose text, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
BEGIN
	SELECT * INTO s FROM servers WHERE name = p_server OR id::text = p_server FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF p_expose NOT IN ('prefixed', 'bare') THEN
		PERFORM fail('invalid_params', 'expose must be prefixed or bare');
	END IF;
	IF s.expose = p_expose THEN
		RETURN;
	END IF;
	UPDATE servers SET expose = p_expose WHERE id = s.id;
	PERFORM audit_append(p_actor, 'server_expose_set', 'server ' || s.name,
	    json_build_object('server_id', s.id, 'expose', p_expose)::text);
END $$;

-- Locks and returns the row of a server. Fails if there is no such server, or
-- if it was deleted.
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

-- Deletes a server with all its objects, and returns how many objects there
-- were. It does for each object what delete_object() does, in one transaction:
-- after this commit no call of any object begins, running calls are withdrawn,
-- and all names and URIs are free. The server is stopped first, so that its
-- rows leave callable all at once and not object by object. The deletion is
-- refused if a higher authority stopped the server, or disabled one of its
-- objects: another server of the same name would run at once.
CREATE FUNCTION delete_server(p_id uuid, p_actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
	held tools;
	n bigint;
BEGIN
	PERFORM server_held(s, 'delete');
	IF s.status <> 'stopped' THEN
		UPDATE servers SET status = 'stopped', stopped_by = p_actor,
		    stopped_authority = authority_now(), stopped_at = clock_timestamp()
		    WHERE id = p_id;
	END IF;
	PERFORM 1 FROM tools WHERE server_id = p_id ORDER BY id FOR UPDATE;
	SELECT x.* INTO held FROM tools x WHERE x.server_id = p_id AND NOT x.enabled
	    AND x.deleted_at IS NULL
	    ORDER BY authority_rank(x.disabled_authority) DESC, x.id LIMIT 1;
	IF FOUND THEN
		PERFORM tool_held(held, 'delete');
	END IF;
	UPDATE tool_versions v SET state = 'rejected' FROM tools t
	    WHERE t.server_id = p_id AND v.tool_id = t.id AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id IN
	    (SELECT t.serving_version FROM tools t WHERE t.server_id = p_id);
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.server_id = p_id AND a.state = 'pending';
	UPDATE tools t SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor,
	    disabled_by = coalesce(t.disabled_by, p_actor),
	    disabled_authority = coalesce(t.disabled_authority, authority_now()),
	    disabled_at = coalesce(t.disabled_at, clock_timestamp())
	    WHERE t.server_id = p_id AND t.deleted_at IS NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	DELETE FROM external_sources WHERE server_id = p_id;
	PERFORM secrets_drop(p_id, p_actor);
	UPDATE servers SET name = name || '@' || id, deleted_at = clock_timestamp(),
	    deleted_by = p_actor WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_deleted', 'server ' || s.name,
	    json_build_object('server_id', p_id, 'objects', n)::text);
	RETURN n;
END $$;

-- Finds a server that an administrator names by its id or name. Null: there is
-- none.
CREATE FUNCTION find_server(p_id text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_id ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN
		RETURN (SELECT id FROM servers WHERE id = p_id::uuid);
	END IF;
	RETURN (SELECT id FROM servers WHERE name = p_id AND deleted_at IS NULL);
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

-- Returns what GET shows of a server, with its network access policy and the
-- author of its stop. The SHA-256 of these bytes is its ETag.
CREATE FUNCTION server_json(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', split_part(s.name, '@', 1),
	    'description', s.description, 'status', s.status, 'stopped_by', s.stopped_by,
	    'stopped_authority', s.stopped_authority, 'stopped_at', json_time(s.stopped_at),
	    'stopped_reason', s.stopped_reason, 'expose', s.expose,
	    'created_at', json_time(s.created_at), 'created_by', s.created_by,
	    'updated_at', json_time(s.updated_at), 'deleted_at', json_time(s.deleted_at),
	    'deleted_by', s.deleted_by, 'network_access_policy', network_access_policy(s.id),
	    'tool_count', (SELECT count(*) FROM tools x
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
	PERFORM set_server_status(act_server(p_id), 'stopped', p_actor, p_body ->> 'reason');
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

-- Starts or stops a server ('running' or 'stopped'). Idempotent: returns true
-- if the status changed. Besides the server's deletion, only this function
-- changes a status. Only an equal or higher authority undoes a stop
-- (docs/decisions/0066).
CREATE FUNCTION set_server_status(p_id uuid, p_status text, p_actor text,
    p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
	mine text := authority_now();
	why text := stop_reason(p_reason);
BEGIN
	IF p_status = 'running' THEN
		IF s.status = 'running' THEN
			RETURN false;
		END IF;
		PERFORM server_held(s, 'start');
		UPDATE servers SET status = 'running' WHERE id = p_id;
		PERFORM audit_append(p_actor, 'server_started', 'server ' || s.name,
		    json_build_object('server_id', p_id, 'authority', mine,
		    'stopped_by', s.stopped_by, 'stopped_authority', s.stopped_authority)::text);
		RETURN true;
	END IF;
	IF s.status = p_status AND (authority_rank(s.stopped_authority) > authority_rank(mine)
	    OR (s.stopped_authority = mine AND why IS NULL)) THEN
		RETURN false;
	END IF;
	UPDATE servers SET status = p_status, stopped_by = p_actor, stopped_authority = mine,
	    stopped_at = clock_timestamp(), stopped_reason = why WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_stopped', 'server ' || s.name,
	    json_strip_nulls(json_build_object('server_id', p_id, 'authority', mine,
	    'reason', why, 'taken_over_from', s.stopped_by))::text);
	RETURN true;
END $$;

CREATE TRIGGER guard BEFORE UPDATE ON servers
    FOR EACH ROW EXECUTE FUNCTION servers_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON servers
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON servers EXECUTE FUNCTION refuse();

GRANT EXECUTE ON FUNCTION create_server, set_server_expose, find_server,
    server_json, set_server_status TO mcpbox_app;
