-- 0001: everything the first release keeps.
--
-- The run-time role mcpbox_app may read (not all) and call the functions at
-- the end; it writes no table directly. So each change of state is one
-- function, one transaction, with its audit row inside. Invariants stand as
-- constraints and triggers below the functions, so that a wrong function or
-- a person at psql as the owner is stopped too.
--
-- Errors meant for callers: ERRCODE 'MB001', message 'failure_mode: sentence'
-- with a failure mode of common/failure.def.

CREATE SCHEMA mcpbox;
REVOKE ALL ON SCHEMA mcpbox FROM PUBLIC;
GRANT USAGE ON SCHEMA mcpbox TO mcpbox_app;
SET LOCAL search_path = mcpbox, pg_temp;

-- What was applied (mcpbox-admind -m writes it); admind starts only on the
-- version it was built for.
CREATE TABLE schema_migrations (
	version int PRIMARY KEY CHECK (version > 0),
	name text NOT NULL,
	sha256 bytea NOT NULL CHECK (length(sha256) = 32),
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION fail(failure text, sentence text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'MB001',
	    MESSAGE = failure || ': ' || sentence;
END $$;

-- Names of servers and tools: lower case words joined by single underscores.
CREATE FUNCTION name_ok(name text, longest int) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT name ~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' AND length(name) <= longest
$$;

-- Principals, administrators: one line of printable text.
CREATE FUNCTION actor_ok(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT length(name) BETWEEN 1 AND 254 AND name !~ '[\u0001-\u001f\u007f]'
$$;

---------------------------------------------------------------------------
-- The fields of a version live in its pre-image (common/version.h). They are
-- shown as generated columns, so a column can never say anything else than
-- what was hashed, reviewed and approved.

CREATE FUNCTION version_fields(preimage bytea, wanted int) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	p bytea := substring(preimage FROM 1);	-- out of TOAST once
	pos bigint := 17;	-- behind the magic
	total bigint := length(p);
	tag int;
	n bigint;
	found bytea[] := '{}';
BEGIN
	IF total < 17 OR substring(p FROM 1 FOR 17) <>
	    convert_to('mcpbox version 1', 'UTF8') || '\x00'::bytea THEN
		PERFORM mcpbox.fail('invalid_params', 'not a version pre-image');
	END IF;
	WHILE pos < total LOOP
		IF total - pos < 5 THEN
			PERFORM mcpbox.fail('invalid_params', 'pre-image cut short');
		END IF;
		tag := get_byte(p, pos::int);
		n := (get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16)
		    | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4);
		IF n > total - pos - 5 THEN
			PERFORM mcpbox.fail('invalid_params', 'pre-image cut short');
		END IF;
		IF tag = wanted THEN
			found := found || substring(p FROM pos::int + 6 FOR n::int);
		ELSIF tag > wanted THEN
			EXIT;	-- fields stand in order
		END IF;
		pos := pos + 5 + n;
	END LOOP;
	RETURN found;
END $$;

CREATE FUNCTION version_bytes(preimage bytea, wanted int) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT (mcpbox.version_fields(preimage, wanted))[1]
$$;
CREATE FUNCTION version_text(preimage bytea, wanted int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT convert_from((mcpbox.version_fields(preimage, wanted))[1], 'UTF8')
$$;
CREATE FUNCTION version_texts(preimage bytea, wanted int) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT coalesce(array_agg(convert_from(f, 'UTF8')), '{}')
	FROM unnest(mcpbox.version_fields(preimage, wanted)) f
$$;
CREATE FUNCTION version_uuid(preimage bytea, wanted int) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT encode((mcpbox.version_fields(preimage, wanted))[1], 'hex')::uuid
$$;
CREATE FUNCTION version_number(preimage bytea, wanted int) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	b bytea := (mcpbox.version_fields(preimage, wanted))[1];
	v bigint := 0;
BEGIN
	IF b IS NULL THEN
		RETURN NULL;
	END IF;
	IF length(b) <> 8 OR get_byte(b, 0) > 127 THEN
		PERFORM mcpbox.fail('invalid_params', 'a number of the pre-image is not one');
	END IF;
	FOR i IN 0..7 LOOP
		v := (v << 8) | get_byte(b, i);
	END LOOP;
	RETURN v;
END $$;

---------------------------------------------------------------------------
-- Servers, tools, versions.

CREATE TABLE servers (
	id uuid PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE
	    CHECK (name_ok(name, 24))
	    CHECK (name NOT IN ('mcpbox', 'sandbox', 'web')),
	description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
	expose text NOT NULL DEFAULT 'prefixed' CHECK (expose IN ('prefixed', 'bare')),
	status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'stopped')),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE tools (
	id uuid PRIMARY KEY,
	server_id uuid NOT NULL REFERENCES servers (id),
	-- the newest version's
	name text COLLATE "C" NOT NULL CHECK (name_ok(name, 38)),
	enabled boolean NOT NULL DEFAULT true,
	serving_version uuid,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	UNIQUE (server_id, name)
);

-- Who holds an exposed name: the tool whose serving, pending or newest
-- version bears it. One primary key makes two tools of one name impossible.
CREATE TABLE tool_names (
	exposed_name text COLLATE "C" PRIMARY KEY
	    CHECK (exposed_name !~ '^(mcpbox|sandbox|web)_'),
	tool_id uuid NOT NULL REFERENCES tools (id)
);
CREATE INDEX ON tool_names (tool_id);

CREATE TABLE tool_versions (
	id uuid PRIMARY KEY,
	version_no int NOT NULL CHECK (version_no > 0),
	state text NOT NULL DEFAULT 'draft' CHECK
	    (state IN ('draft', 'pending_review', 'approved', 'rejected', 'revoked')),
	preimage bytea NOT NULL CHECK (length(preimage) <= 4194304),
	hash bytea NOT NULL CHECK (hash = sha256(preimage)),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	change_note text NOT NULL DEFAULT '' CHECK (length(change_note) <= 2000),
	-- generated from the pre-image
	format bigint NOT NULL GENERATED ALWAYS AS (version_number(preimage, 1)) STORED CHECK (format = 1),
	server_id uuid NOT NULL GENERATED ALWAYS AS (version_uuid(preimage, 2)) STORED REFERENCES servers (id),
	tool_id uuid NOT NULL GENERATED ALWAYS AS (version_uuid(preimage, 3)) STORED REFERENCES tools (id),
	server_name text NOT NULL GENERATED ALWAYS AS (version_text(preimage, 4)) STORED,
	name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (version_text(preimage, 5)) STORED CHECK (name_ok(name, 38)),
	exposed_name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (version_text(preimage, 6)) STORED,
	title text GENERATED ALWAYS AS (version_text(preimage, 7)) STORED,
	description text GENERATED ALWAYS AS (version_text(preimage, 8)) STORED,
	icons bytea GENERATED ALWAYS AS (version_bytes(preimage, 9)) STORED,
	meta bytea GENERATED ALWAYS AS (version_bytes(preimage, 10)) STORED,
	input_schema bytea NOT NULL GENERATED ALWAYS AS (version_bytes(preimage, 11)) STORED CHECK (length(input_schema) BETWEEN 2 AND 65536),
	output_schema bytea GENERATED ALWAYS AS (version_bytes(preimage, 12)) STORED CHECK (length(output_schema) BETWEEN 2 AND 65536),
	annotations bytea GENERATED ALWAYS AS (version_bytes(preimage, 13)) STORED,
	kind text NOT NULL GENERATED ALWAYS AS (version_text(preimage, 14)) STORED CHECK (kind IN ('python', 'command', 'http', 'mcp')),
	secrets text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 20)) STORED CHECK (cardinality(secrets) <= 64),
	task text GENERATED ALWAYS AS (version_text(preimage, 22)) STORED CHECK (task IN ('forbidden', 'optional', 'required')),
	confirm bigint GENERATED ALWAYS AS (version_number(preimage, 23)) STORED CHECK (confirm IN (0, 1)),
	timeout_ms bigint GENERATED ALWAYS AS (version_number(preimage, 24)) STORED CHECK (timeout_ms BETWEEN 1 AND 600000),
	memory_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 25)) STORED,
	processes bigint GENERATED ALWAYS AS (version_number(preimage, 26)) STORED,
	tmp_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 27)) STORED,
	result_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 28)) STORED,
	UNIQUE (tool_id, version_no),
	UNIQUE (id, tool_id)
);

