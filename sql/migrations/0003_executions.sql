-- 0003: what every call costs. Same rules, same privileges; less work.
--
-- PostgreSQL reads and plans a table's CHECK expressions anew in every single
-- INSERT and UPDATE; those of executions were most of what recording a call
-- cost. A trigger function is planned once a session. The foreign key locked
-- the version's row in every call, and wrote to it; versions are never
-- deleted and their ids never change (0001: no_delete, no_truncate, guard),
-- so that the row is there is all there is to know.
SET LOCAL search_path = mcpbox, pg_temp;

ALTER TABLE executions
	DROP CONSTRAINT executions_kind_check, DROP CONSTRAINT executions_state_check,
	DROP CONSTRAINT executions_outcome_check, DROP CONSTRAINT executions_principal_check,
	DROP CONSTRAINT executions_listener_check, DROP CONSTRAINT executions_version_hash_check,
	DROP CONSTRAINT executions_args_sha256_check, DROP CONSTRAINT executions_arguments_check,
	DROP CONSTRAINT executions_stdout_check, DROP CONSTRAINT executions_result_check,
	DROP CONSTRAINT executions_check, DROP CONSTRAINT executions_check1,
	DROP CONSTRAINT executions_check2, DROP CONSTRAINT executions_check3,
	DROP CONSTRAINT executions_check4, DROP CONSTRAINT executions_version_id_fkey;

-- Open rows are few: one index finds them all, in the order of the sweep.
-- None on owner_epoch: a plan must never prefer it to the primary key.
DROP INDEX executions_owner_epoch_idx;
DROP INDEX executions_version_id_idx;
CREATE INDEX ON executions (deadline) WHERE state = 'open';

-- 0001's rules. As in a CHECK, what is null is not judged, so NOT NULL stands
-- with the columns. An execution closes once, and only its ending is ever
-- written; so an UPDATE is asked for the ending alone.
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
		    AND length(NEW.arguments) <= 4096) IS FALSE THEN
			RAISE EXCEPTION USING ERRCODE = 'check_violation',
			    CONSTRAINT = 'executions_intent', MESSAGE = 'not an intent';
		END IF;
		IF NEW.version_id IS NOT NULL AND NOT EXISTS
		    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.version_id) THEN
			RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			    CONSTRAINT = 'executions_version', MESSAGE = 'there is no such version';
		END IF;
	ELSE
		IF OLD.state <> 'open' OR NEW.state <> 'closed' THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an execution closes once';
		END IF;
		IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.owner_epoch <> OLD.owner_epoch
		    OR NEW.principal <> OLD.principal OR NEW.listener <> OLD.listener
		    OR NEW.tool <> OLD.tool OR NEW.version_id IS DISTINCT FROM OLD.version_id
		    OR NEW.version_hash IS DISTINCT FROM OLD.version_hash
		    OR NEW.args_sha256 <> OLD.args_sha256 OR NEW.arguments <> OLD.arguments
		    OR NEW.client <> OLD.client OR NEW.protocol <> OLD.protocol
		    OR NEW.deadline <> OLD.deadline
		    OR NEW.created_at <> OLD.created_at OR NEW.restored <> OLD.restored THEN
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
DROP TRIGGER guard ON executions;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON executions
    FOR EACH ROW EXECUTE FUNCTION executions_guard();

-- Intents, for INSERT: the one place where the run-time role writes past a
-- function, since calling one costs as much again as the row. It can make open
-- rows this way and nothing else. Who speaks with that role's voice (a
-- taken-over admind) can so record intents that never were, of a version that
-- serves no more, say: rows that claim a call and run nothing, since what runs
-- is what the vault sealed. admind's own statement asks what call_open() below
-- asks, in the INSERT itself.
CREATE VIEW intents AS SELECT id, kind, owner_epoch, principal, listener, tool,
    version_id, version_hash, args_sha256, arguments, client, protocol,
    created_at, deadline FROM executions WHERE state = 'open';

-- Why such an INSERT made no row; or the row, if nothing is in its way (any
-- more). As execution_open(), for a caller that read
-- the version before, perhaps long before: p_limits is the time of the
-- server's limits it read (null: none were set). 'stale': they were changed;
-- read again. Everything else that may have changed since is asked here, in
-- the INSERT, so what was remembered can never run against a later commit.
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
	    AND v.exposed_name = p_tool AND l.updated_at IS NOT DISTINCT FROM p_limits
	    AND (v.modules = '{}' OR module_missing(v.tool_id, v.modules) IS NULL);
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF EXISTS (SELECT 1 FROM tool_versions v LEFT JOIN server_limits l USING (server_id)
	    WHERE v.id = p_version AND l.updated_at IS DISTINCT FROM p_limits) THEN
		RETURN 'stale';
	END IF;
	RETURN execution_open(p_id, 'tool', p_version, p_hash, p_epoch, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline);
END $$;

-- How several of one epoch ended, in one transaction: one disk flush for all
-- of them. Returns the ids that were open and are closed now; of the others
-- execution_close() says, each by itself, what is the matter with it.
CREATE FUNCTION executions_close(p_epoch uuid, p_ids uuid[], p_outcomes text[],
    p_failures text[], p_delivered boolean[], p_started timestamptz[],
    p_ended timestamptz[], p_cpu_us bigint[], p_stdout text[], p_results text[])
RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN QUERY UPDATE executions x SET state = 'closed', outcome = r.outcome,
	    failure = r.failure, delivered = r.delivered, started_at = r.started_at,
	    ended_at = r.ended_at, cpu_us = r.cpu_us, stdout = r.stdout, result = r.result
	FROM unnest(p_ids, p_outcomes, p_failures, p_delivered, p_started, p_ended,
	    p_cpu_us, p_stdout, p_results) AS r (id, outcome, failure, delivered,
	    started_at, ended_at, cpu_us, stdout, result)
	WHERE x.id = r.id AND x.state = 'open' AND x.owner_epoch = p_epoch
	RETURNING x.id;
END $$;

REVOKE ALL ON intents FROM PUBLIC;
GRANT SELECT, INSERT ON intents TO mcpbox_app;
REVOKE ALL ON FUNCTION call_open, executions_close FROM PUBLIC;
GRANT EXECUTE ON FUNCTION call_open, executions_close TO mcpbox_app;
