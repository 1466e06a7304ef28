-- Changes that administrators make without the vault (common/admin_action.def).
-- One function runs all of them, and repeats no change that has an
-- Idempotency-Key. The actions themselves, act_*, are in the files of their
-- subjects.

-- If a client did not get the answer, it sends the request again with the same
-- key. It then gets the first answer, and the change is not made twice. A row
-- is kept for a day.
CREATE TABLE idempotency_keys (
	actor text NOT NULL CHECK (actor_ok(actor)),
	key text COLLATE "C" NOT NULL CHECK (key ~ '^[\x21-\x7e]{1,64}$'),
	action text NOT NULL CHECK (name_ok(action, 64)),
	id text NOT NULL CHECK (length(id) <= 511),
	-- the SHA-256 of If-Match and body: another request under the same key
	-- is a mistake of its sender
	body_sha256 bytea NOT NULL CHECK (length(body_sha256) = 32),
	answer text,	-- null only until the transaction that made the row ends
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (actor, key)
);

CREATE INDEX ON idempotency_keys (at);

-- Runs an ADMIN_ACTION; all of them come here. p_action comes from admind's
-- table (common/admin_action.def), never from a client. A taken-over admind
-- could call any act_ function, since it could also send any ADMIN_ACTION to
-- itself. So changes that must not be in its hands (approvals, values of
-- secrets, passwords) have no act_ function. p_role is the role that the vault
-- said of the login, or root. act_ functions read it as
-- current_setting('mcpbox.role'). p_seen is null if none was given. A failed
-- action leaves no row, so that it can be tried again under its key.
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

-- For act_ functions: reads a UUID of a path. Text that is no UUID names
-- nothing, so the failure is not_found.
CREATE FUNCTION act_uuid(p_id text, p_what text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF p_id !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
	    AND p_id !~ '^[0-9a-f]{32}$' THEN
		PERFORM fail('not_found', 'there is no such ' || p_what);
	END IF;
	RETURN p_id::uuid;
END $$;

-- Compares If-Match (p_seen; null if none was given) with p_now, the object as
-- its GET shows it. If they differ, the change was made from another state of
-- the object, so it fails.
CREATE FUNCTION act_seen(p_seen bytea, p_now text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF p_seen IS NOT NULL AND p_seen <> sha256(convert_to(p_now, 'UTF8')) THEN
		PERFORM fail('hash_mismatch', 'it was changed meanwhile: read it again');
	END IF;
END $$;

GRANT EXECUTE ON FUNCTION admin_act TO mcpbox_app;
