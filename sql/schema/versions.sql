-- Versions: immutable content with its state and its origin, and how many of
-- them are kept.

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
	name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (version_text(preimage, 5)) STORED CHECK (name_ok(name, 64)),
	exposed_name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (version_text(preimage, 6)) STORED CHECK (length(exposed_name) <= 64),
	title text GENERATED ALWAYS AS (version_text(preimage, 7)) STORED,
	description text GENERATED ALWAYS AS (version_text(preimage, 8)) STORED,
	icons bytea GENERATED ALWAYS AS (version_bytes(preimage, 9)) STORED,
	meta bytea GENERATED ALWAYS AS (version_bytes(preimage, 10)) STORED,
	input_schema bytea NOT NULL GENERATED ALWAYS AS (version_bytes(preimage, 11)) STORED CHECK (length(input_schema) BETWEEN 2 AND 65536),
	output_schema bytea GENERATED ALWAYS AS (version_bytes(preimage, 12)) STORED CHECK (length(output_schema) BETWEEN 2 AND 65536),
	annotations bytea GENERATED ALWAYS AS (version_bytes(preimage, 13)) STORED,
	kind text NOT NULL GENERATED ALWAYS AS (version_text(preimage, 14)) STORED CHECK (kind IN ('python', 'command', 'http', 'mcp', 'static')),
	secrets text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 20)) STORED CHECK (cardinality(secrets) <= 64),
	task text GENERATED ALWAYS AS (version_text(preimage, 22)) STORED CHECK (task IN ('forbidden', 'optional', 'required', 'after_questions')),
	confirm bigint GENERATED ALWAYS AS (version_number(preimage, 23)) STORED CHECK (confirm IN (0, 1)),
	timeout_ms bigint GENERATED ALWAYS AS (version_number(preimage, 24)) STORED CHECK (timeout_ms BETWEEN 1 AND 600000),
	memory_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 25)) STORED,
	processes bigint GENERATED ALWAYS AS (version_number(preimage, 26)) STORED,
	tmp_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 27)) STORED,
	result_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 28)) STORED,
	cpu_ms bigint GENERATED ALWAYS AS (version_number(preimage, 29)) STORED CHECK (cpu_ms BETWEEN 100 AND 3600000),
	files bigint GENERATED ALWAYS AS (version_number(preimage, 30)) STORED CHECK (files BETWEEN 16 AND 4096),
	file_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 31)) STORED CHECK (file_bytes BETWEEN 4096 AND 17179869184),
	stdout_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 32)) STORED CHECK (stdout_bytes BETWEEN 1024 AND 65536),
	argument_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 33)) STORED CHECK (argument_bytes BETWEEN 64 AND 1048576),
	log_rate bigint GENERATED ALWAYS AS (version_number(preimage, 34)) STORED CHECK (log_rate BETWEEN 1 AND 1000),
	progress_rate bigint GENERATED ALWAYS AS (version_number(preimage, 35)) STORED CHECK (progress_rate BETWEEN 1 AND 100),
	modules text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 17)) STORED CHECK (cardinality(modules) <= 64),
	executable text GENERATED ALWAYS AS (version_text(preimage, 18)) STORED CHECK (length(executable) <= 4096),
	object text NOT NULL GENERATED ALWAYS AS (coalesce(version_text(preimage, 36), 'tool')) STORED
	    CHECK (object IN ('tool', 'prompt', 'resource', 'template', 'source')),
	uri text COLLATE "C" GENERATED ALWAYS AS (version_text(preimage, 37)) STORED CHECK (octet_length(uri) BETWEEN 3 AND 1024),
	mime_type text GENERATED ALWAYS AS (version_text(preimage, 38)) STORED CHECK (length(mime_type) BETWEEN 1 AND 255),
	arguments bytea GENERATED ALWAYS AS (version_bytes(preimage, 39)) STORED CHECK (length(arguments) BETWEEN 2 AND 65536),
	content_bytes bigint GENERATED ALWAYS AS (version_content_bytes(preimage)) STORED CHECK (content_bytes BETWEEN 0 AND 524288),
	ttl_ms bigint GENERATED ALWAYS AS (version_number(preimage, 42)) STORED CHECK (ttl_ms BETWEEN 0 AND 31536000000),
	client_capabilities text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 43)) STORED
	    CHECK (client_capabilities <@ ARRAY['elicitation', 'elicitation.url',
	    'sampling', 'sampling.tools', 'roots', 'tasks']),
	change_source text NOT NULL DEFAULT 'llm' CHECK (change_source IN ('manual', 'llm', 'import', 'rollback')),
	words tsvector NOT NULL GENERATED ALWAYS AS (search_words(version_text(preimage, 6), version_text(preimage, 7),
	    version_text(preimage, 8))) STORED,
	requires text[] NOT NULL GENERATED ALWAYS AS (version_texts(preimage, 21)) STORED CHECK (cardinality(requires) <= 64),
	connections bigint GENERATED ALWAYS AS (version_number(preimage, 44)) STORED CHECK (connections BETWEEN 1 AND 65536),
	network_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 45)) STORED CHECK (network_bytes BETWEEN 1024 AND 1099511627776),
	network_rate bigint GENERATED ALWAYS AS (version_number(preimage, 46)) STORED CHECK (network_rate BETWEEN 1024 AND 1099511627776),
	UNIQUE (tool_id, version_no),
	UNIQUE (id, tool_id)
);

