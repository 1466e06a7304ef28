-- 0004: prompts, resources and resource templates beside tools; deletion;
-- what of the catalogue changed.
--
-- A row of `tools` is an object: a tool, prompt, resource or template. They
-- share names, versions, review and records.
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Versions: what the new fields of the pre-image say.

-- Bytes of a static resource: of its text, or of what its base64 stands for.
CREATE FUNCTION version_content_bytes(preimage bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT coalesce(length(mcpbox.version_bytes(preimage, 40)),
	    length(b) / 4 * 3 - (length(b) - length(rtrim(b, '='))))
	FROM (SELECT mcpbox.version_text(preimage, 41)) AS x (b)
$$;

ALTER TABLE tool_versions
	DROP CONSTRAINT tool_versions_kind_check,
	ADD CONSTRAINT tool_versions_kind_check CHECK
	    (kind IN ('python', 'command', 'http', 'mcp', 'static')),
	ADD COLUMN object text NOT NULL
	    GENERATED ALWAYS AS (coalesce(version_text(preimage, 36), 'tool')) STORED
	    CHECK (object IN ('tool', 'prompt', 'resource', 'template')),
	ADD COLUMN uri text COLLATE "C"
	    GENERATED ALWAYS AS (version_text(preimage, 37)) STORED
	    CHECK (octet_length(uri) BETWEEN 3 AND 1024),
	ADD COLUMN mime_type text GENERATED ALWAYS AS (version_text(preimage, 38)) STORED
	    CHECK (length(mime_type) BETWEEN 1 AND 255),
	ADD COLUMN arguments bytea GENERATED ALWAYS AS (version_bytes(preimage, 39)) STORED
	    CHECK (length(arguments) BETWEEN 2 AND 65536),
	ADD COLUMN content_bytes bigint GENERATED ALWAYS AS (version_content_bytes(preimage)) STORED
	    CHECK (content_bytes BETWEEN 0 AND 524288),
	ADD COLUMN ttl_ms bigint GENERATED ALWAYS AS (version_number(preimage, 42)) STORED
	    CHECK (ttl_ms BETWEEN 0 AND 31536000000),
	ADD COLUMN client_capabilities text[] NOT NULL
	    GENERATED ALWAYS AS (version_texts(preimage, 43)) STORED
	    CHECK (client_capabilities <@ ARRAY['elicitation', 'elicitation.url',
	    'sampling', 'sampling.tools', 'roots', 'tasks']);

ALTER TABLE tools
	ADD COLUMN object text NOT NULL DEFAULT 'tool'
	    CHECK (object IN ('tool', 'prompt', 'resource', 'template')),
	ADD COLUMN deleted_at timestamptz,
	ADD COLUMN deleted_by text CHECK (actor_ok(deleted_by)),
	ADD CHECK ((deleted_at IS NULL) = (deleted_by IS NULL)),
	ADD CHECK (deleted_at IS NULL OR (serving_version IS NULL AND NOT enabled)),
	DROP CONSTRAINT tools_server_id_name_key;
-- What is deleted keeps its row and its history, and lets its name go.
CREATE UNIQUE INDEX tools_server_id_name_key ON tools (server_id, name)
    WHERE deleted_at IS NULL;
CREATE INDEX ON tools (server_id);

-- Who holds a URI (or URI template): the resource whose serving or pending
-- version bears it. Drafts may bear any: they are nobody's but their author's.
CREATE TABLE resource_uris (
	uri text COLLATE "C" PRIMARY KEY,
	tool_id uuid NOT NULL REFERENCES tools (id)
);
CREATE INDEX ON resource_uris (tool_id);

-- 0001's, and: an object stays what it is, and deleted once it is.
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
	IF NEW.serving_version IS NOT NULL AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.serving_version
	    AND v.tool_id = NEW.id AND v.state = 'approved') THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'only an approved version may serve';
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;
CREATE TRIGGER no_delete BEFORE DELETE ON tools
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON tools EXECUTE FUNCTION refuse();

