-- 0013: scripts' keys for REST (docs/decisions/0106;
-- tests/database/access/test_script_keys.py).
--
-- A key is no login. The vault does not know of it, so nothing that the vault
-- decides is done by a key. admind asks script_key_use() for each request, so a
-- key's end holds for the next request of every node, and nothing is told by
-- NOTIFY.
SET LOCAL search_path = mcpbox, pg_temp;

CREATE TABLE script_keys (
	-- `key:NAME` is the actor of what the key does; nobody else gets that name
	name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$'),
	-- SHA-256 of the key, whose 256 random bits nobody can find from it
	digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
	scopes text[] NOT NULL CHECK (cardinality(scopes) > 0
	    AND scopes <@ '{export,metrics,operate,read}'),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	expires_at timestamptz NOT NULL,
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	reason text CHECK (length(reason) <= 2000),
	last_used_at timestamptz,
	CHECK (expires_at > created_at AND expires_at <= created_at + interval '8760 hours'),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);

-- "Backup" and "backup" would be two actors that a person takes for one.
CREATE UNIQUE INDEX script_keys_lower ON script_keys (lower(name));
CREATE INDEX script_keys_made ON script_keys (created_by) WHERE revoked_at IS NULL;

-- Guards a key. Its rights and its end stay as its maker gave them, and a
-- revocation is final.
CREATE FUNCTION script_keys_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.name, NEW.digest, NEW.scopes, NEW.created_at, NEW.created_by, NEW.expires_at)
	    IS DISTINCT FROM (OLD.name, OLD.digest, OLD.scopes, OLD.created_at, OLD.created_by,
	    OLD.expires_at)
	    OR (OLD.revoked_at IS NOT NULL AND (NEW.revoked_at, NEW.revoked_by, NEW.reason)
	    IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by, OLD.reason)) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a key is not changed, but revoked';
	END IF;
	RETURN NEW;
END $$;

