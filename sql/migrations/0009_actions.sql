-- 0009: what administrators change without the vault: one function for all of
-- it, which repeats nothing that carries an Idempotency-Key; and the settings.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Repeated requests.

-- A request whose answer was lost is sent again with its key, and answered as
-- the first time instead of done twice. Kept for a day.
CREATE TABLE idempotency_keys (
	actor text NOT NULL CHECK (actor_ok(actor)),
	key text COLLATE "C" NOT NULL CHECK (key ~ '^[\x21-\x7e]{1,64}$'),
	action text NOT NULL CHECK (name_ok(action, 64)),
	id text NOT NULL CHECK (length(id) <= 511),
	-- of If-Match and body together: another request under the same key is
	-- a mistake of its sender
	body_sha256 bytea NOT NULL CHECK (length(body_sha256) = 32),
	answer text,	-- null only until the transaction that made the row ends
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (actor, key)
);
CREATE INDEX ON idempotency_keys (at);

-- The one function behind ADMIN_ACTION. p_action comes from admind's table
-- (common/admin_action.def), never from a client; a taken-over admind could
-- call any act_ function, as it could send any ADMIN_ACTION to itself: what
-- must not be in its hands (approvals, secrets, passwords) has no act_
-- function. p_role: as the vault said of the login, or root; act_ functions
-- read it as current_setting('mcpbox.role'). p_seen: null if none was given.
-- What fails leaves no row, so that it can be tried again under its key.
CREATE FUNCTION admin_act(p_action text, p_actor text, p_role text, p_id text,
    p_seen bytea, p_key text, p_body text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	digest bytea := sha256(coalesce(p_seen, ''::bytea) || convert_to(p_body, 'UTF8'));
	made idempotency_keys;
	result text;
	body json;
BEGIN
	IF NOT name_ok(p_action, 60) OR p_role NOT IN ('viewer', 'reviewer',
	    'administrator', 'root') THEN
		PERFORM fail('internal', 'no such action or role');
	END IF;
	body := p_body::json;
	IF json_typeof(body) <> 'object' THEN
		PERFORM fail('invalid_params', 'the body is not a JSON object');
	END IF;
	IF p_key <> '' THEN
		DELETE FROM idempotency_keys WHERE actor = p_actor AND key = p_key
		    AND at < clock_timestamp() - interval '24 hours';
		DELETE FROM idempotency_keys WHERE (actor, key) IN (SELECT k.actor, k.key
		    FROM idempotency_keys k WHERE k.at < clock_timestamp() - interval '24 hours'
		    ORDER BY k.at LIMIT 100 FOR UPDATE SKIP LOCKED);
		-- Two at once: the second waits here for the first to commit.
		INSERT INTO idempotency_keys (actor, key, action, id, body_sha256)
		    VALUES (p_actor, p_key, p_action, p_id, digest) ON CONFLICT DO NOTHING;
		IF NOT FOUND THEN
			SELECT * INTO STRICT made FROM idempotency_keys
			    WHERE actor = p_actor AND key = p_key;
			IF (made.action, made.id, made.body_sha256)
			    IS DISTINCT FROM (p_action, p_id, digest) THEN
				PERFORM fail('conflict',
				    'this Idempotency-Key was used for another request');
			END IF;
			RETURN made.answer;
		END IF;
	END IF;
	PERFORM set_config('mcpbox.role', p_role, true);
	EXECUTE format('SELECT mcpbox.%I($1, $2, $3, $4)', 'act_' || p_action)
	    INTO result USING p_actor, p_id, p_seen, body;
	result := coalesce(result, '{}');
	IF p_key <> '' THEN
		UPDATE idempotency_keys k SET answer = result
		    WHERE k.actor = p_actor AND k.key = p_key;
	END IF;
	RETURN result;
END $$;

-- For act_ functions. A uuid of a path: what is none names nothing.
CREATE FUNCTION act_uuid(p_id text, p_what text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF p_id !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
	    AND p_id !~ '^[0-9a-f]{32}$' THEN
		PERFORM fail('not_found', 'there is no such ' || p_what);
	END IF;
	RETURN p_id::uuid;
END $$;

-- If-Match was given (p_seen) and p_now is the object as its GET shows it:
-- another one is not what the change was made from.
CREATE FUNCTION act_seen(p_seen bytea, p_now text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF p_seen IS NOT NULL AND p_seen <> sha256(convert_to(p_now, 'UTF8')) THEN
		PERFORM fail('hash_mismatch', 'it was changed meanwhile: read it again');
	END IF;
END $$;

---------------------------------------------------------------------------
-- Settings: what an administrator changes while all runs.

-- Which there are. type: integer (min to max), text (min to max characters),
-- choice (one of words). Migrations alone write here.
CREATE TABLE setting_keys (
	key text COLLATE "C" PRIMARY KEY CHECK (name_ok(key, 64)),
	type text NOT NULL CHECK (type IN ('integer', 'text', 'choice')),
	min bigint CHECK ((min IS NULL) = (type = 'choice')),
	max bigint CHECK ((max IS NULL) = (type = 'choice') AND max >= min),
	"default" text NOT NULL,
	doc text NOT NULL CHECK (length(doc) BETWEEN 1 AND 1000),
	words text[] CHECK ((words IS NULL) = (type <> 'choice'))
);

-- Is this a value of that setting? Null: yes; else the sentence that says no.
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
ALTER TABLE setting_keys ADD CHECK (setting_wrong(setting_keys, "default") IS NULL);

INSERT INTO setting_keys (key, type, min, max, "default", doc, words) VALUES
    ('confirm_destructive', 'choice', NULL, NULL, 'off', 'a person confirms each'
    ' call of a tool that does not say it is harmless', '{off,on}');

-- What holds now: the value set, or the default. Null: no such setting.
CREATE FUNCTION setting(p_key text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT coalesce(s.value, k."default") FROM mcpbox.setting_keys k
	    LEFT JOIN mcpbox.settings s ON s.key = k.key WHERE k.key = p_key
$$;

-- As GET shows it; the ETag is the SHA-256 of this text. Null: no such one.
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

-- NOTIFY mcpbox_setting: admind reads what it keeps of them again on every node. 'policy'
-- on mcpbox_call: what is remembered of serving versions is forgotten.
CREATE FUNCTION setting_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('mcpbox_setting', '');
	PERFORM pg_notify('mcpbox_call', 'policy');
	RETURN NULL;
END $$;
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON settings
    FOR EACH STATEMENT EXECUTE FUNCTION setting_changed();

-- Below every function: no unknown setting, and none that is out of bounds.
CREATE FUNCTION settings_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
ALTER FUNCTION settings_guard() SET search_path = mcpbox, pg_temp;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON settings
    FOR EACH ROW EXECUTE FUNCTION settings_guard();

-- 0007's road, which asked for no role: settings_set is the one now.
DROP FUNCTION change_setting(text, text, text);

-- Of two at once the later waits, and is compared with what the earlier left.
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

---------------------------------------------------------------------------
REVOKE ALL ON FUNCTION admin_act, act_uuid, act_seen, setting_wrong, setting,
    setting_json, setting_changed, settings_guard, act_settings_set,
    act_settings_reset FROM PUBLIC;
GRANT SELECT ON setting_keys TO mcpbox_app;
GRANT EXECUTE ON FUNCTION admin_act, setting, setting_json TO mcpbox_app;
-- Everything it did goes through admin_act now.
REVOKE ALL ON FUNCTION setting_store FROM mcpbox_app;