-- Nothing is asked for, for what is deleted.
CREATE FUNCTION approval_requests_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM mcpbox.tools t WHERE t.id = NEW.tool_id
	    AND t.deleted_at IS NOT NULL) THEN
		PERFORM mcpbox.fail('not_found', 'it was deleted');
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER guard_insert BEFORE INSERT ON approval_requests
    FOR EACH ROW EXECUTE FUNCTION approval_requests_insert();

-- Which fields belong to which object, and to what it is made of.
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
	    WHEN 'prompt' THEN k = 'command' OR blobs > 0 OR version_bytes(pre, 37) IS NOT NULL
		OR version_bytes(pre, 38) IS NOT NULL OR version_bytes(pre, 42) IS NOT NULL
	    WHEN 'resource' THEN k = 'command' OR version_bytes(pre, 37) IS NULL
		OR version_bytes(pre, 39) IS NOT NULL
	    WHEN 'template' THEN k <> 'python' OR version_bytes(pre, 37) IS NULL
	    ELSE true END) THEN
		PERFORM fail('invalid_params', 'a ' || o || ' of kind ' || coalesce(k, '?')
		    || ' does not have these fields');
	END IF;
	-- Results of these are not tools' results, and no task and no person
	-- stands between them and who reads them.
	IF o <> 'tool' AND (version_bytes(pre, 12) IS NOT NULL OR version_bytes(pre, 22) IS NOT NULL
	    OR version_bytes(pre, 23) IS NOT NULL) THEN
		PERFORM fail('invalid_params', 'only tools have output_schema, task and confirm');
	END IF;
END $$;

-- 0002's, and: the object's.
CREATE OR REPLACE FUNCTION tool_versions_insert() RETURNS trigger LANGUAGE plpgsql AS $$
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
	ELSE
		PERFORM mcpbox.fail('invalid_params', 'this kind of tool cannot be made yet');
	END CASE;
	-- 0001's columns have no bounds of their own; as constraints these could make
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

-- Names and URIs follow versions. A name is claimed at insert and let go when
-- neither the serving, a pending nor the newest version bears it; a URI is
-- claimed when review is asked for, and let go when neither the serving nor a
-- pending version bears it; all of them when the object is deleted. Approved
-- is a moment before serving, in the same transaction: nothing goes then.
CREATE OR REPLACE FUNCTION tool_names_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	t uuid;
BEGIN
	IF TG_TABLE_NAME = 'tool_versions' THEN
		t := NEW.tool_id;
		IF NEW.state = 'approved' THEN
			RETURN NULL;
		ELSIF TG_OP = 'INSERT' THEN
			INSERT INTO mcpbox.tool_names VALUES (NEW.exposed_name, t)
			    ON CONFLICT DO NOTHING;
			IF NOT EXISTS (SELECT 1 FROM mcpbox.tool_names n
			    WHERE n.exposed_name = NEW.exposed_name AND n.tool_id = t) THEN
				PERFORM mcpbox.fail('conflict', 'something else has the name '
				    || NEW.exposed_name);
			END IF;
		ELSIF NEW.state = 'pending_review' AND NEW.uri IS NOT NULL THEN
			INSERT INTO mcpbox.resource_uris VALUES (NEW.uri, t)
			    ON CONFLICT DO NOTHING;
			IF NOT EXISTS (SELECT 1 FROM mcpbox.resource_uris u
			    WHERE u.uri = NEW.uri AND u.tool_id = t) THEN
				PERFORM mcpbox.fail('conflict', 'another resource has the URI '
				    || NEW.uri);
			END IF;
		END IF;
	ELSE
		t := NEW.id;
	END IF;
	DELETE FROM mcpbox.tool_names n WHERE n.tool_id = t AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v JOIN mcpbox.tools o ON o.id = v.tool_id
	    WHERE v.tool_id = t AND o.deleted_at IS NULL
	    AND v.exposed_name = n.exposed_name AND (v.state = 'pending_review'
	    OR v.id = o.serving_version
	    OR v.version_no = (SELECT max(version_no) FROM mcpbox.tool_versions
	    WHERE tool_id = t)));
	DELETE FROM mcpbox.resource_uris u WHERE u.tool_id = t AND NOT EXISTS
	    (SELECT 1 FROM mcpbox.tool_versions v JOIN mcpbox.tools o ON o.id = v.tool_id
	    WHERE v.tool_id = t AND o.deleted_at IS NULL AND v.uri = u.uri
	    AND (v.state = 'pending_review' OR v.id = o.serving_version));
	RETURN NULL;
