-- Executions: an intent before a call, an ending after it.
--
-- PostgreSQL reads and plans a table's CHECK expressions again in every single
-- INSERT and UPDATE, which was most of the cost of recording a call. A trigger
-- function is planned once a session, so executions_guard() has the rules. A
-- foreign key would lock the version's row in every call, and write to it. It
-- is not needed: versions are never deleted while a record needs them, and
-- their ids never change.
--
-- Trace, span and session are the client's own terms (W3C trace context, the
-- legacy session). They help to find a call, and never decide anything.

CREATE TABLE executions (
	id uuid PRIMARY KEY,	-- 128 random bits
	kind text NOT NULL,
	state text NOT NULL DEFAULT 'open',
	outcome text,
	failure text,
	delivered boolean,
	owner_epoch uuid NOT NULL,	-- of the process that will say how it ended
	principal text NOT NULL,
	listener text NOT NULL,
	tool text COLLATE "C" NOT NULL,
	version_id uuid,
	version_hash bytea,
	args_sha256 bytea NOT NULL,
	arguments text NOT NULL,
	client text NOT NULL DEFAULT '',
	protocol text NOT NULL DEFAULT '',
	created_at timestamptz NOT NULL,
	deadline timestamptz NOT NULL,
	started_at timestamptz,
	ended_at timestamptz,
	cpu_us bigint,
	stdout text,
	result text,
	restored boolean NOT NULL DEFAULT false,	-- the whole row is from sandboxd's record
	trace_id uuid,
	span_id bytea,
	session_id uuid,
	network json
);

CREATE INDEX ON executions (created_at, id);
CREATE INDEX ON executions (deadline) WHERE state = 'open';

-- Guards an execution. The head of this file says why this is no CHECK. As in a
-- CHECK, a null passes, so the columns have NOT NULL. An execution closes once,
-- and only its ending is ever written, so in an UPDATE only the ending is
-- checked. The connections belong to the ending. If a function made an open row
-- without trace, span and session, the row may get them once, in the
-- transaction that made it (execution_marked).
CREATE FUNCTION executions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Makes the intent row. Returns 'ok' or the failure mode that forbids the call. The
-- INSERT itself checks that the version is still callable, that its modules and
-- hosts are still granted, and that its owner's epoch still lives: no call begins
-- that an earlier commit forbids.
CREATE FUNCTION execution_open(p_id uuid, p_kind text, p_version uuid,
    p_hash bytea, p_epoch uuid, p_principal text, p_listener text, p_tool text,
    p_args_sha256 bytea, p_arguments text, p_client text, p_protocol text,
    p_created timestamptz, p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	why text;
BEGIN
	INSERT INTO executions (id, kind, owner_epoch, principal, listener, tool,
	    version_id, version_hash, args_sha256, arguments, client, protocol,
	    created_at, deadline)
	SELECT p_id, p_kind, e.epoch, p_principal, p_listener, p_tool, p_version,
	    p_hash, p_args_sha256, p_arguments, p_client, p_protocol, p_created,
	    p_deadline
	FROM epochs e WHERE e.epoch = p_epoch AND e.ended_at IS NULL
	    AND e.kind = CASE p_kind WHEN 'management' THEN 'admind' ELSE 'sandboxd' END
	    AND (p_kind <> 'tool' OR EXISTS (SELECT 1 FROM tool_versions v
	    JOIN tools t ON t.serving_version = v.id AND t.enabled
	    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
	    WHERE v.id = p_version AND v.hash = p_hash AND v.state = 'approved'
	    AND v.exposed_name = p_tool AND (v.modules = '{}'
	    OR module_missing(v.tool_id, v.modules) IS NULL) AND (v.requires = '{}'
	    OR network_missing(v.server_id, v.requires) IS NULL)));
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL) THEN
		RETURN 'sandbox_unavailable';
	END IF;
	SELECT CASE WHEN v.state = 'revoked' THEN 'revoked'
	    WHEN s.status = 'stopped' OR NOT t.enabled THEN 'stopped'
	    WHEN t.serving_version = v.id AND grant_missing(v.server_id, v.tool_id, v.modules,
	    v.requires) IS NOT NULL THEN 'missing_grant'
	    ELSE 'not_approved' END INTO why
	FROM tool_versions v JOIN tools t ON t.id = v.tool_id
	    JOIN servers s ON s.id = t.server_id WHERE v.id = p_version;
	RETURN coalesce(why, 'not_approved');
