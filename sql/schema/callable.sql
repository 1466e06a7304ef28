-- The versions that may be called now. A call's intent reads one small row of
-- them. So a backend that was idle since the call before needs fewer pages,
-- plans and functions (docs/decisions/0032).

-- Triggers keep a row here for each callable version and living sandbox. A
-- transaction that takes a right away also deletes the row. So a call sees
-- either all of a withdrawal or nothing of it, as if it read the tables
-- themselves. A withdrawal that committed before the INSERT's snapshot stops
-- the call. If a withdrawal commits later, admind reads the open rows after it
-- and withdraws the call.
CREATE TABLE callable (
	version_id uuid NOT NULL,
	epoch uuid NOT NULL,
	hash bytea NOT NULL,
	exposed_name text COLLATE "C" NOT NULL,
	limits_at timestamptz,	-- when limits changed last; null: none were set
	tool_id uuid NOT NULL,
	PRIMARY KEY (version_id, epoch)
);

CREATE INDEX ON callable (tool_id);

-- Two transactions might each see only their own half: one stops a server, the
-- other approves a version of it. Together they would leave a row that neither
-- would leave alone. So all transactions take turns: each takes the lock of
-- this row before it reads the tables, and keeps the lock to its commit. With
-- read committed, it then sees all that the earlier holders have committed.
-- With stricter isolation, its snapshot is older, and it fails because the row
-- has changed. In the order of locks, this one comes after server, tool,
-- version and request, and before catalogue (triggers fire by name) and audit
-- head.
CREATE TABLE callable_turn (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	turn bigint NOT NULL
);

-- Shows what may be called now: approved, serving, enabled versions whose
-- server runs and whose modules and hosts are granted. limits_at is the time at
-- which the server's limits changed last (for a version that needs hosts, its
-- limits or its grants).
CREATE VIEW callable_now AS
SELECT v.id AS version_id, e.epoch, v.hash, v.exposed_name,
    CASE WHEN v.requires = '{}' THEN l.updated_at
    ELSE limits_at(l.updated_at, s.id, v.requires) END AS limits_at, t.id AS tool_id
FROM tools t
    JOIN tool_versions v ON v.id = t.serving_version AND v.tool_id = t.id AND v.state = 'approved'
    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
    LEFT JOIN server_limits l ON l.server_id = s.id
    JOIN epochs e ON e.ended_at IS NULL AND e.kind = 'sandboxd'
WHERE t.enabled AND t.deleted_at IS NULL
    AND (v.modules = '{}' OR module_missing(t.id, v.modules) IS NULL)
    AND (v.requires = '{}' OR network_missing(t.server_id, v.requires) IS NULL);

-- Makes the rows of these tools agree with callable_now. No row is updated: a
-- wrong row is deleted, and a new one is inserted.
CREATE FUNCTION callable_refresh(p_tools uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM mcpbox.callable c WHERE c.tool_id = ANY (p_tools) AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.callable_now n WHERE n.tool_id = c.tool_id
	    AND n.version_id = c.version_id AND n.epoch = c.epoch
	    AND n.limits_at IS NOT DISTINCT FROM c.limits_at);
	INSERT INTO mcpbox.callable (version_id, epoch, hash, exposed_name, limits_at, tool_id)
	    SELECT n.version_id, n.epoch, n.hash, n.exposed_name, n.limits_at, n.tool_id
	    FROM mcpbox.callable_now n WHERE n.tool_id = ANY (p_tools)
	    AND NOT EXISTS (SELECT 1 FROM mcpbox.callable c
	    WHERE c.version_id = n.version_id AND c.epoch = n.epoch);
END $$;

