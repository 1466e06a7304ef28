-- 0014: passkeys of administrators (docs/decisions/0104;
-- tests/database/access/test_passkeys.py). The vault seals a person's set as a whole.
SET LOCAL search_path = mcpbox, pg_temp;

-- One row a person: an administrator of admin_users, or a person who signs in
-- by an issuer and has no row there (NAME@ISSUER). So there is no foreign key.
-- 32 KB are twice the longest set.
CREATE TABLE admin_passkeys (
	username text COLLATE "C" PRIMARY KEY
	    CHECK (username ~ '^[a-zA-Z0-9_.@-]{1,65}$'),
	passkeys bytea NOT NULL CHECK (length(passkeys) BETWEEN 1 AND 32768),
	changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Stores a change of a person's passkeys that the vault made, with a new
-- verifier if it made one, in one transaction: the verifier says whether a
-- password alone is a login. An empty set means that the person has none.
CREATE FUNCTION passkeys_store(p_change text, p_username text, p_role text, p_actor text,
    p_detail text, p_verifier bytea, p_passkeys bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n int;
BEGIN
	IF p_change NOT IN ('register', 'remove', 'login', 'proof', 'cloned') THEN
		PERFORM fail('invalid_params', 'unknown change');
	END IF;
	-- as admin_store() locks it: a change of the password waits
	LOCK TABLE admin_users IN SHARE ROW EXCLUSIVE MODE;
	IF p_role <> '' THEN
		-- the verifier is sealed for the role that the vault was shown
		UPDATE admin_users SET verifier = CASE WHEN length(p_verifier) > 0
		    THEN p_verifier ELSE verifier END
		    WHERE username = p_username AND role = p_role;
		GET DIAGNOSTICS n = ROW_COUNT;
		IF n = 0 THEN
			PERFORM fail('conflict', 'the role changed meanwhile');
		END IF;
	ELSIF p_username NOT LIKE '%@%' THEN
		PERFORM fail('invalid_params', 'an administrator has a role');
	END IF;
	IF length(p_passkeys) > 0 THEN
		INSERT INTO admin_passkeys VALUES (p_username, p_passkeys)
		    ON CONFLICT (username) DO UPDATE SET passkeys = p_passkeys,
		    changed_at = clock_timestamp();
	ELSE
		DELETE FROM admin_passkeys WHERE username = p_username;
	END IF;
	PERFORM audit_append(p_actor, CASE p_change WHEN 'register' THEN 'passkey_registered'
	    WHEN 'remove' THEN 'passkey_removed' WHEN 'cloned' THEN 'passkey_cloned'
	    ELSE p_change END,
	    CASE WHEN p_change IN ('login', 'proof', 'cloned') THEN p_username
	    ELSE 'administrator ' || p_username END, p_detail);
END $$;

-- Takes the passkeys of a deleted administrator away.
CREATE FUNCTION passkeys_gone() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM admin_passkeys WHERE username = OLD.username;
	RETURN NULL;
END $$;

CREATE TRIGGER passkeys_gone AFTER DELETE ON admin_users
    FOR EACH ROW EXECUTE FUNCTION passkeys_gone();

---------------------------------------------------------------------------
-- Two master keys (docs/decisions/0039).

CREATE FUNCTION passkeys_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.key_stays(mcpbox.sealed_key(NEW.passkeys));
	RETURN NEW;
END $$;

CREATE TRIGGER key BEFORE INSERT OR UPDATE OF passkeys ON admin_passkeys
    FOR EACH ROW EXECUTE FUNCTION passkeys_key_guard();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON admin_passkeys EXECUTE FUNCTION refuse();

-- Replaces the view of 0009: sets of passkeys rest under the master key, too.
CREATE OR REPLACE VIEW resting AS
    SELECT 'secret' AS kind, s.server_id::text || '/' || s.key AS id, v.name AS place,
    s.key AS "column", s.value, sealed_key(s.value) AS key_id
    FROM server_secrets s JOIN servers v ON v.id = s.server_id WHERE s.value IS NOT NULL
    UNION ALL SELECT 'verifier', username, username, role, verifier, sealed_key(verifier)
    FROM admin_users
    UNION ALL SELECT 'passkeys', username, username, 'passkeys', passkeys, sealed_key(passkeys)
    FROM admin_passkeys
    UNION ALL SELECT 'seal', a.request_id::text, '', seal_purpose(r.kind), a.seal, sealed_key(a.seal)
    FROM approval_seals a JOIN approval_requests r ON r.id = a.request_id
    UNION ALL SELECT 'first', f.request_id::text, '', '', f.seal, sealed_key(f.seal)
    FROM approval_firsts f JOIN approval_requests r ON r.id = f.request_id
    WHERE r.state = 'pending'
    UNION ALL (SELECT 'policy', serial::text, '', '', seal, sealed_key(seal)
    FROM approval_policies ORDER BY serial DESC LIMIT 1)
    UNION ALL SELECT 'access', serial::text, '', '', seal, sealed_key(seal) FROM access_now
    UNION ALL SELECT 'anchor', lpad(seq::text, 20, '0'), seq::text, encode(head, 'hex'),
    signature, coalesce(key_id, '\x0000000000000000') FROM audit_anchors;

-- Replaces the function of 0009, for the kind passkeys.
CREATE OR REPLACE FUNCTION renew_store(p_kind text, p_ids text[], p_old bytea[], p_new bytea[])
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
		WHEN 'passkeys' THEN
			UPDATE admin_passkeys SET passkeys = p_new[i]
			    WHERE username = p_ids[i] AND passkeys = p_old[i];
		WHEN 'seal' THEN
			UPDATE approval_seals SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'first' THEN
			UPDATE approval_firsts SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'policy' THEN
			UPDATE approval_policies SET seal = p_new[i]
			    WHERE serial = p_ids[i]::bigint AND seal = p_old[i];
		WHEN 'access' THEN
			UPDATE access_documents SET seal = p_new[i]
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

---------------------------------------------------------------------------
-- Privileges.

GRANT SELECT ON admin_passkeys TO mcpbox_app;
REVOKE ALL ON FUNCTION passkeys_store, passkeys_gone, passkeys_key_guard FROM PUBLIC;
GRANT EXECUTE ON FUNCTION passkeys_store TO mcpbox_app;
