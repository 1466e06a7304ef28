-- API tokens and their rights.
--
-- A token is a principal of its own, `token:NAME`. No other token ever gets
-- this name, since tasks, records and approvals of calls belong to a principal.
-- A token's rights are in its row from the start and never change. A client
-- that should get more rights gets another token.
--
-- Statements of management tools take a token's rights as p_allow and p_deny,
-- with one pattern a line. If p_allow is null, everything is allowed, because
-- no token asks. Every object has two names: the one that clients call it by,
-- and server__name. A pattern may mean either, so a server whose tools have
-- bare names can be denied like another.

-- Returns whether each pattern is `*`, `server__*`, `server__name`, or a name
-- alone.
CREATE FUNCTION token_patterns_ok(p text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT cardinality(p) <= 256 AND coalesce(bool_and(x IS NOT NULL AND length(x) <= 64
	    AND x ~ '^(\*|[a-z][a-z0-9]*(_[a-z0-9]+)*(__(\*|[a-z][a-z0-9]*(_[a-z0-9]+)*))?)$'),
	    true) FROM unnest(p) x
$$;

CREATE TABLE api_tokens (
	id uuid PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE
	    CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$'),
	-- SHA-256 of the token, whose 256 random bits nobody can find from it
	digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
	scopes text[] NOT NULL CHECK (cardinality(scopes) > 0
	    AND scopes <@ '{manage,manage:edit,tools:call,tools:read}'),
	listeners text[] NOT NULL CHECK (cardinality(listeners) > 0
	    AND listeners <@ '{local,tunnel}'),
	allow text[] NOT NULL CHECK (token_patterns_ok(allow)),
	deny text[] NOT NULL CHECK (token_patterns_ok(deny)),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	expires_at timestamptz,	-- null: never
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	reason text CHECK (length(reason) <= 2000),
	last_used_at timestamptz,
	last_used_listener text CHECK (last_used_listener IN ('local', 'tunnel')),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);

-- "Alice" and "alice" would be two principals that a person takes for one.
CREATE UNIQUE INDEX api_tokens_lower ON api_tokens (lower(name));
CREATE INDEX api_tokens_live ON api_tokens (name) WHERE revoked_at IS NULL;

-- Guards a token. Its rights stay as an administrator once gave them, and a
-- revocation is final.
CREATE FUNCTION api_tokens_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.id, NEW.name, NEW.digest, NEW.scopes, NEW.listeners, NEW.allow, NEW.deny,
	    NEW.created_at, NEW.created_by, NEW.expires_at)
	    IS DISTINCT FROM (OLD.id, OLD.name, OLD.digest, OLD.scopes, OLD.listeners,
	    OLD.allow, OLD.deny, OLD.created_at, OLD.created_by, OLD.expires_at)
	    OR (OLD.revoked_at IS NOT NULL AND (NEW.revoked_at, NEW.revoked_by, NEW.reason)
	    IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by, OLD.reason)) THEN
		RAISE EXCEPTION 'a token is not changed, but revoked';
	END IF;
	RETURN NEW;
END $$;