-- Returns a key as REST shows it, without the digest.
CREATE FUNCTION script_key_json(k script_keys) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('name', k.name, 'actor', 'key:' || k.name,
	    'state', CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
	        WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
	    'scopes', array_to_json(k.scopes),
	    'created_at', to_char(k.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'created_by', k.created_by,
	    'expires_at', to_char(k.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'last_used_at', to_char(k.last_used_at AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'revoked_at', to_char(k.revoked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'revoked_by', k.revoked_by, 'reason', k.reason)::text
$$;

-- Makes a key. Its maker is root, or an administrator with a row here: keys end
-- with their maker, and the end of anybody else would not be seen. The lock on
-- his row makes his removal wait, so that it sees this key.
CREATE FUNCTION script_key_create(p_name text, p_digest bytea, p_scopes text, p_days bigint,
    p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_now timestamptz := clock_timestamp();
	k script_keys;
BEGIN
	IF p_name !~ '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$' THEN
		PERFORM fail('invalid_params', 'a key''s name has 1 to 64 of letters, digits,'
		    ' _ . @ and -, the first of them a letter or digit');
	END IF;
	IF cardinality(token_words(p_scopes)) = 0 OR NOT token_words(p_scopes)
	    <@ '{export,metrics,operate,read}'::text[] THEN
		PERFORM fail('invalid_params', 'a key''s scopes are read, metrics, operate and export');
	END IF;
	IF p_days NOT BETWEEN 1 AND 365 THEN
		PERFORM fail('invalid_params', 'a key lives for 1 to 365 days');
	END IF;
	IF p_actor <> 'root' THEN
		PERFORM 1 FROM admin_users WHERE username = p_actor AND role = 'administrator'
		    FOR KEY SHARE;
		IF NOT FOUND THEN
			PERFORM fail('forbidden', 'a key is made by root, or by an administrator'
			    ' who has a password here: it ends with its maker');
		END IF;
	END IF;
	-- One at a time, so that the number below is right.
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox.script_keys'));
	IF (SELECT count(*) FROM script_keys WHERE revoked_at IS NULL
	    AND expires_at > clock_timestamp()) >= 256 THEN
		PERFORM fail('limit', 'there are 256 live keys, which is the limit:'
		    ' revoke those that no script needs');
	END IF;
	IF EXISTS (SELECT 1 FROM script_keys WHERE lower(name) = lower(p_name)) THEN
		PERFORM fail('conflict', 'a key of this name exists or existed');
	END IF;
	INSERT INTO script_keys (name, digest, scopes, created_at, created_by, expires_at)
	    VALUES (p_name, p_digest, token_words(p_scopes), v_now, p_actor,
	    v_now + p_days * interval '24 hours') RETURNING * INTO k;
	PERFORM audit_append(p_actor, 'key_created', 'key ' || p_name,
	    json_build_object('scopes', k.scopes, 'expires_at', k.expires_at)::text);
	RETURN script_key_json(k);
END $$;

-- POST /api/keys/{name}/revoke. A repetition is harmless: the first revocation
-- holds.
CREATE FUNCTION act_key_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_reason text := nullif(p_body ->> 'reason', '');
	k script_keys;
BEGIN
	IF length(v_reason) > 2000 THEN
		PERFORM fail('invalid_params', 'a reason has at most 2000 characters');
	END IF;
	SELECT * INTO k FROM script_keys WHERE name = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such key');
	END IF;
	IF k.revoked_at IS NULL THEN
		UPDATE script_keys SET revoked_at = clock_timestamp(), revoked_by = p_actor,
		    reason = v_reason WHERE name = p_id RETURNING * INTO k;
		PERFORM audit_append(p_actor, 'key_revoked', 'key ' || k.name,
		    json_build_object('reason', left(k.reason, 1000))::text);
	END IF;
	RETURN script_key_json(k);
END $$;

-- Revokes the keys of an administrator who is removed. It is final: another
-- person who gets his name gets no key of his. All rows are locked before the
-- audit head is (the order of sql/schema/base.sql).
CREATE FUNCTION script_keys_orphaned() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_names text[];
	v_name text;
BEGIN
	WITH ended AS (UPDATE script_keys SET revoked_at = clock_timestamp(),
	    revoked_by = 'mcpbox', reason = 'the administrator who made it was removed'
	    WHERE created_by = OLD.username AND revoked_at IS NULL RETURNING name)
	SELECT array_agg(name ORDER BY name) INTO v_names FROM ended;
	FOREACH v_name IN ARRAY coalesce(v_names, '{}') LOOP
		PERFORM audit_append('mcpbox', 'key_revoked', 'key ' || v_name,
		    json_build_object('reason', 'the administrator who made it was removed')::text);
	END LOOP;
	RETURN NULL;
END $$;

-- Finds the key with this digest for one request that needs p_scope, and notes
-- its use, at most once a minute. No row: no key has this digest. role is the
-- present role of its maker: a key never may more than he.
CREATE FUNCTION script_key_use(p_digest bytea, p_scope text, OUT name text, OUT state text,
    OUT allowed boolean, OUT role text) RETURNS SETOF record
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	k script_keys;
BEGIN
	SELECT * INTO k FROM script_keys s WHERE s.digest = p_digest;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	name := k.name;
	state := CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
	    WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END;
	allowed := p_scope = ANY (k.scopes);
	role := CASE WHEN k.created_by = 'root' THEN 'administrator'
	    ELSE (SELECT u.role FROM admin_users u WHERE u.username = k.created_by) END;
	IF state = 'active' AND (k.last_used_at IS NULL
	    OR k.last_used_at < clock_timestamp() - interval '1 minute') THEN
		-- of two requests at once one notes it, and the other does not wait
		UPDATE script_keys s SET last_used_at = clock_timestamp()
		    WHERE s.digest = (SELECT l.digest FROM script_keys l
		    WHERE l.digest = p_digest FOR UPDATE SKIP LOCKED);
	END IF;
	RETURN NEXT;
END $$;

CREATE TRIGGER guard BEFORE UPDATE ON script_keys
    FOR EACH ROW EXECUTE FUNCTION script_keys_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON script_keys
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON script_keys EXECUTE FUNCTION refuse();
CREATE TRIGGER script_keys AFTER DELETE ON admin_users
    FOR EACH ROW EXECUTE FUNCTION script_keys_orphaned();

REVOKE ALL ON script_keys FROM PUBLIC;
GRANT SELECT ON script_keys TO mcpbox_app;
REVOKE ALL ON FUNCTION script_keys_guard, script_key_json, script_key_create,
    act_key_revoke, script_keys_orphaned, script_key_use FROM PUBLIC;
GRANT EXECUTE ON FUNCTION script_key_json, script_key_create, script_key_use TO mcpbox_app;
