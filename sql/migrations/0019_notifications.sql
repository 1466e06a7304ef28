-- 0019: requests that wait for a person are told to the targets of the access
-- document (docs/decisions/0112; tests/database/access/test_notifications.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- The targets of the document that holds, by name. A row decides when a target
-- is told. The sealed document alone decides where a notification goes.
CREATE TABLE notification_targets (
	name text PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 32),
	claim uuid,
	claimed_until timestamptz NOT NULL DEFAULT '-infinity',
	due_at timestamptz NOT NULL DEFAULT '-infinity',
	failures int NOT NULL DEFAULT 0 CHECK (failures >= 0),
	sent bigint NOT NULL DEFAULT 0 CHECK (sent >= 0),
	sent_at timestamptz,
	error text NOT NULL DEFAULT '' CHECK (length(error) <= 320)
);

-- Requests that a target has not been told of. claim: the notification under
-- way that has them.
CREATE TABLE notification_queue (
	target text NOT NULL REFERENCES notification_targets (name) ON DELETE CASCADE,
	request uuid NOT NULL REFERENCES approval_requests (id) ON DELETE CASCADE,
	claim uuid,
	PRIMARY KEY (target, request)
);

CREATE INDEX notification_queue_request ON notification_queue (request);

-- Puts a new request into the queue of each target. The lock is the foreign
-- key's, which notification_take() and notification_end() do not wait for, nor
-- make wait. It is taken first, so that a target that another document takes
-- out at the same time is left out, where the foreign key would fail the request.
CREATE FUNCTION notification_put() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO notification_queue (target, request)
	    SELECT name, NEW.id FROM (SELECT name FROM notification_targets
	    ORDER BY name FOR KEY SHARE) t;
	RETURN NULL;
END $$;

CREATE TRIGGER notifications AFTER INSERT ON approval_requests
    FOR EACH ROW WHEN (NEW.state = 'pending') EXECUTE FUNCTION notification_put();

