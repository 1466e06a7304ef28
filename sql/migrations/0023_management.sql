-- 0023: what management calls may cost while records wait (tests/bench, tests/database).
--
-- A tool's newest calls were looked for in the first thousand rows of the queue,
-- each by its key in executions: 3 ms, once so many wait, and none of the newest
-- when more do. The queue says now whose call it is and when, in an index; a list
-- for one tool reads no more than its page of it.
SET LOCAL search_path = mcpbox, pg_temp;

ALTER TABLE execution_queue ADD COLUMN tool text COLLATE "C",
    ADD COLUMN created_at timestamptz;
UPDATE execution_queue q SET tool = e.tool, created_at = e.created_at
    FROM executions e WHERE e.id = q.execution;
DELETE FROM execution_queue WHERE tool IS NULL;	-- of nothing that is still there
ALTER TABLE execution_queue ALTER COLUMN tool SET NOT NULL,
    ALTER COLUMN created_at SET NOT NULL;
CREATE INDEX ON execution_queue (tool, created_at, execution);

-- 0015's, from the queue by that index. A page of each part is enough.
CREATE OR REPLACE FUNCTION executions_of_tool(p_tool text, p_kinds text[], p_limit bigint)
RETURNS SETOF executions LANGUAGE sql STABLE AS $$
	SELECT e.* FROM ((SELECT i.id FROM mcpbox.execution_index i
	    WHERE i.tool = p_tool AND i.kind = ANY (p_kinds)
	    ORDER BY i.created_at DESC, i.id DESC LIMIT p_limit)
	    UNION ALL (SELECT q.execution FROM mcpbox.execution_queue q
	    CROSS JOIN LATERAL (SELECT x.kind FROM mcpbox.executions x WHERE x.id = q.execution
	    AND x.state = 'closed' OFFSET 0) k
	    WHERE q.tool = p_tool AND k.kind = ANY (p_kinds)
	    ORDER BY q.created_at DESC, q.execution DESC LIMIT p_limit)
	    UNION ALL SELECT o.id FROM mcpbox.executions o
	    WHERE o.state = 'open' AND o.tool = p_tool AND o.kind = ANY (p_kinds)) k
	    CROSS JOIN LATERAL (SELECT * FROM mcpbox.executions x WHERE x.id = k.id OFFSET 0) e
	ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit
$$;

-- 0019's, 0015's: with what the queue has now.
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
			RETURN 'already';
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

CREATE OR REPLACE FUNCTION executions_close(p_epoch uuid, p_ids uuid[], p_outcomes text[],
    p_failures text[], p_delivered boolean[], p_started timestamptz[],
    p_ended timestamptz[], p_cpu_us bigint[], p_stdout text[], p_results text[],
    p_network text[] DEFAULT '{}')
RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN QUERY WITH c AS (UPDATE executions x SET state = 'closed', outcome = r.outcome,
	    failure = r.failure, delivered = r.delivered, started_at = r.started_at,
	    ended_at = r.ended_at, cpu_us = r.cpu_us, stdout = r.stdout, result = r.result,
	    network = CASE WHEN r.network <> '' THEN network_json(r.network) END
	FROM unnest(p_ids, p_outcomes, p_failures, p_delivered, p_started, p_ended,
	    p_cpu_us, p_stdout, p_results, p_network) AS r (id, outcome, failure, delivered,
	    started_at, ended_at, cpu_us, stdout, result, network)
	WHERE x.id = r.id AND x.state = 'open' AND x.owner_epoch = p_epoch
	RETURNING x.id, x.tool, x.created_at)
	INSERT INTO execution_queue SELECT c.id, c.tool, c.created_at FROM c RETURNING execution;
END $$;

CREATE OR REPLACE FUNCTION sweep_epochs() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	-- What somebody closes just now, in another order, is his or the next sweep's.
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

CREATE OR REPLACE FUNCTION records_rebuild() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	LOCK TABLE mcpbox.execution_queue IN ACCESS EXCLUSIVE MODE;
	TRUNCATE mcpbox.execution_queue, mcpbox.execution_stats, mcpbox.execution_index;
	INSERT INTO mcpbox.execution_queue SELECT id, tool, created_at FROM mcpbox.executions
	    WHERE state = 'closed';
END $$;

-- 0010's. Ranked before it is looked at what serves: of the 250 that are ranked
-- the first few are looked up, not all. Where of so many too few serve (a tool has
-- many approved versions, one serves), what serves is ranked, as before.
CREATE OR REPLACE FUNCTION search_tools(p_words text, p_limit bigint)
RETURNS TABLE (exposed_name text, title text, description text, server_name text)
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	q tsquery := search_query(p_words);
	inside text[];
	best uuid[];
BEGIN
	best := ARRAY(SELECT x.id FROM (SELECT w.* FROM (SELECT v.id, v.exposed_name, v.words
		FROM tool_versions v WHERE v.state = 'approved' AND v.words @@ q
		LIMIT greatest(250, p_limit * 10)) w
		ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', w.words, q) DESC, w.exposed_name) x
	    CROSS JOIN LATERAL (SELECT FROM tools t JOIN servers s ON s.id = t.server_id
		WHERE t.serving_version = x.id AND t.enabled AND t.object = 'tool'
		AND s.status = 'running' OFFSET 0) y LIMIT p_limit);
	IF cardinality(best) < p_limit THEN
		best := ARRAY(SELECT x.id FROM (SELECT v.id, v.exposed_name, v.words
			FROM tool_versions v
			JOIN tools t ON t.serving_version = v.id AND t.enabled AND t.object = 'tool'
			JOIN servers s ON s.id = t.server_id AND s.status = 'running'
			WHERE v.state = 'approved' AND v.words @@ q
			LIMIT greatest(250, p_limit * 10)) x
		    ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', x.words, q) DESC, x.exposed_name
		    LIMIT p_limit);
	END IF;
	RETURN QUERY SELECT x.* FROM unnest(best) WITH ORDINALITY b (id, n)
	    CROSS JOIN LATERAL (SELECT v.exposed_name::text, v.title, v.description, s.name::text
		FROM tool_versions v JOIN tools t ON t.serving_version = v.id
		JOIN servers s ON s.id = t.server_id WHERE v.id = b.id OFFSET 0) x
	    ORDER BY b.n;
	IF NOT FOUND THEN
		SELECT array_agg('%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%') INTO inside
		    FROM regexp_split_to_table(lower(left(p_words, 200)), '\s+') w WHERE w <> '';
		RETURN QUERY SELECT v.exposed_name::text, v.title, v.description, s.name::text
		    FROM tool_names n
		    JOIN tools t ON t.id = n.tool_id AND t.enabled AND t.object = 'tool'
		    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
		    JOIN tool_versions v ON v.id = t.serving_version
			AND v.exposed_name = n.exposed_name
		    WHERE n.exposed_name LIKE ANY (inside)
		    ORDER BY n.exposed_name LIMIT p_limit;
	END IF;
END $$;
