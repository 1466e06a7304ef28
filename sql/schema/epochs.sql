-- Lives of processes, and the executions for which they answer.

-- An epoch is one life of a node's sandboxd or admind. A node has at most one
-- living epoch of each. A new epoch ends the one before, and an ended one never
-- comes back.
CREATE TABLE epochs (
	epoch uuid PRIMARY KEY,
	node text NOT NULL CHECK (actor_ok(node)),
	kind text NOT NULL CHECK (kind IN ('sandboxd', 'admind')),
	started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	ended_at timestamptz
);

CREATE UNIQUE INDEX ON epochs (node, kind) WHERE ended_at IS NULL;

-- Sessions that a client deleted; their tokens stay refused until they
-- would have expired.
CREATE TABLE ended_sessions (
	id uuid PRIMARY KEY,
	expires_at timestamptz NOT NULL,
	ended_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX ON ended_sessions (expires_at);

CREATE FUNCTION epochs_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.epoch <> OLD.epoch
	    OR NEW.node <> OLD.node OR NEW.kind <> OLD.kind THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an epoch ends once';
	END IF;
	RETURN NEW;
END $$;

-- A new life of a node's process ends its earlier ones.
CREATE FUNCTION epoch_begin(p_epoch uuid, p_node text, p_kind text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL
	    AND node = p_node AND kind = p_kind) THEN
		RETURN;
	END IF;
	UPDATE epochs SET ended_at = clock_timestamp()
	    WHERE node = p_node AND kind = p_kind AND ended_at IS NULL
	    AND epoch <> p_epoch;
	-- The caller may have said it before, on a connection that was lost while
	-- its statement still ran: that is no conflict.
	INSERT INTO epochs (epoch, node, kind) VALUES (p_epoch, p_node, p_kind)
	    ON CONFLICT (epoch) DO NOTHING;
	IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch
	    AND ended_at IS NULL AND node = p_node AND kind = p_kind) THEN
		PERFORM fail('conflict', 'that epoch has ended');
	END IF;
END $$;

-- Closes as lost the executions that ended epochs left open, and queues them.
-- Returns how many.
CREATE FUNCTION sweep_epochs() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	-- A row that somebody closes just now, in another order, is his or the next sweep's.
	WITH o AS MATERIALIZED (SELECT y.id FROM executions y JOIN epochs e
	    ON e.epoch = y.owner_epoch WHERE y.state = 'open' AND e.ended_at IS NOT NULL
	    FOR UPDATE OF y SKIP LOCKED),
	c AS (UPDATE executions x SET state = 'closed', outcome = 'lost',
	    failure = 'lost', ended_at = clock_timestamp()
	FROM o WHERE x.id = o.id RETURNING x.id, x.tool, x.created_at)
	INSERT INTO execution_queue SELECT id, tool, created_at FROM c;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

CREATE FUNCTION session_end(p_id uuid, p_expires timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM ended_sessions WHERE expires_at < clock_timestamp();
	-- no token lives longer (session_ttl), so no row need
	p_expires := least(p_expires, clock_timestamp() + interval '31 days');
	INSERT INTO ended_sessions (id, expires_at) VALUES (p_id, p_expires)
	    ON CONFLICT DO NOTHING;
	PERFORM pg_notify('mcpbox_session', p_id::text || ' '
	    || ((extract(epoch FROM p_expires) * 1000)::bigint)::text);
END $$;

CREATE TRIGGER guard BEFORE UPDATE ON epochs
    FOR EACH ROW EXECUTE FUNCTION epochs_guard();

GRANT EXECUTE ON FUNCTION epoch_begin, sweep_epochs, session_end TO mcpbox_app;
