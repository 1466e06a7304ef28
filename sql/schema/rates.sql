-- Rate limits that hold across nodes and restarts (docs/decisions/0043), and the
-- numbers of the circuit breakers (docs/decisions/0042).

-- The limit of one listener, principal or tool (its exposed name), in place of
-- the settings for all. per_minute 0 means no limit. burst is the number of
-- tokens that a bucket keeps at most. It is at most an hour's worth, so an hour
-- fills every bucket again.
CREATE TABLE rate_limits (
	scope text NOT NULL CHECK (scope IN ('listener', 'principal', 'tool')),
	subject text COLLATE "C" NOT NULL CHECK (actor_ok(subject)),
	per_minute bigint NOT NULL CHECK (per_minute BETWEEN 0 AND 6000000),
	burst bigint NOT NULL CHECK (burst BETWEEN 1 AND greatest(1, 60 * per_minute)),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by)),
	PRIMARY KEY (scope, subject),
	CHECK (scope <> 'listener' OR subject IN ('local', 'tunnel'))
);

-- The tokens that were left at the time `at`. A bucket without a row is full.
CREATE TABLE rate_buckets (
	scope text NOT NULL,
	subject text COLLATE "C" NOT NULL,
	tokens double precision NOT NULL CHECK (tokens >= 0),
	at timestamptz NOT NULL,
	PRIMARY KEY (scope, subject)
) WITH (fillfactor = 50);

CREATE INDEX ON rate_buckets (at);

-- Returns the limit of a subject: its own, or else that of the settings. No
-- row: there is no limit.
CREATE FUNCTION rate_limit_of(p_scope text, p_subject text)
RETURNS TABLE (per_minute bigint, burst bigint)
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT x.per_minute, x.burst FROM (
	    SELECT l.per_minute, l.burst, 1 FROM rate_limits l
	        WHERE l.scope = p_scope AND l.subject = p_subject
	    UNION ALL SELECT d.n, greatest(d.n, 1), 2 FROM (SELECT setting('rate_'
	        || CASE WHEN p_scope = 'listener' THEN p_subject WHEN p_scope = 'principal'
            AND starts_with(p_subject, 'token:')
            AND setting('rate_principal_per_minute')::bigint = 0 THEN 'token' ELSE p_scope END
	        || '_per_minute')::bigint) d (n)
	    ORDER BY 3 LIMIT 1) x (per_minute, burst, prefer)
	    WHERE x.per_minute > 0
$$;

