-- Approvals: requests, the vault's seals, policies, and the comments of
-- reviewers.
--
-- Only the vault makes seals, and a version can't become approved without one.
-- A person approves a pre-image, which is hashed and sealed like a version's
-- (docs/decisions/0037, 0038; common/grantreq.h).

CREATE TABLE approval_requests (
	id uuid PRIMARY KEY,
	kind text NOT NULL CHECK (kind IN ('tool', 'module', 'network', 'call')),
	subject uuid NOT NULL,	-- kind tool: the version
	hash bytea NOT NULL CHECK (length(hash) = 32),
	state text NOT NULL DEFAULT 'pending'
	    CHECK (state IN ('pending', 'approved', 'rejected', 'superseded', 'expired')),
	server_id uuid NOT NULL REFERENCES servers (id),
	tool_id uuid REFERENCES tools (id),
	requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	requested_by text NOT NULL CHECK (actor_ok(requested_by)),
	notes text NOT NULL DEFAULT '' CHECK (length(notes) <= 2000),
	decided_at timestamptz,
	decided_by text CHECK (actor_ok(decided_by)),
	reason text NOT NULL DEFAULT '' CHECK (length(reason) <= 2000),
	search tsvector,
	CHECK ((state = 'pending') = (decided_at IS NULL)),
	CHECK ((state = 'pending') = (decided_by IS NULL)),
	CHECK (kind <> 'tool' OR tool_id IS NOT NULL),
	CHECK (kind <> 'call' OR (tool_id IS NOT NULL AND subject = id)),
	UNIQUE (id, subject, hash)
);

CREATE UNIQUE INDEX ON approval_requests (kind, subject) WHERE state = 'pending';
CREATE INDEX ON approval_requests (requested_at, id);
CREATE INDEX ON approval_requests (tool_id);
CREATE INDEX ON approval_requests (tool_id) WHERE kind = 'call' AND state = 'pending';
CREATE INDEX approval_requests_pending_idx ON approval_requests (server_id)
    WHERE state = 'pending';
CREATE INDEX approval_requests_search_idx ON approval_requests USING gin (search);
CREATE INDEX approval_requests_queue_idx ON approval_requests (kind, state, id);
CREATE INDEX approval_requests_kind_idx ON approval_requests (kind, id);
CREATE INDEX approval_requests_state_idx ON approval_requests (state, id);
CREATE INDEX approval_requests_server_idx ON approval_requests (server_id, id);
-- Finds requests that wait for a person, of each kind in the order in which
-- they came.
CREATE INDEX approval_requests_waiting ON approval_requests (kind, requested_at, id)
    WHERE state = 'pending';
CREATE INDEX approval_requests_publish_idx ON approval_requests (requested_by, requested_at)
    WHERE kind = 'tool' AND state = 'pending';

CREATE TABLE approval_seals (
	request_id uuid PRIMARY KEY,
	subject uuid NOT NULL UNIQUE,
	hash bytea NOT NULL,
	seal bytea NOT NULL CHECK (length(seal) BETWEEN 1 AND 65536),
	sealed_at timestamptz NOT NULL,
	-- the seal belongs to a request of exactly this subject and hash
	FOREIGN KEY (request_id, subject, hash)
	    REFERENCES approval_requests (id, subject, hash)
);

-- The first of the two approvals that a request needs, sealed by the vault.
CREATE TABLE approval_firsts (
	request_id uuid PRIMARY KEY REFERENCES approval_requests (id),
	hash bytea NOT NULL CHECK (length(hash) = 32),
	actor text NOT NULL CHECK (actor_ok(actor)),
	at timestamptz NOT NULL,
	seal bytea NOT NULL CHECK (length(seal) BETWEEN 1 AND 4096)
);

