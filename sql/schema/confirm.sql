-- Per-call approval. A call of a tool that must be confirmed is a request like
-- a version's: with content, hash, a person's decision and the vault's seal. It
-- is about one call: this version, these arguments, this principal, until this
-- time. An approval lets that call run once. The row is locked before the
-- intent is made, and marked as used in the same transaction. So if two calls
-- bring one approval, one of them runs.

-- The SHA-256 of preimage (common/callreq.h) is approval_requests.hash, for the
-- kind call.
CREATE TABLE call_requests (
	id uuid PRIMARY KEY REFERENCES approval_requests (id),
	version_id uuid NOT NULL REFERENCES tool_versions (id),
	tool text COLLATE "C" NOT NULL,
	principal text NOT NULL CHECK (actor_ok(principal)),
	listener text NOT NULL CHECK (listener IN ('local', 'tunnel')),
	args_sha256 bytea NOT NULL CHECK (length(args_sha256) = 32),
	arguments text NOT NULL,	-- their beginning, for lists
	preimage bytea CHECK (length(preimage) <= 66560),	-- null: nobody decided
	expires_at timestamptz NOT NULL,
	used_at timestamptz,
	execution uuid UNIQUE,	-- the one that used it
	CHECK ((used_at IS NULL) = (execution IS NULL))
);

CREATE INDEX ON call_requests (principal, listener, version_id, args_sha256);
CREATE INDEX ON call_requests (expires_at) WHERE used_at IS NULL;

-- A request is used once, and what it is about never changes.
CREATE FUNCTION call_requests_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.used_at IS NOT NULL OR (NEW.id, NEW.version_id, NEW.tool, NEW.principal,
	    NEW.listener, NEW.args_sha256, NEW.arguments, NEW.expires_at)
	    IS DISTINCT FROM (OLD.id, OLD.version_id, OLD.tool, OLD.principal,
	    OLD.listener, OLD.args_sha256, OLD.arguments, OLD.expires_at)
	    OR (NEW.preimage IS NOT NULL AND NEW.preimage IS DISTINCT FROM OLD.preimage) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a call''s request is immutable and used once';
	END IF;
	RETURN NEW;
END $$;

-- Tells every admind of a decision, so that it tells its gateways.
CREATE FUNCTION call_decided() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('mcpbox_call', NEW.id::text
	    || CASE NEW.state WHEN 'approved' THEN ' 1' ELSE ' 0' END);
	RETURN NULL;
END $$;

-- Supersedes requests for calls of a version that does not serve any more,
-- because nobody needs to decide about them.
CREATE FUNCTION call_requests_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mcpbox.approval_requests a SET state = 'superseded', decided_by = 'mcpbox',
	    decided_at = clock_timestamp(), reason = 'another version serves, or none'
	FROM mcpbox.call_requests c WHERE c.id = a.id AND a.kind = 'call'
	    AND a.state = 'pending' AND a.tool_id = NEW.id
	    AND c.version_id IS DISTINCT FROM NEW.serving_version;
	RETURN NULL;
END $$;