CREATE FUNCTION callable_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	touched uuid[];
BEGIN
	UPDATE mcpbox.callable_turn SET turn = turn + 1;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'callable_turn has no row';
	END IF;
	IF TG_OP = 'TRUNCATE' OR TG_TABLE_NAME = 'epochs' THEN
		touched := ARRAY(SELECT id FROM mcpbox.tools WHERE serving_version IS NOT NULL
		    UNION SELECT tool_id FROM mcpbox.callable);
	ELSIF TG_TABLE_NAME = 'tools' THEN
		touched := ARRAY[NEW.id];
	ELSIF TG_TABLE_NAME = 'servers' THEN
		touched := ARRAY(SELECT id FROM mcpbox.tools WHERE server_id = NEW.id);
	ELSIF TG_TABLE_NAME = 'server_limits' THEN
		touched := ARRAY(SELECT id FROM mcpbox.tools
		    WHERE server_id = NEW.server_id OR server_id = OLD.server_id);
	ELSIF TG_TABLE_NAME = 'modules' THEN
		touched := ARRAY(SELECT tool_id FROM mcpbox.tool_modules
		    WHERE name = NEW.name AND version = NEW.version);
	ELSE	-- tool_versions, tool_modules
		touched := ARRAY[NEW.tool_id, OLD.tool_id];
	END IF;
	PERFORM mcpbox.callable_refresh(touched);
	RETURN NULL;
END $$;

-- Guards callable, because neither a wrong function nor a person at psql may
-- make a version callable here. A row may be deleted at any time, but it is
-- inserted only if callable_now shows it.
CREATE FUNCTION callable_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' OR NOT EXISTS (SELECT 1 FROM mcpbox.callable_now n
	    WHERE n.tool_id = NEW.tool_id AND n.version_id = NEW.version_id
	    AND n.epoch = NEW.epoch AND n.hash = NEW.hash AND n.exposed_name = NEW.exposed_name
	    AND n.limits_at IS NOT DISTINCT FROM NEW.limits_at) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'callable follows the tables';
	END IF;
	RETURN NEW;
END $$;

-- The view through which admind inserts an intent, with trace, span and
-- session. The check option refuses a row of a version that may not be called.
CREATE VIEW intents AS SELECT id, kind, owner_epoch, principal, listener, tool,
    version_id, version_hash, args_sha256, arguments, client, protocol,
    created_at, deadline, trace_id, span_id, session_id FROM executions x
WHERE state = 'open' AND kind = 'tool' AND listener IN ('local', 'tunnel', 'admind')
    -- as actor_ok()
    AND length(principal) BETWEEN 1 AND 254 AND principal !~ '[\u0001-\u001f\u007f]'
    AND length(args_sha256) = 32 AND length(arguments) <= 4096
    AND (span_id IS NULL OR length(span_id) = 8)
    AND EXISTS (SELECT 1 FROM callable c WHERE c.version_id = x.version_id
    AND c.epoch = x.owner_epoch AND c.hash = x.version_hash AND c.exposed_name = x.tool)
WITH LOCAL CHECK OPTION;

-- Columns that the guards keep as they are (a version's content, an object's
-- server, an epoch's kind) need no trigger. Neither does a new row to which
-- nothing refers yet.
CREATE TRIGGER callable AFTER UPDATE ON tools FOR EACH ROW
    WHEN (OLD.serving_version IS DISTINCT FROM NEW.serving_version
    OR OLD.enabled IS DISTINCT FROM NEW.enabled
    OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at)
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable AFTER UPDATE ON servers FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable AFTER INSERT OR UPDATE OR DELETE ON server_limits
    FOR EACH ROW EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable AFTER INSERT OR UPDATE OR DELETE ON tool_modules
    FOR EACH ROW EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable AFTER UPDATE ON modules FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable_insert AFTER INSERT ON epochs FOR EACH ROW
    WHEN (NEW.kind = 'sandboxd') EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable AFTER UPDATE OR DELETE ON epochs FOR EACH ROW
    WHEN (OLD.kind = 'sandboxd') EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable_truncate AFTER TRUNCATE ON server_limits
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable_truncate AFTER TRUNCATE ON tool_modules
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER callable_truncate AFTER TRUNCATE ON epochs
    EXECUTE FUNCTION callable_follow();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON callable
    FOR EACH ROW EXECUTE FUNCTION callable_guard();
CREATE TRIGGER callable AFTER UPDATE ON tool_versions FOR EACH ROW
    WHEN (OLD.state = 'approved' AND NEW.state <> 'approved')
    EXECUTE FUNCTION callable_follow();

INSERT INTO callable_turn (turn) VALUES (0);
