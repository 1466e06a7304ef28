-- 0020: figures of long spans from sums (docs/decisions/0041); runs of a hash; the
-- last check of the audit chain (tests/database/access/test_figures.py).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Sums of execution_stats.
--
-- An hour of a busy installation has thousands of rows in execution_stats, one
-- for each tool, principal and ending, and a week has a million. Two tables have
-- their sums. records_work() writes them in the transaction that writes the
-- counts, so they never differ. An hour's sum has no names, so a week is a few
-- thousand rows. A day's sum has one name, so a week is a few rows a tool.

CREATE TABLE execution_hours (
	hour timestamptz NOT NULL,	-- as in execution_stats
	kind text NOT NULL,
	listener text NOT NULL,
	outcome text NOT NULL,
	failure text NOT NULL,
	calls bigint NOT NULL,
	duration_us bigint NOT NULL,
	duration_max_us bigint NOT NULL,
	cpu_us bigint NOT NULL,
	PRIMARY KEY (hour, kind, listener, outcome, failure)
);

CREATE TABLE execution_days (
	part text NOT NULL CHECK (part IN ('tool', 'principal')),
	day timestamptz NOT NULL,	-- its first moment, in UTC
	name text COLLATE "C" NOT NULL,	-- the tool's, or the principal's
	kind text NOT NULL,
	listener text NOT NULL,
	outcome text NOT NULL,
	calls bigint NOT NULL,
	duration_us bigint NOT NULL,
	PRIMARY KEY (part, day, name, kind, listener, outcome)
);

-- Removes old sums without reading young ones.
CREATE INDEX execution_days_day ON execution_days (day);

-- Adds counts to execution_stats and to the sums. p_rows: at most one row for
-- each key of execution_stats. Rows of each table are written in the order of
-- their keys, and the tables always in this order: two processes that count at
-- once wait for each other and never both. A sum of times ends at 9e15 us, as in
-- records_work().
CREATE FUNCTION execution_count(p_rows execution_stats[]) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO execution_stats AS s
	SELECT * FROM unnest(p_rows) r
	ORDER BY r.hour, r.tool, r.principal, r.listener, r.kind, r.outcome, r.failure
	ON CONFLICT (hour, tool, principal, listener, kind, outcome, failure)
	DO UPDATE SET calls = s.calls + excluded.calls,
	    duration_us = least(s.duration_us + excluded.duration_us, 9e15::bigint),
	    duration_max_us = greatest(s.duration_max_us, excluded.duration_max_us),
	    cpu_us = least(s.cpu_us + excluded.cpu_us, 9e15::bigint);
	PERFORM execution_sum(p_rows);
END $$;

-- Adds counts to the sums alone.
CREATE FUNCTION execution_sum(p_rows execution_stats[]) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO execution_hours AS s
	SELECT r.hour, r.kind, r.listener, r.outcome, r.failure, sum(r.calls),
	    least(sum(r.duration_us), 9e15), max(r.duration_max_us),
	    least(sum(r.cpu_us), 9e15)
	FROM unnest(p_rows) r GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
	ON CONFLICT (hour, kind, listener, outcome, failure)
	DO UPDATE SET calls = s.calls + excluded.calls,
	    duration_us = least(s.duration_us + excluded.duration_us, 9e15::bigint),
	    duration_max_us = greatest(s.duration_max_us, excluded.duration_max_us),
	    cpu_us = least(s.cpu_us + excluded.cpu_us, 9e15::bigint);
	INSERT INTO execution_days AS s
	SELECT p.part, date_trunc('day', r.hour, 'UTC'), p.name, r.kind, r.listener,
	    r.outcome, sum(r.calls), least(sum(r.duration_us), 9e15)
	FROM unnest(p_rows) r CROSS JOIN LATERAL (VALUES ('tool', r.tool),
	    ('principal', r.principal COLLATE "C")) p (part, name)
	GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
	ON CONFLICT (part, day, name, kind, listener, outcome)
	DO UPDATE SET calls = s.calls + excluded.calls,
	    duration_us = least(s.duration_us + excluded.duration_us, 9e15::bigint);
