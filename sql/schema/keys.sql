-- Values under two master keys (docs/decisions/0039). A value that the vault
-- sealed has the id of its key: {2, 8 bytes of key id, ...}. An older value has
-- none, and counts as one with a key id of zeros.

-- One row: the key under which stored values are sealed. key_id is null if no
-- rotation ever ended, because the key's id is not known then.
CREATE TABLE master_key (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	key_id bytea CHECK (length(key_id) = 8),
	next_id bytea CHECK (length(next_id) = 8), -- not null: a rotation is under way
	begun_at timestamptz,
	ended_at timestamptz
);

CREATE FUNCTION sealed_key(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT CASE WHEN length(value) > 9 AND get_byte(value, 0) = 2
	    THEN substring(value FROM 2 FOR 8) ELSE '\x0000000000000000'::bytea END
$$;

-- Returns a seal's content, without key and MAC.
CREATE FUNCTION sealed_body(seal bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT substring(seal FROM h FOR greatest(length(seal) - 31 - h, 0))
	    FROM (SELECT CASE WHEN get_byte(seal, 0) = 2 THEN 10 ELSE 2 END) x (h)
$$;

-- Fails if a value is sealed under a key that will not stay. A value that the
-- vault sealed before a rotation may come late. It waits here for the
-- rotation's end (by the row lock) and is then refused, so nobody stores a
-- value that cannot be read.
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

-- Guards append-only tables. A rotation may give a row another key and MAC, but
-- the row's content stays.
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

-- The view `resting` has everything that is stored under the master key. id
-- names the row, and is the order of passes. place and column say where the
-- vault sealed the value (its AAD). For a seal, place is empty and column says
-- what is sealed. For an anchor, they are the row number and the head in hex. A
-- new kind of stored value is a row here, a branch of renew_store() and a row
-- of the vault's renewal.h. Two kinds are not here: policies that are not in
-- force any more, and first approvals of decided requests. They end with the
-- older key, which makes an old policy worthless for good (0038).
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

-- Returns one piece of a pass: rows of one kind after p_after, without those
-- under p_key (null: with all). Kinds that may have many rows (seals, anchors)
-- are read in the order of their key, from p_after on, so a pass reads each row
-- once.
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

-- Stores the same values, sealed under the next key. A row that changed
-- meanwhile is left as it is, because it was written under the next key, or is
-- gone.
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

-- Begins a rotation. renew_begin() and renew_end() may be repeated.
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

-- Ends a rotation. p_leave is the number of values that may be left because no
-- key opens them. The row lock makes this the last moment of the older key.
-- Writers before it have committed, so their values are counted. Later writers
-- see the new key (key_stays).
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

CREATE TRIGGER no_delete BEFORE DELETE ON master_key FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON master_key EXECUTE FUNCTION refuse();
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
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_firsts
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_policies
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_seals
    FOR EACH ROW EXECUTE FUNCTION renewal_only();

GRANT EXECUTE ON FUNCTION sealed_key, seal_purpose, renew_rows, renew_store,
    renew_begin, renew_end TO mcpbox_app;

INSERT INTO master_key DEFAULT VALUES;
