-- 0015: what records keep, how they are found, counted, forgotten; and what
-- happens beside them (decision 0041).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Whose call it was, in its client's own terms: W3C trace context, and the
-- legacy session. The client's word; for finding, never for deciding.

ALTER TABLE executions ADD COLUMN trace_id uuid, ADD COLUMN span_id bytea,
    ADD COLUMN session_id uuid;

-- 0003's, and: an open row may get these three once, in the transaction that
-- made it (execution_marked below), where a function made it without them.
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
		IF OLD.state <> 'open' OR (NEW.state <> 'closed' AND NOT (NEW.state = 'open'
		    AND OLD.trace_id IS NULL AND OLD.session_id IS NULL
		    AND length(NEW.span_id) = 8 IS NOT FALSE)) THEN
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
	ELSE
	    NEW.outcome IS NULL AND NEW.ended_at IS NULL AND NEW.failure IS NULL
	    AND NEW.result IS NULL AND NEW.stdout IS NULL AND NEW.delivered IS NULL
	END) IS FALSE THEN
		RAISE EXCEPTION USING ERRCODE = 'check_violation',
		    CONSTRAINT = 'executions_ending', MESSAGE = 'not an ending';
	END IF;
	RETURN NEW;
END $$;

-- 0008's, with the three columns.
CREATE OR REPLACE VIEW intents AS SELECT id, kind, owner_epoch, principal, listener, tool,
    version_id, version_hash, args_sha256, arguments, client, protocol,
    created_at, deadline, trace_id, span_id, session_id FROM executions x
WHERE state = 'open' AND kind = 'tool' AND listener IN ('local', 'tunnel', 'admind')
    -- actor_ok()
    AND length(principal) BETWEEN 1 AND 254 AND principal !~ '[\u0001-\u001f\u007f]'
    AND length(args_sha256) = 32 AND length(arguments) <= 4096
    AND (span_id IS NULL OR length(span_id) = 8)
    AND EXISTS (SELECT 1 FROM callable c WHERE c.version_id = x.version_id
    AND c.epoch = x.owner_epoch AND c.hash = x.version_hash AND c.exposed_name = x.tool)
WITH LOCAL CHECK OPTION;