-- Returns a token as REST shows it, without the digest.
CREATE FUNCTION token_json(t api_tokens) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('id', t.id, 'name', t.name, 'principal', 'token:' || t.name,
	    'state', CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked'
	        WHEN t.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
	    'scopes', array_to_json(t.scopes), 'listeners', array_to_json(t.listeners),
	    'allow', array_to_json(t.allow), 'deny', array_to_json(t.deny),
	    'created_at', to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'created_by', t.created_by,
	    'expires_at', to_char(t.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'last_used_at', to_char(t.last_used_at AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'last_used_listener', t.last_used_listener,
	    'revoked_at', to_char(t.revoked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'revoked_by', t.revoked_by, 'reason', t.reason)::text
$$;

-- Returns the words of a list that REST or mcpboxctl sent with one word a line.
-- They are sorted, each once.
CREATE FUNCTION token_words(p text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT coalesce(array_agg(DISTINCT w COLLATE "C"), '{}')
	    FROM unnest(string_to_array(p, E'\n')) w WHERE w <> ''
$$;

-- Makes a token. There are bounds, because every admind has every live token in
-- memory.
CREATE FUNCTION token_create(p_id uuid, p_name text, p_digest bytea, p_scopes text,
    p_listeners text, p_allow text, p_deny text, p_expires timestamptz, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t api_tokens;
BEGIN
	IF p_name !~ '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$' THEN
		PERFORM fail('invalid_params', 'a token''s name has 1 to 64 of letters, digits,'
		    ' _ . @ and -, the first of them a letter or digit');
	END IF;
	IF NOT token_patterns_ok(token_words(p_allow)) OR NOT token_patterns_ok(token_words(p_deny)) THEN
		PERFORM fail('invalid_params', 'a pattern is *, server__*, server__tool or the name'
		    ' of a tool; allow and deny have at most 256 each');
	END IF;
	IF cardinality(token_words(p_scopes)) = 0 OR NOT token_words(p_scopes)
	    <@ '{manage,manage:edit,tools:call,tools:read}'::text[] THEN
		PERFORM fail('invalid_params',
		    'scopes are tools:read, tools:call, manage and manage:edit');
	END IF;
	IF cardinality(token_words(p_listeners)) = 0 OR NOT token_words(p_listeners)
	    <@ '{local,tunnel}'::text[] THEN
		PERFORM fail('invalid_params', 'listeners are local and tunnel');
	END IF;
	IF p_expires <= clock_timestamp() THEN
		PERFORM fail('invalid_params', 'expires_at is over already');
	END IF;
	-- One at a time, so that the number below is right.
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox.api_tokens'));
	IF (SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL
	    AND (expires_at IS NULL OR expires_at > clock_timestamp())) >= 4096 THEN
		PERFORM fail('limit', 'there are 4096 live tokens, which is the limit:'
		    ' revoke those that nobody needs');
	END IF;
	IF EXISTS (SELECT 1 FROM api_tokens WHERE lower(name) = lower(p_name)) THEN
		PERFORM fail('conflict', 'a token of this name exists or existed');
	END IF;
	INSERT INTO api_tokens (id, name, digest, scopes, listeners, allow, deny,
	    expires_at, created_by) VALUES (p_id, p_name, p_digest, token_words(p_scopes),
	    token_words(p_listeners), token_words(p_allow), token_words(p_deny), p_expires,
	    p_actor) RETURNING * INTO t;
	PERFORM audit_append(p_actor, 'token_created', 'token ' || p_name,
	    json_build_object('id', t.id, 'scopes', t.scopes, 'listeners', t.listeners,
	    'patterns', cardinality(t.allow) + cardinality(t.deny),
	    'patterns_sha256', encode(sha256(convert_to(array_to_string(t.allow, E'\n') || E'\n\n'
	    || array_to_string(t.deny, E'\n'), 'UTF8')), 'hex'),
	    'expires_at', t.expires_at)::text);
	PERFORM pg_notify('mcpbox_token', 'created');
	RETURN token_json(t);
END $$;

-- Revokes by id or name. A repetition is harmless: the first revocation holds.
CREATE FUNCTION token_revoke(p_token text, p_reason text, p_actor text,
    OUT id uuid, OUT digest bytea, OUT shown text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t api_tokens;
BEGIN
	SELECT * INTO t FROM api_tokens a WHERE a.id = CASE WHEN p_token ~
	    '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN p_token::uuid END
	    FOR UPDATE;
	IF NOT FOUND THEN
		SELECT * INTO t FROM api_tokens a WHERE a.name = p_token FOR UPDATE;
	END IF;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such token');
	END IF;
	IF length(p_reason) > 2000 THEN
		PERFORM fail('invalid_params', 'a reason has at most 2000 characters');
	END IF;
	IF t.revoked_at IS NULL THEN
		UPDATE api_tokens a SET revoked_at = clock_timestamp(), revoked_by = p_actor,
		    reason = nullif(p_reason, '') WHERE a.id = t.id RETURNING * INTO t;
		PERFORM audit_append(p_actor, 'token_revoked', 'token ' || t.name,
		    json_build_object('id', t.id, 'reason', left(t.reason, 1000))::text);
	END IF;
	PERFORM pg_notify('mcpbox_token', 'revoked ' || t.id);
	id := t.id;
	digest := t.digest;
	shown := token_json(t);
END $$;

-- Notes when each token was used last. admind calls this every few seconds.
CREATE FUNCTION token_used(p_ids uuid[], p_at timestamptz[], p_listeners text[])
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	UPDATE api_tokens t SET last_used_at = u.at, last_used_listener = u.listener
	    FROM unnest(p_ids, p_at, p_listeners) u (id, at, listener)
	    WHERE t.id = u.id AND (t.last_used_at IS NULL OR t.last_used_at < u.at)
$$;

CREATE FUNCTION token_matches(p_patterns text, p_exposed text, p_server text, p_name text)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT EXISTS (SELECT 1 FROM unnest(string_to_array(p_patterns, E'\n')) p
	    WHERE p = '*' OR p = p_exposed OR p = p_server || '__' || p_name
	    OR p = p_server || '__*'
	    OR (right(p, 3) = '__*' AND starts_with(p_exposed, left(p, -1))))
$$;

CREATE FUNCTION token_permits(p_allow text, p_deny text, p_exposed text, p_server text,
    p_name text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_allow IS NULL OR (coalesce(mcpbox.token_matches(p_allow, p_exposed, p_server,
	    p_name), false) AND NOT coalesce(mcpbox.token_matches(p_deny, p_exposed, p_server,
	    p_name), false))
$$;

-- Returns whether a token may see a server. It may if it may see anything that
-- could be on the server.
CREATE FUNCTION token_permits_server(p_allow text, p_deny text, p_server text)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_allow IS NULL OR (EXISTS (SELECT 1
	    FROM unnest(string_to_array(p_allow, E'\n')) p
	    WHERE p = '*' OR starts_with(p, p_server || '__'))
	    AND NOT EXISTS (SELECT 1 FROM unnest(string_to_array(p_deny, E'\n')) p
	    WHERE p = '*' OR p = p_server || '__*'))
$$;

-- Returns whether a token's management call may name these. Each is null or an
-- id. An id that names nothing passes, and the call fails as it would for
-- everybody.
CREATE FUNCTION token_permits_ids(p_allow text, p_deny text, p_server uuid, p_tool uuid)
RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = p_server
	        AND NOT token_permits_server(p_allow, p_deny, s.name))
	    AND NOT EXISTS (SELECT 1 FROM tools t JOIN servers s ON s.id = t.server_id
	        WHERE t.id = p_tool AND NOT token_permits(p_allow, p_deny,
	        (SELECT v.exposed_name FROM tool_versions v WHERE v.tool_id = t.id
	        ORDER BY v.version_no DESC LIMIT 1), s.name, t.name))
$$;

-- Sends the new value with the NOTIFY, so that every admind knows the value
-- before a gateway asks.
CREATE FUNCTION token_editing_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM pg_notify('mcpbox_token', 'editing ' || setting('remote_tool_editing'));
	PERFORM catalogue_changed(1);
	RETURN NULL;
END $$;

CREATE TRIGGER guard BEFORE UPDATE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION api_tokens_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON api_tokens EXECUTE FUNCTION refuse();
CREATE TRIGGER token_editing AFTER INSERT OR UPDATE ON settings
    FOR EACH ROW WHEN (NEW.key = 'remote_tool_editing')
    EXECUTE FUNCTION token_editing_changed();
CREATE TRIGGER token_editing_reset AFTER DELETE ON settings
    FOR EACH ROW WHEN (OLD.key = 'remote_tool_editing')
    EXECUTE FUNCTION token_editing_changed();

GRANT EXECUTE ON FUNCTION token_json, token_create, token_revoke, token_used,
    token_matches, token_permits, token_permits_server, token_permits_ids TO
    mcpbox_app;