END $$;
DROP TRIGGER names ON tools;
CREATE TRIGGER names AFTER UPDATE OF serving_version, deleted_at ON tools
    FOR EACH ROW EXECUTE FUNCTION tool_names_follow();

---------------------------------------------------------------------------
-- The catalogue: which of its lists changed, in which revision, as columns and
-- as a mask (1 tools, 2 prompts, 4 resources, 8 templates) in the NOTIFY.

ALTER TABLE catalogue
	ADD COLUMN tools bigint NOT NULL DEFAULT 1,
	ADD COLUMN prompts bigint NOT NULL DEFAULT 1,
	ADD COLUMN resources bigint NOT NULL DEFAULT 1,
	ADD COLUMN templates bigint NOT NULL DEFAULT 1;
UPDATE catalogue SET tools = revision;

CREATE FUNCTION list_bit(object text) RETURNS int
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT CASE object WHEN 'tool' THEN 1 WHEN 'prompt' THEN 2
	    WHEN 'resource' THEN 4 WHEN 'template' THEN 8 END
$$;

-- Mask 0: no list changed, but something may no longer run.
CREATE FUNCTION catalogue_changed(mask int) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r bigint;
BEGIN
	IF mask <> 0 THEN
		UPDATE catalogue c SET revision = c.revision + 1,
		    tools = CASE WHEN mask & 1 <> 0 THEN c.revision + 1 ELSE c.tools END,
		    prompts = CASE WHEN mask & 2 <> 0 THEN c.revision + 1 ELSE c.prompts END,
		    resources = CASE WHEN mask & 4 <> 0 THEN c.revision + 1 ELSE c.resources END,
		    templates = CASE WHEN mask & 8 <> 0 THEN c.revision + 1 ELSE c.templates END;
	END IF;
	SELECT revision INTO STRICT r FROM catalogue;
	PERFORM pg_notify('mcpbox_catalogue', r || ' ' || mask);
END $$;

CREATE OR REPLACE FUNCTION catalogue_bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_TABLE_NAME = 'servers' THEN
		PERFORM mcpbox.catalogue_changed((SELECT coalesce(bit_or(mcpbox.list_bit(t.object)), 0)
		    FROM mcpbox.tools t WHERE t.server_id = NEW.id AND t.enabled
		    AND t.serving_version IS NOT NULL));
	ELSIF TG_TABLE_NAME = 'tool_versions' THEN
		PERFORM mcpbox.catalogue_changed(0);
	ELSE
		PERFORM mcpbox.catalogue_changed(CASE WHEN
		    (OLD.serving_version IS NOT NULL AND OLD.enabled)
		    OR (NEW.serving_version IS NOT NULL AND NEW.enabled)
		    THEN mcpbox.list_bit(NEW.object) ELSE 0 END);
	END IF;
	RETURN NULL;
END $$;
DROP TRIGGER catalogue ON servers;
CREATE TRIGGER catalogue AFTER UPDATE OF status, expose ON servers
    FOR EACH ROW EXECUTE FUNCTION catalogue_bump();