-- The rarer ways to an intent (tasks, confirmed calls, static content) are
-- functions that know nothing of the three. p_why: what one of them answered.
CREATE FUNCTION execution_marked(p_why text, p_id uuid, p_trace uuid, p_span bytea,
    p_session uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_why = 'ok' AND (p_trace IS NOT NULL OR p_session IS NOT NULL) THEN
		UPDATE executions SET trace_id = p_trace, span_id = p_span,
		    session_id = p_session
		WHERE id = p_id AND state = 'open' AND trace_id IS NULL AND session_id IS NULL;
	END IF;
	RETURN p_why;
END $$;

-- The intent row of a management call: execution_open() of that kind, in one
-- statement.
CREATE FUNCTION management_open(p_id uuid, p_epoch uuid, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_client text, p_protocol text, p_created timestamptz, p_deadline timestamptz,
    p_trace uuid, p_span bytea, p_session uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO executions (id, kind, owner_epoch, principal, listener, tool,
	    args_sha256, arguments, client, protocol, created_at, deadline,
	    trace_id, span_id, session_id)
	SELECT p_id, 'management', e.epoch, p_principal, p_listener, p_tool,
	    p_args_sha256, p_arguments, p_client, p_protocol, p_created, p_deadline,
	    p_trace, p_span, p_session
	FROM epochs e WHERE e.epoch = p_epoch AND e.ended_at IS NULL AND e.kind = 'admind';
	RETURN CASE WHEN FOUND THEN 'ok' ELSE 'sandbox_unavailable' END;
END $$;

---------------------------------------------------------------------------
-- Finding. Each index of a table costs a microsecond in every INSERT and
-- UPDATE of it, be it partial or not; so executions has no more than a call
-- needs, and what is searched by stands beside it, made by records_work() in
-- the pauses. Until then a row is in the queue, which lists read as well.

-- Closed, and not yet counted and searchable. No index: rows are put at one
-- end and taken from the other.
CREATE TABLE execution_queue (execution uuid NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- A closed execution, by what it may be asked for.
CREATE TABLE execution_index (
	id uuid PRIMARY KEY,
	created_at timestamptz NOT NULL,
	tool text COLLATE "C" NOT NULL,
	principal text NOT NULL,
	listener text NOT NULL,
	kind text NOT NULL,
	outcome text NOT NULL,
	failure text,
	version_id uuid,
	server_id uuid,	-- of the version
	trace_id uuid,
	words tsvector NOT NULL	-- of name, arguments, result, output, failure
);
CREATE INDEX ON execution_index (created_at, id);
CREATE INDEX ON execution_index (tool, created_at, id);
CREATE INDEX ON execution_index (principal, created_at, id);
CREATE INDEX ON execution_index (server_id, created_at, id) WHERE server_id IS NOT NULL;
-- What is the rule (done, tool, local) is in none of these: whoever asks for it
-- finds it in the order of time.
CREATE INDEX ON execution_index (outcome, created_at, id) WHERE outcome <> 'done';
CREATE INDEX ON execution_index (failure, created_at, id) WHERE failure IS NOT NULL;
CREATE INDEX ON execution_index (kind, created_at, id) WHERE kind <> 'tool';
CREATE INDEX ON execution_index (listener, created_at, id) WHERE listener <> 'local';
CREATE INDEX ON execution_index (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX ON execution_index USING gin (words);

-- What is not there yet: open rows, and of the queue as much as a list may
-- read (more waits only under a load that lasts).
CREATE VIEW executions_fresh AS
SELECT * FROM executions WHERE state = 'open'
UNION ALL
SELECT e.* FROM (SELECT execution FROM execution_queue LIMIT 1000) q
    CROSS JOIN LATERAL (SELECT * FROM executions x WHERE x.id = q.execution
    AND x.state = 'closed' OFFSET 0) e;

-- The newest calls of a name, and the newest that ended so: for other parts.
CREATE FUNCTION executions_of_tool(p_tool text, p_kinds text[], p_limit bigint)
RETURNS SETOF executions LANGUAGE sql STABLE AS $$
	SELECT e.* FROM ((SELECT i.id FROM mcpbox.execution_index i
	    WHERE i.tool = p_tool AND i.kind = ANY (p_kinds)
	    ORDER BY i.created_at DESC, i.id DESC LIMIT p_limit)
	    UNION ALL SELECT f.id FROM mcpbox.executions_fresh f
	    WHERE f.tool = p_tool AND f.kind = ANY (p_kinds)) k
	    CROSS JOIN LATERAL (SELECT * FROM mcpbox.executions x WHERE x.id = k.id OFFSET 0) e
	ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit
$$;
CREATE FUNCTION executions_of_outcome(p_outcome text, p_since timestamptz,
    p_limit bigint) RETURNS SETOF executions LANGUAGE sql STABLE AS $$
	SELECT e.* FROM ((SELECT i.id FROM mcpbox.execution_index i
	    WHERE i.outcome <> 'done' AND i.outcome = p_outcome AND i.created_at >= p_since
	    ORDER BY i.created_at DESC, i.id DESC LIMIT p_limit)
	    UNION ALL SELECT f.id FROM mcpbox.executions_fresh f
	    WHERE f.outcome = p_outcome AND f.created_at >= p_since) k
	    CROSS JOIN LATERAL (SELECT * FROM mcpbox.executions x WHERE x.id = k.id OFFSET 0) e
	ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit
$$;

-- 0001's, and: in line for records_work().
CREATE OR REPLACE FUNCTION execution_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	-- twice: the intent's own INSERT may commit while ours waits for it
	FOR i IN 1..2 LOOP
		WITH c AS (UPDATE executions SET state = 'closed', outcome = p_outcome,
		    failure = p_failure, delivered = p_delivered, started_at = p_started,
		    ended_at = p_ended, cpu_us = p_cpu_us, stdout = p_stdout, result = p_result
		WHERE id = p_id AND state = 'open' AND owner_epoch = p_epoch RETURNING id)
		INSERT INTO execution_queue SELECT id FROM c;
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
		    cpu_us, stdout, result, restored)
		VALUES (p_id, p_kind, 'closed', p_outcome, p_failure, p_delivered, p_epoch,
		    p_principal, p_listener, p_tool,
		    (SELECT v.id FROM tool_versions v WHERE v.id = p_version), p_hash,
		    p_args_sha256, p_arguments, p_created, p_deadline, p_started, p_ended,
		    p_cpu_us, p_stdout, p_result, true)
		ON CONFLICT (id) DO NOTHING RETURNING id)
		INSERT INTO execution_queue SELECT id FROM c;
		IF FOUND THEN
			RETURN 'restored';
		END IF;
	END LOOP;
	RETURN 'already';
END $$;

-- 0003's, likewise.
CREATE OR REPLACE FUNCTION executions_close(p_epoch uuid, p_ids uuid[], p_outcomes text[],
    p_failures text[], p_delivered boolean[], p_started timestamptz[],
    p_ended timestamptz[], p_cpu_us bigint[], p_stdout text[], p_results text[])
RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN QUERY WITH c AS (UPDATE executions x SET state = 'closed', outcome = r.outcome,
	    failure = r.failure, delivered = r.delivered, started_at = r.started_at,
	    ended_at = r.ended_at, cpu_us = r.cpu_us, stdout = r.stdout, result = r.result
	FROM unnest(p_ids, p_outcomes, p_failures, p_delivered, p_started, p_ended,
	    p_cpu_us, p_stdout, p_results) AS r (id, outcome, failure, delivered,
	    started_at, ended_at, cpu_us, stdout, result)
	WHERE x.id = r.id AND x.state = 'open' AND x.owner_epoch = p_epoch
	RETURNING x.id)
	INSERT INTO execution_queue SELECT c.id FROM c RETURNING execution;
END $$;

-- 0001's, likewise.
CREATE OR REPLACE FUNCTION sweep_epochs() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	WITH c AS (UPDATE executions x SET state = 'closed', outcome = 'lost',
	    failure = 'lost', ended_at = clock_timestamp()
	FROM epochs e WHERE x.state = 'open' AND x.owner_epoch = e.epoch
	    AND e.ended_at IS NOT NULL RETURNING x.id)
	INSERT INTO execution_queue SELECT id FROM c;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

---------------------------------------------------------------------------
-- Counting and searching.

-- Ended calls of an hour. They outlive the rows they were counted from.
CREATE TABLE execution_stats (
	hour timestamptz NOT NULL,	-- of created_at, in UTC
	tool text COLLATE "C" NOT NULL,
	principal text NOT NULL,
	listener text NOT NULL,
	kind text NOT NULL,
	outcome text NOT NULL,
	failure text NOT NULL,	-- '': none
	calls bigint NOT NULL,
	duration_us bigint NOT NULL,	-- of them together, from RUN (or, of what
	duration_max_us bigint NOT NULL,	-- never ran, from its intent) to the end
	cpu_us bigint NOT NULL,
	PRIMARY KEY (hour, tool, principal, listener, kind, outcome, failure)
);
CREATE INDEX ON execution_stats (tool, hour);
CREATE INDEX ON execution_stats (principal, hour);

-- Text as words and blanks. What may be an address, a path or a compound costs
-- PostgreSQL's parser the square of its length: 3 s for 8 kB of '1a@1a@1a@',
-- which a caller can write in each call.
CREATE FUNCTION plain_words(p text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT translate(p, '.-+_/~@:<>&%?=#;', '                ')
$$;

-- The beginnings are enough to find a call by, and bound what a row costs.
-- Escaped line ends and tabs would stick to the word behind them.
CREATE FUNCTION execution_lexemes(x executions) RETURNS tsvector
LANGUAGE sql STABLE AS $$
	SELECT to_tsvector('pg_catalog.simple', mcpbox.plain_words(replace(replace(
	    concat_ws(' ', x.tool, x.principal, x.failure, x.arguments,
	    left(x.result, 8192), left(x.stdout, 4096)), '\n', ' '), '\t', ' ')))
$$;

-- Takes at most p_rows off the queue; returns how many. Several may do it at
-- once. Sorted, so that two that count the same lock in the same order. Times
-- are a sandbox's word: sums of them end at 9e15 us (285 years), since one that
-- fits no column would leave its rows, and all behind them, in the queue.
CREATE FUNCTION records_work(p_rows bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	-- few rows, by their key: whatever the planner takes the queue to be
	PERFORM set_config('enable_hashjoin', 'off', true),
	    set_config('enable_mergejoin', 'off', true);
	WITH taken AS (
		DELETE FROM execution_queue WHERE ctid = ANY (ARRAY(SELECT ctid
		    FROM execution_queue LIMIT p_rows FOR UPDATE SKIP LOCKED))
		RETURNING execution
	), x AS MATERIALIZED (
		SELECT e AS row FROM taken q JOIN executions e ON e.id = q.execution
		    AND e.state = 'closed'
	), counted AS (
		INSERT INTO execution_stats AS s
		SELECT date_trunc('hour', (row).created_at, 'UTC'), (row).tool,
		    (row).principal, (row).listener, (row).kind, (row).outcome,
		    coalesce((row).failure, ''), count(*), least(sum(d.us), 9e15),
		    least(max(d.us), 9e15), least(sum(coalesce((row).cpu_us, 0)), 9e15)
		FROM x, LATERAL (SELECT greatest(0, (extract(epoch FROM (row).ended_at
		    - coalesce((row).started_at, (row).created_at)) * 1000000)::bigint) AS us) d
		GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
		ON CONFLICT (hour, tool, principal, listener, kind, outcome, failure)
		DO UPDATE SET calls = s.calls + excluded.calls,
		    duration_us = least(s.duration_us + excluded.duration_us, 9e15::bigint),
		    duration_max_us = greatest(s.duration_max_us, excluded.duration_max_us),
		    cpu_us = least(s.cpu_us + excluded.cpu_us, 9e15::bigint)
	), found AS (
		INSERT INTO execution_index
		SELECT (row).id, (row).created_at, (row).tool, (row).principal,
		    (row).listener, (row).kind, (row).outcome, (row).failure,
		    (row).version_id, (SELECT v.server_id FROM tool_versions v
		    WHERE v.id = (row).version_id), (row).trace_id, execution_lexemes(row)
		FROM x ON CONFLICT DO NOTHING
	)
	SELECT count(*) INTO n FROM taken;
	RETURN n;
END $$;

-- For the owner, at psql, after rows came from elsewhere: all is counted and
-- read again.
CREATE FUNCTION records_rebuild() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	LOCK TABLE mcpbox.execution_queue IN ACCESS EXCLUSIVE MODE;
	TRUNCATE mcpbox.execution_queue, mcpbox.execution_stats, mcpbox.execution_index;
	INSERT INTO mcpbox.execution_queue SELECT id FROM mcpbox.executions
	    WHERE state = 'closed';
END $$;

-- Newest first. Planned for these very words: the rare ones are found by them,
-- the frequent ones by going back in time.
CREATE FUNCTION executions_search(p_search text, p_kind text, p_state text,
    p_tool text, p_principal text, p_listener text, p_outcome text, p_failure text,
    p_since timestamptz, p_until timestamptz, p_before timestamptz, p_before_id uuid,
    p_limit bigint) RETURNS SETOF executions
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	-- the words of the texts; what begins with - is one that must not be there
	q tsquery := websearch_to_tsquery('pg_catalog.simple', regexp_replace(
	    translate(plain_words(translate(p_search, '-', U&'\0001')), U&'\0001', '-'),
	    '(?<=\S)-', ' ', 'g'));
	known uuid;
	newest uuid[];
BEGIN
	-- an id, of itself or of its trace, in either spelling
	IF p_search ~ '^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$' THEN
		known := p_search::uuid;
		RETURN QUERY SELECT e.* FROM executions e
		WHERE e.id IN (SELECT known UNION SELECT i.id FROM execution_index i
		    WHERE i.trace_id = known UNION SELECT f.id FROM executions_fresh f
		    WHERE f.trace_id = known)
		    AND (e.created_at, e.id) < (p_before, p_before_id)
		    AND e.created_at >= p_since AND e.created_at < p_until
		ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
		IF FOUND THEN
			RETURN;	-- else it is a word like others
		END IF;
	END IF;
	-- Of a common word the newest rows make a page: without this all that have
	-- it would be sorted.
	newest := ARRAY(SELECT w.id FROM (SELECT i.* FROM execution_index i
		WHERE (i.created_at, i.id) < (p_before, p_before_id)
		    AND i.created_at >= p_since AND i.created_at < p_until
		ORDER BY i.created_at DESC, i.id DESC LIMIT 4000) w
	WHERE w.words @@ q
	    AND (p_kind = '' OR w.kind = p_kind)
	    AND p_state IN ('', 'closed', w.outcome)
	    AND (p_tool = '' OR w.tool = p_tool)
	    AND (p_principal = '' OR w.principal = p_principal)
	    AND (p_listener = '' OR w.listener = p_listener)
	    AND (p_outcome = '' OR w.outcome = p_outcome)
	    AND (p_failure = '' OR w.failure = p_failure)
	ORDER BY w.created_at DESC, w.id DESC LIMIT p_limit);
	-- A rare one: by the words' index, whatever the planner thinks of the order.
	IF cardinality(newest) < p_limit THEN
		newest := ARRAY(WITH i AS MATERIALIZED (SELECT x.* FROM execution_index x
			WHERE x.words @@ q AND (x.created_at, x.id) < (p_before, p_before_id)
			    AND x.created_at >= p_since AND x.created_at < p_until)
		    SELECT i.id FROM i
		WHERE (p_kind = '' OR i.kind = p_kind)
		    AND p_state IN ('', 'closed', i.outcome)
		    AND (p_tool = '' OR i.tool = p_tool)
		    AND (p_principal = '' OR i.principal = p_principal)
		    AND (p_listener = '' OR i.listener = p_listener)
		    AND (p_outcome = '' OR i.outcome = p_outcome)
		    AND (p_failure = '' OR i.failure = p_failure)
		ORDER BY i.created_at DESC, i.id DESC LIMIT p_limit);
	END IF;
	RETURN QUERY SELECT e.* FROM unnest(newest) k (id)
	    CROSS JOIN LATERAL (SELECT * FROM executions x WHERE x.id = k.id OFFSET 0) e
	ORDER BY e.created_at DESC, e.id DESC;
END $$;

-- Statistics of a span of at most 400 days, as one object. p_period: hour or
-- day; hours for a month at most, so that the list has an end.
CREATE FUNCTION execution_statistics(p_since timestamptz, p_until timestamptz,
    p_period text, p_tool text, p_principal text, p_listener text, p_kind text,
    p_outcome text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	f timestamptz := coalesce(p_since, coalesce(p_until, clock_timestamp())
	    - interval '24 hours');
	t timestamptz := coalesce(p_until, clock_timestamp());
	step text := p_period;
	out text;
BEGIN
	IF step NOT IN ('', 'hour', 'day') THEN
		PERFORM fail('invalid_params', 'period is hour or day');
	END IF;
	IF t <= f OR t - f > interval '400 days' THEN
		PERFORM fail('invalid_params', 'statistics are of at most 400 days');
	END IF;
	IF step = '' THEN
		step := CASE WHEN t - f > interval '3 days' THEN 'day' ELSE 'hour' END;
	ELSIF step = 'hour' AND t - f > interval '31 days' THEN
		PERFORM fail('invalid_params', 'hours are shown of at most 31 days');
	END IF;
	WITH s AS MATERIALIZED (
		SELECT * FROM execution_stats WHERE hour >= date_trunc('hour', f, 'UTC')
		    AND hour < t AND (p_tool = '' OR tool = p_tool)
		    AND (p_principal = '' OR principal = p_principal)
		    AND (p_listener = '' OR listener = p_listener)
		    AND (p_kind = '' OR kind = p_kind)
		    AND (p_outcome = '' OR outcome = p_outcome)
	)
	SELECT json_build_object(
	    'since', to_char(date_trunc('hour', f, 'UTC') AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'until', to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'period', step,
	    'total', (SELECT json_build_object('calls', coalesce(sum(calls), 0),
	        'errors', coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0),
	        'duration_ms_average', (sum(duration_us) / nullif(sum(calls), 0) / 1000)::bigint,
	        'duration_ms_max', max(duration_max_us) / 1000,
	        'cpu_ms', (coalesce(sum(cpu_us), 0) / 1000)::bigint) FROM s),
	    'periods', (SELECT coalesce(json_agg(json_build_object('at',
	        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	        'calls', calls, 'errors', errors, 'duration_ms_average', ms) ORDER BY at), '[]')
	        FROM (SELECT date_trunc(step, hour, 'UTC') AS at, sum(calls) AS calls,
	        coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0) AS errors,
	        (sum(duration_us) / sum(calls) / 1000)::bigint AS ms FROM s GROUP BY 1) p),
	    'tools', (SELECT coalesce(json_agg(json_build_object('tool', tool, 'calls', calls,
	        'errors', errors, 'duration_ms_average', ms)
	        ORDER BY calls DESC, tool), '[]') FROM (SELECT tool, sum(calls) AS calls,
	        coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0) AS errors,
	        (sum(duration_us) / sum(calls) / 1000)::bigint AS ms
	        FROM s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20) p),
	    'principals', (SELECT coalesce(json_agg(json_build_object('principal', principal,
	        'calls', calls, 'errors', errors) ORDER BY calls DESC, principal), '[]')
	        FROM (SELECT principal, sum(calls) AS calls,
	        coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0) AS errors
	        FROM s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20) p),
	    'listeners', (SELECT coalesce(json_object_agg(listener, calls ORDER BY listener), '{}')
	        FROM (SELECT listener, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'kinds', (SELECT coalesce(json_object_agg(kind, calls ORDER BY kind), '{}')
	        FROM (SELECT kind, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'outcomes', (SELECT coalesce(json_object_agg(outcome, calls ORDER BY outcome), '{}')
	        FROM (SELECT outcome, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'failures', (SELECT coalesce(json_object_agg(failure, calls ORDER BY failure), '{}')
	        FROM (SELECT failure, sum(calls) AS calls FROM s WHERE failure <> ''
	        GROUP BY 1) p))::text INTO out;
	RETURN out;
END $$;

---------------------------------------------------------------------------
-- The activity log: what happened and became no execution. At most ACTIVITY
-- rows of it (records_expire).

CREATE TABLE activity (
	seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	node text NOT NULL,
	kind text NOT NULL CHECK (kind ~ '^[a-z_]{1,32}$'),
	level text NOT NULL CHECK (level IN ('info', 'warning', 'error')),
	principal text NOT NULL CHECK (length(principal) <= 254),	-- '': nobody known
	listener text NOT NULL CHECK (listener IN ('', 'local', 'tunnel', 'admind')),
	subject text COLLATE "C" NOT NULL CHECK (length(subject) <= 128),
	failure text NOT NULL CHECK (length(failure) <= 64),	-- '': none
	count bigint NOT NULL CHECK (count > 0)	-- so often within a second
);
CREATE INDEX ON activity (at);
CREATE INDEX ON activity (kind, seq);
CREATE INDEX ON activity (principal, seq);
CREATE INDEX ON activity (subject, seq);
CREATE INDEX ON activity (level, seq) WHERE level <> 'info';

CREATE FUNCTION activity_add(p_node text, p_at timestamptz[], p_kind text[],
    p_level text[], p_principal text[], p_listener text[], p_subject text[],
    p_failure text[], p_count bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	INSERT INTO activity (at, node, kind, level, principal, listener, subject,
	    failure, count)
	SELECT r.at, p_node, r.kind, r.level, r.principal, r.listener, r.subject,
	    r.failure, r.count
	FROM unnest(p_at, p_kind, p_level, p_principal, p_listener, p_subject, p_failure,
	    p_count) AS r (at, kind, level, principal, listener, subject, failure, count)
$$;

---------------------------------------------------------------------------
-- Forgetting.

INSERT INTO setting_keys (key, type, min, max, "default", doc) VALUES
    ('log_retention_days', 'integer', 1, 3650, '30', 'records of executions and'
    ' entries of the activity log are deleted after so many days');

-- At most p_rows of each kind, the oldest first; returns how many records. What
-- someone else works on is left for the next time.
CREATE FUNCTION records_expire(p_rows bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	kept constant bigint := 100000;	-- rows of the activity log
	since timestamptz := clock_timestamp()
	    - setting('log_retention_days')::int * interval '1 day';
	n bigint;
BEGIN
	WITH old AS (
		DELETE FROM executions WHERE id = ANY (ARRAY(SELECT x.id FROM executions x
		    WHERE x.created_at < since AND x.state = 'closed'
		    ORDER BY x.created_at, x.id LIMIT p_rows FOR UPDATE SKIP LOCKED))
		RETURNING id
	), found AS (
		DELETE FROM execution_index WHERE id IN (SELECT id FROM old)
	)
	SELECT count(*) INTO n FROM old;
	DELETE FROM activity WHERE seq = ANY (ARRAY(SELECT a.seq FROM activity a
	    WHERE a.seq <= (SELECT max(seq) FROM activity) - kept
	    ORDER BY a.seq LIMIT p_rows FOR UPDATE SKIP LOCKED));
	DELETE FROM activity WHERE seq = ANY (ARRAY(SELECT a.seq FROM activity a
	    WHERE a.at < since ORDER BY a.at LIMIT p_rows FOR UPDATE SKIP LOCKED));
	DELETE FROM execution_stats WHERE ctid = ANY (ARRAY(SELECT s.ctid
	    FROM execution_stats s WHERE s.hour < clock_timestamp() - interval '400 days'
	    LIMIT p_rows FOR UPDATE SKIP LOCKED));
	RETURN n;
END $$;

-- What there was before this migration.
INSERT INTO execution_queue SELECT id FROM executions WHERE state = 'closed';

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON execution_queue, execution_stats, execution_index, executions_fresh, activity
    FROM PUBLIC;
GRANT SELECT ON execution_queue, execution_stats, execution_index, executions_fresh, activity
    TO mcpbox_app;
REVOKE ALL ON FUNCTION execution_marked, management_open, plain_words, execution_lexemes, records_work,
    records_rebuild, executions_of_tool, executions_of_outcome, executions_search, execution_statistics, activity_add, records_expire
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION execution_marked, management_open, plain_words, records_work,
    executions_of_tool, executions_of_outcome, executions_search, execution_statistics, activity_add, records_expire TO mcpbox_app;