CREATE INDEX tool_versions_words_idx ON tool_versions USING gin (words)
    WHERE state = 'approved';
CREATE INDEX tool_versions_exposed_idx ON tool_versions (exposed_name);

ALTER TABLE tools ADD FOREIGN KEY (serving_version, id)
    REFERENCES tool_versions (id, tool_id);

-- Guards a new version. Its server and its tool are those that its pre-image
-- names. It has only fields that belong to its kind and object. A kind that is
-- a specification for one of our drivers has no code. Every module that the
-- version names is granted.
CREATE FUNCTION tool_versions_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	pre bytea := NEW.preimage;
	srv mcpbox.servers;
	tool mcpbox.tools;
	wanted text;
	missing text;
BEGIN
	IF NEW.state <> 'draft' THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'a version begins as a draft';
	END IF;
	SELECT t.* INTO tool FROM mcpbox.tools t WHERE t.id = mcpbox.version_uuid(pre, 3)
	    AND t.server_id = mcpbox.version_uuid(pre, 2);
	IF NOT FOUND THEN
		PERFORM mcpbox.fail('not_found', 'the version''s tool is not on that server');
	END IF;
	IF tool.deleted_at IS NOT NULL THEN
		PERFORM mcpbox.fail('not_found', 'the ' || tool.object || ' was deleted');
	END IF;
	IF coalesce(mcpbox.version_text(pre, 36), 'tool') <> tool.object THEN
		PERFORM mcpbox.fail('conflict', 'it is a ' || tool.object || ' and stays one');
	END IF;
	PERFORM mcpbox.version_object_check(pre);
	SELECT s.* INTO STRICT srv FROM mcpbox.servers s WHERE s.id = tool.server_id;
	wanted := mcpbox.version_text(pre, 5);
	IF srv.expose = 'prefixed' THEN
		wanted := srv.name || '__' || wanted;
	END IF;
	IF mcpbox.version_text(pre, 4) IS DISTINCT FROM srv.name
	    OR mcpbox.version_text(pre, 6) IS DISTINCT FROM wanted THEN
		PERFORM mcpbox.fail('invalid_params', 'the version''s names are not its server''s');
	END IF;
	CASE mcpbox.version_text(pre, 14)
	WHEN 'python' THEN
		IF mcpbox.version_bytes(pre, 15) IS NULL OR mcpbox.version_bytes(pre, 16) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 18) IS NOT NULL OR mcpbox.version_bytes(pre, 19) IS NOT NULL THEN
			PERFORM mcpbox.fail('invalid_params', 'a python version has code and no command');
		END IF;
	WHEN 'command' THEN
		IF mcpbox.version_bytes(pre, 15) IS NOT NULL OR mcpbox.version_bytes(pre, 16) IS NULL
		    OR mcpbox.version_bytes(pre, 17) IS NOT NULL OR mcpbox.version_bytes(pre, 18) IS NULL
		    OR mcpbox.version_text(pre, 19) IS NULL OR mcpbox.version_bytes(pre, 20) IS NOT NULL
		    OR mcpbox.version_text(pre, 19) !~ '^[0-9a-f]{64}$' THEN
			PERFORM mcpbox.fail('invalid_params',
			    'a command version has spec, executable and its digest, but no code, modules and secrets');
		END IF;
	WHEN 'static' THEN
		IF mcpbox.version_bytes(pre, 15) IS NOT NULL OR mcpbox.version_bytes(pre, 16) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 17) IS NOT NULL OR mcpbox.version_bytes(pre, 18) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 19) IS NOT NULL OR mcpbox.version_bytes(pre, 20) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 21) IS NOT NULL THEN
			PERFORM mcpbox.fail('invalid_params',
			    'a static version has its content, but no code, command, modules and secrets');
		END IF;
	WHEN 'http', 'mcp' THEN
		IF mcpbox.version_bytes(pre, 15) IS NOT NULL OR mcpbox.version_bytes(pre, 16) IS NULL
		    OR mcpbox.version_bytes(pre, 17) IS NOT NULL OR mcpbox.version_bytes(pre, 18) IS NOT NULL
		    OR mcpbox.version_bytes(pre, 19) IS NOT NULL OR mcpbox.version_bytes(pre, 21) IS NULL THEN
			PERFORM mcpbox.fail('invalid_params', 'an ' || mcpbox.version_text(pre, 14)
			    || ' version has spec and requires, but no code, modules and executable');
		END IF;
	ELSE
		PERFORM mcpbox.fail('invalid_params', 'there is no such kind of tool');
	END CASE;
	-- these columns have no bounds of their own; as constraints these could make
	-- an old version impossible to revoke
	IF coalesce(mcpbox.version_number(pre, 24), 100) NOT BETWEEN 100 AND 600000
	    OR coalesce(mcpbox.version_number(pre, 25), 33554432) NOT BETWEEN 33554432 AND 17179869184
	    OR coalesce(mcpbox.version_number(pre, 26), 1) NOT BETWEEN 1 AND 1024
	    OR coalesce(mcpbox.version_number(pre, 27), 65536) NOT BETWEEN 65536 AND 17179869184
	    OR coalesce(mcpbox.version_number(pre, 28), 1024) NOT BETWEEN 1024 AND 1048576 THEN
		PERFORM mcpbox.fail('limit', 'a limit of the version is out of bounds');
	END IF;
	IF cardinality(mcpbox.version_texts(pre, 17)) > 32 THEN
		PERFORM mcpbox.fail('limit', 'a version has at most 32 modules');
	END IF;
	missing := mcpbox.module_missing(mcpbox.version_uuid(pre, 3), mcpbox.version_texts(pre, 17));
	IF missing IS NOT NULL THEN
		PERFORM mcpbox.fail('missing_grant', 'the module ' || missing
		    || ' is not granted to this tool: ask for it with mcpbox_request_module');
	END IF;
	RETURN NEW;