-- A tool serves only versions of its own.
ALTER TABLE tools ADD FOREIGN KEY (serving_version, id)
    REFERENCES tool_versions (id, tool_id);

---------------------------------------------------------------------------
-- Approvals. A seal is the vault's; a version can't become approved without.

CREATE TABLE approval_requests (
	id uuid PRIMARY KEY,
	kind text NOT NULL CHECK (kind IN ('tool', 'module', 'network')),
	subject uuid NOT NULL,	-- kind tool: the version
	hash bytea NOT NULL CHECK (length(hash) = 32),
	state text NOT NULL DEFAULT 'pending'
	    CHECK (state IN ('pending', 'approved', 'rejected', 'superseded')),
	server_id uuid NOT NULL REFERENCES servers (id),
	tool_id uuid REFERENCES tools (id),
	requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	requested_by text NOT NULL CHECK (actor_ok(requested_by)),
	notes text NOT NULL DEFAULT '' CHECK (length(notes) <= 2000),
	decided_at timestamptz,
	decided_by text CHECK (actor_ok(decided_by)),
	reason text NOT NULL DEFAULT '' CHECK (length(reason) <= 2000),
	CHECK ((state = 'pending') = (decided_at IS NULL)),
	CHECK ((state = 'pending') = (decided_by IS NULL)),
	CHECK (kind <> 'tool' OR tool_id IS NOT NULL),
	UNIQUE (id, subject, hash)
);
CREATE UNIQUE INDEX ON approval_requests (kind, subject) WHERE state = 'pending';
CREATE INDEX ON approval_requests (requested_at, id);
CREATE INDEX ON approval_requests (tool_id);

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