END $$;

-- What is counted already. The lock keeps processes from counting until these
-- sums are there.
LOCK TABLE execution_stats IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO execution_hours
    SELECT hour, kind, listener, outcome, failure, sum(calls),
	least(sum(duration_us), 9e15), max(duration_max_us), least(sum(cpu_us), 9e15)
    FROM execution_stats GROUP BY 1, 2, 3, 4, 5;
INSERT INTO execution_days
    SELECT 'tool', date_trunc('day', hour, 'UTC'), tool, kind, listener, outcome,
	sum(calls), least(sum(duration_us), 9e15)
    FROM execution_stats GROUP BY 2, 3, 4, 5, 6;
INSERT INTO execution_days
    SELECT 'principal', date_trunc('day', hour, 'UTC'), principal, kind, listener,
	outcome, sum(calls), least(sum(duration_us), 9e15)
    FROM execution_stats GROUP BY 2, 3, 4, 5, 6;

-- Replaces the function of 0015: counts by execution_count().
CREATE OR REPLACE FUNCTION records_work(p_rows bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
	calls uuid[];
	counts execution_stats[];
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
		SELECT date_trunc('hour', (row).created_at, 'UTC'), (row).tool,
		    (row).principal, (row).listener, (row).kind, (row).outcome,
		    coalesce((row).failure, ''), count(*), least(sum(d.us), 9e15)::bigint,
		    least(max(d.us), 9e15)::bigint,
		    least(sum(coalesce((row).cpu_us, 0)), 9e15)::bigint
		FROM x, LATERAL (SELECT greatest(0, (extract(epoch FROM (row).ended_at
		    - coalesce((row).started_at, (row).created_at)) * 1000000)::bigint) AS us) d
		GROUP BY 1, 2, 3, 4, 5, 6, 7
	), found AS (
		INSERT INTO execution_index
		SELECT (row).id, (row).created_at, (row).tool, (row).principal,
		    (row).listener, (row).kind, (row).outcome, (row).failure,
		    (row).version_id, (SELECT v.server_id FROM tool_versions v
		    WHERE v.id = (row).version_id), (row).trace_id, execution_lexemes(row)
		FROM x ON CONFLICT DO NOTHING
	)
	SELECT (SELECT count(*) FROM taken), ARRAY(SELECT (row).id FROM x
	    WHERE (row).kind IN ('tool', 'management')
	    AND (row).ended_at > clock_timestamp() - interval '1 day'),
	    ARRAY(SELECT c::execution_stats FROM counted c) INTO n, calls, counts;
	PERFORM execution_count(counts);
	PERFORM telemetry_put(calls);
	RETURN n;
END $$;