DROP TRIGGER catalogue ON tools;
CREATE TRIGGER catalogue AFTER UPDATE OF serving_version, enabled ON tools
    FOR EACH ROW EXECUTE FUNCTION catalogue_bump();
-- A version that was replaced may still run.
CREATE TRIGGER catalogue AFTER UPDATE OF state ON tool_versions
    FOR EACH ROW WHEN (NEW.state = 'revoked') EXECUTE FUNCTION catalogue_bump();

---------------------------------------------------------------------------
-- Functions.

-- 0001's, for any object.
CREATE OR REPLACE FUNCTION create_tool(p_version uuid, p_preimage bytea, p_actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t uuid := version_uuid(p_preimage, 3);
	n text := version_text(p_preimage, 5);
	o text := coalesce(version_text(p_preimage, 36), 'tool');
BEGIN
	-- the server must stay as it is until the version stands
	PERFORM 1 FROM servers WHERE id = version_uuid(p_preimage, 2) FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	INSERT INTO tools (id, server_id, name, object, created_by)
	    VALUES (t, version_uuid(p_preimage, 2), n, o, p_actor)
	    ON CONFLICT (server_id, name) WHERE deleted_at IS NULL DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'the server has a ' || (SELECT x.object FROM tools x
		    WHERE x.server_id = version_uuid(p_preimage, 2) AND x.name = n
		    AND x.deleted_at IS NULL) || ' named ' || n);
	END IF;
	INSERT INTO tool_versions (id, version_no, preimage, hash, created_by)
	    VALUES (p_version, 1, p_preimage, sha256(p_preimage), p_actor);
	PERFORM audit_append(p_actor, 'tool_created',
	    o || ' ' || version_text(p_preimage, 6), json_build_object('tool_id', t,
	    'version_id', p_version, 'version', 1,
	    'hash', encode(sha256(p_preimage), 'hex'))::text);
END $$;

-- Deletes an object: no call of it begins after this commit, those that run
-- are withdrawn, its name and URI are free. Versions, requests and records
-- stay. p_object: tool, prompt, or resource (a template too).
CREATE FUNCTION delete_object(p_tool uuid, p_object text, p_actor text,
    OUT object text, OUT exposed_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	PERFORM 1 FROM servers s JOIN tools x ON x.server_id = s.id
	    WHERE x.id = p_tool FOR SHARE OF s;
	SELECT * INTO t FROM tools x WHERE x.id = p_tool FOR UPDATE;
	IF NOT FOUND OR t.deleted_at IS NOT NULL
	    OR p_object <> (CASE t.object WHEN 'template' THEN 'resource' ELSE t.object END) THEN
		PERFORM fail('not_found', 'there is no such ' || p_object);
	END IF;
	SELECT v.exposed_name INTO STRICT exposed_name FROM tool_versions v
	    WHERE v.tool_id = p_tool ORDER BY v.version_no DESC LIMIT 1;
	object := t.object;
	UPDATE tool_versions v SET state = 'rejected'
	    WHERE v.tool_id = p_tool AND v.state = 'pending_review';
	UPDATE tool_versions v SET state = 'revoked' WHERE v.id = t.serving_version;
	UPDATE approval_requests a SET state = 'superseded', decided_by = p_actor,
	    decided_at = clock_timestamp(), reason = 'deleted'
	    WHERE a.tool_id = p_tool AND a.state = 'pending';
	UPDATE tools x SET enabled = false, deleted_at = clock_timestamp(), deleted_by = p_actor
	    WHERE x.id = p_tool;
	PERFORM audit_append(p_actor, 'tool_deleted', t.object || ' ' || exposed_name,
	    json_build_object('tool_id', p_tool)::text);
END $$;

-- The intent row of what admind answers itself from an approved version (kind
-- static). As execution_open(); recorded as admind's own calls are.
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

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON resource_uris FROM PUBLIC;
GRANT SELECT ON resource_uris TO mcpbox_app;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mcpbox FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_object, static_open TO mcpbox_app;