---------------------------------------------------------------------------
-- Secrets and administrators: opaque, sealed by the vault.

CREATE TABLE server_secrets (
	server_id uuid NOT NULL REFERENCES servers (id),
	key text COLLATE "C" NOT NULL CHECK (key ~ '^[A-Z][A-Z0-9_]*$' AND length(key) <= 255),
	description text NOT NULL DEFAULT '' CHECK (length(description) <= 2000),
	value bytea CHECK (length(value) BETWEEN 1 AND 65536),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by)),
	PRIMARY KEY (server_id, key)
);

CREATE TABLE admin_users (
	username text COLLATE "C" PRIMARY KEY
	    CHECK (username ~ '^[a-zA-Z][a-zA-Z0-9_.@-]*$' AND length(username) <= 64),
	role text NOT NULL CHECK (role IN ('administrator', 'reviewer', 'viewer')),
	verifier bytea NOT NULL CHECK (length(verifier) BETWEEN 1 AND 4096),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE settings (
	key text COLLATE "C" PRIMARY KEY CHECK (name_ok(key, 64)),
	value text NOT NULL CHECK (length(value) <= 65536),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by))
);

---------------------------------------------------------------------------
-- Lives of processes, and what they answer for.

-- An epoch is one life of a node's sandboxd or admind. At most one of each
-- lives; a new one ends the one before; an ended one never comes back.
CREATE TABLE epochs (
	epoch uuid PRIMARY KEY,
	node text NOT NULL CHECK (actor_ok(node)),
	kind text NOT NULL CHECK (kind IN ('sandboxd', 'admind')),
	started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	ended_at timestamptz
);
CREATE UNIQUE INDEX ON epochs (node, kind) WHERE ended_at IS NULL;

CREATE TABLE executions (
	id uuid PRIMARY KEY,	-- 128 random bits
	kind text NOT NULL CHECK (kind IN ('tool', 'inspect', 'test', 'management')),
	state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
	outcome text CHECK (outcome IN ('done', 'failed', 'killed', 'refused', 'lost')),
	failure text,
	delivered boolean,
	owner_epoch uuid NOT NULL,	-- who will say how it ended
	principal text NOT NULL CHECK (actor_ok(principal)),
	listener text NOT NULL CHECK (listener IN ('local', 'tunnel', 'admind')),
	tool text COLLATE "C" NOT NULL,
	version_id uuid REFERENCES tool_versions (id),
	version_hash bytea CHECK (length(version_hash) = 32),
	args_sha256 bytea NOT NULL CHECK (length(args_sha256) = 32),
	arguments text NOT NULL CHECK (length(arguments) <= 4096),
	client text NOT NULL DEFAULT '',
	protocol text NOT NULL DEFAULT '',
	created_at timestamptz NOT NULL,
	deadline timestamptz NOT NULL,
	started_at timestamptz,
	ended_at timestamptz,
	cpu_us bigint,
	stdout text CHECK (length(stdout) <= 65536),
	result text CHECK (length(result) <= 1048576),
	restored boolean NOT NULL DEFAULT false,	-- whole row from sandboxd's record
	CHECK ((state = 'closed') = (outcome IS NOT NULL)),
	CHECK ((state = 'closed') = (ended_at IS NOT NULL)),
	CHECK (state = 'closed' OR (failure IS NULL AND result IS NULL
	    AND stdout IS NULL AND delivered IS NULL)),
	CHECK (outcome IS NULL OR (outcome = 'done') = (failure IS NULL)),
	CHECK (kind <> 'tool' OR version_hash IS NOT NULL)
);
CREATE INDEX ON executions (created_at, id);
CREATE INDEX ON executions (owner_epoch) WHERE state = 'open';
CREATE INDEX ON executions (version_id) WHERE state = 'open';

