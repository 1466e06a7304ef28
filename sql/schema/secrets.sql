-- Secrets, sealed by the vault. A placeholder has a name and no value. A value
-- is the vault's ciphertext. An older value is gone once it is replaced, but it
-- is kept who set it and when.

CREATE TABLE server_secrets (
	server_id uuid NOT NULL REFERENCES servers (id),
	key text COLLATE "C" NOT NULL CHECK (key ~ '^[A-Z][A-Z0-9_]*$' AND length(key) <= 255),
	description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
	value bytea CHECK (length(value) BETWEEN 1 AND 65536),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by)),
	version int NOT NULL DEFAULT 0 CHECK (version >= 0),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL DEFAULT 'root' CHECK (actor_ok(created_by)),
	set_at timestamptz,
	set_by text CHECK (actor_ok(set_by)),
	CHECK ((value IS NULL) = (set_at IS NULL)),
	CHECK ((value IS NULL) = (set_by IS NULL)),
	CHECK (value IS NULL OR version > 0),
	PRIMARY KEY (server_id, key)
);

-- The history of a secret stays when the secret is deleted, and a new secret of
-- the name counts on. version is that of the value that a 'set' set. For
-- another action it is that of the value at that time.
CREATE TABLE server_secret_history (
	server_id uuid NOT NULL REFERENCES servers (id),
	key text COLLATE "C" NOT NULL,
	n int NOT NULL CHECK (n > 0),
	action text NOT NULL CHECK (action IN ('created', 'set', 'described', 'deleted')),
	version int NOT NULL,
	actor text NOT NULL CHECK (actor_ok(actor)),
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (server_id, key, n)
);

