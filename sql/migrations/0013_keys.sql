-- 0013: secrets with their history and usage; values under two master keys
-- (decision 0039).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Secrets. A placeholder has a name and no value; a value is the vault's
-- ciphertext, and an older one is gone once it is replaced: what is kept of it
-- is who set it and when.

ALTER TABLE server_secrets
	ADD COLUMN version int NOT NULL DEFAULT 0 CHECK (version >= 0),
	ADD COLUMN created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	ADD COLUMN created_by text NOT NULL DEFAULT 'root' CHECK (actor_ok(created_by)),
	ADD COLUMN set_at timestamptz,
	ADD COLUMN set_by text CHECK (actor_ok(set_by));
UPDATE server_secrets SET created_at = updated_at, created_by = updated_by,
    version = 1, set_at = updated_at, set_by = updated_by WHERE value IS NOT NULL;
ALTER TABLE server_secrets ADD CHECK ((value IS NULL) = (set_at IS NULL)),
    ADD CHECK ((value IS NULL) = (set_by IS NULL)),
    ADD CHECK (value IS NULL OR version > 0);

-- Stays when the secret goes: a new one of the name counts on. version: of the
-- value that a 'set' set, else of the one there was.
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
INSERT INTO server_secret_history (server_id, key, n, action, version, actor, at)
    SELECT server_id, key, 1, CASE WHEN value IS NULL THEN 'created' ELSE 'set' END,
    version, updated_by, updated_at FROM server_secrets;
CREATE TRIGGER append_only BEFORE UPDATE ON server_secret_history
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON server_secret_history EXECUTE FUNCTION refuse();

-- Of one secret the newest hundred changes are kept here; all are in the audit
-- log.
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

-- As a list shows it.
CREATE FUNCTION secret_item(s server_secrets) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT json_build_object('server_id', s.server_id, 'server',
	    (SELECT name FROM mcpbox.servers WHERE id = s.server_id), 'key', s.key,
	    'description', s.description, 'has_value', s.value IS NOT NULL,
	    'version', s.version, 'created_at', mcpbox.secret_time(s.created_at),
	    'created_by', s.created_by, 'set_at', mcpbox.secret_time(s.set_at),
	    'set_by', s.set_by)
$$;

-- The versions that name it, those that serve first: what stops working
-- without it. At most a hundred.
CREATE FUNCTION secret_usage(p_server uuid, p_key text) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(u), '[]') FROM (SELECT t.id AS tool_id, v.exposed_name AS tool,
	    v.id AS version_id, v.version_no AS version, v.state, v.id = t.serving_version
	    IS TRUE AS serving FROM mcpbox.tools t JOIN mcpbox.tool_versions v ON v.tool_id = t.id
	    WHERE t.server_id = p_server AND t.deleted_at IS NULL AND p_key = ANY (v.secrets)
	    AND v.state NOT IN ('revoked', 'rejected')
	    ORDER BY 6 DESC, 2, 4 DESC LIMIT 100) u
$$;

-- As GET of the one shows it; its ETag is the SHA-256 of this text. Null: no
-- such secret.
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

-- For everybody who may make one: language models (a name, never a value) and
-- administrators. The name's form is the table's; here it is said in words.
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