-- Sessions that a client deleted; their tokens stay refused until they
-- would have expired.
CREATE TABLE ended_sessions (
	id uuid PRIMARY KEY,
	expires_at timestamptz NOT NULL,
	ended_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON ended_sessions (expires_at);

-- One row: the revision of what tools/list shows.
CREATE TABLE catalogue (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	revision bigint NOT NULL
);
INSERT INTO catalogue (revision) VALUES (1);

---------------------------------------------------------------------------
-- The audit log: append-only, chained.
--
-- hash = SHA-256(prev || audit_row(...)). audit_row is "mcpbox audit 1" NUL,
-- u64be seq, u64be Unix time in ms, then actor, action, subject, detail as
-- u32be length and UTF-8 bytes. The first prev is 32 zero bytes. audit_head's
-- row lock is held to the commit, so the chain's order is commit order and
-- seq has no gaps. The vault signs heads (audit_anchors).

CREATE TABLE audit_head (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	seq bigint NOT NULL,
	hash bytea NOT NULL CHECK (length(hash) = 32)
);
INSERT INTO audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

CREATE FUNCTION audit_row(seq bigint, at timestamptz, actor text, action text,
    subject text, detail text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT convert_to('mcpbox audit 1', 'UTF8') || '\x00'::bytea
	    || int8send(seq) || int8send((extract(epoch FROM at) * 1000)::bigint)
	    || int4send(octet_length(actor)) || convert_to(actor, 'UTF8')
	    || int4send(octet_length(action)) || convert_to(action, 'UTF8')
	    || int4send(octet_length(subject)) || convert_to(subject, 'UTF8')
	    || int4send(octet_length(detail)) || convert_to(detail, 'UTF8')
$$;

CREATE TABLE audit_log (
	seq bigint PRIMARY KEY CHECK (seq > 0),
	at timestamptz NOT NULL CHECK (at = date_trunc('milliseconds', at)),
	actor text NOT NULL CHECK (actor_ok(actor)),
	action text NOT NULL CHECK (name_ok(action, 64)),
	subject text NOT NULL CHECK (length(subject) <= 512),
	detail text NOT NULL CHECK (length(detail) <= 16384)
	    CHECK (json_typeof(detail::json) = 'object'),
	prev bytea NOT NULL CHECK (length(prev) = 32),
	hash bytea NOT NULL UNIQUE CHECK
	    (hash = sha256(prev || audit_row(seq, at, actor, action, subject, detail)))
);

CREATE TABLE audit_anchors (
	seq bigint PRIMARY KEY REFERENCES audit_log (seq),
	head bytea NOT NULL CHECK (length(head) = 32),
	signature bytea NOT NULL CHECK (length(signature) = 32),
	signed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION audit_append(p_actor text, p_action text, p_subject text,
    p_detail text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	h audit_head;
	t timestamptz;
BEGIN
	SELECT * INTO STRICT h FROM audit_head FOR UPDATE;
	t := date_trunc('milliseconds', clock_timestamp());
	INSERT INTO audit_log VALUES (h.seq + 1, t, p_actor, p_action, p_subject,
	    p_detail, h.hash,
	    sha256(h.hash || audit_row(h.seq + 1, t, p_actor, p_action, p_subject, p_detail)));
	UPDATE audit_head SET seq = h.seq + 1, hash =
	    (SELECT l.hash FROM audit_log l WHERE l.seq = h.seq + 1);
	RETURN h.seq + 1;
END $$;

---------------------------------------------------------------------------
-- Triggers: what no function and no psql session may do.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
	    TG_TABLE_NAME || ' is append-only: ' || TG_OP || ' refused';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_log EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_anchors EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_seals
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_seals EXECUTE FUNCTION refuse();
CREATE TRIGGER no_delete BEFORE DELETE ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON tool_versions EXECUTE FUNCTION refuse();
CREATE TRIGGER no_delete BEFORE DELETE ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON approval_requests EXECUTE FUNCTION refuse();

-- The head moves only one row forward, onto the row that is there.
CREATE FUNCTION audit_head_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'UPDATE' OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS
	    (SELECT 1 FROM mcpbox.audit_log l WHERE l.seq = NEW.seq
	    AND l.hash = NEW.hash AND l.prev = OLD.hash) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'audit_head only moves forward';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION audit_head_guard();
-- A row is only ever appended behind the head.
CREATE FUNCTION audit_log_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM mcpbox.audit_head h
	    WHERE h.seq + 1 = NEW.seq AND h.hash = NEW.prev) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'audit_log grows only behind its head';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT ON audit_log
    FOR EACH ROW EXECUTE FUNCTION audit_log_guard();

CREATE FUNCTION servers_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id <> OLD.id OR NEW.name <> OLD.name
	    OR NEW.created_at <> OLD.created_at OR NEW.created_by <> OLD.created_by THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a server''s id, name and origin are immutable';
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON servers
    FOR EACH ROW EXECUTE FUNCTION servers_guard();

CREATE FUNCTION tools_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND (NEW.id <> OLD.id OR NEW.server_id <> OLD.server_id) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'a tool''s id and server are immutable';
	END IF;
	IF NEW.serving_version IS NOT NULL AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.serving_version
	    AND v.tool_id = NEW.id AND v.state = 'approved') THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only an approved version may serve';
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON tools
    FOR EACH ROW EXECUTE FUNCTION tools_guard();

-- A version: its place must be what its pre-image says; its content never
-- changes; its state goes only forward; approved needs the vault's seal over
-- this very hash; revoked takes it out of service in the same statement.
CREATE FUNCTION tool_versions_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	pre bytea := NEW.preimage;
	srv mcpbox.servers;
	wanted text;
BEGIN
	IF NEW.state <> 'draft' THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a version begins as a draft';
	END IF;
	SELECT s.* INTO srv FROM mcpbox.servers s JOIN mcpbox.tools t ON t.server_id = s.id
	    WHERE t.id = mcpbox.version_uuid(pre, 3) AND s.id = mcpbox.version_uuid(pre, 2);
	IF NOT FOUND THEN
		PERFORM mcpbox.fail('not_found', 'the version''s tool is not on that server');
	END IF;
	wanted := mcpbox.version_text(pre, 5);
	IF srv.expose = 'prefixed' THEN
		wanted := srv.name || '__' || wanted;
	END IF;
	IF mcpbox.version_text(pre, 4) IS DISTINCT FROM srv.name
	    OR mcpbox.version_text(pre, 6) IS DISTINCT FROM wanted THEN
		PERFORM mcpbox.fail('invalid_params', 'the version''s names are not its server''s');
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard_insert BEFORE INSERT ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_insert();

CREATE FUNCTION tool_versions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id <> OLD.id OR NEW.version_no <> OLD.version_no
	    OR NEW.preimage <> OLD.preimage OR NEW.hash <> OLD.hash
	    OR NEW.created_at <> OLD.created_at OR NEW.created_by <> OLD.created_by
	    OR NEW.change_note <> OLD.change_note THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a version''s content is immutable';
	END IF;
	IF (OLD.state, NEW.state) NOT IN (('draft', 'pending_review'),
	    ('pending_review', 'approved'), ('pending_review', 'rejected'),
	    ('approved', 'revoked')) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'a version never goes from ' || OLD.state || ' to ' || NEW.state;
	END IF;
	IF NEW.state = 'approved' AND NOT EXISTS (SELECT 1 FROM mcpbox.approval_seals a
	    WHERE a.subject = NEW.id AND a.hash = NEW.hash) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'no approval without a seal';
	END IF;
	IF NEW.state = 'revoked' THEN
		UPDATE mcpbox.tools SET serving_version = NULL
		    WHERE id = OLD.tool_id AND serving_version = OLD.id;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_guard();

-- Exposed names follow versions: claimed at insert, let go when neither the
-- serving, a pending nor the newest version bears them.
CREATE FUNCTION tool_names_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	t uuid;
BEGIN
	IF TG_TABLE_NAME = 'tool_versions' THEN
		t := NEW.tool_id;
		IF TG_OP = 'INSERT' THEN
			INSERT INTO mcpbox.tool_names VALUES (NEW.exposed_name, t)
			    ON CONFLICT DO NOTHING;
			IF NOT EXISTS (SELECT 1 FROM mcpbox.tool_names n
			    WHERE n.exposed_name = NEW.exposed_name AND n.tool_id = t) THEN
				PERFORM mcpbox.fail('conflict', 'another tool has the name '
				    || NEW.exposed_name);
			END IF;
		END IF;
	ELSE
		t := NEW.id;
	END IF;
	DELETE FROM mcpbox.tool_names n WHERE n.tool_id = t AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.tool_id = t
	    AND v.exposed_name = n.exposed_name AND (v.state = 'pending_review'
	    OR v.id = (SELECT serving_version FROM mcpbox.tools WHERE id = t)
	    OR v.version_no = (SELECT max(version_no) FROM mcpbox.tool_versions
	    WHERE tool_id = t)));
	RETURN NULL;
END $$;
CREATE TRIGGER names AFTER INSERT OR UPDATE OF state ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_names_follow();
CREATE TRIGGER names AFTER UPDATE OF serving_version ON tools
    FOR EACH ROW EXECUTE FUNCTION tool_names_follow();

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
CREATE TRIGGER guard BEFORE UPDATE ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_guard();

-- An execution closes once, and only its ending is ever written.
CREATE FUNCTION executions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.state <> 'open' OR NEW.state <> 'closed' THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an execution closes once';
	END IF;
	IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.owner_epoch <> OLD.owner_epoch
	    OR NEW.principal <> OLD.principal OR NEW.listener <> OLD.listener
	    OR NEW.tool <> OLD.tool OR NEW.version_id IS DISTINCT FROM OLD.version_id
	    OR NEW.version_hash IS DISTINCT FROM OLD.version_hash
	    OR NEW.args_sha256 <> OLD.args_sha256 OR NEW.arguments <> OLD.arguments
	    OR NEW.created_at <> OLD.created_at OR NEW.restored <> OLD.restored THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an intent is immutable';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON executions
    FOR EACH ROW EXECUTE FUNCTION executions_guard();

CREATE FUNCTION epochs_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.epoch <> OLD.epoch
	    OR NEW.node <> OLD.node OR NEW.kind <> OLD.kind THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an epoch ends once';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE UPDATE ON epochs
    FOR EACH ROW EXECUTE FUNCTION epochs_guard();

-- What tools/list shows changed: next revision, told to every admind. The
-- row lock makes revision order commit order.
CREATE FUNCTION catalogue_bump() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	r bigint;
BEGIN
	UPDATE mcpbox.catalogue SET revision = revision + 1 RETURNING revision INTO r;
	PERFORM pg_notify('mcpbox_catalogue', r::text);
	RETURN NULL;
END $$;
CREATE TRIGGER catalogue AFTER UPDATE OF status, expose ON servers
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_bump();
CREATE TRIGGER catalogue AFTER DELETE OR UPDATE OF serving_version, enabled ON tools
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_bump();

---------------------------------------------------------------------------
-- Functions of the run-time role. Locks are taken in this order everywhere:
-- server, tool, version, request, catalogue, audit head.

-- p_id: uuid v7 made by admind.
CREATE FUNCTION create_server(p_id uuid, p_name text, p_description text,
    p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name IN ('mcpbox', 'sandbox', 'web') THEN
		PERFORM fail('conflict', 'the name ' || p_name || ' is reserved');
	END IF;
	INSERT INTO servers (id, name, description, created_by)
	    VALUES (p_id, p_name, p_description, p_actor) ON CONFLICT (name) DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'there is a server named ' || p_name);
	END IF;
	PERFORM audit_append(p_actor, 'server_created', 'server ' || p_name,
	    json_build_object('server_id', p_id)::text);
END $$;

-- 'running' or 'stopped', idempotent: true if it changed.
CREATE FUNCTION set_server_status(p_id uuid, p_status text, p_actor text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF s.status = p_status THEN
		RETURN false;
	END IF;
	UPDATE servers SET status = p_status WHERE id = p_id;
	PERFORM audit_append(p_actor, CASE p_status WHEN 'running' THEN 'server_started'
	    ELSE 'server_stopped' END, 'server ' || s.name,
	    json_build_object('server_id', p_id)::text);
	RETURN true;
END $$;

-- A new tool with its first version, a draft. Ids are made by admind and must
-- be those of the pre-image.
CREATE FUNCTION create_tool(p_version uuid, p_preimage bytea, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n text := version_text(p_preimage, 5);
BEGIN
	-- the server must stay as it is until the version stands
	PERFORM 1 FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	INSERT INTO tools (id, server_id, name, created_by)
	    VALUES (t, version_uuid(p_preimage, 2), n, p_actor)
	    ON CONFLICT (server_id, name) DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'the server has a tool named ' || n);
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by)
	    VALUES (p_version, 1, p_preimage, sha256(p_preimage), p_actor);
	PERFORM audit_append(p_actor, 'tool_created',
	    'tool ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', 1,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
END $$;

-- A new draft of a tool that exists; returns its number. p_base is the version
-- that it was made from: if another edit came in between, its fields are not in
-- this pre-image and would be lost, so the later one is told (null: don't care).
CREATE FUNCTION add_version(p_version uuid, p_preimage bytea, p_note text,
    p_actor text, p_base int DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n int;
BEGIN
	PERFORM 1 FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	PERFORM 1 FROM tools WHERE id = t FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	SELECT max(version_no) + 1 INTO n FROM tool_versions WHERE tool_id = t;
	IF p_base IS NOT NULL AND p_base <> n - 1 THEN
		PERFORM fail('conflict', 'the tool was changed meanwhile: version '
		    || n - 1 || ' is there now; look at it and try again');
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by, change_note)
	    VALUES (p_version, n, p_preimage, sha256(p_preimage), p_actor, p_note);
	BEGIN
		UPDATE tools SET name = version_text(p_preimage, 5) WHERE id = t
		    AND name <> version_text(p_preimage, 5);
	EXCEPTION WHEN unique_violation THEN
		PERFORM fail('conflict', 'the server has a tool named '
		    || version_text(p_preimage, 5));
	END;
	PERFORM audit_append(p_actor, 'tool_updated',
	    'tool ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', n,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
	RETURN n;
END $$;

-- The enabled switch, idempotent: true if it changed.
CREATE FUNCTION set_tool_enabled(p_tool uuid, p_enabled boolean, p_actor text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	SELECT * INTO t FROM tools WHERE id = p_tool FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	IF t.enabled = p_enabled THEN
		RETURN false;
	END IF;
	UPDATE tools SET enabled = p_enabled WHERE id = p_tool;
	PERFORM audit_append(p_actor, CASE WHEN p_enabled THEN 'tool_enabled'
	    ELSE 'tool_disabled' END, 'tool ' || t.name,
	    json_build_object('tool_id', p_tool)::text);
	RETURN true;
END $$;

-- Asks for review of the tool's newest version. A rejected one is copied into
-- a new version first (p_version is its id), since states only go forward.
-- Older requests of the tool that still wait are superseded.
CREATE FUNCTION request_publish(p_request uuid, p_version uuid, p_tool uuid,
    p_notes text, p_actor text,
    OUT version_id uuid, OUT version_no int, OUT exposed_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
	o approval_requests;
BEGIN
	PERFORM 1 FROM servers s JOIN tools t ON t.server_id = s.id
	    WHERE t.id = p_tool FOR SHARE OF s;
	PERFORM 1 FROM tools WHERE id = p_tool FOR UPDATE;
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
END $$;

-- The vault's decision, with its seal: version, serving switch, request,
-- names, catalogue and audit row in one transaction.
CREATE FUNCTION decide_approval(p_request uuid, p_approved boolean, p_hash bytea,
    p_actor text, p_at timestamptz, p_reason text, p_seal bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests;
	v tool_versions;
BEGIN
	SELECT * INTO a FROM approval_requests WHERE id = p_request;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such request');
	END IF;
	PERFORM 1 FROM tools WHERE id = a.tool_id FOR UPDATE;
	SELECT * INTO a FROM approval_requests WHERE id = p_request FOR UPDATE;
	IF a.state <> 'pending' THEN
		PERFORM fail('already_decided', 'the request is ' || a.state || ' already');
	END IF;
	IF a.kind <> 'tool' THEN
		PERFORM fail('invalid_params', 'only tools can be decided yet');
	END IF;
	IF p_approved THEN
		IF p_hash IS DISTINCT FROM a.hash THEN
			PERFORM fail('hash_mismatch', 'what was reviewed is not what is asked for');
		END IF;
		INSERT INTO approval_seals VALUES (a.id, a.subject, a.hash, p_seal, p_at);
	END IF;
	UPDATE tool_versions SET state = CASE WHEN p_approved THEN 'approved'
	    ELSE 'rejected' END WHERE id = a.subject RETURNING * INTO v;
	UPDATE approval_requests SET state = v.state, decided_by = p_actor,
	    decided_at = p_at, reason = p_reason WHERE id = a.id;
	IF p_approved THEN
		UPDATE tools SET serving_version = v.id WHERE id = v.tool_id;
	END IF;
	PERFORM audit_append(p_actor, 'tool_' || v.state, 'tool ' || v.exposed_name,
	    json_build_object('request_id', a.id, 'tool_id', v.tool_id,
	    'version_id', v.id, 'version', v.version_no,
	    'hash', encode(v.hash, 'hex'), 'reason', p_reason)::text);
END $$;

-- Withdraws an approval: from this commit on the version never runs again.
CREATE FUNCTION revoke_version(p_version uuid, p_reason text, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
BEGIN
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

-- A new life of a node's process ends its earlier ones.
CREATE FUNCTION epoch_begin(p_epoch uuid, p_node text, p_kind text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL
	    AND node = p_node AND kind = p_kind) THEN
		RETURN;
	END IF;
	UPDATE epochs SET ended_at = clock_timestamp()
	    WHERE node = p_node AND kind = p_kind AND ended_at IS NULL
	    AND epoch <> p_epoch;
	-- The caller may have said it before, on a connection that was lost while
	-- its statement still ran: that is no conflict.
	INSERT INTO epochs (epoch, node, kind) VALUES (p_epoch, p_node, p_kind)
	    ON CONFLICT (epoch) DO NOTHING;
	IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch
	    AND ended_at IS NULL AND node = p_node AND kind = p_kind) THEN
		PERFORM fail('conflict', 'that epoch has ended');
	END IF;
END $$;

-- The intent row. Returns 'ok' or the failure mode that forbids the call. The
-- INSERT itself checks that the version is still callable and its owner's
-- epoch still lives: what a commit took away before can't come to run.
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
	    AND v.exposed_name = p_tool));
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL) THEN
		RETURN 'sandbox_unavailable';
	END IF;
	SELECT CASE WHEN v.state = 'revoked' THEN 'revoked'
	    WHEN s.status = 'stopped' OR NOT t.enabled THEN 'stopped'
	    ELSE 'not_approved' END INTO why
	FROM tool_versions v JOIN tools t ON t.id = v.tool_id
	    JOIN servers s ON s.id = t.server_id WHERE v.id = p_version;
	RETURN coalesce(why, 'not_approved');
END $$;

-- How it ended. Once; a repeated record changes nothing and says so. If the
-- intent row is gone (PostgreSQL crashed within wal_writer_delay of it), the
-- record's own intent makes the whole row: p_kind not null. Returns closed,
-- already, restored, or unknown.
CREATE FUNCTION execution_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	-- twice: the intent's own INSERT may commit while ours waits for it
	FOR i IN 1..2 LOOP
		UPDATE executions SET state = 'closed', outcome = p_outcome,
		    failure = p_failure, delivered = p_delivered, started_at = p_started,
		    ended_at = p_ended, cpu_us = p_cpu_us, stdout = p_stdout, result = p_result
		WHERE id = p_id AND state = 'open' AND owner_epoch = p_epoch;
		IF FOUND THEN
			RETURN 'closed';
		END IF;
		IF EXISTS (SELECT 1 FROM executions WHERE id = p_id) THEN
			RETURN 'already';
		END IF;
		IF p_kind IS NULL THEN
			RETURN 'unknown';
		END IF;
		INSERT INTO executions (id, kind, state, outcome, failure, delivered,
		    owner_epoch, principal, listener, tool, version_id, version_hash,
		    args_sha256, arguments, created_at, deadline, started_at, ended_at,
		    cpu_us, stdout, result, restored)
		VALUES (p_id, p_kind, 'closed', p_outcome, p_failure, p_delivered, p_epoch,
		    p_principal, p_listener, p_tool,
		    (SELECT v.id FROM tool_versions v WHERE v.id = p_version), p_hash,
		    p_args_sha256, p_arguments, p_created, p_deadline, p_started, p_ended,
		    p_cpu_us, p_stdout, p_result, true)
		ON CONFLICT (id) DO NOTHING;
		IF FOUND THEN
			RETURN 'restored';
		END IF;
	END LOOP;
	RETURN 'already';
END $$;

-- Closes as lost what ended epochs left open; returns how many.
CREATE FUNCTION sweep_epochs() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	UPDATE executions x SET state = 'closed', outcome = 'lost', failure = 'lost',
	    ended_at = clock_timestamp()
	FROM epochs e WHERE x.state = 'open' AND x.owner_epoch = e.epoch
	    AND e.ended_at IS NOT NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

CREATE FUNCTION session_end(p_id uuid, p_expires timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	DELETE FROM ended_sessions WHERE expires_at < clock_timestamp();
	-- no token lives longer (session_ttl), so no row need
	p_expires := least(p_expires, clock_timestamp() + interval '31 days');
	INSERT INTO ended_sessions (id, expires_at) VALUES (p_id, p_expires)
	    ON CONFLICT DO NOTHING;
	PERFORM pg_notify('mcpbox_session', p_id::text || ' '
	    || ((extract(epoch FROM p_expires) * 1000)::bigint)::text);
END $$;

-- p_first: only if there is no administrator at all. The table lock makes
-- two set-ups at once end with one administrator.
CREATE FUNCTION admin_store(p_username text, p_role text, p_first boolean,
    p_actor text, p_verifier bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	existed boolean;
BEGIN
	LOCK TABLE admin_users IN SHARE ROW EXCLUSIVE MODE;
	existed := EXISTS (SELECT 1 FROM admin_users WHERE username = p_username);
	IF p_first AND EXISTS (SELECT 1 FROM admin_users) THEN
		PERFORM fail('conflict', 'there is an administrator already');
	END IF;
	INSERT INTO admin_users (username, role, verifier)
	    VALUES (p_username, p_role, p_verifier)
	    ON CONFLICT (username) DO UPDATE SET role = excluded.role,
	    verifier = excluded.verifier, updated_at = clock_timestamp();
	PERFORM audit_append(p_actor, CASE WHEN existed THEN 'password_change'
	    ELSE 'admin_created' END, 'administrator ' || p_username,
	    json_build_object('role', p_role)::text);
END $$;

CREATE FUNCTION secret_store(p_server text, p_key text, p_actor text,
    p_value bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s uuid;
BEGIN
	SELECT id INTO s FROM servers WHERE name = p_server;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no server of that name');
	END IF;
	INSERT INTO server_secrets (server_id, key, value, updated_by)
	    VALUES (s, p_key, p_value, p_actor)
	    ON CONFLICT (server_id, key) DO UPDATE SET value = excluded.value,
	    updated_by = excluded.updated_by, updated_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'secret_set', 'secret ' || p_server || '/' || p_key,
	    '{}');
END $$;

CREATE FUNCTION setting_store(p_key text, p_value text, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	INSERT INTO settings (key, value, updated_by) VALUES (p_key, p_value, p_actor)
	    ON CONFLICT (key) DO UPDATE SET value = excluded.value,
	    updated_by = excluded.updated_by, updated_at = clock_timestamp();
	PERFORM audit_append(p_actor, 'setting_changed', 'setting ' || p_key,
	    json_build_object('value', left(p_value, 1000))::text);
END $$;

-- A head that the vault signed; an anchor must be a row of the chain.
CREATE FUNCTION anchor_store(p_seq bigint, p_head bytea, p_signature bytea)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM audit_log WHERE seq = p_seq AND hash = p_head) THEN
		PERFORM fail('conflict', 'the anchor is not a row of the chain');
	END IF;
	INSERT INTO audit_anchors (seq, head, signature)
	    VALUES (p_seq, p_head, p_signature) ON CONFLICT DO NOTHING;
END $$;

---------------------------------------------------------------------------
-- Privileges: reading, and the functions above. Nothing else.

REVOKE ALL ON ALL TABLES IN SCHEMA mcpbox FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mcpbox FROM PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA mcpbox TO mcpbox_app;
-- the chain's own encoding, so that a reader can be given the hashed bytes
GRANT EXECUTE ON FUNCTION audit_row TO mcpbox_app;
GRANT EXECUTE ON FUNCTION audit_append, create_server, set_server_status,
    create_tool, add_version, set_tool_enabled, request_publish,
    decide_approval, revoke_version, epoch_begin, execution_open,
    execution_close, sweep_epochs, session_end, admin_store, secret_store,
    setting_store, anchor_store TO mcpbox_app;
