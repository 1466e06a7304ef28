-- 0014: administrators, their logins; the audit chain.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Administrators.

-- Two names that differ in case alone would be mistaken for each other where
-- they are read.
CREATE UNIQUE INDEX admin_users_name ON admin_users (lower(username));

ALTER TABLE admin_users ADD COLUMN created_by text NOT NULL DEFAULT 'root'
    CHECK (actor_ok(created_by));
ALTER TABLE admin_users ADD COLUMN password_at timestamptz NOT NULL
    DEFAULT clock_timestamp();

-- What the audit log says of others than people: a person of such a name could
-- pass for them. Names from before stay.
CREATE FUNCTION admin_name_reserved(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT lower(name) IN ('root', 'local', 'mcpbox', 'unknown', 'admind',
	    'vault', 'system', 'token', 'anonymous')
$$;

-- There is always an administrator once there was one, whoever writes.
CREATE FUNCTION admin_users_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM mcpbox.admin_users
	    WHERE role = 'administrator') THEN
		PERFORM mcpbox.fail('conflict',
		    'the last administrator can neither go nor get another role');
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER last_one AFTER UPDATE OR DELETE ON admin_users
    FOR EACH STATEMENT EXECUTE FUNCTION admin_users_guard();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON admin_users EXECUTE FUNCTION refuse();

-- What the vault decided about an administrator. The table lock makes two
-- changes at once one after the other, so that neither two set-ups nor two
-- demotions of the last two can both succeed.
DROP FUNCTION admin_store(text, text, boolean, text, bytea);
CREATE FUNCTION admin_store(p_change text, p_username text, p_role text,
    p_actor text, p_verifier bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	was admin_users;
	action text;
	detail json;
BEGIN
	LOCK TABLE admin_users IN SHARE ROW EXCLUSIVE MODE;
	IF p_change NOT IN ('setup', 'create', 'own_password', 'password',
	    'role', 'delete') THEN
		PERFORM fail('invalid_params', 'unknown change');
	END IF;
	SELECT * INTO was FROM admin_users WHERE username = p_username;
	IF p_change IN ('setup', 'create') THEN
		IF p_change = 'setup' AND EXISTS (SELECT 1 FROM admin_users) THEN
			PERFORM fail('conflict', 'there is an administrator already');
		END IF;
		IF admin_name_reserved(p_username) THEN
			PERFORM fail('invalid_params', 'this name is reserved');
		END IF;
		IF EXISTS (SELECT 1 FROM admin_users
		    WHERE lower(username) = lower(p_username)) THEN
			PERFORM fail('conflict', 'there is an administrator of that name');
		END IF;
		INSERT INTO admin_users (username, role, verifier, created_by)
		    VALUES (p_username, p_role, p_verifier, p_actor);
		action := 'admin_created';
		detail := json_build_object('role', p_role);
	ELSIF was.username IS NULL THEN
		PERFORM fail('not_found', 'there is no administrator of that name');
	ELSIF p_change = 'delete' THEN
		DELETE FROM admin_users WHERE username = p_username;
		action := 'admin_deleted';
		detail := json_build_object('role', was.role);
	ELSIF p_change = 'role' THEN
		UPDATE admin_users SET role = p_role, verifier = p_verifier,
		    updated_at = clock_timestamp() WHERE username = p_username;
		action := 'admin_role_changed';
		detail := json_build_object('from', was.role, 'role', p_role);
	ELSE
		-- the verifier is sealed for the role that the vault was shown
		IF was.role <> p_role THEN
			PERFORM fail('conflict', 'the role changed meanwhile');
		END IF;
		UPDATE admin_users SET verifier = p_verifier,
		    password_at = clock_timestamp(), updated_at = clock_timestamp()
		    WHERE username = p_username;
		action := CASE p_change WHEN 'password' THEN 'password_reset'
		    ELSE 'password_change' END;
		detail := json_build_object('role', p_role);
	END IF;
	PERFORM audit_append(p_actor, action, 'administrator ' || p_username,
	    detail::text);
END $$;
REVOKE ALL ON FUNCTION admin_store(text, text, text, text, bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION admin_name_reserved, admin_users_guard FROM PUBLIC;
GRANT EXECUTE ON FUNCTION admin_store(text, text, text, text, bytea) TO mcpbox_app;

---------------------------------------------------------------------------
-- The audit log, read. Each filter has its index; pages go by seq.

CREATE INDEX audit_log_actor ON audit_log (actor, seq);
CREATE INDEX audit_log_action ON audit_log (action, seq);
CREATE INDEX audit_log_subject ON audit_log (subject, seq);
CREATE INDEX audit_log_at ON audit_log (at, seq);

-- The words of a row. 'simple': names, not a language's prose. '_', '/', ':'
-- and the like part words, so that demo__greet is found by greet.
CREATE FUNCTION audit_words(actor text, action text, subject text, detail text)
RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT to_tsvector('pg_catalog.simple', translate(actor || ' ' || action
	    || ' ' || subject || ' ' || detail, '_/:=@.-"{}', '          '))
$$;
CREATE FUNCTION audit_query(words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT plainto_tsquery('pg_catalog.simple',
	    translate(words, '_/:=@.-"{}', '          '))
$$;
CREATE INDEX audit_log_words ON audit_log
    USING gin (audit_words(actor, action, subject, detail));
REVOKE ALL ON FUNCTION audit_words, audit_query FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_words, audit_query TO mcpbox_app;

-- One row for a reader; row: the bytes that were hashed behind prev_hash.
CREATE FUNCTION audit_json(l audit_log) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('seq', l.seq, 'at', to_char(l.at AT TIME ZONE 'UTC',
	    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'actor', l.actor, 'action', l.action,
	    'subject', l.subject, 'detail', l.detail::json,
	    'prev_hash', encode(l.prev, 'hex'), 'hash', encode(l.hash, 'hex'),
	    'row', encode(audit_row(l.seq, l.at, l.actor, l.action, l.subject,
	    l.detail), 'hex'), 'signature', (SELECT encode(x.signature, 'hex')
	    FROM audit_anchors x WHERE x.seq = l.seq))::text
$$;
REVOKE ALL ON FUNCTION audit_json FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_json TO mcpbox_app;
