-- Tasks (MCP extension io.modelcontextprotocol/tasks): calls whose client was
-- promised an answer for later. A task is committed together with its intent, and
-- both with synchronous_commit on, before the client hears of it: the promise must
-- outlive every process, and PostgreSQL's own crash.

CREATE TABLE tasks (
	id uuid PRIMARY KEY,	-- that of its execution: 128 random bits
	principal text NOT NULL CHECK (actor_ok(principal)),
	listener text NOT NULL CHECK (listener IN ('local', 'tunnel')),
	tool text COLLATE "C" NOT NULL,
	owner_epoch uuid NOT NULL,	-- of the sandbox that runs it
	state text NOT NULL DEFAULT 'working' CHECK (state IN
	    ('working', 'input_required', 'completed', 'failed', 'cancelled')),
	declared int NOT NULL,		-- the client's capabilities: what it may be asked
	cancelled boolean NOT NULL DEFAULT false,	-- its client wants it to end
	told boolean NOT NULL DEFAULT false,	-- after_questions: its client has heard of it
	question int NOT NULL DEFAULT 0,	-- number of the last questions
	questions json,		-- those that are open, by the client's keys
	answers text NOT NULL DEFAULT '',	-- "key":{...} members, by the tool's keys
	failure text,
	message text,
	result text CHECK (length(result) <= 2097152),
	meta text CHECK (length(meta) <= 2097152),
	ttl_ms bigint NOT NULL CHECK (ttl_ms > 0),
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	CHECK ((state = 'input_required') = (questions IS NOT NULL)),
	CHECK ((state = 'failed') = (failure IS NOT NULL)),
	CHECK ((state = 'completed') = (result IS NOT NULL))
);

CREATE INDEX ON tasks (principal, listener, state);
CREATE INDEX ON tasks (expires_at);
CREATE INDEX ON tasks (owner_epoch) WHERE state IN ('working', 'input_required');

-- Tells every admind of a task. The admind whose sandbox runs the task acts,
-- and all of them tell their gateways. p_what: 'answered', 'cancelled', or '-'.
CREATE FUNCTION task_tell(p tasks, p_what text) RETURNS void LANGUAGE sql AS $$
	SELECT pg_notify('mcpbox_task', p.id::text || ' ' || p_what || ' ' || p.state
	    || ' ' || p.listener || ' ' || p.principal)
$$;