END $$;

-- Makes the intent row as execution_open() does, for a caller that read the
-- version before, perhaps long before. If the INSERT makes no row, this returns
-- the reason. p_limits is the time of the server's limits that the caller read
-- (null: none were set). For a version that needs hosts, it is also the time of
-- the server's grants. 'stale' means that limits or grants were changed, so the
-- caller has to read again. The INSERT checks everything else that may have
-- changed, so a remembered version never runs against a later commit.
CREATE FUNCTION call_open(p_id uuid, p_version uuid, p_hash bytea, p_epoch uuid,
    p_limits timestamptz, p_principal text, p_listener text, p_tool text,
    p_args_sha256 bytea, p_arguments text, p_client text, p_protocol text,
    p_created timestamptz, p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO executions (id, kind, owner_epoch, principal, listener, tool,
	    version_id, version_hash, args_sha256, arguments, client, protocol,
	    created_at, deadline)
	SELECT p_id, 'tool', e.epoch, p_principal, p_listener, p_tool, v.id, v.hash,
	    p_args_sha256, p_arguments, p_client, p_protocol, p_created, p_deadline
	FROM tool_versions v
	    JOIN tools t ON t.id = v.tool_id AND t.serving_version = v.id AND t.enabled
	    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
	    LEFT JOIN server_limits l ON l.server_id = s.id
	    JOIN epochs e ON e.epoch = p_epoch AND e.ended_at IS NULL AND e.kind = 'sandboxd'
	WHERE v.id = p_version AND v.hash = p_hash AND v.state = 'approved'
	    AND v.exposed_name = p_tool
	    AND limits_at(l.updated_at, s.id, v.requires) IS NOT DISTINCT FROM p_limits
	    AND (v.modules = '{}' OR module_missing(v.tool_id, v.modules) IS NULL)
	    AND (v.requires = '{}' OR network_missing(v.server_id, v.requires) IS NULL);
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF EXISTS (SELECT 1 FROM tool_versions v LEFT JOIN server_limits l USING (server_id)
	    WHERE v.id = p_version
	    AND limits_at(l.updated_at, v.server_id, v.requires) IS DISTINCT FROM p_limits) THEN
		RETURN 'stale';
	END IF;
	RETURN execution_open(p_id, 'tool', p_version, p_hash, p_epoch, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline);
END $$;

-- Adds trace, span and session to an intent row. The functions for rarer
-- intents (tasks, confirmed calls, static content) know nothing of the three.
-- p_why is the answer of such a function.
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

-- Makes the intent row of a management call, as execution_open() does for that
-- kind, in one statement.
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

-- Closes an execution, once, and puts it in the queue of records_work(). A
-- repeated record changes nothing, and the answer says so. The intent row may
-- be gone (PostgreSQL crashed within wal_writer_delay of it). Then the intent
-- in the record, which has a p_kind that is not null, makes the whole row.
-- Returns closed, already, restored or unknown.
CREATE FUNCTION execution_close(p_id uuid, p_epoch uuid, p_outcome text,
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

-- Closes several executions of one epoch in one transaction, so that they need
-- only one disk flush. Returns the ids that were open and are closed now. For
-- each of the others execution_close() says why it was not closed.
CREATE FUNCTION executions_close(p_epoch uuid, p_ids uuid[], p_outcomes text[],
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

CREATE TRIGGER guard_insert BEFORE INSERT ON executions FOR EACH ROW
    WHEN (current_user <> 'mcpbox_app') EXECUTE FUNCTION executions_guard();
CREATE TRIGGER guard BEFORE UPDATE ON executions
    FOR EACH ROW EXECUTE FUNCTION executions_guard();

GRANT EXECUTE ON FUNCTION execution_open, call_open, execution_marked,
    management_open, execution_close, executions_close TO mcpbox_app;