-- Returns whether a tool is destructive by MCP's ToolAnnotations. The default
-- of destructiveHint is true, and the hint has a meaning only if readOnlyHint
-- is not true. Annotations that can't be read count as destructive.
CREATE FUNCTION tool_destructive(annotations bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	a jsonb;
BEGIN
	a := coalesce(convert_from(annotations, 'UTF8')::jsonb, '{}');
	RETURN CASE a -> 'destructiveHint' WHEN 'true' THEN true WHEN 'false' THEN false
	    ELSE (a -> 'readOnlyHint') IS DISTINCT FROM 'true'::jsonb END;
EXCEPTION WHEN data_exception THEN
	RETURN true;
END $$;

-- Returns whether calls must be confirmed. The version itself may demand this,
-- or an administrator may demand it for all destructive tools.
CREATE FUNCTION call_confirms(p_confirm bigint, p_object text, p_annotations bytea)
RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT coalesce(p_confirm, 0) <> 0 OR (p_object = 'tool'
	    AND EXISTS (SELECT 1 FROM mcpbox.settings
	    WHERE key = 'confirm_destructive' AND value = 'on')
	    AND mcpbox.tool_destructive(p_annotations))
$$;

-- Returns the state of a call's approval. p_approval is the request that the
-- client was told of. Null: the client was told of none. Then a request that is
-- still valid is looked for, since a client that can't wait calls again. If
-- there is none, the request p_id is made from the pre-image. what: pending,
-- approved (with the seal); rejected, expired, used, changed (another version
-- serves), none (no such request); limit (too many requests of this principal
-- wait), full (too many wait in all).
CREATE FUNCTION call_ask(p_id uuid, p_approval uuid, p_version uuid,
    p_principal text, p_listener text, p_tool text, p_args_sha256 bytea,
    p_arguments text, p_preimage bytea, p_expires timestamptz, p_own bigint,
    p_all bigint, OUT what text, OUT request uuid, OUT expires timestamptz,
    OUT reason text, OUT seal bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	c record;
	v tool_versions;
	own bigint;
	every bigint;
BEGIN
	IF p_approval IS NOT NULL THEN
		SELECT r.*, a.state, a.reason AS why INTO c FROM call_requests r
		    JOIN approval_requests a ON a.id = r.id
		WHERE r.id = p_approval AND r.principal = p_principal
		    AND r.listener = p_listener AND r.tool = p_tool
		    AND r.args_sha256 = p_args_sha256;
	ELSE
		-- Two equal calls at once must not both find none, and two others not
		-- both be the last that is allowed.
		PERFORM pg_advisory_xact_lock(hashtextextended('mcpbox call', 0));
		-- A refusal is remembered as long as a yes would have been good: who
		-- repeats the call does not get another person to say yes.
		SELECT r.*, a.state, a.reason AS why INTO c FROM call_requests r
		    JOIN approval_requests a ON a.id = r.id
		WHERE r.principal = p_principal AND r.listener = p_listener
		    AND r.version_id = p_version AND r.args_sha256 = p_args_sha256
		    AND r.tool = p_tool AND r.used_at IS NULL
		    AND r.expires_at > clock_timestamp()
		    AND a.state IN ('pending', 'approved', 'rejected')
		ORDER BY a.requested_at DESC, r.id DESC LIMIT 1;
	END IF;
	IF FOUND THEN
		request := c.id;
		expires := c.expires_at;
		reason := c.why;
		what := CASE WHEN c.used_at IS NOT NULL THEN 'used'
		    WHEN c.state IN ('rejected', 'expired') THEN c.state
		    WHEN c.version_id <> p_version OR c.state = 'superseded' THEN 'changed'
		    WHEN c.expires_at <= clock_timestamp() THEN 'expired'
		    ELSE c.state END;
		IF what = 'approved' THEN
			SELECT s.seal INTO STRICT seal FROM approval_seals s WHERE s.request_id = c.id;
		END IF;
		RETURN;
	END IF;
	IF p_approval IS NOT NULL THEN
		what := 'none';
		RETURN;
	END IF;
	SELECT count(*) FILTER (WHERE r.principal = p_principal
	    AND r.listener = p_listener), count(*) INTO own, every
	FROM call_requests r JOIN approval_requests a ON a.id = r.id
	WHERE r.expires_at > clock_timestamp() AND r.used_at IS NULL AND a.state = 'pending';
	IF own >= p_own OR every >= p_all THEN
		what := CASE WHEN own >= p_own THEN 'limit' ELSE 'full' END;
		RETURN;
	END IF;
	SELECT * INTO STRICT v FROM tool_versions WHERE id = p_version;
	INSERT INTO approval_requests (id, kind, subject, hash, server_id, tool_id, requested_by)
	    VALUES (p_id, 'call', p_id, sha256(p_preimage), v.server_id, v.tool_id, p_principal);
	INSERT INTO call_requests (id, version_id, tool, principal, listener, args_sha256,
	    arguments, preimage, expires_at) VALUES (p_id, p_version, p_tool, p_principal,
	    p_listener, p_args_sha256, p_arguments, p_preimage, p_expires);
	PERFORM audit_append(p_principal, 'call_requested', 'tool ' || p_tool,
	    json_build_object('request_id', p_id, 'version_id', p_version,
	    'listener', p_listener, 'args_sha256', encode(p_args_sha256, 'hex'),
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
	what := 'pending';
	request := p_id;
	expires := p_expires;
	reason := '';
END $$;

-- Ends requests about which nobody decided in time, and returns how many. Their
-- pre-images are dropped, because nobody vouched for them.
CREATE FUNCTION calls_sweep() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r record;
	n bigint := 0;
BEGIN
	FOR r IN SELECT a.id, c.tool, c.principal FROM call_requests c
	    JOIN approval_requests a ON a.id = c.id
	    WHERE c.used_at IS NULL AND c.expires_at <= clock_timestamp()
	    AND c.preimage IS NOT NULL AND a.state IN ('pending', 'superseded')
	    ORDER BY a.id LIMIT 256 FOR UPDATE OF a SKIP LOCKED LOOP
		UPDATE approval_requests SET state = 'expired', decided_by = 'mcpbox',
		    decided_at = clock_timestamp(), reason = 'nobody decided in time'
		    WHERE id = r.id AND state = 'pending';
		IF FOUND THEN
			PERFORM audit_append('mcpbox', 'call_expired', 'tool ' || r.tool,
			    json_build_object('request_id', r.id, 'principal', r.principal)::text);
			n := n + 1;
		END IF;
		UPDATE call_requests SET preimage = NULL WHERE id = r.id;
	END LOOP;
	RETURN n;
END $$;

CREATE FUNCTION call_take(p_request uuid, p_version uuid, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	-- Withdrawals come by another connection than this: until this commits
	-- nothing of the version may be withdrawn, and what was withdrawn before
	-- is seen (as task_open does). Locks in the usual order.
	PERFORM 1 FROM mcpbox.servers s WHERE s.id = (SELECT server_id
	    FROM mcpbox.tool_versions WHERE id = p_version) FOR SHARE;
	PERFORM 1 FROM mcpbox.tools t WHERE t.id = (SELECT tool_id
	    FROM mcpbox.tool_versions WHERE id = p_version) FOR SHARE;
	PERFORM 1 FROM mcpbox.tool_versions WHERE id = p_version FOR SHARE;
	PERFORM 1 FROM mcpbox.call_requests r WHERE r.id = p_request
	    AND r.used_at IS NULL AND r.expires_at > clock_timestamp()
	    AND r.version_id = p_version AND r.principal = p_principal
	    AND r.listener = p_listener AND r.tool = p_tool
	    AND r.args_sha256 = p_args_sha256
	    AND (SELECT state FROM mcpbox.approval_requests a WHERE a.id = r.id) = 'approved'
	    FOR UPDATE;
	RETURN FOUND;
END $$;

CREATE FUNCTION call_used(p_request uuid, p_execution uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	c mcpbox.call_requests;
BEGIN
	UPDATE mcpbox.call_requests SET used_at = clock_timestamp(), execution = p_execution
	    WHERE id = p_request RETURNING * INTO c;
	PERFORM mcpbox.audit_append(c.principal, 'call_confirmed', 'tool ' || c.tool,
	    json_build_object('request_id', c.id, 'execution', p_execution)::text);
END $$;

-- Does what call_open() does, for a call that a person approved.
-- 'not_confirmed': there is no approval of this call, or it does not hold any
-- more.
CREATE FUNCTION call_open_confirmed(p_id uuid, p_version uuid, p_hash bytea,
    p_epoch uuid, p_limits timestamptz, p_principal text, p_listener text,
    p_tool text, p_args_sha256 bytea, p_arguments text, p_client text,
    p_protocol text, p_created timestamptz, p_deadline timestamptz,
    p_request uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	why text;
BEGIN
	IF NOT call_take(p_request, p_version, p_principal, p_listener, p_tool,
	    p_args_sha256) THEN
		RETURN 'not_confirmed';
	END IF;
	why := call_open(p_id, p_version, p_hash, p_epoch, p_limits, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline);
	IF why = 'ok' THEN
		PERFORM call_used(p_request, p_id);
	END IF;
	RETURN why;
END $$;

-- Does what task_open() does, for such a call. The task is made once the
-- approval is there.
CREATE FUNCTION task_open_confirmed(p_id uuid, p_version uuid, p_hash bytea,
    p_epoch uuid, p_limits timestamptz, p_principal text, p_listener text,
    p_tool text, p_args_sha256 bytea, p_arguments text, p_client text,
    p_protocol text, p_created timestamptz, p_deadline timestamptz,
    p_declared int, p_ttl_ms bigint, p_active bigint, p_kept bigint,
    p_request uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	why text;
BEGIN
	IF NOT call_take(p_request, p_version, p_principal, p_listener, p_tool,
	    p_args_sha256) THEN
		RETURN 'not_confirmed';
	END IF;
	why := task_open(p_id, p_version, p_hash, p_epoch, p_limits, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline, p_declared, p_ttl_ms, p_active, p_kept);
	IF why = 'ok' THEN
		PERFORM call_used(p_request, p_id);
	END IF;
	RETURN why;
END $$;

CREATE TRIGGER guard BEFORE UPDATE ON call_requests
    FOR EACH ROW EXECUTE FUNCTION call_requests_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON call_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON call_requests EXECUTE FUNCTION refuse();
CREATE TRIGGER decided AFTER UPDATE OF state ON approval_requests
    FOR EACH ROW WHEN (NEW.kind = 'call') EXECUTE FUNCTION call_decided();
CREATE TRIGGER calls AFTER UPDATE OF serving_version ON tools
    FOR EACH ROW WHEN (OLD.serving_version IS DISTINCT FROM NEW.serving_version)
    EXECUTE FUNCTION call_requests_follow();

GRANT EXECUTE ON FUNCTION tool_destructive, call_confirms, call_ask,
    calls_sweep, call_open_confirmed, task_open_confirmed TO mcpbox_app;