-- How requests are reviewed: each policy that was ever set; the newest holds.
-- The vault judges by the seal, never by these columns.
CREATE TABLE approval_policies (
	serial bigint PRIMARY KEY CHECK (serial > 0),	-- Unix time in us
	tool text NOT NULL CHECK (tool IN ('require', 'second', 'automatic')),
	module text NOT NULL CHECK (module IN ('require', 'second', 'automatic')),
	network text NOT NULL CHECK (network IN ('require', 'second', 'automatic')),
	until timestamptz,	-- end of automatic modes
	actor text NOT NULL CHECK (actor_ok(actor)),
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	seal bytea NOT NULL CHECK (length(seal) BETWEEN 1 AND 512),
	CHECK ((until IS NOT NULL) = ('automatic' IN (tool, module, network)))
);

-- Reviewers' comments on a request.
CREATE TABLE approval_comments (
	id uuid PRIMARY KEY,
	request_id uuid NOT NULL REFERENCES approval_requests (id),
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	author text NOT NULL CHECK (actor_ok(author)),
	text text NOT NULL CHECK (length(text) BETWEEN 1 AND 2000)
);

CREATE INDEX ON approval_comments (request_id, id);

-- A request is decided once; what it is about never changes.
CREATE FUNCTION approval_requests_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.state <> 'pending' OR NEW.state = 'pending' THEN
		PERFORM mcpbox.fail('already_decided', 'the request is ' || OLD.state);
	END IF;
	IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.subject <> OLD.subject
	    OR NEW.hash <> OLD.hash OR NEW.server_id <> OLD.server_id
	    OR NEW.tool_id IS DISTINCT FROM OLD.tool_id
	    OR NEW.requested_at <> OLD.requested_at
	    OR NEW.requested_by <> OLD.requested_by OR NEW.notes <> OLD.notes THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a request is immutable';
	END IF;
	IF NEW.state = 'approved' AND NOT EXISTS (SELECT 1 FROM mcpbox.approval_seals a
	    WHERE a.request_id = NEW.id) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'no approval without a seal';
	END IF;
	RETURN NEW;
END $$;

-- Stores the vault's decision with its seal: version, serving switch, grant,
-- request, names, catalogue and audit row in one transaction.
CREATE FUNCTION decide_approval(p_request uuid, p_approved boolean,
    p_hash bytea, p_actor text, p_at timestamptz, p_reason text, p_seal bytea)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests := approval_locked(p_request);
	v tool_versions;
	c call_requests;
	g module_requests;
	n network_requests;
	m modules;
	s text;