-- Takes up to p_want tokens. If there were fewer than wanted, wait_ms is the
-- time until the next one flows in. per_minute is null if there is no limit
-- (any more) or no such tool, because names that clients make up get no bucket.
-- The row is locked before the clock is read, so the second of two nodes sees
-- the tokens that the first left.
CREATE FUNCTION rate_lease(p_scope text, p_subject text, p_want bigint,
    OUT granted bigint, OUT wait_ms bigint, OUT per_minute bigint, OUT burst bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	b rate_buckets;
	t timestamptz;
	have double precision;
BEGIN
	granted := 0;
	wait_ms := 0;
	SELECT l.per_minute, l.burst INTO per_minute, burst
	    FROM rate_limit_of(p_scope, p_subject) l;
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

-- Gives back tokens that were leased and not used. If there are then more than
-- the burst, the next lease cuts them off.
CREATE FUNCTION rate_return(p_scope text, p_subject text, p_tokens bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	UPDATE rate_buckets SET tokens = tokens + greatest(p_tokens, 0)
	    WHERE scope = p_scope AND subject = p_subject
$$;

-- Deletes buckets that were not used for an hour. They are full, and a bucket
-- without a row counts as full.
CREATE FUNCTION rate_sweep() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	DELETE FROM rate_buckets WHERE (scope, subject) IN (SELECT b.scope, b.subject
	    FROM rate_buckets b WHERE b.at < clock_timestamp() - interval '1 hour'
	    ORDER BY b.at LIMIT 1000 FOR UPDATE SKIP LOCKED)
$$;

-- Returns all limits that admind keeps in memory: settings (subject null), then
-- limits of single subjects.
CREATE FUNCTION limits_now()
RETURNS TABLE (name text, subject text, value bigint, burst bigint)
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT k.key, NULL, coalesce(s.value, k."default")::bigint, NULL
	    FROM setting_keys k LEFT JOIN settings s ON s.key = k.key
	    WHERE k.key ~ '^(rate|breaker)_' AND k.type = 'integer'
	UNION ALL SELECT l.scope, l.subject, l.per_minute, l.burst FROM rate_limits l
$$;

CREATE FUNCTION rate_limits_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('mcpbox_setting', '');
	RETURN NULL;
END $$;

-- Returns a limit as GET shows it. The ETag is the SHA-256 of this text. Null:
-- the subject has no limit of its own.
CREATE FUNCTION rate_limit_json(p_scope text, p_subject text) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('scope', l.scope, 'subject', l.subject, 'per_minute',
	    l.per_minute, 'burst', l.burst, 'updated_at', to_char(l.updated_at
	    AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'updated_by',
	    l.updated_by)::text FROM rate_limits l
	    WHERE l.scope = p_scope AND l.subject = p_subject
$$;

-- POST /api/rate-limits: makes or changes the limit of one subject.
CREATE FUNCTION act_rate_limit_set(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_scope text := p_body ->> 'scope';
	v_subject text := p_body ->> 'subject';
	v_per_minute bigint := (p_body ->> 'per_minute')::bigint;
	v_burst bigint := coalesce((p_body ->> 'burst')::bigint, greatest(v_per_minute, 1));
BEGIN
	IF v_scope NOT IN ('listener', 'principal', 'tool') THEN
		PERFORM fail('invalid_params', 'scope is listener, principal or tool');
	ELSIF NOT actor_ok(v_subject) OR v_scope = 'listener'
	    AND v_subject NOT IN ('local', 'tunnel') THEN
		PERFORM fail('invalid_params', 'subject is local or tunnel, a principal, or a'
		    ' tool''s name');
	ELSIF v_per_minute NOT BETWEEN 0 AND 6000000 THEN
		PERFORM fail('invalid_params', 'per_minute is 0 (no limit) to 6000000');
	ELSIF v_burst NOT BETWEEN 1 AND greatest(1, 60 * v_per_minute) THEN
		PERFORM fail('invalid_params', 'burst is 1 to 60 times per_minute');
	END IF;
	LOCK TABLE rate_limits IN SHARE ROW EXCLUSIVE MODE;
	PERFORM act_seen(p_seen, coalesce(rate_limit_json(v_scope, v_subject), ''));
	INSERT INTO rate_limits (scope, subject, per_minute, burst, updated_by)
	    VALUES (v_scope, v_subject, v_per_minute, v_burst, p_actor)
	    ON CONFLICT (scope, subject) DO UPDATE SET per_minute = excluded.per_minute,
	    burst = excluded.burst, updated_by = excluded.updated_by,
	    updated_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'rate_limit_set', v_scope || ' ' || v_subject,
	    json_build_object('per_minute', v_per_minute, 'burst', v_burst)::text);
	RETURN rate_limit_json(v_scope, v_subject);
END $$;

-- POST /api/rate-limits/remove: removes the limit of one subject, so that the
-- settings hold for it again.
CREATE FUNCTION act_rate_limit_remove(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_scope text := p_body ->> 'scope';
	v_subject text := p_body ->> 'subject';
BEGIN
	LOCK TABLE rate_limits IN SHARE ROW EXCLUSIVE MODE;
	PERFORM act_seen(p_seen, coalesce(rate_limit_json(v_scope, v_subject), ''));
	DELETE FROM rate_limits WHERE scope = v_scope AND subject = v_subject;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such limit');
	END IF;
	PERFORM audit_append(p_actor, 'rate_limit_removed', v_scope || ' ' || v_subject, '{}');
	RETURN NULL;
END $$;

-- POST /api/breakers/reset: all nodes close all breakers and count from zero.
CREATE FUNCTION act_breakers_reset(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM audit_append(p_actor, 'breakers_reset', 'breakers', '{}');
	PERFORM pg_notify('mcpbox_setting', 'breakers');
	RETURN NULL;
END $$;

CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON rate_limits
    FOR EACH STATEMENT EXECUTE FUNCTION rate_limits_changed();

GRANT EXECUTE ON FUNCTION rate_lease, rate_return, rate_sweep, limits_now,
    rate_limit_json TO mcpbox_app;
