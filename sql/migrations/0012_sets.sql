-- 0012: an API token may have the rights of a permission set of the access
-- document (docs/decisions/0100; tests/database/access/test_sets.py), and a set may
-- have a rate.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Tokens of a set.

-- The set's name. Its rights are not here, but in the document, which the vault
-- sealed. So whoever writes rows can't raise them. The column is as closed as
-- the lists of a token of its own: it is set once, and the guard keeps it.
ALTER TABLE api_tokens ADD COLUMN permission_set text COLLATE "C"
    CHECK (permission_set ~ '^[a-z][a-z0-9-]{0,31}$');
ALTER TABLE api_tokens DROP CONSTRAINT api_tokens_scopes_check;
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_scopes_check
    CHECK (scopes <@ '{manage,manage:edit,tools:call,tools:read}');
-- A token has a set or lists, never both.
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_rights_check
    CHECK (CASE WHEN permission_set IS NULL THEN cardinality(scopes) > 0
    ELSE cardinality(scopes) + cardinality(allow) + cardinality(deny) = 0 END);

CREATE INDEX api_tokens_sets ON api_tokens (permission_set, name)
    WHERE revoked_at IS NULL AND permission_set IS NOT NULL;

-- Replaces the function of sql/schema/tokens.sql: the set stays, too.
CREATE OR REPLACE FUNCTION api_tokens_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.id, NEW.name, NEW.digest, NEW.scopes, NEW.listeners, NEW.allow, NEW.deny,
	    NEW.permission_set, NEW.created_at, NEW.created_by, NEW.expires_at)
	    IS DISTINCT FROM (OLD.id, OLD.name, OLD.digest, OLD.scopes, OLD.listeners,
	    OLD.allow, OLD.deny, OLD.permission_set, OLD.created_at, OLD.created_by,
	    OLD.expires_at)
	    OR (OLD.revoked_at IS NOT NULL AND (NEW.revoked_at, NEW.revoked_by, NEW.reason)
	    IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by, OLD.reason)) THEN
		RAISE EXCEPTION 'a token is not changed, but revoked';
	END IF;
	RETURN NEW;
END $$;