-- Replaces the function of 0002: takes the call out of the sums, too.
CREATE OR REPLACE FUNCTION execution_unpresume(p_id uuid, p_epoch uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x executions;
	us bigint;
	h timestamptz;
	d timestamptz;
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
	h := date_trunc('hour', x.created_at, 'UTC');
	d := date_trunc('day', x.created_at, 'UTC');
	UPDATE execution_stats SET calls = calls - 1,
	    duration_us = greatest(0, duration_us - us)
	WHERE hour = h AND tool = x.tool
	    AND principal = x.principal AND listener = x.listener AND kind = x.kind
	    AND outcome = x.outcome AND failure = coalesce(x.failure, '');
	-- The counts may be older than what is kept of them: then there are no sums.
	IF FOUND THEN
		DELETE FROM execution_stats
		WHERE hour = h AND tool = x.tool
		    AND principal = x.principal AND listener = x.listener AND kind = x.kind
		    AND outcome = x.outcome AND failure = coalesce(x.failure, '') AND calls < 1;
		UPDATE execution_hours SET calls = calls - 1,
		    duration_us = greatest(0, duration_us - us)
		WHERE hour = h AND kind = x.kind AND listener = x.listener
		    AND outcome = x.outcome AND failure = coalesce(x.failure, '');
		DELETE FROM execution_hours
		WHERE hour = h AND kind = x.kind AND listener = x.listener
		    AND outcome = x.outcome AND failure = coalesce(x.failure, '') AND calls < 1;
		-- 'principal' is first: the order of execution_sum()
		UPDATE execution_days SET calls = calls - 1,
		    duration_us = greatest(0, duration_us - us)
		WHERE part = 'principal' AND day = d AND name = x.principal AND kind = x.kind
		    AND listener = x.listener AND outcome = x.outcome;
		UPDATE execution_days SET calls = calls - 1,
		    duration_us = greatest(0, duration_us - us)
		WHERE part = 'tool' AND day = d AND name = x.tool AND kind = x.kind
		    AND listener = x.listener AND outcome = x.outcome;
		DELETE FROM execution_days
		WHERE (part, day, name) IN (('principal', d, x.principal), ('tool', d, x.tool))
		    AND kind = x.kind AND listener = x.listener AND outcome = x.outcome
		    AND calls < 1;
	END IF;
	DELETE FROM execution_index WHERE id = p_id;
	INSERT INTO execution_queue VALUES (p_id, x.tool, x.created_at);
	RETURN true;
END $$;

-- Replaces the function of sql/schema/records.sql.
CREATE OR REPLACE FUNCTION records_rebuild() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	LOCK TABLE mcpbox.execution_queue IN ACCESS EXCLUSIVE MODE;
	TRUNCATE mcpbox.execution_queue, mcpbox.execution_stats, mcpbox.execution_hours,
	    mcpbox.execution_days, mcpbox.execution_index;
	INSERT INTO mcpbox.execution_queue SELECT id, tool, created_at FROM mcpbox.executions
	    WHERE state = 'closed';
END $$;

-- Replaces the function of sql/schema/records.sql. Sums are kept as long as the
-- counts.
CREATE OR REPLACE FUNCTION records_expire(p_rows bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	kept constant bigint := 100000;	-- rows of the activity log
	since timestamptz := clock_timestamp()
	    - setting('log_retention_days')::int * interval '1 day';
	counted timestamptz := clock_timestamp() - interval '400 days';
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
	    FROM execution_stats s WHERE s.hour < counted
	    LIMIT p_rows FOR UPDATE SKIP LOCKED));
	DELETE FROM execution_hours WHERE ctid = ANY (ARRAY(SELECT s.ctid
	    FROM execution_hours s WHERE s.hour < counted
	    LIMIT p_rows FOR UPDATE SKIP LOCKED));
	DELETE FROM execution_days WHERE ctid = ANY (ARRAY(SELECT s.ctid
	    FROM execution_days s WHERE s.day < counted - interval '1 day'
	    LIMIT p_rows FOR UPDATE SKIP LOCKED));
	RETURN n;
END $$;

---------------------------------------------------------------------------
-- Figures.

-- Returns counts of hours from p_since to before p_until. If no name is given,
-- they are the sums; else the rows of this tool, or this principal, make them.
CREATE FUNCTION execution_hours_of(p_since timestamptz, p_until timestamptz, p_tool text,
    p_principal text, p_listener text, p_kind text, p_outcome text)
RETURNS SETOF execution_hours
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
	IF p_tool = '' AND p_principal = '' THEN
		RETURN QUERY SELECT * FROM execution_hours s
		WHERE s.hour >= p_since AND s.hour < p_until
		    AND (p_listener = '' OR s.listener = p_listener)
		    AND (p_kind = '' OR s.kind = p_kind)
		    AND (p_outcome = '' OR s.outcome = p_outcome);
		RETURN;
	END IF;
	RETURN QUERY SELECT s.hour, s.kind, s.listener, s.outcome, s.failure,
	    sum(s.calls)::bigint, least(sum(s.duration_us), 9e15)::bigint,
	    max(s.duration_max_us), least(sum(s.cpu_us), 9e15)::bigint
	FROM execution_stats s WHERE s.hour >= p_since AND s.hour < p_until
	    AND (p_tool = '' OR s.tool = p_tool)
	    AND (p_principal = '' OR s.principal = p_principal)
	    AND (p_listener = '' OR s.listener = p_listener)
	    AND (p_kind = '' OR s.kind = p_kind)
	    AND (p_outcome = '' OR s.outcome = p_outcome)
	GROUP BY 1, 2, 3, 4, 5;
