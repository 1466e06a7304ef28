-- Settings: values that an administrator changes while the suite runs.

CREATE TABLE settings (
	key text COLLATE "C" PRIMARY KEY CHECK (name_ok(key, 64)),
	value text NOT NULL CHECK (length(value) <= 65536),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by))
);

-- The settings that exist. type: integer (min to max), text (min to max
-- characters), choice (one of words). Only migrations write here.
CREATE TABLE setting_keys (
	key text COLLATE "C" PRIMARY KEY CHECK (name_ok(key, 64)),
	type text NOT NULL CHECK (type IN ('integer', 'text', 'choice')),
	min bigint CHECK ((min IS NULL) = (type = 'choice')),
	max bigint CHECK ((max IS NULL) = (type = 'choice') AND max >= min),
	"default" text NOT NULL,
	doc text NOT NULL CHECK (length(doc) BETWEEN 1 AND 1000),
	words text[] CHECK ((words IS NULL) = (type <> 'choice'))
);

CREATE FUNCTION setting_store(p_key text, p_value text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO settings (key, value, updated_by) VALUES (p_key, p_value, p_actor)
	    ON CONFLICT (key) DO UPDATE SET value = excluded.value,
	    updated_by = excluded.updated_by, updated_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'setting_changed', 'setting ' || p_key,
	    json_build_object('value', left(p_value, 1000))::text);
END $$;