END $$;

-- Guards a version. Its content never changes; its state goes only forward. It
-- becomes approved only with the vault's seal over this very hash. When it is
-- revoked, it goes out of service in the same statement.
CREATE FUNCTION tool_versions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id <> OLD.id OR NEW.version_no <> OLD.version_no
	    OR NEW.preimage <> OLD.preimage OR NEW.hash <> OLD.hash
	    OR NEW.created_at <> OLD.created_at OR NEW.created_by <> OLD.created_by
	    OR NEW.change_note <> OLD.change_note
	    OR NEW.change_source <> OLD.change_source THEN
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

-- Withdraws an approval: from this commit on the version never runs again. The
-- server is locked before its tool.
CREATE FUNCTION revoke_version(p_version uuid, p_reason text, p_actor text)
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

-- Fails if a version has fields that do not belong to its object or to its
-- kind.
CREATE FUNCTION version_object_check(pre bytea) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	o text := coalesce(version_text(pre, 36), 'tool');
	k text := version_text(pre, 14);
	texts int := (version_bytes(pre, 40) IS NOT NULL)::int;
	blobs int := (version_bytes(pre, 41) IS NOT NULL)::int;
BEGIN
	IF version_text(pre, 36) = 'tool' THEN
		PERFORM fail('invalid_params', 'a tool''s version does not say that it is one');
	END IF;
	IF (k = 'static') <> (texts + blobs > 0) OR texts + blobs > 1 OR (CASE o
	    WHEN 'tool' THEN k = 'static' OR version_bytes(pre, 37) IS NOT NULL
		OR version_bytes(pre, 38) IS NOT NULL OR version_bytes(pre, 39) IS NOT NULL
		OR version_bytes(pre, 42) IS NOT NULL
	    WHEN 'prompt' THEN k NOT IN ('python', 'static') OR blobs > 0
		OR version_bytes(pre, 37) IS NOT NULL
		OR version_bytes(pre, 38) IS NOT NULL OR version_bytes(pre, 42) IS NOT NULL
	    WHEN 'resource' THEN k NOT IN ('python', 'static') OR version_bytes(pre, 37) IS NULL
		OR version_bytes(pre, 39) IS NOT NULL
	    WHEN 'template' THEN k <> 'python' OR version_bytes(pre, 37) IS NULL
	    WHEN 'source' THEN k <> 'mcp' OR version_bytes(pre, 37) IS NOT NULL
		OR version_bytes(pre, 38) IS NOT NULL OR version_bytes(pre, 39) IS NOT NULL
		OR version_bytes(pre, 42) IS NOT NULL
	    ELSE true END) THEN
		PERFORM fail('invalid_params', 'a ' || o || ' of kind ' || coalesce(k, '?')
		    || ' does not have these fields');
	END IF;
	-- Results of these are not tools' results, and no task and no person
	-- is between them and their reader.
	IF o <> 'tool' AND (version_bytes(pre, 12) IS NOT NULL OR version_bytes(pre, 22) IS NOT NULL
	    OR version_bytes(pre, 23) IS NOT NULL) THEN
		PERFORM fail('invalid_params', 'only tools have output_schema, task and confirm');
	END IF;