END $$;

-- Returns the calls of each tool, or of each principal (p_part), in the hours from
-- p_since to before p_until. If no name is given, whole days come from the sums,
-- and only the hours before the first and after the last day from the counts.
CREATE FUNCTION execution_names(p_part text, p_since timestamptz, p_until timestamptz,
    p_tool text, p_principal text, p_listener text, p_kind text, p_outcome text)
RETURNS TABLE (name text, calls bigint, errors bigint, duration_us numeric)
LANGUAGE plpgsql STABLE ROWS 10000 SET search_path = mcpbox, pg_temp
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	-- the first and the last midnight (UTC) of the span
	first timestamptz := date_trunc('day', p_since + interval '24 hours'
	    - interval '1 microsecond', 'UTC');
	last timestamptz := date_trunc('day', p_until, 'UTC');
BEGIN
	IF p_tool <> '' OR p_principal <> '' OR first >= last THEN
		first := p_until;
		last := p_until;
	END IF;
	RETURN QUERY SELECT u.name, sum(u.calls)::bigint,
	    coalesce(sum(u.calls) FILTER (WHERE u.outcome <> 'done'), 0)::bigint,
	    sum(u.duration_us)
	FROM (SELECT d.name, d.listener, d.kind, d.outcome, d.calls, d.duration_us
	    FROM execution_days d
	    WHERE d.part = p_part AND d.day >= first AND d.day < last
	    UNION ALL SELECT CASE p_part WHEN 'tool' THEN s.tool ELSE s.principal END,
	    s.listener, s.kind, s.outcome, s.calls, s.duration_us
	    FROM execution_stats s
	    WHERE s.hour >= p_since AND s.hour < first
	    AND (p_tool = '' OR s.tool = p_tool)
	    AND (p_principal = '' OR s.principal = p_principal)
	    UNION ALL SELECT CASE p_part WHEN 'tool' THEN s.tool ELSE s.principal END,
	    s.listener, s.kind, s.outcome, s.calls, s.duration_us
	    FROM execution_stats s WHERE s.hour >= last AND s.hour < p_until
	    AND (p_tool = '' OR s.tool = p_tool)
	    AND (p_principal = '' OR s.principal = p_principal)) u
	WHERE (p_listener = '' OR u.listener = p_listener)
	    AND (p_kind = '' OR u.kind = p_kind)
	    AND (p_outcome = '' OR u.outcome = p_outcome)
	GROUP BY 1;
END $$;