BEGIN
	IF p_approved THEN
		PERFORM approval_same(a, p_hash);
		INSERT INTO approval_seals VALUES (a.id, a.subject, a.hash, p_seal, p_at);
	END IF;
	IF a.kind = 'call' THEN
		SELECT * INTO STRICT c FROM call_requests WHERE id = a.id;
		IF c.expires_at <= clock_timestamp() THEN
			PERFORM fail('already_decided', 'the request has expired');
		END IF;
	ELSIF a.kind = 'tool' THEN
		UPDATE tool_versions SET state = CASE WHEN p_approved THEN 'approved'
		    ELSE 'rejected' END WHERE id = a.subject RETURNING * INTO v;
	END IF;
	UPDATE approval_requests SET state = CASE WHEN p_approved THEN 'approved'
	    ELSE 'rejected' END, decided_by = p_actor, decided_at = p_at,
	    reason = p_reason WHERE id = a.id RETURNING * INTO a;
	CASE a.kind
	WHEN 'call' THEN
		PERFORM audit_append(p_actor, 'call_' || a.state, 'tool ' || c.tool,
		    json_build_object('request_id', a.id, 'version_id', c.version_id,
		    'principal', c.principal, 'listener', c.listener,
		    'args_sha256', encode(c.args_sha256, 'hex'),
		    'hash', encode(a.hash, 'hex'), 'reason', p_reason)::text);
	WHEN 'tool' THEN
		IF p_approved THEN
			UPDATE tools SET serving_version = v.id WHERE id = v.tool_id;
		END IF;
		PERFORM audit_append(p_actor, 'tool_' || v.state, 'tool ' || v.exposed_name,
		    json_build_object('request_id', a.id, 'tool_id', v.tool_id,
		    'version_id', v.id, 'version', v.version_no,
		    'hash', encode(v.hash, 'hex'), 'reason', p_reason)::text);
	WHEN 'module' THEN
		SELECT * INTO STRICT g FROM module_requests WHERE id = a.subject;
		IF p_approved THEN
			-- the one that the bytes name: approval_same has built them again
			SELECT * INTO m FROM modules x WHERE x.name = g.name AND x.state = 'available'
			    AND (g.version = '' OR x.version = g.version)
			    ORDER BY x.added_at DESC, x.version DESC LIMIT 1;
			IF NOT FOUND THEN
				PERFORM fail('missing_grant', 'the module is not recorded in the module store');
			END IF;
			INSERT INTO tool_modules (tool_id, name, version, digest, granted_at,
			    granted_by, request_id)
			    VALUES (a.tool_id, m.name, m.version, m.digest, p_at, p_actor, a.id)
			    ON CONFLICT (tool_id, name, version) DO UPDATE SET
			    granted_at = excluded.granted_at, granted_by = excluded.granted_by,
			    request_id = excluded.request_id, revoked_at = NULL, revoked_by = NULL;
		END IF;
		SELECT name INTO s FROM tools WHERE id = a.tool_id;
		PERFORM audit_append(p_actor, 'module_' || a.state, 'tool ' || s,
		    json_build_object('request_id', a.id, 'tool_id', a.tool_id,
		    'module', g.name, 'version', coalesce(m.version, nullif(g.version, '')),
		    'digest', encode(m.digest, 'hex'), 'hash', encode(a.hash, 'hex'),
		    'reason', p_reason)::text);
	ELSE
		SELECT * INTO STRICT n FROM network_requests WHERE id = a.subject;
		IF p_approved THEN
			INSERT INTO network_grants (request_id, server_id, proto, host, port,
			    automatic, granted_at, granted_by) VALUES (a.id, n.server_id, n.proto,
			    n.host, n.port, p_actor LIKE 'policy:%', p_at, p_actor);
		END IF;
		SELECT name INTO s FROM servers WHERE id = a.server_id;
		PERFORM audit_append(p_actor, 'network_' || a.state, 'server ' || s,
		    json_build_object('request_id', a.id, 'server_id', a.server_id,
		    'proto', n.proto, 'host', n.host, 'port', nullif(n.port, 0),
		    'hash', encode(a.hash, 'hex'), 'reason', p_reason)::text);
	END CASE;
EXCEPTION WHEN unique_violation THEN
	-- network_grants_live_idx: asked for again after it was granted otherwise
	PERFORM fail('conflict', 'it is granted already');
END $$;

-- Refuses a request for a deleted object.
CREATE FUNCTION approval_requests_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM mcpbox.tools t WHERE t.id = NEW.tool_id
	    AND t.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'it was deleted');
	END IF;
	RETURN NEW;
END $$;

-- Refuses a request for a deleted server.
CREATE FUNCTION approval_requests_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM mcpbox.servers s WHERE s.id = NEW.server_id
	    AND s.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'the server was deleted');
	END IF;
	RETURN NEW;
END $$;

CREATE FUNCTION approval_words(a approval_requests) RETURNS tsvector
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT to_tsvector('simple', regexp_replace(concat_ws(' ', s.name, t.name,
	    v.exposed_name, v.title, v.description, m.name, n.host, c.tool, c.principal,
	    a.requested_by, a.notes), '[^[:alnum:]]+', ' ', 'g'))
	FROM servers s LEFT JOIN tools t ON t.id = a.tool_id
	    LEFT JOIN call_requests c ON c.id = a.id
	    LEFT JOIN tool_versions v ON v.id = a.subject
	    LEFT JOIN module_requests m ON m.id = a.subject
	    LEFT JOIN network_requests n ON n.id = a.subject
	WHERE s.id = a.server_id
$$;