END $$;

-- Makes the intent row of a call that admind answers itself from an approved
-- version (kind static), as execution_open() does. The row has the kind of
-- admind's own calls, management.
CREATE FUNCTION static_open(p_id uuid, p_version uuid, p_hash bytea, p_epoch uuid,
    p_principal text, p_listener text, p_tool text, p_args_sha256 bytea,
    p_arguments text, p_client text, p_protocol text, p_created timestamptz,
    p_deadline timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	why text;
BEGIN
	INSERT INTO executions (id, kind, owner_epoch, principal, listener, tool,
	    version_id, version_hash, args_sha256, arguments, client, protocol,
	    created_at, deadline)
	SELECT p_id, 'management', e.epoch, p_principal, p_listener, p_tool, v.id, v.hash,
	    p_args_sha256, p_arguments, p_client, p_protocol, p_created, p_deadline
	FROM tool_versions v
	    JOIN tools t ON t.id = v.tool_id AND t.serving_version = v.id AND t.enabled
	    JOIN servers s ON s.id = t.server_id AND s.status = 'running'
	    JOIN epochs e ON e.epoch = p_epoch AND e.ended_at IS NULL AND e.kind = 'admind'
	WHERE v.id = p_version AND v.hash = p_hash AND v.state = 'approved'
	    AND v.kind = 'static' AND v.exposed_name = p_tool;
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM epochs WHERE epoch = p_epoch AND ended_at IS NULL) THEN
		RETURN 'storage_unavailable';
	END IF;
	SELECT CASE WHEN v.state = 'revoked' THEN 'revoked'
	    WHEN s.status = 'stopped' OR NOT t.enabled THEN 'stopped'
	    ELSE 'not_approved' END INTO why
	FROM tool_versions v JOIN tools t ON t.id = v.tool_id
	    JOIN servers s ON s.id = t.server_id WHERE v.id = p_version;
	RETURN coalesce(why, 'not_approved');
