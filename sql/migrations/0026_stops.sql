-- 0026: who stopped a server or disabled an object, and who may undo that
-- (docs/decisions/0066-a-stop-keeps-its-authority.md).
--
-- Until now a model that may manage started again what an administrator had
-- stopped. A stop keeps its author now: an authority (root by mcpboxctl, an
-- administrator by a login, a principal by a management tool), a name, a time and
-- perhaps a reason. Equal or higher authority undoes it, lower authority is refused.
--
-- Locks: none that was not taken before, in the same order: server, tool, version,
-- request, callable_turn, audit head.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- The columns. A reason has at most 200 characters and 600 bytes: with two names, a
-- time and the next step it fits into the 1024 bytes of an error (ERR_TEXT_MAX).

CREATE FUNCTION stop_reason_ok(reason text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT length(reason) BETWEEN 1 AND 200 AND octet_length(reason) <= 600 AND reason !~ '[\u0001-\u001f\u007f]'
$$;

ALTER TABLE servers
	ADD COLUMN stopped_by text CHECK (actor_ok(stopped_by)),
	ADD COLUMN stopped_authority text
	    CHECK (stopped_authority IN ('principal', 'administrator', 'root')),
	ADD COLUMN stopped_at timestamptz,
	ADD COLUMN stopped_reason text CHECK (stop_reason_ok(stopped_reason));
ALTER TABLE tools
	ADD COLUMN disabled_by text CHECK (actor_ok(disabled_by)),
	ADD COLUMN disabled_authority text
	    CHECK (disabled_authority IN ('principal', 'administrator', 'root')),
	ADD COLUMN disabled_at timestamptz,
	ADD COLUMN disabled_reason text CHECK (stop_reason_ok(disabled_reason));

-- A higher rank undoes what a lower one did, not the other way round.
CREATE FUNCTION authority_rank(authority text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE authority WHEN 'root' THEN 2 WHEN 'administrator' THEN 1 ELSE 0 END
$$;

-- The authority of this transaction. admin_act() sets mcpbox.role by what the vault
-- said of the login, and only until the transaction ends; import_server() does, too.
-- Every other statement of admind acts for a principal. A model sends arguments of
-- constant statements, so it cannot set the role. A taken-over admind can: it can
-- call act_server_start() as well.
CREATE FUNCTION authority_now() RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN current_setting('mcpbox.role', true) IN ('administrator', 'root')
	    THEN current_setting('mcpbox.role', true) ELSE 'principal' END
$$;

---------------------------------------------------------------------------
-- Guards: a stop by a person at psql is root's; what runs was stopped by nobody.

CREATE OR REPLACE FUNCTION servers_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.deleted_at IS NOT NULL THEN
		PERFORM mcpbox.fail('not_found', 'the server was deleted');
	END IF;
	IF NEW.id <> OLD.id OR NEW.created_at <> OLD.created_at
	    OR NEW.created_by <> OLD.created_by OR NEW.name <> (CASE
	    WHEN NEW.deleted_at IS NULL THEN OLD.name ELSE OLD.name || '@' || OLD.id END) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a server''s id, name and origin are immutable';
	END IF;
	IF NEW.deleted_at IS NOT NULL AND EXISTS (SELECT 1 FROM mcpbox.tools t
	    WHERE t.server_id = NEW.id AND t.deleted_at IS NULL) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a deleted server has no tools';
	END IF;
	IF NEW.status = 'running' THEN
		NEW.stopped_by := NULL;
		NEW.stopped_authority := NULL;
		NEW.stopped_at := NULL;
		NEW.stopped_reason := NULL;
	ELSIF NEW.stopped_by IS NULL THEN
		NEW.stopped_by := 'root';
		NEW.stopped_authority := 'root';
		NEW.stopped_at := clock_timestamp();
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION tools_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND (NEW.id <> OLD.id OR NEW.server_id <> OLD.server_id
	    OR NEW.object <> OLD.object) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a tool''s id, server and object are immutable';
	END IF;
	IF TG_OP = 'UPDATE' AND OLD.deleted_at IS NOT NULL THEN
		PERFORM mcpbox.fail('not_found', 'the ' || OLD.object || ' was deleted');
	END IF;
	IF TG_OP = 'INSERT' AND EXISTS (SELECT 1 FROM mcpbox.servers s
	    WHERE s.id = NEW.server_id AND s.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'there is no such server');
	END IF;
	IF NEW.serving_version IS NOT NULL AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.serving_version
	    AND v.tool_id = NEW.id AND v.state = 'approved') THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only an approved version may serve';
	END IF;
	IF NEW.enabled THEN
		NEW.disabled_by := NULL;
		NEW.disabled_authority := NULL;
		NEW.disabled_at := NULL;
		NEW.disabled_reason := NULL;
	ELSIF NEW.disabled_by IS NULL THEN
		NEW.disabled_by := 'root';
		NEW.disabled_authority := 'root';
		NEW.disabled_at := clock_timestamp();
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

---------------------------------------------------------------------------
-- What was stopped before this migration. The audit log has the newest act: its
-- actor says the authority, since neither a token's name (with its colon) nor
-- `local` and `root` can be an administrator's (admin_name_reserved). Where the log
-- has none, an administrator is taken to have done it: the error on this side is
-- that a person has to start a server that a model stopped, the error on the other
-- side is that a model starts one that a person stopped.

CREATE FUNCTION actor_authority(actor text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN actor = 'root' THEN 'root' WHEN actor = 'local'
	    OR starts_with(actor, 'token:') THEN 'principal' ELSE 'administrator' END
$$;

UPDATE servers s SET stopped_by = coalesce(l.actor, 'unknown'),
    stopped_authority = actor_authority(coalesce(l.actor, 'unknown')),
    stopped_at = coalesce(l.at, s.updated_at)
FROM servers x LEFT JOIN (SELECT DISTINCT ON (k.id) k.id, k.actor, k.at
	FROM (SELECT a.detail::json ->> 'server_id' AS id, a.actor, a.at, a.seq
	    FROM audit_log a WHERE a.action = 'server_stopped') k
	ORDER BY k.id, k.seq DESC) l ON l.id = x.id::text
WHERE s.id = x.id AND s.status = 'stopped' AND s.deleted_at IS NULL;

UPDATE tools t SET disabled_by = coalesce(l.actor, 'unknown'),
    disabled_authority = actor_authority(coalesce(l.actor, 'unknown')),
    disabled_at = coalesce(l.at, t.updated_at)
FROM tools x LEFT JOIN (SELECT DISTINCT ON (k.id) k.id, k.actor, k.at
	FROM (SELECT a.detail::json ->> 'tool_id' AS id, a.actor, a.at, a.seq
	    FROM audit_log a WHERE a.action = 'tool_disabled') k
	ORDER BY k.id, k.seq DESC) l ON l.id = x.id::text
WHERE t.id = x.id AND NOT t.enabled AND t.deleted_at IS NULL;
DROP FUNCTION actor_authority(text);

-- What was deleted before this has nobody, and needs nobody: it never comes back.
ALTER TABLE servers ADD CONSTRAINT servers_stopped_check CHECK (CASE
    WHEN status = 'running' THEN coalesce(stopped_by, stopped_authority, stopped_reason) IS NULL
	AND stopped_at IS NULL
    WHEN deleted_at IS NULL THEN stopped_by IS NOT NULL AND stopped_authority IS NOT NULL
	AND stopped_at IS NOT NULL
    ELSE true END);
ALTER TABLE tools ADD CONSTRAINT tools_disabled_check CHECK (CASE
    WHEN enabled THEN coalesce(disabled_by, disabled_authority, disabled_reason) IS NULL
	AND disabled_at IS NULL
    WHEN deleted_at IS NULL THEN disabled_by IS NOT NULL AND disabled_authority IS NOT NULL
	AND disabled_at IS NOT NULL
    ELSE true END);

---------------------------------------------------------------------------
-- Words. An administrator is named, since his act is to be asked about; another
-- client is not, since a token's name is nothing to other tokens.

CREATE FUNCTION stop_told(p_what text, p_done text, p_by text, p_authority text,
    p_at timestamptz, p_reason text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT p_what || ' was ' || p_done || CASE p_authority WHEN 'root' THEN
	    ' by root (mcpboxctl)' WHEN 'administrator' THEN ' by the administrator ' || p_by
	    ELSE ' by a client' END || ' at ' || mcpbox.json_time(p_at)
	    || coalesce(', reason: "' || p_reason || '"', '')
$$;

-- p_ctl: root's command; p_tool: the management tool that undoes a client's act.
CREATE FUNCTION stop_next(p_authority text, p_verb text, p_ctl text, p_tool text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE p_authority WHEN 'root' THEN '; only root can ' || p_verb || ' it, with '
	    || p_ctl || ': ask whoever administers this machine, no management tool does it'
	    WHEN 'administrator' THEN '; only an administrator can ' || p_verb
	    || ' it: ask one, no management tool does it'
	    ELSE '; ' || p_tool || ' undoes that' END
$$;

CREATE FUNCTION server_stop_words(s servers, p_verb text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT mcpbox.stop_told('the server ' || s.name, 'stopped', s.stopped_by,
	    s.stopped_authority, s.stopped_at, s.stopped_reason)
	    || mcpbox.stop_next(s.stopped_authority, p_verb, 'mcpboxctl servers ' || p_verb || ' '
	    || s.name, 'mcpbox_start_server')
$$;

CREATE FUNCTION tool_stop_words(t tools, p_verb text) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT mcpbox.stop_told('the ' || t.object || ' ' || v.exposed_name, 'disabled',
	    t.disabled_by, t.disabled_authority, t.disabled_at, t.disabled_reason)
	    || mcpbox.stop_next(t.disabled_authority, p_verb, 'mcpboxctl tools '
	    || CASE p_verb WHEN 'rename' THEN 'describe' ELSE p_verb END || ' ' || v.exposed_name,
	    'mcpbox_update_' || CASE t.object WHEN 'template' THEN 'resource' ELSE t.object END
	    || ' with enabled: true')
	FROM mcpbox.tool_versions v WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1
$$;

-- The sentence for whoever calls it; null: neither is stopped. Where both are, it
-- tells of the higher authority's act, else somebody would undo the lower one's in
-- vain.
CREATE FUNCTION call_stopped(p_server uuid, p_tool uuid) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN s.status = 'stopped' AND (t.enabled
	    OR mcpbox.authority_rank(s.stopped_authority)
	    >= mcpbox.authority_rank(t.disabled_authority))
	    THEN mcpbox.server_stop_words(s, 'start')
	    WHEN NOT t.enabled THEN mcpbox.tool_stop_words(t, 'enable') END
	FROM mcpbox.servers s, mcpbox.tools t WHERE s.id = p_server AND t.id = p_tool
$$;

-- Refuses a lower authority. p_verb: what it wants to do: start, enable, delete, rename.
CREATE FUNCTION server_held(s servers, p_verb text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF s.status = 'stopped'
	    AND authority_rank(s.stopped_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', server_stop_words(s, p_verb));
	END IF;
END $$;

-- The same of what would free a name or URI of one of its objects.
CREATE FUNCTION server_keeps(s servers) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF s.status = 'stopped'
	    AND authority_rank(s.stopped_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', 'nothing of a stopped server is deleted or renamed: '
		    || server_stop_words(s, 'start'));
	END IF;
END $$;

CREATE FUNCTION tool_held(t tools, p_verb text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT t.enabled
	    AND authority_rank(t.disabled_authority) > authority_rank(authority_now()) THEN
		PERFORM fail('forbidden', tool_stop_words(t, p_verb));
	END IF;
END $$;

CREATE FUNCTION stop_reason(p_reason text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said text := nullif(btrim(p_reason, E' \t\r\n'), '');
BEGIN
	IF NOT stop_reason_ok(said) THEN
		PERFORM fail('invalid_params', 'a reason has at most 200 characters and 600 bytes, none of them'
		    ' a control character: clients are shown it');
	END IF;
	RETURN said;
END $$;

---------------------------------------------------------------------------
-- The one way a server's status changes; deleting it is the other end.

-- 'running' or 'stopped'; true if it changed. Whoever stops what somebody of lower
-- authority stopped takes the stop over, so that the lower one cannot undo it; so
-- does an equal one who gives a reason.
DROP FUNCTION set_server_status(uuid, text, text);
CREATE FUNCTION set_server_status(p_id uuid, p_status text, p_actor text,
    p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
	mine text := authority_now();
	why text := stop_reason(p_reason);
BEGIN
	IF p_status = 'running' THEN
		IF s.status = 'running' THEN
			RETURN false;
		END IF;
		PERFORM server_held(s, 'start');
		UPDATE servers SET status = 'running' WHERE id = p_id;
		PERFORM audit_append(p_actor, 'server_started', 'server ' || s.name,
		    json_build_object('server_id', p_id, 'authority', mine,
		    'stopped_by', s.stopped_by, 'stopped_authority', s.stopped_authority)::text);
		RETURN true;
	END IF;
	IF s.status = p_status AND (authority_rank(s.stopped_authority) > authority_rank(mine)
	    OR (s.stopped_authority = mine AND why IS NULL)) THEN
		RETURN false;
	END IF;
	UPDATE servers SET status = p_status, stopped_by = p_actor, stopped_authority = mine,
	    stopped_at = clock_timestamp(), stopped_reason = why WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_stopped', 'server ' || s.name,
	    json_strip_nulls(json_build_object('server_id', p_id, 'authority', mine,
	    'reason', why, 'taken_over_from', s.stopped_by))::text);
	RETURN true;
END $$;

-- The same of a tool, prompt, resource or source.
DROP FUNCTION set_tool_enabled(uuid, boolean, text);
CREATE FUNCTION set_tool_enabled(p_tool uuid, p_enabled boolean, p_actor text,
    p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	mine text := authority_now();
	why text := stop_reason(p_reason);
BEGIN
	PERFORM 1 FROM servers WHERE id = (SELECT x.server_id FROM tools x WHERE x.id = p_tool)
	    FOR SHARE;
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	IF p_enabled THEN
		IF t.enabled THEN
			RETURN false;
		END IF;
		PERFORM tool_held(t, 'enable');
		UPDATE tools SET enabled = true WHERE id = p_tool;
		PERFORM audit_append(p_actor, 'tool_enabled', 'tool ' || t.name,
		    json_build_object('tool_id', p_tool, 'authority', mine,
		    'disabled_by', t.disabled_by, 'disabled_authority', t.disabled_authority)::text);
		RETURN true;
	END IF;
	IF NOT t.enabled AND (authority_rank(t.disabled_authority) > authority_rank(mine)
	    OR (t.disabled_authority = mine AND why IS NULL)) THEN
		RETURN false;
	END IF;
	UPDATE tools SET enabled = false, disabled_by = p_actor, disabled_authority = mine,
	    disabled_at = clock_timestamp(), disabled_reason = why WHERE id = p_tool;
	PERFORM audit_append(p_actor, 'tool_disabled', 'tool ' || t.name,
	    json_strip_nulls(json_build_object('tool_id', p_tool, 'authority', mine,
	    'reason', why, 'taken_over_from', t.disabled_by))::text);
	RETURN true;
END $$;

CREATE OR REPLACE FUNCTION act_server_stop(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM set_server_status(act_server(p_id), 'stopped', p_actor, p_body ->> 'reason');
	RETURN server_json(find_server(p_id));
END $$;

CREATE OR REPLACE FUNCTION act_tool_disable(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM set_tool_enabled(t.id, false, p_actor, p_body ->> 'reason');
	RETURN tool_json(t.id);
END $$;

---------------------------------------------------------------------------
-- Ways around: to delete and make again under the same name, to let the name go by
-- a new version, to have a new version approved by a policy.

-- 0010's, and: not what a higher authority stopped, nor what has such an object:
-- another one of the same name would run at once.
CREATE OR REPLACE FUNCTION delete_server(p_id uuid, p_actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers := server_locked(p_id);
	held tools;
	n bigint;
BEGIN
	PERFORM server_held(s, 'delete');
	IF s.status <> 'stopped' THEN
		UPDATE servers SET status = 'stopped', stopped_by = p_actor,
		    stopped_authority = authority_now(), stopped_at = clock_timestamp()
		    WHERE id = p_id;
	END IF;
	PERFORM 1 FROM tools WHERE server_id = p_id ORDER BY id FOR UPDATE;
	SELECT x.* INTO held FROM tools x WHERE x.server_id = p_id AND NOT x.enabled
	    AND x.deleted_at IS NULL
	    ORDER BY authority_rank(x.disabled_authority) DESC, x.id LIMIT 1;
	IF FOUND THEN
		PERFORM tool_held(held, 'delete');
	END IF;
	UPDATE tool_versions v SET state = 'rejected' FROM tools t
	    WHERE t.server_id = p_id AND v.tool_id = t.id AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id IN
	    (SELECT t.serving_version FROM tools t WHERE t.server_id = p_id);
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.server_id = p_id AND a.state = 'pending';
	UPDATE tools t SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor,
	    disabled_by = coalesce(t.disabled_by, p_actor),
	    disabled_authority = coalesce(t.disabled_authority, authority_now()),
	    disabled_at = coalesce(t.disabled_at, clock_timestamp())
	    WHERE t.server_id = p_id AND t.deleted_at IS NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	DELETE FROM external_sources WHERE server_id = p_id;
	PERFORM secrets_drop(p_id, p_actor);	-- 0013
	UPDATE servers SET name = name || '@' || id, deleted_at = clock_timestamp(),
	    deleted_by = p_actor WHERE id = p_id;
	PERFORM audit_append(p_actor, 'server_deleted', 'server ' || s.name,
	    json_build_object('server_id', p_id, 'objects', n)::text);
	RETURN n;
END $$;

-- 0004's, and the same; nor any object of a server that a higher authority stopped: its
-- URI, or its name without a prefix, would be free for a server that runs.
CREATE OR REPLACE FUNCTION delete_object(p_tool uuid, p_object text, p_actor text,
    OUT object text, OUT exposed_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	host servers;
BEGIN
	SELECT s.* INTO host FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = p_tool FOR SHARE OF s;
	SELECT * INTO t FROM tools x WHERE x.id = p_tool FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL
	    OR p_object <> (CASE t.object WHEN 'template' THEN 'resource' ELSE t.object END) THEN
		PERFORM fail('not_found', 'there is no such ' || p_object);
	END IF;
	PERFORM server_keeps(host);
	PERFORM tool_held(t, 'delete');
	SELECT v.exposed_name INTO STRICT exposed_name FROM tool_versions v
	    WHERE v.tool_id = p_tool ORDER BY v.version_no DESC LIMIT 1;
	object := t.object;
	UPDATE tool_versions v SET state = 'rejected'
	    WHERE v.tool_id = p_tool AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id = t.serving_version;
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.tool_id = p_tool AND a.state = 'pending';
	UPDATE tools x SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor,
	    disabled_by = coalesce(x.disabled_by, p_actor),
	    disabled_authority = coalesce(x.disabled_authority, authority_now()),
	    disabled_at = coalesce(x.disabled_at, clock_timestamp())
	    WHERE x.id = p_tool;
	PERFORM audit_append(p_actor, 'tool_deleted', t.object || ' ' || exposed_name,
	    json_build_object('tool_id', p_tool)::text);
END $$;

-- 0010's, and: what a higher authority disabled, or whose server it stopped, keeps its
-- name and its URI, so that nothing else can take them; its content may be mended, which enables nothing.
CREATE OR REPLACE FUNCTION add_version(p_version uuid, p_preimage bytea, p_note text,
    p_actor text, p_base int DEFAULT NULL, p_source text DEFAULT 'llm') RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	host servers;
	held tools;
	made tool_versions;
	before tool_versions;
	n int;
BEGIN
	SELECT * INTO host FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	SELECT * INTO held FROM tools WHERE id = t FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	SELECT * INTO before FROM tool_versions WHERE tool_id = t ORDER BY version_no DESC LIMIT 1;
	n := before.version_no + 1;
	IF p_base IS NOT NULL AND p_base <> n - 1 THEN
		PERFORM fail('conflict', 'the tool was changed meanwhile: version '
		    || n - 1 || ' is there now; look at it and try again');
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by, change_note,
	    change_source) VALUES (p_version, n, p_preimage, sha256(p_preimage), p_actor,
	    p_note, p_source) RETURNING * INTO made;
	IF made.name <> before.name OR made.exposed_name <> before.exposed_name
	    OR made.uri IS DISTINCT FROM before.uri THEN
		PERFORM server_keeps(host);
		PERFORM tool_held(held, 'rename');
	END IF;
	BEGIN
		UPDATE tools SET name = version_text(p_preimage, 5) WHERE id = t
		    AND name <> version_text(p_preimage, 5);
	EXCEPTION WHEN unique_violation THEN
		PERFORM fail('conflict', 'the server has a tool named '
		    || version_text(p_preimage, 5));
	END;
	PERFORM prune_versions(t, setting('versions_kept')::int);
	PERFORM audit_append(p_actor, 'tool_updated',
	    'tool ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', n, 'source', p_source,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
	RETURN n;
END $$;

-- May a policy approve this version of this tool? Not while an administrator has the
-- tool or its server stopped. Not after a person's last word on what clients call by
-- this name was no (a rejection, or the revocation of the version that was approved
-- last): a tool deleted and made again is asked about again, too. And never the very
-- bytes that a person rejected or revoked, which a rollback makes again.
CREATE FUNCTION tool_automatic(p_tool uuid, p_version uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT authority_rank(s.stopped_authority) = 0
	    AND authority_rank(t.disabled_authority) = 0
	    AND coalesce((SELECT a.state = 'approved' AND w.state <> 'revoked'
		FROM tool_versions w JOIN approval_requests a
		ON a.tool_id = w.tool_id AND a.subject = w.id
		WHERE (w.exposed_name = v.exposed_name OR w.tool_id = t.id) AND w.id <> v.id
		AND a.kind = 'tool' AND a.state IN ('approved', 'rejected')
		ORDER BY a.decided_at DESC, a.id DESC LIMIT 1), true)
	    AND NOT EXISTS (SELECT FROM tool_versions w LEFT JOIN approval_requests a
		ON a.tool_id = w.tool_id AND a.subject = w.id AND a.kind = 'tool'
		WHERE w.tool_id = t.id AND w.hash = v.hash
		AND (w.state = 'revoked' OR a.state = 'rejected'))
	FROM tools t JOIN servers s ON s.id = t.server_id JOIN tool_versions v ON v.tool_id = t.id
	WHERE t.id = p_tool AND v.id = p_version
$$;
CREATE INDEX tool_versions_exposed_idx ON tool_versions (exposed_name);

-- Between a policy's yes and its seal an administrator may have stopped or revoked.
-- approval_locked() has locked server and tool, so the answer here is the last one.
CREATE FUNCTION approval_still_automatic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT mcpbox.tool_automatic(NEW.tool_id, NEW.subject) THEN
		PERFORM mcpbox.fail('forbidden', 'a person decides about this version: somebody'
		    ' stopped, rejected or revoked what it belongs to');
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER still_automatic BEFORE UPDATE OF state ON approval_requests FOR EACH ROW
    WHEN (NEW.kind = 'tool' AND NEW.state = 'approved' AND OLD.state = 'pending'
	AND starts_with(NEW.decided_by, 'policy:'))
    EXECUTE FUNCTION approval_still_automatic();

-- How many versions of one principal may wait for review. A person reads them, and
-- who asks without end hides what others asked for behind thousands of rows. 256 is
-- more than one import asks for at once (200 of a source, 50 of a document). Requests
-- for modules have such a bound a tool, those for hosts one a server: no settings either.
CREATE FUNCTION publish_pending_max() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 256';
CREATE INDEX approval_requests_publish_idx ON approval_requests (requested_by, requested_at)
    WHERE kind = 'tool' AND state = 'pending';

-- Fails if p_actor has as many waiting as it may have, besides that of p_tool, which a
-- new one replaces. Two requests at once may both be the last: a lock would be taken
-- behind the audit head by whoever imports, and before it by others. So the bound may
-- be passed by what one principal has in work at once, which admind bounds.
CREATE FUNCTION publish_room(p_tool uuid, p_actor text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	most int := publish_pending_max();
	oldest text;
BEGIN
	IF (SELECT count(*) FROM (SELECT FROM approval_requests a WHERE a.requested_by = p_actor
	    AND a.kind = 'tool' AND a.state = 'pending' AND a.tool_id <> p_tool
	    LIMIT most) x) < most THEN
		RETURN;
	END IF;
	SELECT string_agg(x.exposed_name, ', ' ORDER BY x.requested_at) INTO oldest
	    FROM (SELECT v.exposed_name, a.requested_at FROM approval_requests a
	    JOIN tool_versions v ON v.id = a.subject WHERE a.requested_by = p_actor
	    AND a.kind = 'tool' AND a.state = 'pending' ORDER BY a.requested_at LIMIT 5) x;
	PERFORM fail('limit', most || ' of your versions wait for review, which is the limit;'
	    || ' the oldest are ' || oldest || ' (mcpbox_list_pending_requests has more):'
	    || ' wait until an administrator has decided some, or delete with mcpbox_delete_tool'
	    || ' what is not needed any more');
END $$;

-- 0012's, with that.
CREATE OR REPLACE FUNCTION request_publish(p_request uuid, p_version uuid, p_tool uuid,
    p_notes text, p_actor text,
    OUT version_id uuid, OUT version_no int, OUT exposed_name text, OUT automatic boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
	o approval_requests;
BEGIN
	PERFORM 1 FROM servers s JOIN tools t ON t.server_id = s.id
	    WHERE t.id = p_tool FOR SHARE OF s;
	PERFORM 1 FROM tools WHERE id = p_tool AND deleted_at IS NULL FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	SELECT * INTO STRICT v FROM tool_versions tv WHERE tv.tool_id = p_tool
	    ORDER BY tv.version_no DESC LIMIT 1;
	IF v.state IN ('rejected', 'revoked') THEN
		INSERT INTO tool_versions (id, version_no, preimage, hash, created_by, change_note)
		    VALUES (p_version, v.version_no + 1, v.preimage, v.hash, p_actor,
		    'version ' || v.version_no || ' again') RETURNING * INTO v;
	ELSIF v.state <> 'draft' THEN
		PERFORM fail('conflict', 'version ' || v.version_no || ' is '
		    || replace(v.state, '_', ' ') || ' already');
	END IF;
	FOR o IN SELECT * FROM approval_requests a WHERE a.tool_id = p_tool
	    AND a.kind = 'tool' AND a.state = 'pending' FOR UPDATE LOOP
		UPDATE tool_versions SET state = 'rejected' WHERE id = o.subject;
		UPDATE approval_requests SET state = 'superseded', decided_by = p_actor,
		    decided_at = clock_timestamp(),
		    reason = 'superseded by version ' || v.version_no WHERE id = o.id;
	END LOOP;
	PERFORM publish_room(p_tool, p_actor);
	UPDATE tool_versions SET state = 'pending_review' WHERE id = v.id;
	INSERT INTO approval_requests (id, kind, subject, hash, server_id, tool_id,
	    requested_by, notes) VALUES (p_request, 'tool', v.id, v.hash, v.server_id,
	    v.tool_id, p_actor, p_notes);
	PERFORM audit_append(p_actor, 'publish_requested', 'tool ' || v.exposed_name,
	    json_build_object('request_id', p_request, 'tool_id', p_tool,
	    'version_id', v.id, 'version', v.version_no,
	    'hash', encode(v.hash, 'hex'))::text);
	version_id := v.id;
	version_no := v.version_no;
	exposed_name := v.exposed_name;
	automatic := v.secrets = '{}' AND review_mode('tool') = 'automatic'
	    AND tool_automatic(p_tool, v.id);
END $$;

---------------------------------------------------------------------------
-- Export and import: a stopped server comes stopped. Whoever imports stops it, and
-- disables what came disabled, by the authority of his own: an import is root's or
-- an administrator's.

CREATE OR REPLACE FUNCTION export_server(s servers) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('server', json_build_object('name', s.name,
	    'description', s.description, 'expose', s.expose, 'status', s.status,
	    'limits', json_strip_nulls(server_limits_json(s.id::text)::json -> 'limits'),
	    'secrets', (SELECT coalesce(json_agg(json_build_object('key', x.key,
	        'description', x.description) ORDER BY x.key), '[]')
	        FROM server_secrets x WHERE x.server_id = s.id)))::text
$$;

CREATE OR REPLACE FUNCTION import_server(j json, p_actor text) RETURNS servers
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made servers;
	l json := coalesce(j -> 'limits', '{}');
	x json;
BEGIN
	IF NOT coalesce(j ->> 'expose', '') IN ('prefixed', 'bare')
	    OR j ->> 'status' NOT IN ('running', 'stopped') THEN
		PERFORM fail('invalid_params', 'a server''s line is not one of an export');
	END IF;
	-- until the transaction ends: its objects follow in it
	PERFORM set_config('mcpbox.role', CASE p_actor WHEN 'root' THEN 'root'
	    ELSE 'administrator' END, true);
	made.id := gen_random_uuid();
	made.name := import_name(j ->> 'name');
	PERFORM create_server(made.id, made.name, coalesce(j ->> 'description', ''), p_actor);
	IF j ->> 'status' = 'stopped' THEN	-- an export of an older mcpbox does not say
		PERFORM set_server_status(made.id, 'stopped', p_actor, 'imported so');
	END IF;
	UPDATE servers SET expose = j ->> 'expose' WHERE id = made.id RETURNING * INTO made;
	IF l::text <> '{}' THEN
		PERFORM set_server_limits(made.id,
		    sha256(convert_to(server_limits_json(made.id::text), 'UTF8')), p_actor,
		    (l ->> 'timeout_ms')::bigint, (l ->> 'memory_bytes')::bigint,
		    (l ->> 'processes')::bigint, (l ->> 'tmp_bytes')::bigint,
		    (l ->> 'result_bytes')::bigint, (l ->> 'cpu_ms')::bigint, (l ->> 'files')::bigint,
		    (l ->> 'file_bytes')::bigint, (l ->> 'stdout_bytes')::bigint,
		    (l ->> 'argument_bytes')::bigint, (l ->> 'log_rate')::bigint,
		    (l ->> 'progress_rate')::bigint, (l ->> 'connections')::bigint,
		    (l ->> 'network_bytes')::bigint, (l ->> 'network_rate')::bigint,
		    (l ->> 'code_bytes')::bigint);
	END IF;
	FOR x IN SELECT value FROM json_array_elements(coalesce(j -> 'secrets', '[]')) LOOP
		PERFORM secret_create(made.id, x ->> 'key', coalesce(x ->> 'description', ''), p_actor);
	END LOOP;
	RETURN made;
END $$;

---------------------------------------------------------------------------
-- Showing: 0010's and 0019's, with who stopped it.

CREATE OR REPLACE FUNCTION server_json(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', split_part(s.name, '@', 1),
	    'description', s.description, 'status', s.status, 'stopped_by', s.stopped_by,
	    'stopped_authority', s.stopped_authority, 'stopped_at', json_time(s.stopped_at),
	    'stopped_reason', s.stopped_reason, 'expose', s.expose,
	    'created_at', json_time(s.created_at), 'created_by', s.created_by,
	    'updated_at', json_time(s.updated_at), 'deleted_at', json_time(s.deleted_at),
	    'deleted_by', s.deleted_by, 'network_access_policy', network_access_policy(s.id),
	    'tool_count', (SELECT count(*) FROM tools x
		WHERE x.server_id = s.id AND x.object = 'tool' AND x.deleted_at IS NULL))::text
	    FROM servers s WHERE s.id = p_id);
END $$;

CREATE OR REPLACE FUNCTION tool_item(p_id uuid) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', t.id, 'server_id', t.server_id,
	    'server', split_part(s.name, '@', 1), 'name', t.name, 'enabled', t.enabled,
	    'disabled_by', t.disabled_by, 'disabled_authority', t.disabled_authority,
	    'disabled_at', json_time(t.disabled_at), 'disabled_reason', t.disabled_reason,
	    'object', t.object, 'uri', n.uri, 'exposed_name', n.exposed_name,
	    'description', n.description, 'kind', n.kind, 'approval_status', n.state,
	    'version', n.version_no, 'version_id', n.id, 'hash', encode(n.hash, 'hex'),
	    'serving_version', c.version_no, 'serving_version_id', c.id,
	    'callable', c.id IS NOT NULL AND t.enabled AND s.status = 'running',
	    'created_at', json_time(t.created_at), 'created_by', t.created_by,
	    'updated_at', json_time(t.updated_at),
	    'deleted_at', json_time(t.deleted_at), 'deleted_by', t.deleted_by)
	    FROM tools t JOIN servers s ON s.id = t.server_id
	    JOIN LATERAL (SELECT * FROM tool_versions v WHERE v.tool_id = t.id
		ORDER BY v.version_no DESC LIMIT 1) n ON true
	    LEFT JOIN tool_versions c ON c.id = t.serving_version WHERE t.id = p_id);
END $$;

-- For models: the sentence a call would hear, or null.
CREATE OR REPLACE FUNCTION manage_get_server(p_id uuid, p_timeout bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', s.name,
	    'description', s.description, 'status', s.status,
	    'stopped', CASE s.status WHEN 'stopped' THEN server_stop_words(s, 'start') END,
	    'expose', s.expose,
	    'allowed_hosts', server_hosts(s.id),
	    'default_timeout_ms', coalesce((SELECT l.timeout_ms FROM server_limits l
		WHERE l.server_id = s.id), p_timeout),
	    'created_at', json_time(s.created_at), 'updated_at', json_time(s.updated_at),
	    'tools', (SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name,
		'description', v.description, 'enabled', t.enabled,
		'approval_status', v.state) ORDER BY t.name), '[]')
		FROM (SELECT * FROM tools x WHERE x.server_id = s.id AND x.object = 'tool'
		    AND x.deleted_at IS NULL ORDER BY x.name LIMIT 50) t
		JOIN LATERAL (SELECT * FROM tool_versions y WHERE y.tool_id = t.id
		    ORDER BY y.version_no DESC LIMIT 1) v ON true),
	    'tool_count', (SELECT count(*) FROM tools t WHERE t.server_id = s.id
		AND t.object = 'tool' AND t.deleted_at IS NULL),
	    'pending_requests', (SELECT json_build_object(
		'modules', count(*) FILTER (WHERE a.kind = 'module'),
		'network', count(*) FILTER (WHERE a.kind = 'network'),
		'tools', count(*) FILTER (WHERE a.kind = 'tool'))
		FROM approval_requests a WHERE a.server_id = s.id AND a.state = 'pending'))
	    FROM servers s WHERE s.id = p_id AND s.deleted_at IS NULL);
END $$;

---------------------------------------------------------------------------
-- A reserved name in words, before the constraint (0020) refuses it by its own.
-- Before an ON CONFLICT is looked at, too: such a row is never there.
CREATE FUNCTION tool_names_reserved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.exposed_name <> 'web_fetch' AND NEW.exposed_name ~ '^(mcpbox|sandbox|web)_' THEN
		PERFORM mcpbox.fail('conflict', 'the name ' || NEW.exposed_name || ' is reserved: where'
		    ' a server shows its tools without a prefix, no name begins with mcpbox_, sandbox_'
		    ' or web_ (but web_fetch); choose another');
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER reserved BEFORE INSERT OR UPDATE ON tool_names
    FOR EACH ROW EXECUTE FUNCTION tool_names_reserved();

---------------------------------------------------------------------------
REVOKE ALL ON FUNCTION stop_reason_ok, authority_rank, authority_now, stop_told, stop_next,
    server_stop_words, tool_stop_words, call_stopped, server_held, server_keeps, tool_held, stop_reason,
    set_server_status, set_tool_enabled, tool_automatic, approval_still_automatic, tool_names_reserved,
    publish_pending_max, publish_room FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_server_status, set_tool_enabled, authority_rank, stop_told,
    stop_next, server_stop_words, tool_stop_words, call_stopped TO mcpbox_app;