CREATE FUNCTION approval_query(words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE AS $$
	SELECT to_tsquery('simple', coalesce(string_agg(w || ':*', ' & '), ''))
	FROM regexp_split_to_table(words, '[^[:alnum:]]+') w WHERE w <> ''
$$;

CREATE FUNCTION approval_search() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	NEW.search := approval_words(NEW);
	RETURN NEW;
END $$;

-- Returns how a queue is reviewed now. This is shown to people, and admind
-- decides by it whether to ask the vault.
CREATE FUNCTION review_mode(p_queue text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce((SELECT CASE WHEN mode = 'automatic' AND until <= clock_timestamp()
	    THEN 'require' ELSE mode END FROM (SELECT CASE p_queue WHEN 'tool' THEN tool
	    WHEN 'module' THEN module ELSE network END, until
	    FROM approval_policies ORDER BY serial DESC LIMIT 1) p (mode, until)), 'require')
$$;

-- Asks for review of an object's newest version. A rejected version is copied into
-- a new one first (p_version is its id), since states only go forward. Older
-- requests of the object that still wait are superseded. A principal has at most
-- publish_pending_max() requests that wait (publish_room).
CREATE FUNCTION request_publish(p_request uuid, p_version uuid, p_tool uuid,
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

-- Returns a request that may still be decided. Locks its server, its tool and
-- the request, in the usual order.
CREATE FUNCTION approval_locked(p_request uuid) RETURNS approval_requests
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests;
BEGIN
	SELECT * INTO a FROM approval_requests WHERE id = p_request;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such request');
	END IF;
	IF a.kind = 'module' THEN
		PERFORM module_turn(false);
	END IF;
	-- Of the server's versions none comes to serve meanwhile: who makes one
	-- serve holds this lock, too.
	IF a.kind = 'network' THEN
		PERFORM 1 FROM servers WHERE id = a.server_id FOR UPDATE;
	ELSE
		PERFORM 1 FROM servers WHERE id = a.server_id FOR SHARE;
	END IF;
	PERFORM 1 FROM tools WHERE id = a.tool_id FOR UPDATE;
	SELECT * INTO a FROM approval_requests WHERE id = p_request FOR UPDATE;
	IF a.state <> 'pending' THEN
		PERFORM fail('already_decided', 'the request is ' || a.state || ' already');
	END IF;
	RETURN a;
END $$;

-- Fails unless an approval is for exactly these bytes, and they are still what
-- the request would change.
CREATE FUNCTION approval_same(a approval_requests, p_hash bytea) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_hash IS DISTINCT FROM a.hash OR (a.kind IN ('module', 'network')
	    AND sha256(grant_preimage(a.kind, a.subject, a.id)) <> a.hash) THEN
		PERFORM fail('hash_mismatch', 'what was reviewed is not what is asked for');
	END IF;
END $$;

-- Stores the first of two approvals. Fails if the request has a first approval
-- already.
CREATE FUNCTION first_approval(p_request uuid, p_hash bytea, p_actor text,
    p_at timestamptz, p_seal bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests := approval_locked(p_request);
	f approval_firsts;
BEGIN
	PERFORM approval_same(a, p_hash);
	INSERT INTO approval_firsts VALUES (p_request, p_hash, p_actor, p_at, p_seal)
	    ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		SELECT * INTO STRICT f FROM approval_firsts WHERE request_id = p_request;
		PERFORM fail('conflict', f.actor || ' approved it first: approve it once more');
	END IF;
	PERFORM audit_append(p_actor, 'approved_first', a.kind || ' request',
	    json_build_object('request_id', a.id, 'hash', encode(a.hash, 'hex'))::text);
END $$;

-- Stores a policy that the vault sealed. Serials rise, so the newest row holds.
CREATE FUNCTION policy_store(p_serial bigint, p_tool text, p_module text,
    p_network text, p_actor text, p_until timestamptz, p_seal bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	LOCK TABLE approval_policies IN SHARE ROW EXCLUSIVE MODE;
	IF EXISTS (SELECT 1 FROM approval_policies WHERE serial >= p_serial) THEN
		PERFORM fail('hash_mismatch', 'the policy was changed meanwhile: read it again');
	END IF;
	INSERT INTO approval_policies (serial, tool, module, network, until, actor, seal)
	    VALUES (p_serial, p_tool, p_module, p_network, p_until, p_actor, p_seal);
	PERFORM audit_append(p_actor, 'policy_set', 'policy', json_build_object(
	    'tool', p_tool, 'module', p_module, 'network', p_network, 'until',
	    to_char(p_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text);
END $$;

CREATE FUNCTION approval_time(t timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Returns when the grant of a module or host that this request approved was
-- revoked. Null: the grant was not revoked, or the request made none.
CREATE FUNCTION approval_revoked(a approval_requests) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT CASE WHEN a.state <> 'approved' THEN NULL
	    WHEN a.kind = 'network' THEN (SELECT g.revoked_at FROM network_grants g
	        WHERE g.request_id = a.id)
	    WHEN a.kind = 'module' THEN (SELECT g.revoked_at FROM tool_modules g
	        WHERE g.request_id = a.id) END
$$;

-- Returns a request as an item of the list.
CREATE FUNCTION approval_item(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('id', a.id, 'kind', a.kind,
	    'state', a.state, 'revoked', a.state = 'approved' AND (coalesce(v.state = 'revoked', false)
	        OR approval_revoked(a) IS NOT NULL), 'server', split_part(s.name, '@', 1),
	    'server_id', a.server_id,
	    'tool', coalesce(v.name, t.name), 'tool_id', a.tool_id,
	    'exposed_name', v.exposed_name, 'version', v.version_no,
	    'version_id', v.id, 'module', m.name,
	    'module_version', nullif(m.version, ''), 'proto', n.proto, 'host', n.host,
	    'port', nullif(n.port, 0),
	    'hash', encode(a.hash, 'hex'), 'requested_at', approval_time(a.requested_at),
	    'requested_by', a.requested_by, 'notes', a.notes,
	    'first_approval', (SELECT json_build_object('by', f.actor, 'at', approval_time(f.at))
	        FROM approval_firsts f WHERE f.request_id = a.id AND f.hash = a.hash),
	    'comments', (SELECT count(*) FROM approval_comments k WHERE k.request_id = a.id),
	    'decided_at', approval_time(a.decided_at),
	    'decided_by', a.decided_by, 'reason', a.reason,
	    'principal', c.principal, 'listener', c.listener,
	    'arguments', c.arguments, 'expires_at', approval_time(c.expires_at),
	    'used_at', approval_time(c.used_at), 'execution', c.execution)::text
	FROM servers s LEFT JOIN tools t ON t.id = a.tool_id
	    LEFT JOIN call_requests c ON c.id = a.id
	    LEFT JOIN tool_versions v ON v.id = coalesce(c.version_id, a.subject)
	    LEFT JOIN module_requests m ON m.id = a.subject
	    LEFT JOIN network_requests n ON n.id = a.subject
	WHERE s.id = a.server_id
$$;

-- Returns a request's circumstances, beside its content: JSON members without braces.
CREATE FUNCTION approval_circumstances(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT '"review":' || to_json(review_mode(a.kind)) || ',"affected_tools":'
	    || coalesce((SELECT json_agg(json_build_object('exposed_name', v.exposed_name,
	    'version', v.version_no, 'hash', encode(v.hash, 'hex')) ORDER BY v.exposed_name)
	    FROM (SELECT x.* FROM tools t JOIN tool_versions x ON x.id = t.serving_version
	    LEFT JOIN network_requests n ON n.id = a.subject
	    WHERE t.server_id = a.server_id AND x.requires <> '{}' AND EXISTS
	    (SELECT 1 FROM unnest(x.requires) r CROSS JOIN LATERAL need_parts(r) d
	    WHERE grant_covers(n.proto, n.host, n.port, d.proto, d.host, d.port))
	    ORDER BY x.exposed_name LIMIT 100) v), '[]')::text
$$;

CREATE FUNCTION comments_json(p_request uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(json_build_object('id', c.id, 'at', mcpbox.approval_time(c.at),
	    'author', c.author, 'text', c.text) ORDER BY c.id), '[]')
	FROM (SELECT * FROM mcpbox.approval_comments x WHERE x.request_id = p_request
	    ORDER BY x.id DESC LIMIT 200) c
$$;

-- Stores a reviewer's comment. The server and the request are locked before the
-- audit head, since an import that is repeated for a source takes the head
-- before its pending requests.
CREATE FUNCTION act_approval_comment(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r uuid := act_uuid(p_id, 'request');
	said text := btrim(p_body ->> 'text', E' \t\r\n');
BEGIN
	PERFORM 1 FROM servers WHERE id = (SELECT a.server_id FROM approval_requests a
	    WHERE a.id = r) FOR SHARE;
	PERFORM 1 FROM approval_requests WHERE id = r FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such request');
	ELSIF length(said) NOT BETWEEN 1 AND 2000 THEN
		PERFORM fail('invalid_params', 'a comment has 1 to 2000 characters');
	ELSIF (SELECT count(*) FROM approval_comments WHERE request_id = r) >= 200 THEN
		PERFORM fail('limit', 'a request has at most 200 comments');
	END IF;
	INSERT INTO approval_comments (id, request_id, author, text)
	    VALUES (request_uuid(), r, p_actor, said);
	PERFORM audit_append(p_actor, 'approval_commented', 'request ' || r,
	    json_build_object('text', left(said, 500))::text);
	RETURN json_build_object('items', comments_json(r))::text;
END $$;

-- Revokes the version or the grant that a request approved.
CREATE FUNCTION act_approval_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r uuid := act_uuid(p_id, 'request');
	why text := p_body ->> 'reason';
	a approval_requests;
	g record;
	s text;
BEGIN
	SELECT * INTO a FROM approval_requests WHERE id = r;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such request');
	ELSIF length(btrim(why)) NOT BETWEEN 1 AND 2000 THEN
		PERFORM fail('invalid_params', 'a reason has 1 to 2000 characters');
	ELSIF a.state <> 'approved' THEN
		PERFORM fail('conflict', 'the request is ' || a.state || ', so there is nothing to revoke');
	END IF;
	-- locks in the usual order
	IF a.kind = 'network' THEN
		PERFORM 1 FROM servers WHERE id = a.server_id FOR UPDATE;
	ELSE
		PERFORM 1 FROM servers WHERE id = a.server_id FOR SHARE;
		PERFORM 1 FROM tools WHERE id = a.tool_id FOR UPDATE;
	END IF;
	CASE a.kind
	WHEN 'tool' THEN
		PERFORM revoke_version(a.subject, why, p_actor);
	WHEN 'module' THEN
		UPDATE tool_modules x SET revoked_at = clock_timestamp(), revoked_by = p_actor
		    WHERE x.request_id = r AND x.revoked_at IS NULL RETURNING * INTO g;
		IF NOT FOUND THEN
			PERFORM fail('conflict', 'that grant is revoked already, or another request gave it anew');
		END IF;
		SELECT name INTO s FROM tools WHERE id = a.tool_id;
		PERFORM audit_append(p_actor, 'module_revoked', 'tool ' || s,
		    json_build_object('request_id', r, 'tool_id', a.tool_id, 'modules',
		    g.name || '==' || g.version, 'reason', why)::text);
	WHEN 'network' THEN
		UPDATE network_grants x SET revoked_at = clock_timestamp(), revoked_by = p_actor
		    WHERE x.request_id = r AND x.revoked_at IS NULL RETURNING * INTO g;
		IF NOT FOUND THEN
			PERFORM fail('conflict', 'that grant is revoked already');
		END IF;
		SELECT name INTO s FROM servers WHERE id = a.server_id;
		PERFORM audit_append(p_actor, 'network_revoked', 'server ' || s,
		    json_build_object('request_id', r, 'server_id', a.server_id, 'host', g.host,
		    'port', nullif(g.port, 0), 'reason', why)::text);
	ELSE
		PERFORM fail('conflict', 'a yes to one call is used up, or expires: it can not be revoked');
	END CASE;
	SELECT * INTO a FROM approval_requests WHERE id = r;
	RETURN approval_item(a);
END $$;

-- Revokes the version of a tool (prompt, resource) that serves.
CREATE FUNCTION act_tool_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	why text := p_body ->> 'reason';
BEGIN
	PERFORM 1 FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = act_uuid(p_id, 'tool') FOR SHARE OF s;
	SELECT * INTO t FROM tools WHERE id = act_uuid(p_id, 'tool') FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	ELSIF length(btrim(why)) NOT BETWEEN 1 AND 2000 THEN
		PERFORM fail('invalid_params', 'a reason has 1 to 2000 characters');
	ELSIF t.serving_version IS NULL THEN
		PERFORM fail('conflict', 'no version of it serves');
	END IF;
	PERFORM revoke_version(t.serving_version, why, p_actor);
	RETURN json_build_object('id', t.id, 'revoked_version_id', t.serving_version)::text;
END $$;

-- Returns whether a policy may approve this version of this tool. It may not
-- while an administrator has disabled the tool or stopped its server. It may
-- not if a person's last decision about this tool, or about the name that
-- clients call it by, was a no: a rejection, or the revocation of the version
-- that was approved last. So a person also decides about a tool that was
-- deleted and made again. A policy never approves the very bytes that a person
-- rejected or revoked, which a rollback makes again.
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

-- Asks tool_automatic() again, because an administrator may have stopped,
-- rejected or revoked something between the policy's decision and its seal.
-- approval_locked() has locked server and tool, so this answer is the last one.
CREATE FUNCTION approval_still_automatic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT mcpbox.tool_automatic(NEW.tool_id, NEW.subject) THEN
		PERFORM mcpbox.fail('forbidden', 'a person decides about this version: somebody'
		    ' stopped, rejected or revoked what it belongs to');
	END IF;
	RETURN NEW;
END $$;

-- Returns how many versions of one principal may wait for review. A person
-- reads them, and a principal that asks without end hides the requests of
-- others among thousands of rows. 256 is more than one import asks for at once
-- (200 of a source, 50 of a document). This is not a setting. Nor are the
-- bounds of a tool's requests for modules and of a server's requests for hosts.
CREATE FUNCTION publish_pending_max() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 256';

-- Fails if p_actor has as many requests waiting as it may have. The request of
-- p_tool is not counted, because the new one replaces it. Two requests at once
-- may both be the last. A lock could prevent this, but an import would take it
-- after the audit head, and others before the head. So one principal may exceed
-- the bound by as many requests as it has in work at once, which admind bounds.
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

CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_seals EXECUTE FUNCTION refuse();
CREATE TRIGGER no_delete BEFORE DELETE ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_requests EXECUTE FUNCTION refuse();
CREATE TRIGGER guard BEFORE UPDATE ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_guard();
CREATE TRIGGER guard_insert BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_insert();
CREATE TRIGGER guard_server BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_server();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_firsts EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_policies EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_comments
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_comments EXECUTE FUNCTION refuse();
CREATE TRIGGER search BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_search();
CREATE TRIGGER still_automatic BEFORE UPDATE OF state ON approval_requests FOR EACH ROW
    WHEN (NEW.kind = 'tool' AND NEW.state = 'approved' AND OLD.state = 'pending'
	AND starts_with(NEW.decided_by, 'policy:'))
    EXECUTE FUNCTION approval_still_automatic();

GRANT EXECUTE ON FUNCTION decide_approval, approval_query, review_mode,
    request_publish, first_approval, policy_store, approval_time,
    approval_revoked, approval_item, approval_circumstances, comments_json TO
    mcpbox_app;