-- Returns the figures that name no tool and no principal, as one object: from
-- p_since, the beginning of an hour, to before p_until.
CREATE FUNCTION execution_totals(p_since timestamptz, p_until timestamptz,
    p_period text, p_tool text, p_principal text, p_listener text, p_kind text,
    p_outcome text) RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	WITH s AS MATERIALIZED (
		SELECT * FROM execution_hours_of(p_since, p_until, p_tool, p_principal,
		    p_listener, p_kind, p_outcome)
	)
	SELECT json_build_object(
	    'since', to_char(p_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'until', to_char(p_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	    'period', p_period,
	    'total', (SELECT json_build_object('calls', coalesce(sum(calls), 0),
	        'errors', coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0),
	        'duration_ms_average', (sum(duration_us) / nullif(sum(calls), 0) / 1000)::bigint,
	        'duration_ms_max', max(duration_max_us) / 1000,
	        'cpu_ms', (coalesce(sum(cpu_us), 0) / 1000)::bigint) FROM s),
	    'periods', (SELECT coalesce(json_agg(json_build_object('at',
	        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	        'calls', calls, 'errors', errors, 'duration_ms_average', ms) ORDER BY at), '[]')
	        FROM (SELECT date_trunc(p_period, hour, 'UTC') AS at, sum(calls) AS calls,
	        coalesce(sum(calls) FILTER (WHERE outcome <> 'done'), 0) AS errors,
	        (sum(duration_us) / sum(calls) / 1000)::bigint AS ms FROM s GROUP BY 1) p),
	    'listeners', (SELECT coalesce(json_object_agg(listener, calls ORDER BY listener), '{}')
	        FROM (SELECT listener, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'kinds', (SELECT coalesce(json_object_agg(kind, calls ORDER BY kind), '{}')
	        FROM (SELECT kind, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'outcomes', (SELECT coalesce(json_object_agg(outcome, calls ORDER BY outcome), '{}')
	        FROM (SELECT outcome, sum(calls) AS calls FROM s GROUP BY 1) p),
	    'failures', (SELECT coalesce(json_object_agg(failure, calls ORDER BY failure), '{}')
	        FROM (SELECT failure, sum(calls) AS calls FROM s WHERE failure <> ''
	        GROUP BY 1) p))
$$;

-- Replaces the function of sql/schema/records.sql: reads sums where it can.
CREATE OR REPLACE FUNCTION execution_statistics(p_since timestamptz, p_until timestamptz,
    p_period text, p_tool text, p_principal text, p_listener text, p_kind text,
    p_outcome text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	f timestamptz := coalesce(p_since, coalesce(p_until, clock_timestamp())
	    - interval '24 hours');
	t timestamptz := coalesce(p_until, clock_timestamp());
	b timestamptz := date_trunc('hour', f, 'UTC');
	step text := p_period;
	s json;
	total json;
	none boolean;
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
	s := execution_totals(b, t, step, p_tool, p_principal, p_listener, p_kind, p_outcome);
	total := s -> 'total';
	none := (total ->> 'calls')::bigint = 0;
	RETURN json_build_object('since', s -> 'since', 'until', s -> 'until',
	    'period', step, 'total', total, 'periods', s -> 'periods',
	    'tools', CASE WHEN p_tool = '' THEN (SELECT coalesce(json_agg(json_build_object(
	        'tool', name, 'calls', calls, 'errors', errors, 'duration_ms_average',
	        (duration_us / calls / 1000)::bigint) ORDER BY calls DESC, name), '[]')
	        FROM (SELECT * FROM execution_names('tool', b, t, p_tool, p_principal,
	        p_listener, p_kind, p_outcome) ORDER BY calls DESC, name LIMIT 20) p)
	        WHEN none THEN '[]' ELSE json_build_array(json_build_object('tool', p_tool,
	        'calls', total -> 'calls', 'errors', total -> 'errors',
	        'duration_ms_average', total -> 'duration_ms_average')) END,
	    'principals', CASE WHEN p_principal = '' THEN (SELECT coalesce(json_agg(
	        json_build_object('principal', name, 'calls', calls, 'errors', errors)
	        ORDER BY calls DESC, name), '[]')
	        FROM (SELECT * FROM execution_names('principal', b, t, p_tool, p_principal,
	        p_listener, p_kind, p_outcome) ORDER BY calls DESC, name LIMIT 20) p)
	        WHEN none THEN '[]' ELSE json_build_array(json_build_object('principal',
	        p_principal, 'calls', total -> 'calls', 'errors', total -> 'errors')) END,
	    'listeners', s -> 'listeners', 'kinds', s -> 'kinds',
	    'outcomes', s -> 'outcomes', 'failures', s -> 'failures')::text;
END $$;

-- Replaces the function of sql/schema/figures.sql: servers by the same sums, and
-- reads the calls of each tool once.
CREATE OR REPLACE FUNCTION dashboard(p_period text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	word text := coalesce(nullif(p_period, ''), '24h');
	span interval := CASE word WHEN '1h' THEN interval '1 hour'
	    WHEN '6h' THEN interval '6 hours' WHEN '24h' THEN interval '24 hours'
	    WHEN '7d' THEN interval '7 days' END;
	t timestamptz := clock_timestamp();
	f timestamptz := date_trunc('hour', t - span, 'UTC');
	calls json;
	out text;
BEGIN
	IF span IS NULL THEN
		PERFORM fail('invalid_params', 'period is 1h, 6h, 24h or 7d');
	END IF;
	calls := execution_totals(f, t, 'hour', '', '', '', 'tool', '');
	WITH names AS MATERIALIZED (
		SELECT * FROM execution_names('tool', f, t, '', '', '', 'tool', '')
	)
	SELECT json_build_object('period', word, 'since', calls -> 'since', 'until', calls -> 'until',
	    'servers', (SELECT json_build_object('all', count(*),
	        'running', count(*) FILTER (WHERE status = 'running')) FROM servers
	        WHERE deleted_at IS NULL),
	    'tools', (SELECT json_build_object('all', count(*),
	        'serving', count(*) FILTER (WHERE serving_version IS NOT NULL AND enabled),
	        'disabled', count(*) FILTER (WHERE NOT enabled)) FROM tools
	        WHERE object = 'tool' AND deleted_at IS NULL),
	    'prompts', (SELECT count(*) FROM tools WHERE object = 'prompt' AND deleted_at IS NULL),
	    'resources', (SELECT count(*) FROM tools WHERE object = 'resource' AND deleted_at IS NULL),
	    'pending', (SELECT json_build_object('all', coalesce(sum(n), 0),
	        'tool', coalesce(sum(n) FILTER (WHERE kind = 'tool'), 0),
	        'module', coalesce(sum(n) FILTER (WHERE kind = 'module'), 0),
	        'network', coalesce(sum(n) FILTER (WHERE kind = 'network'), 0),
	        'call', coalesce(sum(n) FILTER (WHERE kind = 'call'), 0))
	        FROM (SELECT kind, count(*) AS n FROM approval_requests
	        WHERE state = 'pending' GROUP BY 1) p),
	    'calls', calls -> 'total', 'calls_over_time', calls -> 'periods',
	    'outcomes', calls -> 'outcomes', 'failures', calls -> 'failures',
	    'top_tools', (SELECT coalesce(json_agg(json_build_object('tool', n.name,
	        'calls', n.calls, 'errors', n.errors, 'duration_ms_average',
	        (n.duration_us / n.calls / 1000)::bigint) ORDER BY n.calls DESC, n.name), '[]')
	        FROM (SELECT * FROM names ORDER BY calls DESC, name LIMIT 5) n),
	    'busiest_servers', (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name,
	        'status', s.status, 'calls', c.calls, 'errors', c.errors)
	        ORDER BY c.calls DESC, s.name), '[]')
	        FROM (SELECT o.server_id, sum(x.calls) AS calls, sum(x.errors) AS errors
	        FROM names x JOIN tool_names n ON n.exposed_name = x.name
	        JOIN tools o ON o.id = n.tool_id
	        GROUP BY 1 ORDER BY 2 DESC LIMIT 10) c JOIN servers s ON s.id = c.server_id),
	    'recent_errors', (SELECT coalesce(json_agg(json_build_object('id', r.id, 'tool', r.tool,
	        'principal', r.principal, 'outcome', r.outcome, 'failure_mode', r.failure,
	        'created_at', to_char(r.created_at AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY r.created_at DESC, r.id DESC), '[]')
	        FROM (SELECT e.* FROM unnest(ARRAY['failed', 'killed', 'refused', 'lost']) o(outcome)
	        CROSS JOIN LATERAL executions_of_outcome(o.outcome, f, 10) e
	        ORDER BY e.created_at DESC, e.id DESC LIMIT 10) r))::text INTO out;
	RETURN out;
END $$;


---------------------------------------------------------------------------
-- Lists.

-- Finds the version of a hash, and the runs of that version.
CREATE INDEX tool_versions_hash_idx ON tool_versions (hash);
CREATE INDEX execution_index_version_idx ON execution_index (version_id, created_at, id)
    WHERE version_id IS NOT NULL;

---------------------------------------------------------------------------
-- The last check of the whole audit chain, by mcpboxctl audit verify.

-- The owner of the database can change this row: it is shown and proves nothing.
CREATE TABLE audit_verdict (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	at timestamptz NOT NULL,
	rows bigint NOT NULL CHECK (rows >= 0),
	anchors bigint NOT NULL CHECK (anchors >= 0),
	anchored_seq bigint NOT NULL CHECK (anchored_seq >= 0),
	problems bigint NOT NULL CHECK (problems >= 0),
	journal_lines bigint NOT NULL CHECK (journal_lines >= 0)
);

CREATE FUNCTION audit_verdict_store(p_rows bigint, p_anchors bigint, p_anchored bigint,
    p_problems bigint, p_lines bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	INSERT INTO audit_verdict AS v (at, rows, anchors, anchored_seq, problems, journal_lines)
	VALUES (clock_timestamp(), p_rows, p_anchors, p_anchored, p_problems, p_lines)
	ON CONFLICT (one) DO UPDATE SET at = excluded.at, rows = excluded.rows,
	    anchors = excluded.anchors, anchored_seq = excluded.anchored_seq,
	    problems = excluded.problems, journal_lines = excluded.journal_lines
$$;

-- Returns null if the chain was never verified.
CREATE FUNCTION audit_verdict_json() RETURNS json
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('at', to_char(v.at AT TIME ZONE 'UTC',
	    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'holds', v.problems = 0, 'rows', v.rows,
	    'anchors', v.anchors, 'anchored_seq', v.anchored_seq, 'problems', v.problems,
	    'journal_lines', v.journal_lines) FROM audit_verdict v
$$;

---------------------------------------------------------------------------
-- Notifications.

-- Replaces the function of 0019: also returns the id of the notification.
DROP FUNCTION notification_take;

-- Takes all requests of one target's queue for this claim, if the target is due.
-- Returns at most p_rows requests, the oldest first, with the number of all; no
-- row: nothing is to be told. The arrays name the targets of the document, and the
-- secret of each ('': none), whose stored value is returned with the first row.
-- Requests that are decided by now leave the queue untold. A claim is void after
-- two minutes; the run of a claim ends after one. notification: its id, made of
-- the target's name and of all requests. So each try to tell of the same requests
-- has the same id, by which a receiver knows a repetition, and another set of
-- requests has another.
CREATE FUNCTION notification_take(p_claim uuid, p_rows bigint, p_names text[],
    p_servers text[], p_keys text[])
RETURNS TABLE (target text, id uuid, line text, item text, total bigint, secret bytea,
    notification uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
#variable_conflict use_column
DECLARE
	chosen text;
	place int;
	made uuid;
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
	SELECT left(encode(sha256(convert_to(chosen || ' ' || string_agg(q.request::text, ' '
	    ORDER BY q.request), 'UTF8')), 'hex'), 32)::uuid INTO made
	FROM notification_queue q WHERE q.target = chosen AND q.claim = p_claim;
	RETURN QUERY SELECT chosen, a.id, notification_line(a),
	    (approval_item(a)::jsonb - 'arguments' - 'notes' - 'reason')::text,
	    count(*) OVER (), (SELECT s.value FROM server_secrets s
	    JOIN servers v ON v.id = s.server_id
	    WHERE v.name = p_servers[place] AND s.key = p_keys[place]), made
	FROM notification_queue q JOIN approval_requests a ON a.id = q.request
	WHERE q.target = chosen AND q.claim = p_claim
	ORDER BY a.requested_at, a.id LIMIT p_rows;
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION execution_count, execution_sum, execution_hours_of,
    execution_names, execution_totals, audit_verdict_store, audit_verdict_json,
    notification_take FROM PUBLIC;
GRANT EXECUTE ON FUNCTION execution_hours_of, execution_names, execution_totals,
    audit_verdict_store, audit_verdict_json, notification_take TO mcpbox_app;
GRANT SELECT ON execution_hours, execution_days, audit_verdict TO mcpbox_app;