END $$;

-- Guards the deletion of a version, whoever deletes. A version stays if it was
-- ever approved, waits for review, was refused by a person with a reason, or is
-- the newest. So no number is given twice, and each version that ran can always
-- be shown.
CREATE FUNCTION tool_versions_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.state NOT IN ('draft', 'rejected')
	    OR EXISTS (SELECT 1 FROM mcpbox.approval_seals a WHERE a.subject = OLD.id)
	    OR EXISTS (SELECT 1 FROM mcpbox.approval_requests a WHERE a.subject = OLD.id
	    AND a.kind = 'tool' AND a.state NOT IN ('superseded'))
	    OR NOT EXISTS (SELECT 1 FROM mcpbox.tool_versions v
	    WHERE v.tool_id = OLD.tool_id AND v.version_no > OLD.version_no) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only old drafts can be deleted';
	END IF;
	RETURN OLD;
END $$;

-- Deletes drafts of a tool beyond its p_keep newest versions, and returns how
-- many. It deletes only a few at a time, because it is called with each new
-- version.
CREATE FUNCTION prune_versions(p_tool uuid, p_keep int) RETURNS bigint
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	n bigint;
BEGIN
	DELETE FROM tool_versions WHERE id IN (SELECT v.id FROM tool_versions v
	    WHERE v.tool_id = p_tool AND v.state IN ('draft', 'rejected')
	    AND v.version_no <= (SELECT x.version_no FROM tool_versions x
		WHERE x.tool_id = p_tool ORDER BY x.version_no DESC
		OFFSET greatest(p_keep, 10) LIMIT 1)
	    AND NOT EXISTS (SELECT 1 FROM approval_requests a WHERE a.subject = v.id
		AND a.kind = 'tool' AND a.state <> 'superseded')
	    ORDER BY v.version_no LIMIT 200);
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;