-- Replaces the function of sql/schema/tokens.sql: with the set.
CREATE OR REPLACE FUNCTION token_json(t api_tokens) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('id', t.id, 'name', t.name, 'principal', 'token:' || t.name,
	    'state', CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked'
	        WHEN t.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
	    'set', t.permission_set,
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

-- Returns whether a document has a permission set of this name.
CREATE FUNCTION access_has_set(p_document text, p_name text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT EXISTS (SELECT FROM json_array_elements(CASE
	    WHEN json_typeof(p_document::json -> 'permission_sets') = 'array'
	    THEN p_document::json -> 'permission_sets' ELSE '[]' END) s
	    WHERE s ->> 'name' = p_name)
$$;

-- Takes the place of the function of sql/schema/tokens.sql, with one more
-- parameter: p_set is a set's name, and the lists are empty then; or it is
-- empty. Documents are locked, so that the set is not removed meanwhile.
DROP FUNCTION token_create(uuid, text, bytea, text, text, text, text, timestamptz, text);
CREATE FUNCTION token_create(p_id uuid, p_name text, p_digest bytea, p_scopes text,
    p_listeners text, p_allow text, p_deny text, p_expires timestamptz, p_actor text,
    p_set text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_set text := nullif(p_set, '');
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
	IF v_set IS NOT NULL THEN
		IF cardinality(token_words(p_scopes)) + cardinality(token_words(p_allow))
		    + cardinality(token_words(p_deny)) > 0 THEN
			PERFORM fail('invalid_params', 'a token has a permission set, or scopes, allow'
			    ' and deny of its own, not both');
		END IF;
		LOCK TABLE access_documents IN SHARE ROW EXCLUSIVE MODE;
		IF NOT coalesce((SELECT access_has_set(d.document, v_set) FROM access_now d), false) THEN
			PERFORM fail('not_found', 'the access document has no permission set '
			    || left(v_set, 64));
		END IF;
	ELSIF cardinality(token_words(p_scopes)) = 0 OR NOT token_words(p_scopes)
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
	    expires_at, created_by, permission_set) VALUES (p_id, p_name, p_digest,
	    token_words(p_scopes), token_words(p_listeners), token_words(p_allow),
	    token_words(p_deny), p_expires, p_actor, v_set) RETURNING * INTO t;
	PERFORM audit_append(p_actor, 'token_created', 'token ' || p_name,
	    json_build_object('id', t.id, 'set', t.permission_set, 'scopes', t.scopes,
	    'listeners', t.listeners,
	    'patterns', cardinality(t.allow) + cardinality(t.deny),
	    'patterns_sha256', encode(sha256(convert_to(array_to_string(t.allow, E'\n') || E'\n\n'
	    || array_to_string(t.deny, E'\n'), 'UTF8')), 'hex'),
	    'expires_at', t.expires_at)::text);
	PERFORM pg_notify('mcpbox_token', 'created');
	RETURN token_json(t);
END $$;

-- Refuses a document that lacks a set of a live token. Without the set the token
-- would have no rights, and its client would learn it before its administrator.
CREATE FUNCTION access_sets_guard() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	lost record;
BEGIN
	SELECT t.permission_set AS name, count(*) AS n,
	    (array_agg(t.name ORDER BY t.name))[1:10] AS tokens INTO lost
	    FROM api_tokens t WHERE t.revoked_at IS NULL AND t.permission_set IS NOT NULL
	    AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
	    AND NOT access_has_set(NEW.document, t.permission_set)
	    GROUP BY t.permission_set ORDER BY t.permission_set LIMIT 1;
	IF FOUND THEN
		PERFORM fail('conflict', '/permission_sets lacks the set ' || lost.name
		    || ', which API tokens have: ' || array_to_string(lost.tokens, ', ')
		    || CASE WHEN lost.n > 10 THEN ' and ' || lost.n - 10 || ' more' ELSE '' END);
	END IF;
	RETURN NEW;
END $$;

CREATE TRIGGER sets BEFORE INSERT ON access_documents
    FOR EACH ROW EXECUTE FUNCTION access_sets_guard();

---------------------------------------------------------------------------
-- Rates of a set.

-- Takes the place of the function of sql/schema/rates.sql. p_set is the limit a
-- minute that the principal's permission set has, 0 or null: none. It holds if
-- the principal has no limit of its own, in place of the settings.
DROP FUNCTION rate_lease(text, text, bigint);
CREATE FUNCTION rate_lease(p_scope text, p_subject text, p_want bigint,
    p_set bigint DEFAULT NULL,
    OUT granted bigint, OUT wait_ms bigint, OUT per_minute bigint, OUT burst bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	b rate_buckets;
	t timestamptz;
	have double precision;
BEGIN
	granted := 0;
	wait_ms := 0;
	IF p_set > 0 AND p_scope = 'principal' AND NOT EXISTS (SELECT FROM rate_limits l
	    WHERE l.scope = p_scope AND l.subject = p_subject) THEN
		per_minute := p_set;
		burst := p_set;
	ELSE
		SELECT l.per_minute, l.burst INTO per_minute, burst
		    FROM rate_limit_of(p_scope, p_subject) l;
	END IF;
	IF per_minute IS NULL OR p_scope = 'tool' AND p_subject !~ '^mcpbox_'
	    AND NOT EXISTS (SELECT 1 FROM tool_names WHERE exposed_name = p_subject) THEN
		per_minute := NULL;
		RETURN;
	END IF;
	INSERT INTO rate_buckets AS r (scope, subject, tokens, at)
	    VALUES (p_scope, p_subject, rate_lease.burst, clock_timestamp())
	    ON CONFLICT (scope, subject) DO UPDATE SET at = r.at RETURNING * INTO b;
	t := greatest(clock_timestamp(), b.at);
	have := least(burst, b.tokens
	    + extract(epoch FROM t - b.at)::double precision * per_minute / 60);
	granted := least(greatest(p_want, 0), floor(have)::bigint);
	have := have - granted;
	UPDATE rate_buckets r SET tokens = greatest(have, 0), at = t
	    WHERE r.scope = p_scope AND r.subject = p_subject;
	IF granted < p_want THEN
		wait_ms := ceil(greatest(1 - have, 0) * 60000 / per_minute)::bigint;
	END IF;
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION access_has_set, access_sets_guard, token_create, rate_lease
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION token_create, rate_lease TO mcpbox_app;