-- Stores a value as the vault sealed it for this very server and name. The name
-- need not exist yet.
CREATE FUNCTION secret_store(p_server text, p_key text, p_actor text,
    p_value bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s uuid;
	v int;
BEGIN
	SELECT id INTO s FROM servers WHERE name = p_server AND deleted_at IS NULL FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no server of that name');
	END IF;
	IF NOT EXISTS (SELECT 1 FROM server_secrets WHERE server_id = s AND key = p_key) THEN
		PERFORM secret_create(s, p_key, '', p_actor);
	END IF;
	UPDATE server_secrets SET value = p_value, version = version + 1,
	    set_by = p_actor, set_at = clock_timestamp(),
	    updated_by = p_actor, updated_at = clock_timestamp()
	    WHERE server_id = s AND key = p_key RETURNING version INTO v;
	PERFORM secret_note(s, p_key, 'set', v, p_actor);
	PERFORM audit_append(p_actor, 'secret_set', 'secret ' || p_server || '/' || p_key,
	    json_build_object('version', v)::text);
END $$;

-- Notes a change of a secret. The newest hundred changes are kept here, and the
-- audit log has all of them.
CREATE FUNCTION secret_note(p_server uuid, p_key text, p_action text, p_version int,
    p_actor text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	last int;
BEGIN
	SELECT coalesce(max(n), 0) INTO last FROM server_secret_history
	    WHERE server_id = p_server AND key = p_key;
	INSERT INTO server_secret_history (server_id, key, n, action, version, actor)
	    VALUES (p_server, p_key, last + 1, p_action, p_version, p_actor);
	DELETE FROM server_secret_history WHERE server_id = p_server AND key = p_key
	    AND n <= last - 99;
END $$;

CREATE FUNCTION secret_time(t timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Returns a secret as a list shows it.
CREATE FUNCTION secret_item(s server_secrets) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT json_build_object('server_id', s.server_id, 'server',
	    (SELECT name FROM mcpbox.servers WHERE id = s.server_id), 'key', s.key,
	    'description', s.description, 'has_value', s.value IS NOT NULL,
	    'version', s.version, 'created_at', mcpbox.secret_time(s.created_at),
	    'created_by', s.created_by, 'set_at', mcpbox.secret_time(s.set_at),
	    'set_by', s.set_by)
$$;

-- Returns the versions that name a secret, at most a hundred. Those that serve
-- come first, since they stop working without it.
CREATE FUNCTION secret_usage(p_server uuid, p_key text) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(u), '[]') FROM (SELECT t.id AS tool_id, v.exposed_name AS tool,
	    v.id AS version_id, v.version_no AS version, v.state, v.id = t.serving_version
	    IS TRUE AS serving FROM mcpbox.tools t JOIN mcpbox.tool_versions v ON v.tool_id = t.id
	    WHERE t.server_id = p_server AND t.deleted_at IS NULL AND p_key = ANY (v.secrets)
	    AND v.state NOT IN ('revoked', 'rejected')
	    ORDER BY 6 DESC, 2, 4 DESC LIMIT 100) u
$$;

-- Returns a secret as its GET shows it. The ETag is the SHA-256 of this text.
-- Null: there is no such secret.
CREATE FUNCTION secret_json(p_server text, p_key text) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT trim(TRAILING '}' FROM mcpbox.secret_item(s)::text) || ', "used_by" : '
	    || mcpbox.secret_usage(s.server_id, s.key)::text || ', "sources" : '
	    || (SELECT coalesce(json_agg(e.name ORDER BY e.name), '[]')
	    FROM mcpbox.external_sources e WHERE e.server_id = s.server_id
	    AND e.auth_secret_name = s.key)::text || ', "history" : '
	    || (SELECT coalesce(json_agg(h), '[]') FROM (SELECT action, version, actor,
	    mcpbox.secret_time(at) AS at FROM mcpbox.server_secret_history
	    WHERE server_id = s.server_id AND key = s.key ORDER BY n DESC) h)::text || '}'
	    FROM mcpbox.servers v JOIN mcpbox.server_secrets s ON s.server_id = v.id
	    WHERE v.name = p_server AND s.key = p_key
$$;

-- Makes a secret without a value. Language models (which give a name, never a
-- value) and administrators use this. The table has the rule for the name, and
-- this function says the rule in words.
CREATE FUNCTION secret_create(p_server uuid, p_key text, p_description text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	-- locked, so one at a time on a server: the number is counted
	s servers := server_locked(p_server);
	made server_secrets;
BEGIN
	IF p_key !~ '^[A-Z][A-Z0-9_]*$' OR length(p_key) > 255 THEN
		PERFORM fail('invalid_params', 'a secret''s name has 1 to 255 of A-Z, 0-9'
		    ' and _ and begins with a letter');
	END IF;
	IF length(p_description) > 2000 THEN
		PERFORM fail('invalid_params', 'a description has at most 2000 characters');
	END IF;
	IF (SELECT count(*) FROM server_secrets WHERE server_id = p_server) >= 256 THEN
		PERFORM fail('limit', 'a server has at most 256 secrets');
	END IF;
	INSERT INTO server_secrets (server_id, key, description, version, updated_by, created_by)
	    VALUES (p_server, p_key, p_description, coalesce((SELECT max(version)
	    FROM server_secret_history WHERE server_id = p_server AND key = p_key), 0),
	    p_actor, p_actor)
	    ON CONFLICT DO NOTHING RETURNING * INTO made;
	IF made.key IS NULL THEN
		PERFORM fail('conflict', 'the server has a secret of this name already');
	END IF;
	PERFORM secret_note(p_server, p_key, 'created', made.version, p_actor);
	PERFORM audit_append(p_actor, 'secret_created', 'secret ' || s.name || '/' || p_key, '{}');
	RETURN secret_item(made)::text;
END $$;

-- Drops a server's secrets (its deletion calls this).
CREATE FUNCTION secrets_drop(p_server uuid, p_actor text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets;
BEGIN
	FOR s IN DELETE FROM server_secrets WHERE server_id = p_server RETURNING * LOOP
		PERFORM secret_note(s.server_id, s.key, 'deleted', s.version, p_actor);
		PERFORM audit_append(p_actor, 'secret_deleted', 'secret ' || (SELECT name
		    FROM servers WHERE id = p_server) || '/' || s.key, '{"with":"server"}');
	END LOOP;
END $$;

-- Actions of administrators. p_id is "SERVER/SECRET", the two names. Only for
-- act_secret_create() it is the server's name alone.
CREATE FUNCTION act_secret_create(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s uuid;
BEGIN
	SELECT id INTO s FROM servers WHERE name = p_id AND deleted_at IS NULL;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no server of that name');
	END IF;
	PERFORM secret_create(s, p_body ->> 'key', coalesce(p_body ->> 'description', ''), p_actor);
	RETURN secret_json(p_id, p_body ->> 'key');
END $$;

-- Finds a secret, and locks its server before the secret. The secret's history
-- refers to the server, and secret_store() has the server's lock before the
-- secret's, too.
CREATE FUNCTION secret_find(p_id text) RETURNS server_secrets
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets;
BEGIN
	PERFORM 1 FROM servers WHERE name = split_part(p_id, '/', 1) AND deleted_at IS NULL
	    FOR SHARE;
	SELECT x.* INTO s FROM server_secrets x JOIN servers v ON v.id = x.server_id
	    WHERE v.name = split_part(p_id, '/', 1) AND v.deleted_at IS NULL AND x.key = split_part(p_id, '/', 2)
	    FOR UPDATE OF x;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such secret');
	END IF;
	RETURN s;
END $$;

CREATE FUNCTION act_secret_describe(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets := secret_find(p_id);
BEGIN
	PERFORM act_seen(p_seen, secret_json(split_part(p_id, '/', 1), s.key));
	IF length(p_body ->> 'description') > 2000 THEN
		PERFORM fail('invalid_params', 'a description has at most 2000 characters');
	END IF;
	UPDATE server_secrets SET description = p_body ->> 'description', updated_by = p_actor,
	    updated_at = clock_timestamp() WHERE server_id = s.server_id AND key = s.key;
	PERFORM secret_note(s.server_id, s.key, 'described', s.version, p_actor);
	PERFORM audit_append(p_actor, 'secret_described', 'secret ' || p_id, '{}');
	RETURN secret_json(split_part(p_id, '/', 1), s.key);
END $$;

-- Deletes a secret and its value. The answer has the versions that name the
-- secret: calls of those tools fail with missing_grant from now on.
CREATE FUNCTION act_secret_delete(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets := secret_find(p_id);
BEGIN
	PERFORM act_seen(p_seen, secret_json(split_part(p_id, '/', 1), s.key));
	DELETE FROM server_secrets WHERE server_id = s.server_id AND key = s.key;
	PERFORM secret_note(s.server_id, s.key, 'deleted', s.version, p_actor);
	PERFORM audit_append(p_actor, 'secret_deleted', 'secret ' || p_id, '{}');
	RETURN json_build_object('key', s.key, 'deleted', true, 'used_by',
	    secret_usage(s.server_id, s.key))::text;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE ON server_secret_history
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON server_secret_history EXECUTE FUNCTION refuse();

GRANT EXECUTE ON FUNCTION secret_store, secret_time, secret_item, secret_usage,
    secret_json, secret_create TO mcpbox_app;
