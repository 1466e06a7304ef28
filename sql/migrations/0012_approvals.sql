-- 0012: modules, network access and policies of review. What a person says yes
-- to in these queues is a pre-image, hashed and sealed like a version's
-- (docs/decisions/0037, 0038; common/grantreq.h).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- What versions need of the network.

ALTER TABLE tool_versions
	ADD COLUMN requires text[] NOT NULL
	    GENERATED ALWAYS AS (version_texts(preimage, 21)) STORED
	    CHECK (cardinality(requires) <= 64);

-- A requirement as its author wrote it: host, host:port or an IPv6 address. port
-- 0: any. host null: it is none of these, and nothing covers it.
CREATE FUNCTION require_parts(require text, OUT host text, OUT port int)
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN m IS NOT NULL THEN rtrim(lower(m[1]), '.')
	        WHEN require ~ '^[0-9a-fA-F:.]+$' THEN lower(require) END,
	    coalesce(m[2], '0')::int
	FROM regexp_match(require, '^([^:/]+)(?::([0-9]{1,5}))?$') AS x (m)
$$;

-- Does a grant of this host and port (0: every one) meet the requirement? A
-- requirement without a port is met by any port of the host: what is opened is
-- what was granted. One of *.domain is met by nothing narrower.
CREATE FUNCTION host_covers(p_host text, p_port int, require text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce((r.host = p_host OR (p_host LIKE '*.%'
	    AND right(r.host, length(p_host) - 1) = substr(p_host, 2)
	    AND length(r.host) >= length(p_host)))
	    AND (r.port = 0 OR p_port = 0 OR r.port = p_port), false)
	FROM mcpbox.require_parts(require) r
$$;

---------------------------------------------------------------------------
-- Requests. module_requests (0002) says what a model asked for; this what it
-- asked of the network. grant_requests holds the bytes of each request: they
-- change with what is affected, and then it is another request.

CREATE TABLE network_requests (
	id uuid PRIMARY KEY,	-- approval_requests.subject of kind network
	server_id uuid NOT NULL REFERENCES servers (id),
	proto text NOT NULL DEFAULT 'tcp' CHECK (proto = 'tcp'),
	host text COLLATE "C" NOT NULL CHECK (octet_length(host) BETWEEN 1 AND 253),
	port int NOT NULL CHECK (port BETWEEN 0 AND 65535),	-- 0: every port
	tool_ids uuid[] NOT NULL DEFAULT '{}',	-- for whom it was asked
	justification text NOT NULL CHECK (length(justification) BETWEEN 1 AND 2000)
);
CREATE INDEX ON network_requests (server_id, host, port);
CREATE INDEX ON network_requests USING gin (tool_ids);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON network_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON network_requests EXECUTE FUNCTION refuse();

CREATE TABLE grant_requests (
	id uuid PRIMARY KEY REFERENCES approval_requests (id),
	preimage bytea NOT NULL CHECK (length(preimage) <= 262144)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON grant_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON grant_requests EXECUTE FUNCTION refuse();

-- What was granted. A row stays when it is revoked: who had it, and when.
CREATE TABLE network_grants (
	request_id uuid PRIMARY KEY REFERENCES approval_seals (request_id),
	server_id uuid NOT NULL REFERENCES servers (id),
	proto text NOT NULL CHECK (proto = 'tcp'),
	host text COLLATE "C" NOT NULL,
	port int NOT NULL CHECK (port BETWEEN 0 AND 65535),
	automatic boolean NOT NULL,	-- by a policy, not by a person
	granted_at timestamptz NOT NULL,
	granted_by text NOT NULL CHECK (actor_ok(granted_by)),
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE UNIQUE INDEX network_grants_live_idx ON network_grants (server_id, host, port, proto)
    WHERE revoked_at IS NULL;
CREATE INDEX ON network_grants (server_id, request_id);

-- A grant is what was sealed: its bytes' own words. It ends once.
CREATE FUNCTION network_grants_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
		    OR (NEW.request_id, NEW.server_id, NEW.proto, NEW.host, NEW.port,
		    NEW.automatic, NEW.granted_at, NEW.granted_by) IS DISTINCT FROM
		    (OLD.request_id, OLD.server_id, OLD.proto, OLD.host, OLD.port,
		    OLD.automatic, OLD.granted_at, OLD.granted_by) THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002',
			    MESSAGE = 'a grant is immutable and revoked once';
		END IF;
	ELSIF NOT EXISTS (SELECT 1 FROM mcpbox.approval_requests a
	    JOIN mcpbox.network_requests n ON n.id = a.subject
	    WHERE a.id = NEW.request_id AND a.kind = 'network'
	    AND (n.server_id, n.proto, n.host, n.port)
	    = (NEW.server_id, NEW.proto, NEW.host, NEW.port)) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'no grant but what was asked for and sealed';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION network_grants_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON network_grants EXECUTE FUNCTION refuse();

-- A module that was granted by a request names it; null: by root, directly
-- (decision 0037 says why that one needs no seal).
ALTER TABLE tool_modules ADD COLUMN request_id uuid REFERENCES approval_seals (request_id);
CREATE INDEX ON tool_modules (request_id);

-- The first of two yeses, sealed by the vault.
CREATE TABLE approval_firsts (
	request_id uuid PRIMARY KEY REFERENCES approval_requests (id),
	hash bytea NOT NULL CHECK (length(hash) = 32),
	actor text NOT NULL CHECK (actor_ok(actor)),
	at timestamptz NOT NULL,
	seal bytea NOT NULL CHECK (length(seal) BETWEEN 1 AND 4096)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_firsts
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_firsts EXECUTE FUNCTION refuse();

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
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_policies
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_policies EXECUTE FUNCTION refuse();

-- What reviewers say to each other about a request.
CREATE TABLE approval_comments (
	id uuid PRIMARY KEY,
	request_id uuid NOT NULL REFERENCES approval_requests (id),
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	author text NOT NULL CHECK (actor_ok(author)),
	text text NOT NULL CHECK (length(text) BETWEEN 1 AND 2000)
);
CREATE INDEX ON approval_comments (request_id, id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_comments
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_comments EXECUTE FUNCTION refuse();

---------------------------------------------------------------------------
-- Searching: the words of names and notes, each as a prefix.

ALTER TABLE approval_requests ADD COLUMN search tsvector;

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
CREATE TRIGGER search BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_search();
-- decided ones don't change otherwise
ALTER TABLE approval_requests DISABLE TRIGGER USER;
UPDATE approval_requests a SET search = approval_words(a);
ALTER TABLE approval_requests ENABLE TRIGGER USER;
CREATE INDEX approval_requests_search_idx ON approval_requests USING gin (search);
CREATE INDEX approval_requests_queue_idx ON approval_requests (kind, state, id);
CREATE INDEX approval_requests_kind_idx ON approval_requests (kind, id);
CREATE INDEX approval_requests_state_idx ON approval_requests (state, id);
CREATE INDEX approval_requests_server_idx ON approval_requests (server_id, id);

---------------------------------------------------------------------------
-- The bytes of a request.

-- RFC 9562 section 5.7, for rows that SQL makes by itself: requests are listed
-- in the order of their ids.
CREATE FUNCTION request_uuid() RETURNS uuid LANGUAGE sql VOLATILE AS $$
	SELECT encode(set_byte(overlay(uuid_send(gen_random_uuid()) PLACING substring(
	    int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
	    FROM 1 FOR 6), 6, 112 | (get_byte(uuid_send(gen_random_uuid()), 0) & 15)),
	    'hex')::uuid
$$;
CREATE FUNCTION grant_field(tag int, value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
	SELECT set_byte('\x00'::bytea, 0, tag) || int4send(length(value)) || value
$$;

-- Versions that serve and that the grant touches, ascending: of a module, the
-- tool's, if it names just this content; of a host, those of the server that
-- need it.
CREATE FUNCTION grant_affected(p_kind text, p_server uuid, p_tool uuid, p_line text,
    p_host text, p_port int) RETURNS bytea
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(string_agg(grant_field(15, h.hash), ''::bytea ORDER BY h.hash), ''::bytea)
	FROM (SELECT DISTINCT v.hash FROM tools t JOIN tool_versions v ON v.id = t.serving_version
	    WHERE t.deleted_at IS NULL AND t.server_id = p_server AND CASE p_kind
	    WHEN 'module' THEN t.id = p_tool AND p_line = ANY (v.modules)
	    ELSE v.requires <> '{}' AND EXISTS (SELECT 1 FROM unnest(v.requires) r
	    WHERE host_covers(p_host, p_port, r)) END LIMIT 4097) h
$$;

-- What request p_id of this kind and subject asks for, as things are now. Null:
-- there is no such subject.
CREATE FUNCTION grant_preimage(p_kind text, p_subject uuid, p_id uuid) RETURNS bytea
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r module_requests;
	n network_requests;
	t tools;
	m modules;
	s servers;
	body bytea;
	affected bytea;
BEGIN
	IF p_kind = 'module' THEN
		SELECT * INTO r FROM module_requests WHERE id = p_subject;
		SELECT * INTO t FROM tools WHERE id = r.tool_id;
		SELECT * INTO m FROM modules x WHERE x.name = r.name AND x.state = 'available'
		    AND (r.version = '' OR x.version = r.version)
		    ORDER BY x.added_at DESC, x.version DESC LIMIT 1;
		SELECT * INTO s FROM servers WHERE id = t.server_id;
		body := grant_field(5, uuid_send(t.id)) || grant_field(6, convert_to(t.name, 'UTF8'))
		    || grant_field(7, convert_to(r.name, 'UTF8'));
		IF m.name IS NOT NULL THEN
			body := body || grant_field(8, convert_to(m.version, 'UTF8'))
			    || grant_field(9, m.digest) || grant_field(10, int8send(m.files))
			    || grant_field(11, int8send(m.bytes));
		END IF;
		affected := grant_affected('module', s.id, t.id, m.name || ' ' || m.version
		    || ' ' || encode(m.digest, 'hex'), NULL, NULL);
	ELSE
		SELECT * INTO n FROM network_requests WHERE id = p_subject;
		SELECT * INTO s FROM servers WHERE id = n.server_id;
		body := grant_field(12, convert_to(n.proto, 'UTF8'))
		    || grant_field(13, convert_to(n.host, 'UTF8'))
		    || grant_field(14, int8send(n.port));
		affected := grant_affected('network', s.id, NULL, NULL, n.host, n.port);
	END IF;
	-- common/grantreq.h: GRANTREQ_AFFECTED_MAX of 37 bytes
	IF length(affected) > 4096 * 37 THEN
		PERFORM fail('limit', 'more than 4096 versions that serve need it');
	END IF;
	RETURN convert_to('mcpbox grant 1', 'UTF8') || '\x00'::bytea
	    || grant_field(1, int8send(CASE p_kind WHEN 'module' THEN 1 ELSE 2 END))
	    || grant_field(2, uuid_send(p_id)) || grant_field(3, uuid_send(s.id))
	    || grant_field(4, convert_to(split_part(s.name, '@', 1), 'UTF8')) || body || affected;
END $$;

-- A request of these kinds, with its bytes.
CREATE FUNCTION grant_request(p_id uuid, p_kind text, p_subject uuid, p_server uuid,
    p_tool uuid, p_actor text, p_notes text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := grant_preimage(p_kind, p_subject, p_id);
BEGIN
	INSERT INTO approval_requests (id, kind, subject, hash, server_id, tool_id,
	    requested_by, notes) VALUES (p_id, p_kind, p_subject, sha256(pre), p_server,
	    p_tool, p_actor, p_notes);
	INSERT INTO grant_requests VALUES (p_id, pre);
END $$;

-- Who changes the module store, and who decides or asks about a module, take
-- turns: the one goes from a module to the tools that asked for it, the others
-- the way back.
CREATE FUNCTION module_turn(p_store boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF p_store THEN
		PERFORM pg_advisory_xact_lock(hashtextextended('mcpbox modules', 0));
	ELSE
		PERFORM pg_advisory_xact_lock_shared(hashtextextended('mcpbox modules', 0));
	END IF;
END $$;

-- Pending requests (of one server, or for one module) whose bytes would differ
-- now are superseded by fresh ones. No audit row: who asked, and for what, is
-- the same, and audit's lock comes behind those of who called us. The fresh row
-- refers to server and tool, which are therefore locked before the request.
CREATE FUNCTION grants_refresh(p_server uuid, p_module text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests;
	fresh uuid;
BEGIN
	FOR a IN SELECT x.* FROM approval_requests x JOIN grant_requests g ON g.id = x.id
	    WHERE x.state = 'pending' AND x.kind IN ('module', 'network')
	    AND (p_server IS NULL OR x.server_id = p_server)
	    AND (p_module IS NULL OR x.subject IN (SELECT r.id FROM module_requests r
	    WHERE r.name = p_module))
	    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
	    AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.id = x.tool_id
	    AND t.deleted_at IS NOT NULL) ORDER BY x.server_id, x.tool_id, x.id LOOP
		PERFORM 1 FROM servers WHERE id = a.server_id FOR KEY SHARE;
		PERFORM 1 FROM tools WHERE id = a.tool_id FOR KEY SHARE;
		SELECT x.* INTO a FROM approval_requests x JOIN grant_requests g ON g.id = x.id
		    WHERE x.id = a.id AND x.state = 'pending'
		    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
		    FOR UPDATE OF x;
		CONTINUE WHEN NOT FOUND;
		fresh := request_uuid();
		UPDATE approval_requests SET state = 'superseded', decided_by = 'mcpbox',
		    decided_at = clock_timestamp(), reason = 'what it would change is another now:'
		    || ' request ' || fresh WHERE id = a.id;
		PERFORM grant_request(fresh, a.kind, a.subject, a.server_id, a.tool_id,
		    a.requested_by, a.notes);
	END LOOP;
END $$;
CREATE FUNCTION grants_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_TABLE_NAME = 'tools' THEN
		PERFORM mcpbox.grants_refresh(NEW.server_id, NULL);
	ELSE
		PERFORM mcpbox.grants_refresh(NULL, NEW.name);
	END IF;
	RETURN NULL;
END $$;
-- Named to fire before `callable`: requests are locked before its turn.
CREATE TRIGGER approvals AFTER UPDATE ON tools FOR EACH ROW
    WHEN (OLD.serving_version IS DISTINCT FROM NEW.serving_version
    OR OLD.name <> NEW.name) EXECUTE FUNCTION grants_follow();
CREATE TRIGGER approvals AFTER INSERT ON modules FOR EACH ROW
    EXECUTE FUNCTION grants_follow();
CREATE TRIGGER approvals_state AFTER UPDATE ON modules FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.files IS DISTINCT FROM NEW.files
    OR OLD.bytes IS DISTINCT FROM NEW.bytes) EXECUTE FUNCTION grants_follow();

---------------------------------------------------------------------------
-- Asking.

-- How a queue is reviewed now; for showing, and for whether to ask the vault.
CREATE FUNCTION review_mode(p_queue text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce((SELECT CASE WHEN mode = 'automatic' AND until <= clock_timestamp()
	    THEN 'require' ELSE mode END FROM (SELECT CASE p_queue WHEN 'tool' THEN tool
	    WHEN 'module' THEN module ELSE network END, until
	    FROM approval_policies ORDER BY serial DESC LIMIT 1) p (mode, until)), 'require')
$$;

-- 0002's, with bytes that are approved.
CREATE OR REPLACE FUNCTION request_module(p_request uuid, p_subject uuid, p_tool uuid,
    p_name text, p_version text, p_justification text, p_actor text,
    OUT module text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	n text := module_name(p_name);
	pre bytea;
	a approval_requests;
BEGIN
	module := n || CASE p_version WHEN '' THEN '' ELSE '==' || p_version END;
	PERFORM module_turn(false);
	PERFORM 1 FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = p_tool FOR SHARE OF s;
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	IF EXISTS (SELECT 1 FROM tool_modules g JOIN modules m USING (name, version, digest)
	    WHERE g.tool_id = p_tool AND g.name = n AND (p_version = '' OR g.version = p_version)
	    AND g.revoked_at IS NULL AND m.state = 'available') THEN
		PERFORM fail('conflict', 'the module ' || module
		    || ' is granted to this tool already: name it in modules');
	END IF;
	SELECT x.* INTO a FROM approval_requests x JOIN module_requests r ON r.id = x.subject
	    WHERE x.kind = 'module' AND x.tool_id = p_tool AND r.name = n AND r.version = p_version
	    ORDER BY x.requested_at DESC, x.id DESC LIMIT 1;
	IF a.state = 'pending' THEN
		PERFORM fail('conflict', 'the module ' || module || ' is asked for already: request '
		    || a.id::text);
	ELSIF a.state = 'rejected' THEN
		PERFORM fail('conflict', 'an administrator refused the module ' || module
		    || ' for this tool: ' || a.reason);
	END IF;
	-- A client must not push other requests out of an administrator's sight.
	IF (SELECT count(*) FROM approval_requests x WHERE x.kind = 'module'
	    AND x.tool_id = p_tool AND x.state = 'pending') >= 32 THEN
		PERFORM fail('limit', 'this tool has 32 pending requests for modules, '
		    || 'which is the limit: an administrator decides them first');
	END IF;
	pre := convert_to('mcpbox module request 1', 'UTF8') || '\x00'::bytea
	    || '\x01'::bytea || int4send(16) || uuid_send(p_tool)
	    || '\x02'::bytea || int4send(octet_length(n)) || convert_to(n, 'UTF8')
	    || '\x03'::bytea || int4send(octet_length(p_version)) || convert_to(p_version, 'UTF8')
	    || '\x04'::bytea || int4send(octet_length(p_justification))
	    || convert_to(p_justification, 'UTF8');
	INSERT INTO module_requests VALUES (p_subject, p_tool, n, p_version, p_justification, pre);
	PERFORM grant_request(p_request, 'module', p_subject, t.server_id, p_tool, p_actor,
	    p_justification);
	PERFORM audit_append(p_actor, 'module_requested', 'tool ' || t.name,
	    json_build_object('request_id', p_request, 'tool_id', p_tool, 'module', module)::text);
END $$;

-- One spelling of a host, or what is wrong with it: grantreq_host()'s rules.
CREATE FUNCTION host_spelled(p_host text, OUT host text, OUT wrong text)
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	name text;
	a inet;
BEGIN
	host := lower(rtrim(btrim(p_host), '.'));
	IF host ~ '^\[.*\]$' THEN
		host := substr(host, 2, length(host) - 2);
	END IF;
	IF host ~ '^[a-z]+://' OR host ~ '/' THEN
		wrong := 'a host is asked for, not a URL: name it without scheme and path';
	ELSIF octet_length(host) NOT BETWEEN 1 AND 253 THEN
		wrong := 'a host has 1 to 253 characters';
	ELSIF host ~ '^[0-9]+(\.[0-9]+){3}$' OR host ~ ':' THEN
		BEGIN
			a := host::inet;
		EXCEPTION WHEN data_exception THEN
			wrong := 'that is not an address';
			RETURN;
		END;
		IF masklen(a) <> (CASE family(a) WHEN 4 THEN 32 ELSE 128 END) OR host ~ '/'
		    OR (family(a) = 4 AND host <> host(a)) THEN
			wrong := 'that is not an address of one host in its usual spelling';
		ELSIF a <<= '0.0.0.0/8' OR a <<= '127.0.0.0/8' OR a <<= '169.254.0.0/16'
		    OR a <<= '224.0.0.0/3' OR a <<= '::/80' OR a <<= 'fe80::/10' OR a <<= 'ff00::/8' THEN
			wrong := 'this address can not be granted: loopback, link-local and multicast never are';
		ELSE
			host := host(a);
		END IF;
	ELSE
		name := CASE WHEN host LIKE '*.%' THEN substr(host, 3) ELSE host END;
		IF name !~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$'
		    OR name ~ '(^|\.)[0-9][a-z0-9-]*$' THEN
			wrong := 'that is not a host name: letters, digits and dashes in labels'
			    ' (an international name in its xn-- form), or *. before a domain';
		ELSIF name ~ '(^|\.)localhost$' THEN
			wrong := 'this machine itself can not be granted';
		ELSIF host LIKE '*.%' AND name !~ '\.' THEN
			wrong := '*. stands before a domain of two labels at least';
		END IF;
	END IF;
END $$;

-- A model (or an administrator) asks that tools of a server may reach a host;
-- a person decides. p_tools: for whom; all of that server. p_port 0: every
-- port. p_person: an administrator asks, whom no earlier refusal binds.
CREATE FUNCTION request_network(p_request uuid, p_subject uuid, p_server uuid,
    p_tools uuid[], p_host text, p_port int, p_justification text, p_actor text,
    p_person boolean, OUT host text, OUT server text, OUT tools text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
#variable_conflict use_column
DECLARE
	s servers;
	h record;
	a approval_requests;
	found int;
	shown text;
BEGIN
	SELECT * INTO s FROM servers x WHERE x.id = coalesce(p_server,
	    (SELECT t.server_id FROM mcpbox.tools t WHERE t.id = p_tools[1])) FOR UPDATE;
	SELECT count(*), json_agg(json_build_object('id', t.id, 'name', t.name)
	    ORDER BY t.name)::text INTO found, request_network.tools
	    FROM mcpbox.tools t WHERE t.id = ANY (p_tools) AND t.server_id = s.id
	    AND t.deleted_at IS NULL;
	IF s.id IS NULL OR s.name LIKE '%@%' THEN
		PERFORM fail('not_found', 'there is no such '
		    || CASE WHEN p_server IS NULL THEN 'tool' ELSE 'server' END);
	ELSIF found <> cardinality(p_tools) THEN
		PERFORM fail(CASE WHEN cardinality(p_tools) > 1 THEN 'invalid_arguments'
		    ELSE 'not_found' END, 'the tools must exist and be of one server, each named once');
	END IF;
	h := host_spelled(p_host);
	IF h.wrong IS NOT NULL THEN
		PERFORM fail('invalid_arguments', h.wrong);
	ELSIF p_port NOT BETWEEN 0 AND 65535 THEN
		PERFORM fail('invalid_arguments', 'a port is from 1 to 65535');
	END IF;
	host := h.host;
	server := s.name;
	tools := coalesce(tools, '[]');
	shown := host || CASE p_port WHEN 0 THEN '' ELSE ':' || p_port END;
	IF EXISTS (SELECT 1 FROM network_grants g WHERE g.server_id = s.id
	    AND g.revoked_at IS NULL AND host_covers(g.host, g.port, h.host)
	    AND (g.port = 0 OR g.port = p_port)) THEN
		PERFORM fail('conflict', shown || ' is granted to the server ' || s.name
		    || ' already: name it in requires');
	END IF;
	SELECT x.* INTO a FROM approval_requests x JOIN network_requests r ON r.id = x.subject
	    WHERE x.kind = 'network' AND r.server_id = s.id AND r.host = h.host
	    AND r.port = p_port ORDER BY x.requested_at DESC, x.id DESC LIMIT 1;
	IF a.state = 'pending' THEN
		PERFORM fail('conflict', shown || ' is asked for already: request ' || a.id::text);
	ELSIF a.state = 'rejected' AND NOT p_person THEN
		PERFORM fail('conflict', 'an administrator refused ' || shown
		    || ' for this server: ' || a.reason);
	END IF;
	IF NOT p_person AND (SELECT count(*) FROM approval_requests x WHERE x.kind = 'network'
	    AND x.server_id = s.id AND x.state = 'pending') >= 32 THEN
		PERFORM fail('limit', 'this server has 32 pending requests for network access, '
		    || 'which is the limit: an administrator decides them first');
	END IF;
	INSERT INTO network_requests (id, server_id, host, port, tool_ids, justification)
	    VALUES (p_subject, s.id, h.host, p_port, p_tools, p_justification);
	PERFORM grant_request(p_request, 'network', p_subject, s.id, NULL, p_actor,
	    p_justification);
	PERFORM audit_append(p_actor, 'network_requested', 'server ' || s.name,
	    json_build_object('request_id', p_request, 'server_id', s.id, 'host', h.host,
	    'port', nullif(p_port, 0), 'tools', request_network.tools::json)::text);
END $$;

-- 0001's, and: automatic: the policy says that the vault may approve it without
-- a person. (Whether it does is the vault's; what names secrets it won't.)
DROP FUNCTION request_publish(uuid, uuid, uuid, text, text);
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
	automatic := v.secrets = '{}' AND review_mode('tool') = 'automatic';
END $$;

---------------------------------------------------------------------------
-- Deciding.

-- The request, with what stands above it locked in the usual order, if it may
-- still be decided.
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

-- A yes to a request: to these bytes, which are still what it would change.
CREATE FUNCTION approval_same(a approval_requests, p_hash bytea) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_hash IS DISTINCT FROM a.hash OR (a.kind IN ('module', 'network')
	    AND sha256(grant_preimage(a.kind, a.subject, a.id)) <> a.hash) THEN
		PERFORM fail('hash_mismatch', 'what was reviewed is not what is asked for');
	END IF;
END $$;

-- The first of two yeses. The same person's once more is told so.
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

-- 0007's, and: modules and network access.
CREATE OR REPLACE FUNCTION decide_approval(p_request uuid, p_approved boolean,
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

-- A policy that the vault sealed. Serials rise, so the newest row holds.
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

-- 0002's, taking turns.
CREATE OR REPLACE FUNCTION add_module(p_name text, p_version text, p_digest bytea,
    p_files bigint, p_bytes bigint, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m modules;
BEGIN
	PERFORM module_turn(true);
	INSERT INTO modules (name, version, digest, files, bytes, added_by)
	    VALUES (module_name(p_name), p_version, p_digest, p_files, p_bytes, p_actor)
	    ON CONFLICT (name, version) DO NOTHING;
	SELECT * INTO STRICT m FROM modules WHERE name = module_name(p_name)
	    AND version = p_version FOR UPDATE;
	IF m.digest <> p_digest THEN
		PERFORM fail('conflict', m.name || '==' || m.version
		    || ' is recorded with the digest ' || encode(m.digest, 'hex'));
	END IF;
	UPDATE modules SET state = 'available', files = p_files, bytes = p_bytes
	    WHERE name = m.name AND version = m.version;
	PERFORM audit_append(p_actor, 'module_added', 'module ' || m.name || '==' || m.version,
	    json_build_object('digest', encode(m.digest, 'hex'))::text);
END $$;

CREATE OR REPLACE FUNCTION withdraw_module(p_name text, p_version text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM module_turn(true);
	UPDATE modules SET state = 'withdrawn' WHERE name = module_name(p_name)
	    AND version = p_version AND state = 'available';
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module');
	END IF;
	PERFORM audit_append(p_actor, 'module_withdrawn',
	    'module ' || module_name(p_name) || '==' || p_version, '{}');
END $$;

CREATE OR REPLACE FUNCTION grant_module(p_tool text, p_name text, p_version text, p_actor text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	m modules;
BEGIN
	PERFORM module_turn(false);
	t := tool_named(p_tool);
	SELECT * INTO m FROM modules x WHERE x.name = module_name(p_name)
	    AND (p_version = '' OR x.version = p_version) AND x.state = 'available'
	    ORDER BY x.added_at DESC LIMIT 1;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such available module: record it first');
	END IF;
	INSERT INTO tool_modules (tool_id, name, version, digest, granted_by)
	    VALUES (t.id, m.name, m.version, m.digest, p_actor)
	    ON CONFLICT (tool_id, name, version) DO UPDATE SET granted_at = clock_timestamp(),
	    granted_by = excluded.granted_by, revoked_at = NULL, revoked_by = NULL,
	    request_id = NULL;
	PERFORM audit_append(p_actor, 'module_granted', 'tool ' || t.name,
	    json_build_object('tool_id', t.id, 'module', m.name || '==' || m.version,
	    'digest', encode(m.digest, 'hex'))::text);
	RETURN m.name || '==' || m.version;
END $$;

---------------------------------------------------------------------------
-- Taking back.

-- 0001's, its server locked before its tool, as everywhere.
CREATE OR REPLACE FUNCTION revoke_version(p_version uuid, p_reason text, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
BEGIN
	PERFORM 1 FROM servers s JOIN tool_versions tv ON tv.server_id = s.id
	    WHERE tv.id = p_version FOR SHARE OF s;
	PERFORM 1 FROM tools t JOIN tool_versions tv ON tv.tool_id = t.id
	    WHERE tv.id = p_version FOR UPDATE OF t;
	SELECT * INTO v FROM tool_versions WHERE id = p_version FOR UPDATE;
	IF NOT FOUND OR v.state <> 'approved' THEN
		PERFORM fail('conflict', 'there is no such approved version');
	END IF;
	UPDATE tool_versions SET state = 'revoked' WHERE id = p_version;
	PERFORM audit_append(p_actor, 'tool_revoked', 'tool ' || v.exposed_name,
	    json_build_object('tool_id', v.tool_id, 'version_id', v.id,
	    'version', v.version_no, 'hash', encode(v.hash, 'hex'),
	    'reason', p_reason)::text);
END $$;

-- What a version needs of the network and its server does not have: the first.
-- Null: nothing.
CREATE FUNCTION network_missing(p_server uuid, p_requires text[]) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT r FROM unnest(p_requires) r WHERE NOT EXISTS (SELECT 1
	    FROM mcpbox.network_grants g WHERE g.server_id = p_server
	    AND g.revoked_at IS NULL AND mcpbox.host_covers(g.host, g.port, r))
	ORDER BY r COLLATE "C" LIMIT 1
$$;

-- What a version needs and is not granted, as a sentence for who called it.
CREATE FUNCTION grant_missing(p_server uuid, p_tool uuid, p_modules text[], p_requires text[])
RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT coalesce(CASE WHEN p_modules <> '{}' THEN
	    'the module ' || regexp_replace(mcpbox.module_missing(p_tool, p_modules),
	    ' [0-9a-f]{64}$', '') || ' is not granted to this tool (any more): ask for it with'
	    || ' mcpbox_request_module.' END,
	    CASE WHEN p_requires <> '{}' THEN
	    'network access to ' || mcpbox.network_missing(p_server, p_requires)
	    || ' is not granted to this tool''s server (any more): ask for it with'
	    || ' mcpbox_request_network_access.' END)
$$;

-- 0008's, and: the hosts it needs are granted.
CREATE OR REPLACE VIEW callable_now AS
SELECT v.id AS version_id, e.epoch, v.hash, v.exposed_name, l.updated_at AS limits_at, t.id AS tool_id
FROM tools t
    JOIN tool_versions v ON v.id = t.serving_version AND v.tool_id = t.id AND v.state = 'approved'
    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
    LEFT JOIN server_limits l ON l.server_id = s.id
    JOIN epochs e ON e.ended_at IS NULL AND e.kind = 'sandboxd'
WHERE t.enabled AND t.deleted_at IS NULL
    AND (v.modules = '{}' OR module_missing(t.id, v.modules) IS NULL)
    AND (v.requires = '{}' OR network_missing(t.server_id, v.requires) IS NULL);

-- callable follows; and what runs with a grant that ended is withdrawn (mask 0
-- of 0004: no list changed).
CREATE FUNCTION network_grants_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE mcpbox.callable_turn SET turn = turn + 1;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'callable_turn has no row';
	END IF;
	PERFORM mcpbox.callable_refresh(ARRAY(SELECT t.id FROM mcpbox.tools t
	    JOIN mcpbox.tool_versions v ON v.id = t.serving_version
	    WHERE t.server_id = NEW.server_id AND v.requires <> '{}'));
	PERFORM mcpbox.catalogue_changed(0);
	RETURN NULL;
END $$;
CREATE TRIGGER callable AFTER INSERT OR UPDATE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION network_grants_follow();
-- Of a module, the same.
CREATE FUNCTION tool_modules_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mcpbox.catalogue_changed(0);
	RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER UPDATE ON tool_modules FOR EACH ROW
    WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION tool_modules_tell();
CREATE TRIGGER tell AFTER UPDATE ON modules FOR EACH ROW
    WHEN (OLD.state = 'available' AND NEW.state <> 'available')
    EXECUTE FUNCTION tool_modules_tell();
-- Versions that need the network and had no say in it until now.
SELECT callable_refresh(ARRAY(SELECT id FROM tools WHERE serving_version IS NOT NULL));

-- 0002's, and: the hosts.
CREATE OR REPLACE FUNCTION execution_open(p_id uuid, p_kind text, p_version uuid,
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

-- 0003's, and: the hosts.
CREATE OR REPLACE FUNCTION call_open(p_id uuid, p_version uuid, p_hash bytea, p_epoch uuid,
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
	    AND (v.modules = '{}' OR module_missing(v.tool_id, v.modules) IS NULL)
	    AND (v.requires = '{}' OR network_missing(v.server_id, v.requires) IS NULL);
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

---------------------------------------------------------------------------
-- Showing.

-- Hosts that were granted to a server (0010 had none to show).
CREATE OR REPLACE FUNCTION server_hosts(p_server uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(g.host || CASE g.port WHEN 0 THEN '' ELSE ':' || g.port END
	    ORDER BY g.host, g.port), '[]') FROM mcpbox.network_grants g
	WHERE g.server_id = p_server AND g.revoked_at IS NULL
$$;

CREATE FUNCTION approval_time(t timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Has what this request approved been taken back since?
CREATE FUNCTION approval_revoked(a approval_requests) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT CASE WHEN a.state <> 'approved' THEN NULL
	    WHEN a.kind = 'network' THEN (SELECT g.revoked_at FROM network_grants g
	        WHERE g.request_id = a.id)
	    WHEN a.kind = 'module' THEN (SELECT g.revoked_at FROM tool_modules g
	        WHERE g.request_id = a.id) END
$$;

-- An item of the list.
CREATE FUNCTION approval_item(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('id', a.id, 'kind', a.kind,
	    'state', a.state, 'revoked', a.state = 'approved' AND (coalesce(v.state = 'revoked', false)
	        OR approval_revoked(a) IS NOT NULL), 'server', split_part(s.name, '@', 1),
	    'server_id', a.server_id,
	    'tool', coalesce(v.name, t.name), 'tool_id', a.tool_id,
	    'exposed_name', v.exposed_name, 'version', v.version_no,
	    'version_id', v.id, 'module', m.name,
	    'module_version', nullif(m.version, ''), 'host', n.host, 'port', nullif(n.port, 0),
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

-- What stands beside the content: JSON members without braces.
CREATE FUNCTION approval_circumstances(a approval_requests) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT '"review":' || to_json(review_mode(a.kind)) || ',"affected_tools":'
	    || coalesce((SELECT json_agg(json_build_object('exposed_name', v.exposed_name,
	    'version', v.version_no, 'hash', encode(v.hash, 'hex')) ORDER BY v.exposed_name)
	    FROM (SELECT x.* FROM tools t JOIN tool_versions x ON x.id = t.serving_version
	    LEFT JOIN network_requests n ON n.id = a.subject
	    WHERE t.server_id = a.server_id AND x.requires <> '{}' AND EXISTS
	    (SELECT 1 FROM unnest(x.requires) r WHERE host_covers(n.host, n.port, r))
	    ORDER BY x.exposed_name LIMIT 100) v), '[]')::text
$$;

CREATE FUNCTION comments_json(p_request uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(json_build_object('id', c.id, 'at', mcpbox.approval_time(c.at),
	    'author', c.author, 'text', c.text) ORDER BY c.id), '[]')
	FROM (SELECT * FROM mcpbox.approval_comments x WHERE x.request_id = p_request
	    ORDER BY x.id DESC LIMIT 200) c
$$;

---------------------------------------------------------------------------
-- Actions (0009: admin_act calls them).

CREATE FUNCTION act_approval_comment(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r uuid := act_uuid(p_id, 'request');
	said text := btrim(p_body ->> 'text', E' \t\r\n');
BEGIN
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

-- Takes back what a request approved, whatever it was.
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

-- The version of a tool (prompt, resource) that serves.
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

-- p_id: the tool's id and the module's name with / between.
CREATE FUNCTION act_module_revoke(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := act_uuid(split_part(p_id, '/', 1), 'tool');
BEGIN
	RETURN json_build_object('tool_id', t, 'revoked', revoke_module(t::text,
	    split_part(p_id, '/', 2), coalesce(p_body ->> 'version', ''), p_actor))::text;
END $$;

-- An administrator asks for a host: a request like others, that is approved
-- like others (so the vault seals it).
CREATE FUNCTION act_network_request(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r uuid := request_uuid();
	a approval_requests;
	port bigint := coalesce((p_body ->> 'port')::bigint, 0);
	why text := coalesce(nullif(btrim(p_body ->> 'justification'), ''), 'asked for by an administrator');
BEGIN
	IF port NOT BETWEEN 0 AND 65535 OR (p_body ->> 'port') = '0' THEN
		PERFORM fail('invalid_params', 'a port is from 1 to 65535');
	ELSIF length(why) > 2000 THEN
		PERFORM fail('invalid_params', 'a justification has at most 2000 characters');
	END IF;
	PERFORM request_network(r, request_uuid(), act_uuid(p_id, 'server'), '{}',
	    p_body ->> 'host', port::int, why, p_actor, true);
	SELECT * INTO STRICT a FROM approval_requests WHERE id = r;
	RETURN approval_item(a);
END $$;

---------------------------------------------------------------------------
-- What was asked for before: with bytes of the new form.
DO $$
DECLARE
	a mcpbox.approval_requests;
	fresh uuid;
BEGIN
	FOR a IN SELECT * FROM mcpbox.approval_requests x WHERE x.kind = 'module'
	    AND x.state = 'pending' ORDER BY x.id LOOP
		fresh := mcpbox.request_uuid();
		UPDATE mcpbox.approval_requests SET state = 'superseded', decided_by = 'mcpbox',
		    decided_at = clock_timestamp(), reason = 'request ' || fresh WHERE id = a.id;
		PERFORM mcpbox.grant_request(fresh, a.kind, a.subject, a.server_id, a.tool_id,
		    a.requested_by, a.notes);
	END LOOP;
END $$;

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON network_requests, grant_requests, network_grants, approval_firsts,
    approval_policies, approval_comments FROM PUBLIC;
GRANT SELECT ON network_requests, grant_requests, network_grants, approval_firsts,
    approval_policies, approval_comments TO mcpbox_app;
REVOKE ALL ON FUNCTION require_parts, host_covers, network_grants_guard, approval_words,
    approval_query, approval_search, request_uuid, grant_field, grant_affected,
    grant_preimage, grant_request, module_turn, grants_refresh, grants_follow, review_mode,
    host_spelled, request_network, request_publish, approval_locked, approval_same,
    first_approval, policy_store, network_missing, grant_missing, network_grants_follow,
    tool_modules_tell, approval_time, approval_revoked, approval_item,
    approval_circumstances, comments_json, act_approval_comment, act_approval_revoke,
    act_tool_revoke, act_module_revoke, act_network_request FROM PUBLIC;
-- those that only read, as whoever calls them
GRANT EXECUTE ON FUNCTION require_parts, host_covers, approval_query, review_mode,
    network_missing, grant_missing, approval_time, approval_revoked, approval_item,
    approval_circumstances, comments_json TO mcpbox_app;
GRANT EXECUTE ON FUNCTION request_network, request_publish, first_approval, policy_store
    TO mcpbox_app;