-- Has exactly these targets. A new one is told of the requests that come after
-- it. Those that wait already are left out: to copy them would lock requests out
-- meanwhile, or miss some. Rows are locked in the order of notification_put().
CREATE FUNCTION notification_follow(p_names text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM FROM notification_targets WHERE name <> ALL (p_names) ORDER BY name FOR UPDATE;
	DELETE FROM notification_targets WHERE name <> ALL (p_names);
	INSERT INTO notification_targets (name) SELECT DISTINCT unnest(p_names)
	    ON CONFLICT DO NOTHING;
END $$;

-- Returns a request in words, on one line. The asker's name may have any
-- character, and an app makes links of some: a slash becomes _.
CREATE FUNCTION notification_line(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(CASE a.kind
	    WHEN 'tool' THEN v.object || ' ' || v.exposed_name || ', version ' || v.version_no
	    WHEN 'call' THEN 'call of ' || v.exposed_name
	    WHEN 'module' THEN 'module ' || m.name || coalesce(' ' || nullif(m.version, ''), '')
	    ELSE 'network ' || n.proto || ' ' || n.host || coalesce(' port ' || nullif(n.port, 0), '')
	    END, a.kind) || ' (server ' || split_part(s.name, '@', 1) || '), asked by '
	    || left(regexp_replace(a.requested_by, '[^A-Za-z0-9._@:+-]', '_', 'g'), 80) || ', hash ' || left(encode(a.hash, 'hex'), 12)
	FROM servers s LEFT JOIN call_requests c ON c.id = a.id
	    LEFT JOIN tool_versions v ON v.id = coalesce(c.version_id, a.subject)
	    LEFT JOIN module_requests m ON m.id = a.subject
	    LEFT JOIN network_requests n ON n.id = a.subject
	WHERE s.id = a.server_id
$$;

-- Takes all requests of one target's queue for this claim, if the target is due.
-- Returns at most p_rows requests, the oldest first, with the number of all; no
-- row: nothing is to be told. The arrays name the targets of the document, and the
-- secret of each ('': none), whose stored value is returned with the first row.
-- Requests that are decided by now leave the queue untold. A claim is void after
-- two minutes; the run of a claim ends after one.
CREATE FUNCTION notification_take(p_claim uuid, p_rows bigint, p_names text[],
    p_servers text[], p_keys text[])
RETURNS TABLE (target text, id uuid, line text, item text, total bigint, secret bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
#variable_conflict use_column
DECLARE
	chosen text;
	place int;
BEGIN
	SELECT t.name INTO chosen FROM notification_targets t
	    WHERE t.name = ANY (p_names) AND t.due_at <= clock_timestamp()
	    AND t.claimed_until <= clock_timestamp()
	    AND EXISTS (SELECT FROM notification_queue q WHERE q.target = t.name)
	    ORDER BY t.due_at, t.name LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
	IF chosen IS NULL THEN
		RETURN;
	END IF;
	DELETE FROM notification_queue q WHERE q.target = chosen AND NOT EXISTS
	    (SELECT FROM approval_requests a WHERE a.id = q.request AND a.state = 'pending');
	UPDATE notification_queue q SET claim = p_claim WHERE q.target = chosen;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	UPDATE notification_targets t SET claim = p_claim,
	    claimed_until = clock_timestamp() + interval '2 minutes' WHERE t.name = chosen;
	place := array_position(p_names, chosen);
	RETURN QUERY SELECT chosen, a.id, notification_line(a),
	    (approval_item(a)::jsonb - 'arguments' - 'notes' - 'reason')::text,
	    count(*) OVER (), (SELECT s.value FROM server_secrets s
	    JOIN servers v ON v.id = s.server_id
	    WHERE v.name = p_servers[place] AND s.key = p_keys[place])
	FROM notification_queue q JOIN approval_requests a ON a.id = q.request
	WHERE q.target = chosen AND q.claim = p_claim
	ORDER BY a.requested_at, a.id LIMIT p_rows;
END $$;

-- Ends a claim. p_error '': the target was told, and is due again in a minute.
-- Else its requests stay. It is due after p_wait milliseconds, as the target
-- asked; 0: after a minute, which doubles with each failure. Both are at least a
-- minute and at most a quarter of an hour, and a little longer by chance, so that
-- not all senders come back in one moment. p_ours: the target was not reached,
-- by a fault of this machine: it is due after a minute, and that does not count.
CREATE FUNCTION notification_end(p_claim uuid, p_error text, p_wait bigint, p_ours boolean)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	told text;
	ended timestamptz := clock_timestamp();
BEGIN
	UPDATE notification_targets SET claim = NULL, claimed_until = '-infinity',
	    due_at = ended + CASE WHEN p_error = '' THEN 60000
	    ELSE least(CASE WHEN p_ours THEN 60000 WHEN p_wait > 0 THEN greatest(p_wait, 60000)
	    ELSE 60000 * 2 ^ least(failures, 4) END, 900000) * (1 + random() / 8) END
	    * interval '1 millisecond',
	    failures = CASE WHEN p_error = '' THEN 0 WHEN p_ours THEN failures
	    ELSE failures + 1 END,
	    sent = sent + (p_error = '')::int,
	    sent_at = CASE WHEN p_error = '' THEN ended ELSE sent_at END,
	    error = left(p_error, 320)
	    WHERE claim = p_claim RETURNING name INTO told;
	IF p_error = '' THEN
		DELETE FROM notification_queue WHERE target = told AND claim = p_claim;
	ELSE
		UPDATE notification_queue SET claim = NULL WHERE target = told AND claim = p_claim;
	END IF;
END $$;

-- Returns the stored value of a secret; no row: it was not set.
CREATE FUNCTION notification_secret(p_server text, p_key text) RETURNS SETOF bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT s.value FROM server_secrets s JOIN servers v ON v.id = s.server_id
	WHERE v.name = p_server AND s.key = p_key AND s.value IS NOT NULL
$$;

REVOKE ALL ON FUNCTION notification_put, notification_follow, notification_line,
    notification_take, notification_end, notification_secret FROM PUBLIC;
GRANT EXECUTE ON FUNCTION notification_follow, notification_take, notification_end,
    notification_secret TO mcpbox_app;
GRANT SELECT ON notification_targets, notification_queue TO mcpbox_app;
