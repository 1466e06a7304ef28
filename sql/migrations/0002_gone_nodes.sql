-- 0002: if a node is gone, any node closes the executions that it left open
-- past their deadlines (docs/decisions/0077; tests/integration/test_nodes.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- The time at which each node's admind was last at the database, and the time
-- since when it has been there without a gap. Both are by the database's clock.
CREATE TABLE nodes (
	node text PRIMARY KEY CHECK (actor_ok(node)),
	since timestamptz NOT NULL,
	seen_at timestamptz NOT NULL
);

-- Executions that another node closed as lost because their own node was gone.
-- A node that was only away comes back with the record. The record then
-- replaces the loss, once, and only within a day.
CREATE TABLE executions_presumed (
	id uuid PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Notes that p_node is here. Closes as lost at most p_rows executions whose
-- deadline passed more than p_grace seconds ago and whose owner is gone: its
-- epoch is unknown, or its node was not seen for p_gone seconds. A node that
-- was not here itself all that time can't say so of others: if the database was
-- away, all of them were. Returns how many were closed.
CREATE FUNCTION nodes_sweep(p_node text, p_grace bigint, p_gone bigint, p_rows bigint)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
	mine timestamptz;
BEGIN
	INSERT INTO nodes AS x VALUES (p_node, clock_timestamp(), clock_timestamp())
	    ON CONFLICT (node) DO UPDATE SET seen_at = excluded.seen_at,
	    since = CASE WHEN x.seen_at < now() - make_interval(secs => p_gone) / 2
	    THEN excluded.since ELSE x.since END RETURNING since INTO mine;
	IF mine > now() - make_interval(secs => p_gone) THEN
		RETURN 0;
	END IF;
	DELETE FROM executions_presumed WHERE at < now() - interval '1 day';
	-- What somebody closes just now is his.
	WITH o AS MATERIALIZED (SELECT x.id FROM executions x
	    LEFT JOIN epochs e ON e.epoch = x.owner_epoch
	    LEFT JOIN nodes s ON s.node = e.node
	    WHERE x.state = 'open' AND x.deadline < now() - make_interval(secs => p_grace)
	    AND (e.epoch IS NULL OR coalesce(s.seen_at, e.started_at)
	        < now() - make_interval(secs => p_gone))
	    ORDER BY x.deadline LIMIT p_rows FOR UPDATE OF x SKIP LOCKED),
	c AS (UPDATE executions x SET state = 'closed', outcome = 'lost',
	    failure = 'lost', ended_at = clock_timestamp()
	FROM o WHERE x.id = o.id RETURNING x.id, x.tool, x.created_at),
	p AS (INSERT INTO executions_presumed (id) SELECT id FROM c)
	INSERT INTO execution_queue SELECT id, tool, created_at FROM c;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

-- Returns whether this execution is presumed to be lost and p_epoch owns it. If
-- so, it is neither counted nor found as lost any more. It waits in the queue
-- and is counted by the end that it has then.
CREATE FUNCTION execution_unpresume(p_id uuid, p_epoch uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x executions;
	us bigint;
BEGIN
	SELECT e.* INTO x FROM executions e JOIN executions_presumed p ON p.id = e.id
	    WHERE e.id = p_id AND e.owner_epoch = p_epoch FOR UPDATE OF e, p;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	-- Not counted yet: then it will be, as it is by then.
	PERFORM 1 FROM execution_queue q WHERE q.tool = x.tool
	    AND q.created_at = x.created_at AND q.execution = p_id FOR UPDATE;
	IF FOUND THEN
		RETURN true;
	END IF;
	us := greatest(0, (extract(epoch FROM x.ended_at
	    - coalesce(x.started_at, x.created_at)) * 1000000)::bigint);
	UPDATE execution_stats SET calls = calls - 1,
	    duration_us = greatest(0, duration_us - us)
	WHERE hour = date_trunc('hour', x.created_at, 'UTC') AND tool = x.tool
	    AND principal = x.principal AND listener = x.listener AND kind = x.kind
	    AND outcome = x.outcome AND failure = coalesce(x.failure, '');
	DELETE FROM execution_stats
	WHERE hour = date_trunc('hour', x.created_at, 'UTC') AND tool = x.tool
	    AND principal = x.principal AND listener = x.listener AND kind = x.kind
	    AND outcome = x.outcome AND failure = coalesce(x.failure, '') AND calls < 1;
	DELETE FROM execution_index WHERE id = p_id;
	INSERT INTO execution_queue VALUES (p_id, x.tool, x.created_at);
	RETURN true;
END $$;

-- Replaces the function of sql/schema/executions.sql. The owner may now also
-- correct an end that was only presumed.
CREATE OR REPLACE FUNCTION executions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		IF (NEW.kind IN ('tool', 'inspect', 'test', 'management')
		    AND NEW.state IN ('open', 'closed')
		    AND NEW.listener IN ('local', 'tunnel', 'admind')
		    -- actor_ok(), spelt out: as a function it is planned in each call
		    AND length(NEW.principal) BETWEEN 1 AND 254
		    AND NEW.principal !~ '[\u0001-\u001f\u007f]'
		    AND length(NEW.version_hash) = 32
		    AND (NEW.kind <> 'tool' OR NEW.version_hash IS NOT NULL)
		    AND length(NEW.args_sha256) = 32
		    AND length(NEW.arguments) <= 4096
		    AND length(NEW.span_id) = 8) IS FALSE THEN
			RAISE EXCEPTION USING ERRCODE = 'check_violation',
			    CONSTRAINT = 'executions_intent', MESSAGE = 'not an intent';
		END IF;
		IF NEW.version_id IS NOT NULL AND NOT EXISTS
		    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.version_id) THEN
			RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			    CONSTRAINT = 'executions_version', MESSAGE = 'there is no such version';
		END IF;
	ELSE
		IF OLD.state <> 'open' THEN
			IF NEW.state <> 'closed' OR NOT EXISTS (SELECT 1
			    FROM mcpbox.executions_presumed p WHERE p.id = OLD.id) THEN
				RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an execution closes once';
			END IF;
		ELSIF NEW.state <> 'closed' AND NOT (NEW.state = 'open'
		    AND OLD.trace_id IS NULL AND OLD.session_id IS NULL
		    AND length(NEW.span_id) = 8 IS NOT FALSE) THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an execution closes once';
		END IF;
		IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.owner_epoch <> OLD.owner_epoch
		    OR NEW.principal <> OLD.principal OR NEW.listener <> OLD.listener
		    OR NEW.tool <> OLD.tool OR NEW.version_id IS DISTINCT FROM OLD.version_id
		    OR NEW.version_hash IS DISTINCT FROM OLD.version_hash
		    OR NEW.args_sha256 <> OLD.args_sha256 OR NEW.arguments <> OLD.arguments
		    OR NEW.client <> OLD.client OR NEW.protocol <> OLD.protocol
		    OR NEW.deadline <> OLD.deadline
		    OR NEW.created_at <> OLD.created_at OR NEW.restored <> OLD.restored
		    OR (NEW.state = 'closed' AND (NEW.trace_id IS DISTINCT FROM OLD.trace_id
		    OR NEW.span_id IS DISTINCT FROM OLD.span_id
		    OR NEW.session_id IS DISTINCT FROM OLD.session_id)) THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an intent is immutable';
		END IF;
	END IF;
	IF (CASE NEW.state WHEN 'closed' THEN
	    NEW.outcome IN ('done', 'failed', 'killed', 'refused', 'lost')
	    AND NEW.outcome IS NOT NULL AND NEW.ended_at IS NOT NULL
	    AND (NEW.outcome = 'done') = (NEW.failure IS NULL)
	    AND length(NEW.stdout) <= 65536 AND length(NEW.result) <= 1048576
	    AND octet_length(NEW.network::text) <= 16384
	ELSE
	    NEW.outcome IS NULL AND NEW.ended_at IS NULL AND NEW.failure IS NULL
	    AND NEW.result IS NULL AND NEW.stdout IS NULL AND NEW.delivered IS NULL
	    AND NEW.network IS NULL
	END) IS FALSE THEN
		RAISE EXCEPTION USING ERRCODE = 'check_violation',
		    CONSTRAINT = 'executions_ending', MESSAGE = 'not an ending';
	END IF;
	RETURN NEW;
END $$;

-- Replaces the function of sql/schema/executions.sql, for the same reason.
CREATE OR REPLACE FUNCTION execution_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz, p_network text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	-- twice: the intent's own INSERT may commit while ours waits for it
	FOR i IN 1..2 LOOP
		WITH c AS (UPDATE executions SET state = 'closed', outcome = p_outcome,
		    failure = p_failure, delivered = p_delivered, started_at = p_started,
		    ended_at = p_ended, cpu_us = p_cpu_us, stdout = p_stdout, result = p_result,
		    network = CASE WHEN p_network <> '' THEN network_json(p_network) END
		WHERE id = p_id AND state = 'open' AND owner_epoch = p_epoch RETURNING id, tool, created_at)
		INSERT INTO execution_queue SELECT id, tool, created_at FROM c;
		IF FOUND THEN
			RETURN 'closed';
		END IF;
		IF EXISTS (SELECT 1 FROM executions WHERE id = p_id) THEN
			IF NOT execution_unpresume(p_id, p_epoch) THEN
				RETURN 'already';
			END IF;
			UPDATE executions SET outcome = p_outcome, failure = p_failure,
			    delivered = p_delivered, started_at = p_started, ended_at = p_ended,
			    cpu_us = p_cpu_us, stdout = p_stdout, result = p_result,
			    network = CASE WHEN p_network <> '' THEN network_json(p_network) END
			WHERE id = p_id;
			DELETE FROM executions_presumed WHERE id = p_id;
			RETURN 'corrected';
		END IF;
		IF p_kind IS NULL THEN
			RETURN 'unknown';
		END IF;
		WITH c AS (INSERT INTO executions (id, kind, state, outcome, failure, delivered,
		    owner_epoch, principal, listener, tool, version_id, version_hash,
		    args_sha256, arguments, created_at, deadline, started_at, ended_at,
		    cpu_us, stdout, result, network, restored)
		VALUES (p_id, p_kind, 'closed', p_outcome, p_failure, p_delivered, p_epoch,
		    p_principal, p_listener, p_tool,
		    (SELECT v.id FROM tool_versions v WHERE v.id = p_version), p_hash,
		    p_args_sha256, p_arguments, p_created, p_deadline, p_started, p_ended,
		    p_cpu_us, p_stdout, p_result,
		    CASE WHEN p_network <> '' THEN network_json(p_network) END, true)
		ON CONFLICT (id) DO NOTHING RETURNING id, tool, created_at)
		INSERT INTO execution_queue SELECT id, tool, created_at FROM c;
		IF FOUND THEN
			RETURN 'restored';
		END IF;
	END LOOP;
	RETURN 'already';
END $$;

REVOKE ALL ON nodes, executions_presumed FROM PUBLIC;
GRANT SELECT ON nodes TO mcpbox_app;
REVOKE ALL ON FUNCTION nodes_sweep, execution_unpresume FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nodes_sweep TO mcpbox_app;