-- Returns null if p_value is a valid value of the setting, otherwise a sentence
-- that says why it is not.
CREATE FUNCTION setting_wrong(k setting_keys, p_value text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN k.type = 'choice' AND NOT p_value = ANY (k.words)
	        THEN k.key || ' is one of: ' || array_to_string(k.words, ', ')
	    WHEN k.type = 'text' AND (length(p_value) NOT BETWEEN k.min AND k.max
	        OR p_value ~ '[\u0001-\u001f\u007f]')
	        THEN k.key || ' has ' || k.min || ' to ' || k.max
	        || ' characters, none of them a control character'
	    WHEN k.type = 'integer' AND (p_value !~ '^(0|-?[1-9][0-9]{0,17})$'
	        OR CASE WHEN p_value ~ '^(0|-?[1-9][0-9]{0,17})$'
	        THEN p_value::bigint NOT BETWEEN k.min AND k.max END)
	        THEN k.key || ' is an integer from ' || k.min || ' to ' || k.max END
$$;

-- Returns a setting's value: the one that was set, or else the default. Null:
-- there is no such setting.
CREATE FUNCTION setting(p_key text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT coalesce(s.value, k."default") FROM mcpbox.setting_keys k
	    LEFT JOIN mcpbox.settings s ON s.key = k.key WHERE k.key = p_key
$$;

-- Returns a setting as GET shows it. The ETag is the SHA-256 of this text.
-- Null: there is no such setting.
CREATE FUNCTION setting_json(p_key text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT json_build_object('key', k.key, 'value', coalesce(s.value, k."default"),
	    'default', k."default", 'type', k.type, 'min', k.min, 'max', k.max,
	    'words', array_to_json(k.words), 'doc', k.doc, 'updated_at',
	    to_char(s.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'updated_by', s.updated_by)::text
	    FROM mcpbox.setting_keys k LEFT JOIN mcpbox.settings s ON s.key = k.key
	    WHERE k.key = p_key
$$;

-- Tells the admind of every node. After NOTIFY mcpbox_setting it reads again
-- the settings that it keeps. After 'policy' on mcpbox_call it forgets what it
-- remembers of serving versions.
CREATE FUNCTION setting_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('mcpbox_setting', '');
	PERFORM pg_notify('mcpbox_call', 'policy');
	RETURN NULL;
END $$;

-- Guards settings, whatever function or person writes: a setting is known, and
-- its value is within its bounds.
CREATE FUNCTION settings_guard() RETURNS trigger LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	k setting_keys;
	wrong text;
BEGIN
	SELECT * INTO k FROM setting_keys WHERE key = new.key;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such setting');
	END IF;
	wrong := setting_wrong(k, new.value);
	IF wrong IS NOT NULL THEN
		PERFORM fail('invalid_params', wrong);
	END IF;
	RETURN new;
END $$;

-- Sets a setting. If two requests do this at once, the second waits for the
-- first. Its p_seen is then compared with the value that the first has stored.
CREATE FUNCTION act_settings_set(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM 1 FROM setting_keys WHERE key = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such setting');
	END IF;
	PERFORM act_seen(p_seen, setting_json(p_id));
	PERFORM setting_store(p_id, p_body ->> 'value', p_actor);
	RETURN setting_json(p_id);
END $$;

CREATE FUNCTION act_settings_reset(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM 1 FROM setting_keys WHERE key = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such setting');
	END IF;
	PERFORM act_seen(p_seen, setting_json(p_id));
	DELETE FROM settings WHERE key = p_id;
	IF FOUND THEN
		PERFORM audit_append(p_actor, 'setting_reset', 'setting ' || p_id, '{}');
	END IF;
	RETURN setting_json(p_id);
END $$;

ALTER TABLE setting_keys ADD CHECK (setting_wrong(setting_keys, "default") IS NULL);

CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON settings
    FOR EACH STATEMENT EXECUTE FUNCTION setting_changed();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON settings
    FOR EACH ROW EXECUTE FUNCTION settings_guard();

GRANT EXECUTE ON FUNCTION setting, setting_json TO mcpbox_app;

INSERT INTO setting_keys (key, type, min, max, "default", doc, words) VALUES
    ('confirm_destructive', 'choice', NULL, NULL, 'off', 'a person confirms each'
    ' call of a tool that does not say it is harmless', '{off,on}');

INSERT INTO setting_keys (key, type, min, max, "default", doc) VALUES
    ('versions_kept', 'integer', 10, 10000, '100', 'newest versions of a tool that'
    ' are kept whatever they are; of older ones those that were approved, wait for'
    ' review or were rejected with a reason');

INSERT INTO setting_keys (key, type, min, max, "default", doc, words) VALUES
    ('remote_tool_editing', 'choice', NULL, NULL, 'disabled', 'may tokens with the scope'
    ' manage:edit create, change and delete servers and tools behind the tunnel?',
    '{disabled,enabled}');

INSERT INTO setting_keys (key, type, min, max, "default", doc) VALUES
    ('log_retention_days', 'integer', 1, 3650, '30', 'records of executions and'
    ' entries of the activity log are deleted after so many days');

INSERT INTO setting_keys (key, type, min, max, "default", doc) VALUES
    ('rate_local_per_minute', 'integer', 0, 6000000, '0',
    'Calls a minute of the local listener; 0: as many as there are.'),
    ('rate_tunnel_per_minute', 'integer', 0, 6000000, '300',
    'Calls a minute of the tunnel''s listener; 0: as many as there are.'),
    ('rate_principal_per_minute', 'integer', 0, 6000000, '0',
    'Calls a minute of each principal that has no limit of its own; 0: as many as there are.'),
    ('rate_token_per_minute', 'integer', 0, 6000000, '150',
    'The same of each API token, while rate_principal_per_minute is 0: half of the tunnel''s, so that one leaves room for others.'),
    ('rate_tool_per_minute', 'integer', 0, 6000000, '0',
    'Calls a minute of each tool, prompt or resource that has no limit of its own; 0: as many as there are.'),
    ('breaker_session_calls', 'integer', 0, 100000000, '10000',
    'Calls of one session within breaker_calls_window_s; more opens its circuit breaker. 0: none.'),
    ('breaker_session_repeats', 'integer', 0, 100000000, '200',
    'The same call of one session within breaker_repeats_window_s; more opens its circuit breaker for that call. 0: none.'),
    ('breaker_session_errors', 'integer', 0, 100000000, '50',
    'Errors in a row of one session that open its circuit breaker. 0: none.'),
    ('breaker_principal_calls', 'integer', 0, 100000000, '100000',
    'Calls of one principal within breaker_calls_window_s; more opens its circuit breaker. 0: none.'),
    ('breaker_principal_repeats', 'integer', 0, 100000000, '1000',
    'The same call of one principal within breaker_repeats_window_s; more opens its circuit breaker for that call. 0: none.'),
    ('breaker_principal_errors', 'integer', 0, 100000000, '250',
    'Errors in a row of one principal that open its circuit breaker. 0: none.'),
    ('breaker_calls_window_s', 'integer', 1, 86400, '3600',
    'Seconds within which calls in all are counted.'),
    ('breaker_repeats_window_s', 'integer', 1, 86400, '600',
    'Seconds within which the same calls are counted.'),
    ('breaker_reset_s', 'integer', 1, 86400, '60',
    'Seconds for which a circuit breaker stays open.');