-- Makes a task and the intent of its call. Returns what call_open() returns, or
-- 'limit' if this principal has p_active tasks that work, or p_kept tasks in
-- all.
CREATE FUNCTION task_open(p_id uuid, p_version uuid, p_hash bytea, p_epoch uuid,
    p_limits timestamptz, p_principal text, p_listener text, p_tool text,
    p_args_sha256 bytea, p_arguments text, p_client text, p_protocol text,
    p_created timestamptz, p_deadline timestamptz, p_declared int,
    p_ttl_ms bigint, p_active bigint, p_kept bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	working bigint;
	kept bigint;
	why text;
BEGIN
	-- admind asks for withdrawn calls by another connection than
	-- this: so until this commits nothing of the version may be withdrawn, and
	-- what was withdrawn before is seen. Locks in the usual order.
	PERFORM 1 FROM servers s WHERE s.id = (SELECT server_id FROM tool_versions
	    WHERE id = p_version) FOR SHARE;
	PERFORM 1 FROM tools t WHERE t.id = (SELECT tool_id FROM tool_versions
	    WHERE id = p_version) FOR SHARE;
	PERFORM 1 FROM tool_versions WHERE id = p_version FOR SHARE;
	-- Two at once must not both be the last that is allowed.
	PERFORM pg_advisory_xact_lock(hashtextextended('mcpbox task ' || p_listener
	    || ' ' || p_principal, 0));
	SELECT count(*) FILTER (WHERE state IN ('working', 'input_required')), count(*)
	    INTO working, kept FROM tasks
	    WHERE principal = p_principal AND listener = p_listener;
	IF working >= p_active OR kept >= p_kept THEN
		RETURN 'limit';
	END IF;
	why := call_open(p_id, p_version, p_hash, p_epoch, p_limits, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline);
	IF why = 'ok' THEN
		INSERT INTO tasks (id, principal, listener, tool, owner_epoch, declared,
		    ttl_ms, created_at, updated_at, expires_at)
		VALUES (p_id, p_principal, p_listener, p_tool, p_epoch, p_declared,
		    p_ttl_ms, p_created, p_created,
		    p_created + p_ttl_ms * interval '1 millisecond');
	END IF;
	RETURN why;
END $$;

-- Notes that the client has heard of its task. A client hears of a task that
-- asked nothing (task mode after_questions), too.
CREATE FUNCTION task_told(p_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	UPDATE tasks SET told = true WHERE id = p_id;
END $$;

-- Stores questions of a running task: {key: {method, params}}. A question of a
-- kind that the client did not declare is answered here, with an error. The
-- other questions are open from now on, under keys that are never used again in
-- this task. Returns the answers if all questions have one (also when the same
-- questions come once more, after a reconnection). Otherwise it returns null,
-- because there is nothing to send yet.
CREATE FUNCTION task_ask(p_id uuid, p_epoch uuid, p_number bigint, p_questions text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tasks;
	q record;
	open text[] := '{}';
	answered text[] := '{}';
	method text;
	need int;
BEGIN
	SELECT * INTO t FROM tasks WHERE id = p_id AND owner_epoch = p_epoch FOR UPDATE;
	IF NOT FOUND OR t.state NOT IN ('working', 'input_required')
	    OR p_number < t.question THEN
		RETURN NULL;
	END IF;
	IF p_number = t.question THEN
		RETURN CASE WHEN t.questions IS NULL THEN '{' || t.answers || '}' END;
	END IF;
	FOR q IN SELECT key, value FROM json_each(p_questions::json) LOOP
		method := q.value ->> 'method';
		-- enum client_capability
		need := CASE method
		    WHEN 'elicitation/create' THEN
		        CASE WHEN q.value -> 'params' ->> 'mode' = 'url' THEN 2 ELSE 1 END
		    WHEN 'sampling/createMessage' THEN
		        CASE WHEN q.value -> 'params' -> 'tools' IS NULL
		        AND q.value -> 'params' -> 'toolChoice' IS NULL THEN 4 ELSE 12 END
		    WHEN 'roots/list' THEN 16 END;
		IF need IS NOT NULL AND t.declared & need = need THEN
			open := open || (to_json(p_number || '-' || q.key)::text || ':'
			    || q.value::text);
		ELSE
			answered := answered || (to_json(q.key)::text || ':' || json_build_object(
			    'error', json_build_object('code', -32602, 'message',
			    'the client can not do ' || coalesce(method, 'this')))::text);
		END IF;
	END LOOP;
	UPDATE tasks SET question = p_number,
	    questions = CASE WHEN open <> '{}' THEN
	        ('{' || array_to_string(open, ',') || '}')::json END,
	    answers = array_to_string(answered, ','),
	    state = CASE WHEN open <> '{}' THEN 'input_required' ELSE 'working' END,
	    updated_at = clock_timestamp()
	WHERE id = p_id RETURNING * INTO t;
	PERFORM task_tell(t, '-');
	RETURN CASE WHEN t.questions IS NULL THEN '{' || t.answers || '}' END;
EXCEPTION WHEN data_exception THEN
	PERFORM fail('bad_result', 'the questions are no JSON that can be kept');
END $$;

-- Returns a task's row and locks it, if this principal may see it.
CREATE FUNCTION task_find(p_id uuid, p_principal text, p_listener text)
RETURNS tasks LANGUAGE plpgsql AS $$
DECLARE
	t mcpbox.tasks;
BEGIN
	SELECT * INTO t FROM mcpbox.tasks WHERE id = p_id AND principal = p_principal
	    AND listener = p_listener AND expires_at > clock_timestamp() FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM mcpbox.fail('unknown_task', 'you have no such task');
	END IF;
	RETURN t;
END $$;

-- Stores answers of the client, {key: result}, perhaps not to all questions.
-- Keys that are not open are ignored, as the extension says.
CREATE FUNCTION task_answer(p_id uuid, p_principal text, p_listener text,
    p_answers text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tasks := task_find(p_id, p_principal, p_listener);
	q record;
	given json;
	open text[] := '{}';
	answered text[] := '{}';
	key text;
BEGIN
	IF json_typeof(p_answers::json) <> 'object' THEN
		PERFORM fail('invalid_params', 'the responses are no object');
	END IF;
	IF t.state <> 'input_required' THEN
		RETURN;
	END IF;
	FOR q IN SELECT j.key AS key, j.value AS value FROM json_each(t.questions) j LOOP
		-- as text: the value as it was sent
		given := p_answers::json -> q.key;
		IF given IS NULL THEN
			open := open || (to_json(q.key)::text || ':' || q.value::text);
		ELSIF json_typeof(given) <> 'object' THEN
			PERFORM fail('invalid_params', 'the response to ' || q.key
			    || ' is no object');
		ELSE
			key := substr(q.key, strpos(q.key, '-') + 1);
			answered := answered || (to_json(key)::text || ':{"result":'
			    || given::text || '}');
		END IF;
	END LOOP;
	IF answered = '{}' THEN
		RETURN;
	END IF;
	UPDATE tasks SET questions = CASE WHEN open <> '{}' THEN
	        ('{' || array_to_string(open, ',') || '}')::json END,
	    answers = concat_ws(',', nullif(t.answers, ''), array_to_string(answered, ',')),
	    state = CASE WHEN open <> '{}' THEN 'input_required' ELSE 'working' END,
	    updated_at = clock_timestamp()
	WHERE id = p_id RETURNING * INTO t;
	IF length(t.answers) > 1000000 THEN
		PERFORM fail('too_large', 'the answers are too large');
	END IF;
	PERFORM task_tell(t, CASE WHEN t.questions IS NULL THEN 'answered' ELSE '-' END);
EXCEPTION WHEN data_exception THEN
	PERFORM fail('invalid_params', 'the responses can not be read');
END $$;

-- Notes that the client wants the task to end. A repetition is harmless. The
-- record of the execution says how the task ended.
CREATE FUNCTION task_cancel(p_id uuid, p_principal text, p_listener text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tasks := task_find(p_id, p_principal, p_listener);
BEGIN
	IF t.state IN ('working', 'input_required') THEN
		UPDATE tasks SET cancelled = true WHERE id = p_id;
		PERFORM task_tell(t, 'cancelled');
	END IF;
END $$;

-- Ends a task, once. p_state is completed or failed, by the meaning of the
-- execution's failure for a client. If the task was to be cancelled and did not
-- end by itself, its state is cancelled. A result that was dropped on its way
-- counts as none.
CREATE FUNCTION task_end(p_id uuid, p_state text, p_outcome text, p_failure text,
    p_message text, p_result text, p_meta text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	t mcpbox.tasks;
	s text := p_state;
BEGIN
	SELECT * INTO t FROM mcpbox.tasks WHERE id = p_id
	    AND state IN ('working', 'input_required') FOR UPDATE;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	IF t.cancelled AND p_outcome NOT IN ('done', 'failed') THEN
		s := 'cancelled';
	ELSIF coalesce(p_result, '') = '' THEN
		s := 'failed';
	END IF;
	UPDATE mcpbox.tasks SET state = s, questions = NULL, answers = '',
	    failure = CASE WHEN s = 'failed' THEN coalesce(p_failure, 'lost') END,
	    message = CASE WHEN s = 'failed' THEN left(p_message, 300) END,
	    result = CASE WHEN s = 'completed' THEN p_result END,
	    meta = CASE WHEN s = 'completed' THEN p_meta END,
	    updated_at = clock_timestamp()
	WHERE id = p_id RETURNING * INTO t;
	PERFORM mcpbox.task_tell(t, '-');
END $$;

-- Ends tasks whose execution was closed without them (because its sandbox died,
-- for example), and returns how many. A task whose time is over is cancelled if
-- it still works, and deleted once it has ended.
CREATE FUNCTION tasks_sweep() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r record;
	n bigint := 0;
BEGIN
	FOR r IN SELECT t.id, x.outcome, x.failure FROM tasks t
	    LEFT JOIN executions x ON x.id = t.id
	    WHERE t.state IN ('working', 'input_required')
	    AND (x.id IS NULL OR x.state = 'closed') LOOP
		PERFORM task_end(r.id, 'failed', coalesce(r.outcome, 'lost'), r.failure,
		    NULL, NULL, NULL);
		n := n + 1;
	END LOOP;
	PERFORM task_tell(t, 'cancelled') FROM tasks t
	    WHERE t.state IN ('working', 'input_required') AND NOT t.cancelled
	    AND t.expires_at < clock_timestamp();
	UPDATE tasks SET cancelled = true
	    WHERE state IN ('working', 'input_required') AND NOT cancelled
	    AND expires_at < clock_timestamp();
	DELETE FROM tasks WHERE expires_at < clock_timestamp()
	    AND state NOT IN ('working', 'input_required');
	RETURN n;
END $$;

-- Closes an execution and its task in one transaction.
CREATE FUNCTION task_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz,
    p_state text, p_whole text, p_meta text, p_network text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	how text := execution_close(p_id, p_epoch, p_outcome, p_failure, p_delivered,
	    p_started, p_ended, p_cpu_us, p_stdout, p_result, p_kind, p_version, p_hash,
	    p_principal, p_listener, p_tool, p_args_sha256, p_arguments, p_created,
	    p_deadline, p_network);
	message text;
BEGIN
	IF how IN ('closed', 'restored') THEN
		BEGIN
			message := p_whole::json #>> '{content,0,text}';
		EXCEPTION WHEN data_exception THEN
			message := NULL;
		END;
		PERFORM task_end(p_id, p_state, p_outcome, p_failure, message, p_whole, p_meta);
	END IF;
	RETURN how;
END $$;

GRANT EXECUTE ON FUNCTION task_open, task_told, task_ask, task_answer,
    task_cancel, tasks_sweep, task_close TO mcpbox_app;