-- Makes a new draft of an object; returns its number. p_base is the version that
-- the draft was made from: if another edit came in between, its fields are not in
-- this pre-image and would be lost, so the later author is told (null: no check).
-- An object that a higher authority disabled, or whose server it stopped, keeps its
-- name and its URI, so that nothing else can take them. Its content may be mended,
-- which enables nothing.
CREATE FUNCTION add_version(p_version uuid, p_preimage bytea, p_note text,
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

-- Makes a new draft with an older version's bytes. The draft has that version's
-- hash but none of its seals, because a seal belongs to a version's id. So the
-- draft is reviewed again, also if the older version was approved, or has been
-- revoked since.
CREATE FUNCTION rollback_version(p_version uuid, p_tool uuid, p_to int, p_actor text,
    OUT version_no int, OUT name text, OUT hash bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	v tool_versions;
	newest tool_versions;
BEGIN
	SELECT x.* INTO s FROM servers x JOIN tools t ON t.server_id = x.id
	    WHERE t.id = p_tool AND t.deleted_at IS NULL FOR SHARE OF x;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	PERFORM 1 FROM tools WHERE id = p_tool FOR UPDATE;
	SELECT * INTO v FROM tool_versions x WHERE x.tool_id = p_tool AND x.version_no = p_to;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'the tool has no version ' || p_to);
	END IF;
	SELECT * INTO STRICT newest FROM tool_versions x WHERE x.tool_id = p_tool
	    ORDER BY x.version_no DESC LIMIT 1;
	IF newest.hash = v.hash THEN
		PERFORM fail('conflict', 'version ' || newest.version_no
		    || ', the newest, has the content of version ' || p_to || ' already');
	END IF;
	IF v.exposed_name <> (CASE s.expose WHEN 'bare' THEN v.name
	    ELSE s.name || '__' || v.name END) THEN
		PERFORM fail('conflict', 'the server names its tools otherwise since version '
		    || p_to || ' was made: make a new version of its content instead');
	END IF;
	version_no := add_version(p_version, v.preimage, 'back to version ' || p_to, p_actor,
	    newest.version_no, 'rollback');
	name := v.exposed_name;
	hash := v.hash;
END $$;

-- Returns the members of a version's content that are the same for all who may
-- see it. It runs as its owner, since the run-time role may not take a
-- pre-image apart.
CREATE FUNCTION version_content(v tool_versions) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := v.preimage;
BEGIN
	RETURN json_build_object('title', v.title, 'description', v.description,
	    'kind', v.kind, 'python_code', version_text(pre, 15),
	    'spec', json_bytes(version_bytes(pre, 16)),
	    'executable', v.executable, 'executable_digest', version_text(pre, 19),
	    'text', version_text(pre, 40), 'blob', version_text(pre, 41),
	    'uri', v.uri, 'mime_type', v.mime_type, 'ttl_ms', v.ttl_ms,
	    'arguments', json_bytes(v.arguments),
	    'input_schema', json_bytes(v.input_schema),
	    'output_schema', json_bytes(v.output_schema),
	    'annotations', json_bytes(v.annotations), 'icons', json_bytes(v.icons),
	    'meta', json_bytes(v.meta), 'secrets', to_json(v.secrets),
	    'modules', (SELECT coalesce(json_agg(split_part(m, ' ', 1) || '=='
		|| split_part(m, ' ', 2)), '[]') FROM unnest(v.modules) m),
	    'requires', to_json(version_texts(pre, 21)), 'task', v.task,
	    'confirm', coalesce(v.confirm, 0) = 1,
	    'client_capabilities', to_json(v.client_capabilities),
	    'limits', version_limits(v));
END $$;

-- Returns one item of a list of versions.
CREATE FUNCTION version_line(v tool_versions, p_serving uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_build_object('version', v.version_no, 'approval_status', v.state,
	    'serving', coalesce(v.id = p_serving, false), 'change_summary', v.change_note,
	    'change_source', v.change_source, 'created_by', v.created_by,
	    'created_at', mcpbox.json_time(v.created_at),
	    'version_hash', encode(v.hash, 'hex'))
$$;

-- Returns one whole version, for administrators. It also shows versions of
-- deleted objects.
CREATE FUNCTION version_json(p_tool uuid, p_version bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v tool_versions;
BEGIN
	SELECT * INTO v FROM tool_versions x WHERE x.tool_id = p_tool AND x.version_no = p_version;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	RETURN json_members(json_build_object('tool_id', v.tool_id, 'version', v.version_no,
	    'name', v.name, 'exposed_name', v.exposed_name, 'object', v.object,
	    'approval_status', v.state, 'version_hash', encode(v.hash, 'hex'),
	    'serving', EXISTS (SELECT 1 FROM tools t WHERE t.serving_version = v.id),
	    'change_source', v.change_source, 'change_summary', v.change_note,
	    'created_by', v.created_by, 'created_at', json_time(v.created_at)),
	    version_content(v));
END $$;

-- Finds a version that a path names as "tool/number". version_pair() finds the
-- two versions of "tool/number-number".
CREATE FUNCTION version_named(p_name text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name !~ '^[^/]+/[0-9]{1,9}$' THEN
		RETURN NULL;
	END IF;
	RETURN version_json(find_tool(split_part(p_name, '/', 1)),
	    split_part(p_name, '/', 2)::bigint);
END $$;

CREATE FUNCTION version_pair(p_name text, OUT tool_id uuid, OUT name text, OUT from_no int,
    OUT from_pre bytea, OUT to_no int, OUT to_pre bytea)
RETURNS SETOF record
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_name ~ '^[^/]+/[0-9]{1,9}-[0-9]{1,9}$' THEN
		RETURN QUERY SELECT t.id, t.name::text, a.version_no, a.preimage, b.version_no, b.preimage
		    FROM tools t JOIN tool_versions a ON a.tool_id = t.id
			AND a.version_no = split_part(split_part(p_name, '/', 2), '-', 1)::int
		    JOIN tool_versions b ON b.tool_id = t.id
			AND b.version_no = split_part(split_part(p_name, '/', 2), '-', 2)::int
		    WHERE t.id = find_tool(split_part(p_name, '/', 1));
	END IF;
END $$;

-- Returns a pre-image with one text field added, replaced, or removed (null).
-- The field is put in its place, since fields are in order.
CREATE FUNCTION version_with(preimage bytea, wanted int, value text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	p bytea := substring(preimage FROM 1);
	field bytea := set_byte('\x00'::bytea, 0, wanted) || int4send(octet_length(value))
	    || convert_to(value, 'UTF8');
	pos bigint := 17;
	size bigint;
BEGIN
	PERFORM version_fields(preimage, 255);	-- fails if it is none
	WHILE pos < length(p) AND get_byte(p, pos::int) < wanted LOOP
		pos := pos + 5 + ((get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16) | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4));
	END LOOP;
	size := 0;
	IF pos < length(p) AND get_byte(p, pos::int) = wanted THEN
		size := 5 + ((get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16) | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4));
	END IF;
	RETURN substring(p FROM 1 FOR pos::int) || coalesce(field, ''::bytea)
	    || substring(p FROM (pos + size)::int + 1);
END $$;

CREATE FUNCTION act_version_rollback(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools := act_tool(p_id);
BEGIN
	PERFORM act_seen(p_seen, tool_json(t.id));
	IF (p_body ->> 'version')::numeric NOT BETWEEN 1 AND 2147483647 THEN
		PERFORM fail('not_found', 'there is no such version');
	END IF;
	PERFORM rollback_version(gen_random_uuid(), t.id, (p_body ->> 'version')::int, p_actor);
	RETURN tool_json(t.id);
END $$;

CREATE FUNCTION act_versions_prune(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
	keep int;
	n bigint;
	total bigint := 0;
BEGIN
	IF coalesce((p_body ->> 'keep')::numeric, 10) NOT BETWEEN 10 AND 10000 THEN
		PERFORM fail('invalid_params', 'keep is 10 to 10000');
	END IF;
	keep := coalesce((p_body ->> 'keep')::int, setting('versions_kept')::int);
	PERFORM 1 FROM servers WHERE id = (SELECT x.server_id FROM tools x
	    WHERE x.id = find_tool(p_id)) FOR SHARE;
	-- of what was deleted, too
	SELECT * INTO t FROM tools x WHERE x.id = find_tool(p_id) FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool, prompt or resource');
	END IF;
	LOOP
		n := prune_versions(t.id, keep);
		total := total + n;
		EXIT WHEN n = 0;
	END LOOP;
	IF total > 0 THEN
		PERFORM audit_append(p_actor, 'versions_pruned', t.object || ' ' || t.name,
		    json_build_object('tool_id', t.id, 'keep', keep, 'versions', total)::text);
	END IF;
	RETURN json_build_object('tool_id', t.id, 'pruned', total, 'total_versions',
	    (SELECT count(*) FROM tool_versions v WHERE v.tool_id = t.id));
END $$;

-- Refuses a draft that names a host which cannot be granted. (Older versions
-- keep the hosts that they name.)
CREATE FUNCTION tool_versions_requires() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	bad text;
BEGIN
	SELECT r || ': ' || n.wrong INTO bad
	    FROM unnest(mcpbox.version_texts(NEW.preimage, 21)) r
	    CROSS JOIN LATERAL mcpbox.need_parts(r) n WHERE n.wrong IS NOT NULL
	    ORDER BY r COLLATE "C" LIMIT 1;
	IF bad IS NOT NULL THEN
		PERFORM mcpbox.fail('invalid_arguments', 'requires: ' || bad);
	END IF;
	RETURN NEW;
END $$;

-- Makes drafts of an OpenAPI document's operations, as admind wrote them: each
-- becomes a tool and a request for its review, in one transaction. An operation
-- whose name is taken, or that cannot be made for another reason, is left out,
-- and the answer says so. No policy approves these tools: nobody wrote them, so
-- somebody has to read them. The lock of the server is exclusive, because the
-- first tool that is made takes the audit head. After that, the name of a later
-- tool could wait for a transaction that changes the tool with this name.
CREATE FUNCTION import_http_tools(p_server uuid, p_versions uuid[], p_requests uuid[],
    p_preimages bytea[], p_skipped text[], p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made json[] := '{}';
	skipped text[] := coalesce(p_skipped, '{}');
	pre bytea;
	tool uuid;
	said text;
BEGIN
	PERFORM 1 FROM servers WHERE id = p_server AND deleted_at IS NULL FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	FOR i IN 1 .. coalesce(cardinality(p_preimages), 0) LOOP
		pre := p_preimages[i];
		tool := version_uuid(pre, 3);
		IF version_uuid(pre, 2) IS DISTINCT FROM p_server
		    OR version_text(pre, 14) IS DISTINCT FROM 'http' THEN
			PERFORM fail('invalid_params', 'this is no declared call of this server');
		END IF;
		BEGIN
			PERFORM create_tool(p_versions[i], pre, p_actor, 'import');
			PERFORM request_publish(p_requests[i], gen_random_uuid(), tool,
			    'imported from an OpenAPI document', p_actor);
			made := made || json_build_object('id', tool, 'name', version_text(pre, 5),
			    'exposed_name', version_text(pre, 6), 'request_id', p_requests[i],
			    'approval_status', 'pending_review');
		EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'MB001' THEN
			GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
			skipped := skipped || (version_text(pre, 5) || ': ' || left(said, 300));
		END;
	END LOOP;
	PERFORM audit_append(p_actor, 'openapi_imported', 'server ' || (SELECT name FROM servers
	    WHERE id = p_server), json_build_object('tools', cardinality(made),
	    'skipped', cardinality(skipped))::text);
	RETURN json_build_object('success', true, 'message', CASE WHEN cardinality(made) = 0
	    THEN 'No tool was made; `skipped` says why.'
	    ELSE 'An administrator approves each; mcpbox_get_tool_status tells how it stands.'
	    || ' Ask for their hosts with mcpbox_request_network_access, and have the values of'
	    || ' their secrets set.' END, 'tools', array_to_json(made), 'count', cardinality(made),
	    'skipped', to_json(skipped[1:100]))::text;
END $$;

CREATE FUNCTION tool_versions_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	code text := mcpbox.version_text(NEW.preimage, 15);
	-- up to the first of: C0 but tab and newline, DEL, C1, the two separators
	-- and the byte order mark
	fine text := substring(code FROM
	    '^[^\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]*');
BEGIN
	IF length(fine) < length(code) THEN
		PERFORM mcpbox.fail('invalid_arguments', format('code: character %s of line %s is U+%s,'
		    ' which ends a line for some readers and not for others, or shows nothing: end'
		    ' lines with U+000A alone, and write an escape (\r, \f, \x85, \u2028) in a string',
		    length(fine) - length(substring(fine FROM '^(?:.*\n)?')) + 1,
		    length(fine) - length(replace(fine, E'\n', '')) + 1,
		    upper(lpad(to_hex(ascii(substr(code, length(fine) + 1, 1))), 4, '0'))));
	END IF;
	RETURN NEW;
END $$;

CREATE TRIGGER no_truncate BEFORE TRUNCATE ON tool_versions EXECUTE FUNCTION refuse();
CREATE TRIGGER guard_insert BEFORE INSERT ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_insert();
CREATE TRIGGER guard BEFORE UPDATE ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_guard();
CREATE TRIGGER names AFTER INSERT OR UPDATE OF state ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_names_follow();
-- This trigger fires only for a revocation, because a version that was replaced
-- may still run.
CREATE TRIGGER catalogue AFTER UPDATE OF state ON tool_versions
    FOR EACH ROW WHEN (NEW.state = 'revoked') EXECUTE FUNCTION catalogue_bump();
CREATE TRIGGER guard_delete BEFORE DELETE ON tool_versions
    FOR EACH ROW EXECUTE FUNCTION tool_versions_delete();
CREATE TRIGGER requires BEFORE INSERT ON tool_versions FOR EACH ROW
    EXECUTE FUNCTION tool_versions_requires();
CREATE TRIGGER lines BEFORE INSERT ON tool_versions FOR EACH ROW
    EXECUTE FUNCTION tool_versions_lines();

GRANT EXECUTE ON FUNCTION revoke_version, static_open, add_version,
    version_content, version_line, version_json, version_named, version_pair,
    import_http_tools TO mcpbox_app;