-- A value, as the vault sealed it for this very server and name. The name need
-- not be there yet.
CREATE OR REPLACE FUNCTION secret_store(p_server text, p_key text, p_actor text,
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

-- What goes with a server (its deletion calls this).
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

-- Actions of administrators. p_id: the server's name, and the secret's behind /.
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

CREATE FUNCTION secret_find(p_id text) RETURNS server_secrets
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets;
BEGIN
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

-- Its value is gone with it. What named it is answered: those tools now fail
-- with missing_grant.
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

---------------------------------------------------------------------------
-- Values under two master keys. What the vault sealed says under which: {2, 8
-- bytes of key id, ...}. What is older than rotation says nothing: zeros.

CREATE FUNCTION sealed_key(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT CASE WHEN length(value) > 9 AND get_byte(value, 0) = 2
	    THEN substring(value FROM 2 FOR 8) ELSE '\x0000000000000000'::bytea END
$$;
-- What a seal says, without key and MAC.
CREATE FUNCTION sealed_body(seal bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT substring(seal FROM h FOR greatest(length(seal) - 31 - h, 0))
	    FROM (SELECT CASE WHEN get_byte(seal, 0) = 2 THEN 10 ELSE 2 END) x (h)
$$;

-- One row: which key what rests is under. key_id null: no rotation ever ended,
-- nothing is known.
CREATE TABLE master_key (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	key_id bytea CHECK (length(key_id) = 8),
	next_id bytea CHECK (length(next_id) = 8), -- a rotation is under way
	begun_at timestamptz,
	ended_at timestamptz
);
INSERT INTO master_key DEFAULT VALUES;
CREATE TRIGGER no_delete BEFORE DELETE ON master_key FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON master_key EXECUTE FUNCTION refuse();

-- null: made before this migration
ALTER TABLE audit_anchors ADD COLUMN key_id bytea CHECK (length(key_id) = 8);

-- What is stored must be under a key that will stay. A value that the vault
-- sealed before a rotation and that comes late waits here for the rotation's
-- end (its row lock) and is then refused: nobody stores what cannot be read.
CREATE FUNCTION key_stays(p_key bytea) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
BEGIN
	SELECT * INTO STRICT m FROM master_key FOR SHARE;
	IF m.key_id IS NOT NULL AND p_key IS NOT NULL AND p_key <> m.key_id
	    AND p_key IS DISTINCT FROM m.next_id THEN
		PERFORM fail('conflict', 'it was sealed under a master key that is'
		    ' no longer valid: try again');
	END IF;
END $$;
CREATE FUNCTION secret_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.key_stays(mcpbox.sealed_key(NEW.value));
	RETURN NEW;
END $$;
CREATE FUNCTION verifier_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.key_stays(mcpbox.sealed_key(NEW.verifier));
	RETURN NEW;
END $$;
CREATE FUNCTION seal_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.key_stays(mcpbox.sealed_key(NEW.seal));
	RETURN NEW;
END $$;
CREATE FUNCTION anchor_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.key_stays(NEW.key_id);
	RETURN NEW;
END $$;
CREATE TRIGGER key BEFORE INSERT OR UPDATE OF value ON server_secrets
    FOR EACH ROW EXECUTE FUNCTION secret_key_guard();
CREATE TRIGGER key BEFORE INSERT OR UPDATE OF verifier ON admin_users
    FOR EACH ROW EXECUTE FUNCTION verifier_key_guard();
CREATE TRIGGER key BEFORE INSERT ON approval_seals
    FOR EACH ROW EXECUTE FUNCTION seal_key_guard();
CREATE TRIGGER key BEFORE INSERT ON approval_firsts
    FOR EACH ROW EXECUTE FUNCTION seal_key_guard();
CREATE TRIGGER key BEFORE INSERT ON approval_policies
    FOR EACH ROW EXECUTE FUNCTION seal_key_guard();
CREATE TRIGGER key BEFORE INSERT ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION anchor_key_guard();

-- Append-only tables: a rotation may give a row another key and MAC. What it
-- says stays.
CREATE FUNCTION renewal_only() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
	o jsonb;
	n jsonb;
	same boolean := TG_OP = 'UPDATE';
BEGIN
	IF same THEN
		SELECT * INTO STRICT m FROM master_key;
		o := to_jsonb(OLD) - 'seal' - 'signature' - 'key_id';
		n := to_jsonb(NEW) - 'seal' - 'signature' - 'key_id';
		same := m.next_id IS NOT NULL AND o = n;
	END IF;
	IF same AND TG_TABLE_NAME = 'audit_anchors' THEN
		same := NEW.key_id = m.next_id;
	ELSIF same THEN
		same := sealed_key(NEW.seal) = m.next_id
		    AND sealed_body(NEW.seal) = sealed_body(OLD.seal);
	END IF;
	IF same IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    TG_TABLE_NAME || ' is append-only: ' || TG_OP || ' refused';
	END IF;
	RETURN NEW;
END $$;
DROP TRIGGER append_only ON audit_anchors;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
DROP TRIGGER append_only ON approval_firsts;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_firsts
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
DROP TRIGGER append_only ON approval_policies;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_policies
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
DROP TRIGGER append_only ON approval_seals;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_seals
    FOR EACH ROW EXECUTE FUNCTION renewal_only();

-- A head that the vault signed, and under which key.
DROP FUNCTION anchor_store(bigint, bytea, bytea);
CREATE FUNCTION anchor_store(p_seq bigint, p_head bytea, p_signature bytea, p_key bytea)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM audit_log WHERE seq = p_seq AND hash = p_head) THEN
		PERFORM fail('conflict', 'the anchor is not a row of the chain');
	END IF;
	INSERT INTO audit_anchors (seq, head, signature, key_id)
	    VALUES (p_seq, p_head, p_signature, p_key) ON CONFLICT DO NOTHING;
END $$;

-- Everything that rests under the master key. id: the row, and the order of
-- passes. place, column: where the vault sealed it (its AAD; of a seal: nothing,
-- and what it is a seal of; of an anchor: row number and head in hex). A new thing that rests is a row here, a branch of
-- renew_store() and a row of the vault's renewal.h. Not here: policies that are
-- not in force any more, and first yeses to what is decided. They end with the
-- older key, which is how an old policy is made worthless for good (0038).
CREATE FUNCTION seal_purpose(kind text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE kind WHEN 'tool' THEN 'version' WHEN 'call' THEN 'call' ELSE 'grant' END
$$;
CREATE VIEW resting AS
    SELECT 'secret' AS kind, s.server_id::text || '/' || s.key AS id, v.name AS place,
    s.key AS "column", s.value, sealed_key(s.value) AS key_id
    FROM server_secrets s JOIN servers v ON v.id = s.server_id WHERE s.value IS NOT NULL
    UNION ALL SELECT 'verifier', username, username, role, verifier, sealed_key(verifier)
    FROM admin_users
    UNION ALL SELECT 'seal', a.request_id::text, '', seal_purpose(r.kind), a.seal, sealed_key(a.seal)
    FROM approval_seals a JOIN approval_requests r ON r.id = a.request_id
    UNION ALL SELECT 'first', f.request_id::text, '', '', f.seal, sealed_key(f.seal)
    FROM approval_firsts f JOIN approval_requests r ON r.id = f.request_id
    WHERE r.state = 'pending'
    UNION ALL (SELECT 'policy', serial::text, '', '', seal, sealed_key(seal)
    FROM approval_policies ORDER BY serial DESC LIMIT 1)
    UNION ALL SELECT 'anchor', lpad(seq::text, 20, '0'), seq::text, encode(head, 'hex'),
    signature, coalesce(key_id, '\x0000000000000000') FROM audit_anchors;

-- One piece of a pass: rows of one kind behind p_after, p_key's own left out
-- (null: all). What may be many (seals, anchors) is read in the order of its
-- key, from p_after on: a pass reads each row once.
CREATE FUNCTION renew_rows(p_kind text, p_after text, p_key bytea, p_limit int)
RETURNS SETOF resting
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_kind = 'anchor' THEN
		RETURN QUERY SELECT 'anchor', lpad(a.seq::text, 20, '0'), a.seq::text,
		    encode(a.head, 'hex'), a.signature, coalesce(a.key_id, '\x0000000000000000')
		    FROM audit_anchors a WHERE a.seq > coalesce(nullif(p_after, '')::bigint, 0)
		    AND (p_key IS NULL OR a.key_id IS DISTINCT FROM p_key)
		    ORDER BY a.seq LIMIT p_limit;
	ELSIF p_kind = 'seal' THEN
		RETURN QUERY SELECT 'seal', a.request_id::text, '',
		    (SELECT seal_purpose(r.kind) FROM approval_requests r WHERE r.id = a.request_id),
		    a.seal, sealed_key(a.seal)
		    FROM approval_seals a WHERE a.request_id > coalesce(nullif(p_after, '')::uuid,
		    '00000000-0000-0000-0000-000000000000')
		    AND (p_key IS NULL OR sealed_key(a.seal) <> p_key)
		    ORDER BY a.request_id LIMIT p_limit;
	ELSE
		RETURN QUERY SELECT r.* FROM resting r WHERE r.kind = p_kind
		    AND r.id COLLATE "C" > p_after COLLATE "C"
		    AND (p_key IS NULL OR r.key_id <> p_key)
		    ORDER BY r.id COLLATE "C" LIMIT p_limit;
	END IF;
END $$;

-- The same under the next key. A row that changed meanwhile is left as it is: it
-- was written under the next key, or is gone.
CREATE FUNCTION renew_store(p_kind text, p_ids text[], p_old bytea[], p_new bytea[])
RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
	done int := 0;
	n int;
BEGIN
	SELECT * INTO STRICT m FROM master_key FOR SHARE;
	IF m.next_id IS NULL THEN
		PERFORM fail('conflict', 'no rotation is under way');
	END IF;
	FOR i IN 1 .. coalesce(array_length(p_ids, 1), 0) LOOP
		IF p_kind <> 'anchor' AND sealed_key(p_new[i]) <> m.next_id THEN
			PERFORM fail('conflict', 'it is not under the next key');
		END IF;
		CASE p_kind
		WHEN 'secret' THEN
			UPDATE server_secrets SET value = p_new[i]
			    WHERE server_id = split_part(p_ids[i], '/', 1)::uuid
			    AND key = split_part(p_ids[i], '/', 2) AND value = p_old[i];
		WHEN 'verifier' THEN
			UPDATE admin_users SET verifier = p_new[i]
			    WHERE username = p_ids[i] AND verifier = p_old[i];
		WHEN 'seal' THEN
			UPDATE approval_seals SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'first' THEN
			UPDATE approval_firsts SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'policy' THEN
			UPDATE approval_policies SET seal = p_new[i]
			    WHERE serial = p_ids[i]::bigint AND seal = p_old[i];
		WHEN 'anchor' THEN
			UPDATE audit_anchors SET signature = p_new[i], key_id = m.next_id
			    WHERE seq = p_ids[i]::bigint AND signature = p_old[i];
		END CASE;
		GET DIAGNOSTICS n = ROW_COUNT;
		done := done + n;
	END LOOP;
	RETURN done;
END $$;

-- Both may be repeated.
CREATE FUNCTION renew_begin(p_key bytea, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
BEGIN
	SELECT * INTO STRICT m FROM master_key FOR UPDATE;
	IF m.next_id = p_key THEN
		RETURN;
	END IF;
	UPDATE master_key SET next_id = p_key, begun_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'key_rotation_begun', 'master key '
	    || encode(p_key, 'hex'), '{}');
END $$;

-- p_leave: so many may stay behind, which no key opens. The row lock makes
-- this the last moment of the older key: writers before it have committed, and
-- are counted; later ones see what it left (key_stays).
CREATE FUNCTION renew_end(p_key bytea, p_leave int, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
	behind bigint;
BEGIN
	SELECT * INTO STRICT m FROM master_key FOR UPDATE;
	IF m.next_id IS NULL AND m.key_id = p_key THEN
		RETURN;
	END IF;
	IF m.next_id IS DISTINCT FROM p_key THEN
		PERFORM fail('conflict', 'no rotation to this key is under way');
	END IF;
	SELECT count(*) INTO behind FROM resting WHERE key_id <> p_key;
	IF behind > p_leave THEN
		PERFORM fail('conflict', behind || ' values are not under the new key yet');
	END IF;
	UPDATE master_key SET key_id = p_key, next_id = NULL, ended_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'key_rotated', 'master key ' || encode(p_key, 'hex'),
	    json_build_object('left_unreadable', behind)::text);
	-- remembered seals are the older key's
	PERFORM pg_notify('mcpbox_call', 'policy');
END $$;

---------------------------------------------------------------------------
REVOKE ALL ON FUNCTION secret_note, secret_time, secret_item, secret_usage, secret_json,
    secret_create, secrets_drop, secret_find, act_secret_create, act_secret_describe,
    act_secret_delete, sealed_key, sealed_body, key_stays, secret_key_guard,
    verifier_key_guard, seal_key_guard, anchor_key_guard, seal_purpose, renewal_only,
    anchor_store, renew_rows, renew_store, renew_begin, renew_end FROM PUBLIC;
GRANT SELECT ON server_secret_history, master_key, resting TO mcpbox_app;
GRANT EXECUTE ON FUNCTION secret_time, secret_item, secret_usage, secret_json, sealed_key, seal_purpose,
    secret_create, anchor_store, renew_rows, renew_store, renew_begin, renew_end TO mcpbox_app;
