-- Administrators. Their verifiers are sealed by the vault.

CREATE TABLE admin_users (
	username text COLLATE "C" PRIMARY KEY
	    CHECK (username ~ '^[a-zA-Z][a-zA-Z0-9_.@-]*$' AND length(username) <= 64),
	role text NOT NULL CHECK (role IN ('administrator', 'reviewer', 'viewer')),
	verifier bytea NOT NULL CHECK (length(verifier) BETWEEN 1 AND 4096),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL DEFAULT 'root' CHECK (actor_ok(created_by)),
	password_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- If two names differed in case alone, their readers would mistake one for the
-- other.
CREATE UNIQUE INDEX admin_users_name ON admin_users (lower(username));

-- Returns whether the audit log uses a name for something that is not a person.
-- A person of such a name could pass for it. Names that exist already stay.
CREATE FUNCTION admin_name_reserved(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT lower(name) IN ('root', 'local', 'mcpbox', 'unknown', 'admind',
	    'vault', 'system', 'token', 'anonymous')
$$;

-- Guards the last administrator: once there was one, there always is one,
-- whoever writes.
CREATE FUNCTION admin_users_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM mcpbox.admin_users
	    WHERE role = 'administrator') THEN
		PERFORM mcpbox.fail('conflict',
		    'the last administrator can neither go nor get another role');
	END IF;
	RETURN NULL;
END $$;

-- Stores a change of an administrator. 'setup' works only if there is none at
-- all. If two set-ups come at once, the table lock lets only one of them make
-- an administrator.
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

CREATE TRIGGER last_one AFTER UPDATE OR DELETE ON admin_users
    FOR EACH STATEMENT EXECUTE FUNCTION admin_users_guard();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON admin_users EXECUTE FUNCTION refuse();

GRANT EXECUTE ON FUNCTION admin_store TO mcpbox_app;
