-- Other MCP servers as sources of tools (docs/decisions/0050, 0051).
--
-- A source is an object of its own kind, `source`. Its version says where the
-- server is and which credential goes there, and a person approves these bytes.
-- To ask the server what tools it has, that version is run. A tool that is
-- imported from a source is a version of kind mcp, with the SHA-256 of the
-- definition that was read. No table here has a secret: a run that makes
-- secrets has them in its result, sealed for the vault.

CREATE TABLE external_sources (
	id uuid PRIMARY KEY,
	server_id uuid NOT NULL REFERENCES servers (id),
	name text COLLATE "C" NOT NULL CHECK (name_ok(name, 24)),
	url text NOT NULL CHECK (octet_length(url) BETWEEN 8 AND 2048),
	auth_type text NOT NULL CHECK (auth_type IN ('none', 'bearer', 'header', 'oauth')),
	auth_secret_name text COLLATE "C",
	auth_header_name text CHECK (auth_header_name ~ '^[A-Za-z][A-Za-z0-9-]{0,63}$'),
	transport_type text NOT NULL CHECK (transport_type IN ('streamable_http', 'sse')),
	status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'error', 'disabled')),
	tool_count int NOT NULL DEFAULT 0 CHECK (tool_count >= 0),
	last_discovered_at timestamptz,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	created_by text NOT NULL CHECK (actor_ok(created_by)),
	tool_id uuid UNIQUE REFERENCES tools (id),
	-- from the last listing: era modern or legacy, revision of MCP,
	-- the server's description of itself
	era text CHECK (era IN ('modern', 'legacy')),
	protocol text CHECK (length(protocol) <= 40),
	server_info text CHECK (length(server_info) <= 2000),
	-- the health at the last listing
	checked_at timestamptz,
	last_failure text CHECK (length(last_failure) <= 64),
	last_error text CHECK (length(last_error) <= 2000),
	-- OAuth (decision 0051): nothing here is a secret
	oauth_issuer text CHECK (octet_length(oauth_issuer) BETWEEN 8 AND 2048),
	oauth_scope text CHECK (length(oauth_scope) BETWEEN 1 AND 1000),
	oauth_client_id text CHECK (length(oauth_client_id) BETWEEN 1 AND 2048),
	oauth_hosts text[] NOT NULL DEFAULT '{}' CHECK (cardinality(oauth_hosts) <= 8),
	oauth_status text NOT NULL DEFAULT 'none'
	    CHECK (oauth_status IN ('none', 'pending', 'authorised', 'failed')),
	oauth_state bytea UNIQUE CHECK (length(oauth_state) = 32),
	oauth_state_until timestamptz,
	oauth_redirect text CHECK (octet_length(oauth_redirect) <= 2048),
	oauth_expires_at timestamptz,
	oauth_refreshable boolean NOT NULL DEFAULT false,
	-- a refresh is under way: before this time no other one begins
	oauth_busy_until timestamptz,
	CHECK ((auth_type = 'none') = (auth_secret_name IS NULL)),
	CHECK ((auth_type = 'header') = (auth_header_name IS NOT NULL)),
	UNIQUE (server_id, name),
	CHECK ((oauth_state IS NULL) = (oauth_state_until IS NULL))
);

-- The tools that a source's server had when it was last asked. `definition` is
-- JSON as the runner wrote it: without control characters, bounded, and
-- untrusted.
CREATE TABLE source_tools (
	source_id uuid NOT NULL REFERENCES external_sources (id) ON DELETE CASCADE,
	name text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
	sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
	definition text NOT NULL CHECK (octet_length(definition) <= 262144),
	PRIMARY KEY (source_id, name)
);

-- The origin of imported tools. A source that was deleted and added again under
-- its name finds its tools again.
CREATE TABLE imported_tools (
	tool_id uuid PRIMARY KEY REFERENCES tools (id),
	source_id uuid REFERENCES external_sources (id) ON DELETE SET NULL,
	server_id uuid NOT NULL REFERENCES servers (id),
	source text COLLATE "C" NOT NULL,
	upstream text COLLATE "C" NOT NULL
);

CREATE INDEX ON imported_tools (source_id);
CREATE INDEX ON imported_tools (server_id, source);

-- Returns what is wrong with a source's URL. Null: nothing. Only the form is
-- judged, and strictly, so that no two readers of the URL ever disagree on its
-- host: ASCII, no user, no fragment, a plain host name or address. Names and
-- addresses of this machine and of cloud metadata are refused at once. A name
-- may resolve to any address. Whether that address may be reached is asked for
-- each connection, not here.
CREATE FUNCTION source_url_wrong(p_url text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	m text[];
	host text;
BEGIN
	m := regexp_match(p_url,
	    '^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?([/?][\x21\x22\x24-\x5b\x5d-\x7e]*)?$');
	IF m IS NULL THEN
		RETURN 'the URL must be http(s)://host[:port][/path], in ASCII, without'
		    ' user, password and fragment';
	END IF;
	host := rtrim(lower(m[1]), '.');
	IF m[2] IS NOT NULL AND m[2]::int NOT BETWEEN 1 AND 65535 THEN
		RETURN 'the URL''s port must be 1 to 65535';
	END IF;
	IF host LIKE '[%' THEN
		BEGIN
			-- fails if it is no address
			IF inet(trim(host, '[]')) <<= ANY (ARRAY['::/127', 'fe80::/10', 'ff00::/8',
			    '::ffff:0:0/96', 'fd00:ec2::254/128']::inet[]) THEN
				RETURN 'the URL''s address is not one of another machine';
			END IF;
		EXCEPTION WHEN data_exception OR invalid_text_representation THEN
			RETURN 'the URL''s host is not an IPv6 address';
		END;
	ELSIF host ~ '^[0-9.]+$|(^|\.)(0x[0-9a-f]*|[0-9]+)$' THEN
		-- a host whose last label is a number is an address (WHATWG URL), and
		-- only the usual form of one has one meaning
		IF host !~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.|$)){4}$' THEN
			RETURN 'the URL''s host is not an IPv4 address';
		END IF;
		IF inet(host) <<= ANY (ARRAY['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16',
		    '224.0.0.0/3']::inet[]) THEN
			RETURN 'the URL''s address is not one of another machine';
		END IF;
	ELSIF length(host) > 253 OR host !~
	    '^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$' THEN
		RETURN 'the URL''s host is not a host name';
	ELSIF host ~ '(^|\.)(localhost|local|internal)$' THEN
		RETURN 'the URL''s host is not one of another machine';
	END IF;
	RETURN NULL;
END $$;

-- Deletes a source with its object. Tools that were imported stay, because
-- their own versions say what they may reach. The source's object is locked
-- before the source, as when the object is deleted.
CREATE FUNCTION delete_source(p_id uuid, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_id;
	SELECT * INTO s FROM servers WHERE id = x.server_id FOR SHARE;
	PERFORM 1 FROM tools WHERE id = x.tool_id FOR UPDATE;
	DELETE FROM external_sources WHERE id = p_id;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such source');
	END IF;
	IF EXISTS (SELECT 1 FROM tools WHERE id = x.tool_id AND deleted_at IS NULL) THEN
		PERFORM delete_object(x.tool_id, 'source', p_actor);
	END IF;
	PERFORM audit_append(p_actor, 'source_deleted', 'source ' || s.name || '/' || x.name,
	    json_build_object('source_id', p_id, 'server_id', s.id)::text);
END $$;

-- Returns what GET shows of a source: the state of its review, its health, OAuth.
CREATE FUNCTION source_json(x external_sources) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_build_object('id', x.id, 'server_id', x.server_id, 'name', x.name, 'url', x.url,
	    'auth_type', x.auth_type, 'auth_secret_name', x.auth_secret_name,
	    'auth_header_name', x.auth_header_name, 'transport_type', x.transport_type,
	    'status', x.status, 'tool_count', x.tool_count,
	    'last_discovered_at', mcpbox.json_time(x.last_discovered_at),
	    'created_at', mcpbox.json_time(x.created_at), 'created_by', x.created_by,
	    'tool_id', x.tool_id, 'approval_status', (SELECT v.state FROM mcpbox.tool_versions v
		WHERE v.tool_id = x.tool_id ORDER BY v.version_no DESC LIMIT 1),
	    'host_granted', (SELECT mcpbox.network_missing(v.server_id, v.requires) IS NULL
		FROM mcpbox.tool_versions v WHERE v.tool_id = x.tool_id
		ORDER BY v.version_no DESC LIMIT 1),
	    'protocol', x.protocol, 'era', x.era,
	    'server_info', mcpbox.json_or_text(x.server_info),
	    'health', json_build_object('checked_at', mcpbox.json_time(x.checked_at),
		'ok', x.checked_at IS NOT NULL AND x.last_failure IS NULL,
		'failure', x.last_failure, 'error', x.last_error),
	    'imported', (SELECT count(*) FROM mcpbox.imported_tools i
		JOIN mcpbox.tools t ON t.id = i.tool_id AND t.deleted_at IS NULL
		WHERE i.source_id = x.id),
	    'oauth', CASE x.auth_type WHEN 'oauth' THEN json_build_object('status', x.oauth_status,
		'issuer', x.oauth_issuer, 'scope', x.oauth_scope, 'client_id', x.oauth_client_id,
		'hosts', to_json(x.oauth_hosts), 'expires_at', mcpbox.json_time(x.oauth_expires_at),
		'refreshable', x.oauth_refreshable) END)
$$;

CREATE FUNCTION act_source_add(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made uuid := gen_random_uuid();
BEGIN
	PERFORM add_source(made, act_server(p_id), p_body ->> 'name', p_body ->> 'url',
	    coalesce(p_body ->> 'auth_type', 'none'), p_body ->> 'auth_secret_name',
	    p_body ->> 'auth_header_name',
	    coalesce(p_body ->> 'transport_type', 'streamable_http'), p_actor, p_body);
	RETURN (SELECT source_json(x)::text FROM external_sources x WHERE x.id = made);
END $$;

CREATE FUNCTION act_source_delete(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM delete_source(act_uuid(p_id, 'source'), p_actor);
	RETURN NULL;
END $$;

-- Returns the pre-image of a version of kind mcp.
CREATE FUNCTION mcp_preimage(s servers, p_tool uuid, p_name text, p_title text,
    p_description text, p_input text, p_output text, p_annotations text, p_spec text,
    p_secrets text[], p_requires text[], p_object text) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT convert_to('mcpbox version 1', 'UTF8') || '\x00'::bytea
	    || version_tlv(1, int8send(1))
	    || version_tlv(2, uuid_send(s.id)) || version_tlv(3, uuid_send(p_tool))
	    || version_tlv(4, convert_to(s.name, 'UTF8'))
	    || version_tlv(5, convert_to(p_name, 'UTF8'))
	    || version_tlv(6, convert_to(CASE s.expose WHEN 'bare' THEN p_name
		ELSE s.name || '__' || p_name END, 'UTF8'))
	    || version_tlv(7, convert_to(p_title, 'UTF8'))
	    || version_tlv(8, convert_to(coalesce(p_description, ''), 'UTF8'))
	    || version_tlv(11, convert_to(p_input, 'UTF8'))
	    || version_tlv(12, convert_to(p_output, 'UTF8'))
	    || version_tlv(13, convert_to(p_annotations, 'UTF8'))
	    || version_tlv(14, convert_to('mcp', 'UTF8'))
	    || version_tlv(16, convert_to(p_spec, 'UTF8'))
	    || version_tlvs(20, p_secrets) || version_tlvs(21, p_requires)
	    || version_tlv(36, convert_to(p_object, 'UTF8'))
$$;

-- Returns the host and the port of a URL that source_url_wrong() found right.
CREATE FUNCTION url_host(p_url text, OUT host text, OUT port int, OUT require text)
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m text[] := regexp_match(p_url, '^(https?)://(\[[^]]*\]|[^:/?]+)(?::([0-9]+))?');
BEGIN
	host := coalesce((SELECT h.host FROM host_spelled(trim(m[2], '[]')) h),
	    lower(trim(m[2], '[]')));
	port := coalesce(m[3]::int, CASE m[1] WHEN 'https' THEN 443 ELSE 80 END);
	require := CASE WHEN host LIKE '%:%' THEN '[' || host || ']' ELSE host END || ':' || port;
END $$;

-- Returns how the driver reaches a source: all of its specification but the
-- tool.
CREATE FUNCTION source_spec(x external_sources) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT '{"url":' || to_json(x.url) || ',"transport":' || to_json(x.transport_type)
	    || ',"auth":{"type":' || to_json(x.auth_type)
	    || coalesce(',"secret":' || to_json(x.auth_secret_name), '')
	    || coalesce(',"header":' || to_json(x.auth_header_name), '')
	    || coalesce(',"issuer":' || to_json(x.oauth_issuer), '')
	    || coalesce(',"scope":' || to_json(x.oauth_scope), '')
	    || coalesce(',"client_id":' || to_json(x.oauth_client_id), '') || '}'
$$;

-- Asks for a host of a source. If the host is granted, asked for or refused
-- already, nothing is asked: a person who looks at the source finds that.
CREATE FUNCTION source_host_request(s servers, p_tool uuid, p_name text, p_host text,
    p_port int, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM request_network(gen_random_uuid(), gen_random_uuid(), s.id, ARRAY[p_tool],
	    p_host, p_port, 'the MCP server that the source ' || p_name || ' is', p_actor, false);
EXCEPTION WHEN SQLSTATE 'MB001' THEN
	IF SQLERRM NOT LIKE 'conflict:%' AND SQLERRM NOT LIKE 'limit:%' THEN
		RAISE;
	END IF;
END $$;

-- Makes the source's object, its version and the requests. An administrator
-- decides them before anything connects to the source. A person decides, even
-- if a policy approves tools, because a source opens a way to another machine.
CREATE FUNCTION source_open(p_source uuid, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
	t uuid := gen_random_uuid();
	h record;
	hosts text[];
	url text;
BEGIN
	SELECT * INTO STRICT x FROM external_sources WHERE id = p_source FOR UPDATE;
	SELECT * INTO STRICT s FROM servers WHERE id = x.server_id;
	h := url_host(x.url);
	hosts := ARRAY[h.require];
	IF x.oauth_issuer IS NOT NULL THEN
		hosts := hosts || (url_host(x.oauth_issuer)).require || x.oauth_hosts;
	END IF;
	PERFORM create_tool(gen_random_uuid(), mcp_preimage(s, t, x.name, NULL,
	    'The MCP server at ' || x.url || ', as a source of tools: lists what it has.',
	    '{"type":"object","properties":{"op":{"type":"string"},"code":{"type":"string"},'
	    '"iss":{"type":"string"},"redirect_uri":{"type":"string"}},'
	    '"additionalProperties":false}', NULL, NULL, source_spec(x) || '}',
	    ARRAY[x.auth_secret_name], hosts, 'source'), p_actor, 'llm');
	UPDATE external_sources SET tool_id = t WHERE id = p_source;
	UPDATE imported_tools SET source_id = p_source WHERE source_id IS NULL
	    AND server_id = s.id AND source = x.name;
	PERFORM request_publish(gen_random_uuid(), gen_random_uuid(), t,
	    'A source of tools: once approved, its tools can be listed and imported, each of '
	    'them to be approved by itself.', p_actor);
	PERFORM source_host_request(s, t, x.name, h.host, h.port, p_actor);
	FOREACH url IN ARRAY hosts[2:] LOOP
		SELECT * INTO h FROM need_parts(url);
		PERFORM source_host_request(s, t, x.name, h.host, h.port, p_actor);
	END LOOP;
END $$;

CREATE FUNCTION add_source(p_id uuid, p_server uuid, p_name text, p_url text,
    p_auth text, p_secret text, p_header text, p_transport text, p_actor text,
    p_more json DEFAULT '{}') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	wrong text := source_url_wrong(p_url);
	issuer text := p_more ->> 'oauth_issuer';
	hosts text[] := ARRAY(SELECT json_array_elements_text(
	    CASE json_typeof(p_more -> 'oauth_hosts') WHEN 'array' THEN p_more -> 'oauth_hosts'
	    ELSE '[]' END));
	one text;
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_server AND deleted_at IS NULL FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF NOT name_ok(p_name, 24) THEN
		wrong := 'the name must be lower-case words joined by single underscores';
	ELSIF p_auth NOT IN ('none', 'bearer', 'header', 'oauth')
	    OR p_transport NOT IN ('streamable_http', 'sse') THEN
		wrong := 'auth_type is none, bearer, header or oauth; transport_type is streamable_http or sse';
	ELSIF p_auth = 'oauth' AND p_secret IS NOT NULL THEN
		wrong := 'with auth_type oauth the tokens are kept as a secret of their own: name none';
	ELSIF p_auth <> 'oauth' AND (p_auth = 'none') <> (p_secret IS NULL) THEN
		wrong := 'auth_secret_name belongs to auth_type bearer and header, and they need it';
	ELSIF (p_auth = 'header') <> (p_header IS NOT NULL) THEN
		wrong := 'auth_header_name belongs to auth_type header, and it needs it';
	ELSIF p_header !~ '^[A-Za-z][A-Za-z0-9-]{0,63}$' OR lower(p_header) IN ('host', 'connection', 'content-length',
	    'content-type', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'accept',
	    'proxy-authorization', 'proxy-connection', 'keep-alive', 'cookie', 'origin',
	    'last-event-id', 'accept-encoding', 'user-agent')
	    OR lower(p_header) LIKE 'mcp-%' THEN
		wrong := 'that header says something else: choose the one the other server asks for';
	ELSIF p_auth <> 'oauth' AND (issuer IS NOT NULL OR hosts <> '{}'
	    OR p_more ->> 'oauth_scope' IS NOT NULL OR p_more ->> 'oauth_client_id' IS NOT NULL) THEN
		wrong := 'oauth_issuer, oauth_scope, oauth_client_id and oauth_hosts belong to auth_type oauth';
	ELSIF issuer IS NOT NULL AND source_url_wrong(issuer) IS NOT NULL THEN
		wrong := 'oauth_issuer: ' || source_url_wrong(issuer);
	ELSIF issuer ~ '[?]' THEN
		wrong := 'oauth_issuer has no query';
	ELSIF cardinality(hosts) > 8 THEN
		wrong := 'oauth_hosts names 8 hosts at most';
	ELSIF p_more ->> 'oauth_scope' !~ '^[\x21\x23-\x5b\x5d-\x7e ]{1,1000}$' THEN
		wrong := 'oauth_scope is words with single blanks between them';
	END IF;
	FOREACH one IN ARRAY hosts LOOP
		IF (SELECT n.wrong IS NOT NULL OR n.proto <> 'tcp' FROM need_parts(one) n) THEN
			wrong := 'oauth_hosts: ' || left(one, 100) || ' is no host or host:port';
		END IF;
	END LOOP;
	IF wrong IS NOT NULL THEN
		PERFORM fail('invalid_arguments', wrong);
	END IF;
	IF p_auth = 'oauth' THEN
		-- a name nobody gives by hand, and no value yet
		p_secret := 'OAUTH_' || upper(p_name);
		IF NOT EXISTS (SELECT 1 FROM server_secrets x WHERE x.server_id = p_server
		    AND x.key = p_secret) THEN
			PERFORM secret_create(p_server, p_secret, 'Tokens of the source ' || p_name
			    || ': written by authorising it, not by hand.', p_actor);
		END IF;
	END IF;
	IF p_secret IS NOT NULL AND NOT EXISTS (SELECT 1 FROM server_secrets x
	    WHERE x.server_id = p_server AND x.key = p_secret) THEN
		PERFORM fail('not_found', 'the server has no secret named ' || p_secret
		    || ': make it with mcpbox_create_server_secret first');
	END IF;
	IF (SELECT count(*) FROM external_sources x WHERE x.server_id = p_server) >= 100 THEN
		PERFORM fail('limit', 'a server has at most 100 sources');
	END IF;
	INSERT INTO external_sources (id, server_id, name, url, auth_type, auth_secret_name,
	    auth_header_name, transport_type, created_by, oauth_issuer, oauth_scope,
	    oauth_client_id, oauth_hosts) VALUES (p_id, p_server, p_name, p_url,
	    p_auth, p_secret, p_header, p_transport, p_actor, issuer, p_more ->> 'oauth_scope',
	    p_more ->> 'oauth_client_id', hosts)
	    ON CONFLICT (server_id, name) DO NOTHING;
	IF NOT FOUND THEN
		PERFORM fail('conflict', 'the server has a source named ' || p_name);
	END IF;
	PERFORM audit_append(p_actor, 'source_added', 'source ' || s.name || '/' || p_name,
	    json_build_object('source_id', p_id, 'server_id', p_server, 'url', p_url,
	    'auth_type', p_auth, 'secret', p_secret)::text);
	PERFORM source_open(p_id, p_actor);
END $$;

-- Deletes a source when its object is deleted, in whatever way this happens.
CREATE FUNCTION sources_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM mcpbox.external_sources WHERE tool_id = NEW.id;
	RETURN NULL;
END $$;

-- Returns the name for clients of the object that is run for a source. Null: none.
CREATE FUNCTION source_object(p_source uuid) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	v tool_versions;
	n tool_versions;
	missing text;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'no source has this id: see mcpbox_list_external_sources');
	ELSIF x.tool_id IS NULL THEN
		PERFORM fail('conflict', 'the source is from an older version of the suite: delete'
		    || ' it and add it again');
	END IF;
	SELECT * INTO n FROM tool_versions y WHERE y.tool_id = x.tool_id
	    ORDER BY y.version_no DESC LIMIT 1;
	SELECT y.* INTO v FROM tools t JOIN tool_versions y ON y.id = t.serving_version
	    WHERE t.id = x.tool_id;
	IF v.id IS NULL THEN
		PERFORM fail('missing_grant', CASE n.state
		    WHEN 'pending_review' THEN 'an administrator must approve the source first (its'
			|| ' request waits: mcpbox_list_pending_requests)'
		    WHEN 'revoked' THEN 'the source''s approval was withdrawn: ask for it again with'
			|| ' mcpbox_request_publish, tool_id ' || x.tool_id
		    ELSE 'the source is not approved: ask for it with mcpbox_request_publish,'
			|| ' tool_id ' || x.tool_id END);
	END IF;
	missing := network_missing(x.server_id, v.requires);
	IF missing IS NOT NULL THEN
		PERFORM fail('missing_grant', 'network access to ' || missing || ' is not granted to'
		    || ' the source''s server: ask for it with mcpbox_request_network_access, tool_id '
		    || x.tool_id);
	END IF;
	RETURN v.exposed_name;
END $$;

-- Stores the result of a listing as the source's tools. p_body is a
-- CallToolResult.
CREATE FUNCTION source_discovered(p_source uuid, p_body bytea) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	whole boolean;
	s json := convert_from(p_body, 'UTF8')::json -> 'structuredContent';
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'the source was deleted meanwhile');
	END IF;
	IF json_typeof(s -> 'tools') IS DISTINCT FROM 'array'
	    OR json_array_length(s -> 'tools') > 1000 THEN
		PERFORM fail('upstream_error', 'what came back is no list of tools');
	END IF;
	DELETE FROM source_tools WHERE source_id = p_source;
	INSERT INTO source_tools (source_id, name, sha256, definition)
	    SELECT p_source, e ->> 'name', e ->> 'sha256', e::text
	    FROM json_array_elements(s -> 'tools') e
	    WHERE octet_length(e::text) <= 262144 AND length(e ->> 'name') BETWEEN 1 AND 128
	    AND e ->> 'sha256' ~ '^[0-9a-f]{64}$' AND json_typeof(e -> 'input_schema') = 'object'
	    ON CONFLICT DO NOTHING;
	UPDATE external_sources SET status = 'active',
	    tool_count = (SELECT count(*) FROM source_tools k WHERE k.source_id = p_source),
	    era = CASE WHEN s ->> 'era' IN ('modern', 'legacy') THEN s ->> 'era' END,
	    protocol = left(s ->> 'protocol', 40), server_info = left((s -> 'server')::text, 2000),
	    last_discovered_at = clock_timestamp(), checked_at = clock_timestamp(),
	    last_failure = NULL, last_error = NULL WHERE id = p_source RETURNING * INTO x;
	-- the definitions themselves as long as they fit into one answer
	whole := (SELECT sum(octet_length(k.definition)) FROM source_tools k
	    WHERE k.source_id = p_source) < 200000;
	RETURN json_build_object('success', true, 'source_id', x.id, 'source_name', x.name,
	    'protocol', x.protocol, 'server', s -> 'server',
	    'tools', (SELECT coalesce(json_agg(json_build_object('name', k.name,
		'description', left(k.definition::json ->> 'description', 300),
		'input_schema', CASE WHEN whole THEN k.definition::json -> 'input_schema' END,
		'sha256', k.sha256, 'imported', (SELECT json_build_object('tool_id', t.id,
		    'name', t.name, 'changed', NOT source_same(t.id, k.sha256))
		    FROM imported_tools i JOIN tools t ON t.id = i.tool_id AND t.deleted_at IS NULL
		    WHERE i.source_id = p_source AND i.upstream = k.name LIMIT 1)) ORDER BY k.name), '[]')
		FROM source_tools k WHERE k.source_id = p_source),
	    'total', x.tool_count, 'dropped', s -> 'dropped',
	    'message', x.tool_count || ' tools. What they say of themselves is the other server''s'
	    || ' word. Import the ones that are wanted with mcpbox_import_external_tools; each is'
	    || ' then reviewed by an administrator.')::text;
END $$;

-- Returns whether the newest version of an imported tool has this definition.
CREATE FUNCTION source_same(p_tool uuid, p_sha256 text) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT mcpbox.version_text(v.preimage, 16)::json ->> 'sha256' = p_sha256
	FROM mcpbox.tool_versions v WHERE v.tool_id = p_tool ORDER BY v.version_no DESC LIMIT 1
$$;

-- Returns a source's tool as administrators see it.
CREATE FUNCTION source_tool_json(k source_tools) RETURNS json LANGUAGE sql STABLE AS $$
	SELECT json_build_object('name', k.name, 'sha256', k.sha256,
	    'title', k.definition::json ->> 'title',
	    'description', k.definition::json ->> 'description',
	    'input_schema', k.definition::json -> 'input_schema',
	    'output_schema', k.definition::json -> 'output_schema',
	    'annotations', k.definition::json -> 'annotations',
	    'imported', (SELECT json_build_object('tool_id', t.id, 'name', t.name,
		'changed', NOT mcpbox.source_same(t.id, k.sha256))
		FROM mcpbox.imported_tools i JOIN mcpbox.tools t ON t.id = i.tool_id
		AND t.deleted_at IS NULL WHERE i.source_id = k.source_id AND i.upstream = k.name
		LIMIT 1))
$$;

-- Returns in words how a run failed, and keeps the words as the source's
-- health. They are the words of the result, if it has any. sandboxd may have
-- added what it says of a connection that was refused.
CREATE FUNCTION source_failed(p_source uuid, p_failure text, p_text text, p_body bytea)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said text := p_text;
BEGIN
	IF length(p_body) > 0 THEN
		BEGIN
			said := coalesce((SELECT string_agg(left(c.item ->> 'text', 1000), ' ' ORDER BY c.n)
			    FROM json_array_elements(convert_from(p_body, 'UTF8')::json -> 'content')
			    WITH ORDINALITY AS c (item, n)
			    WHERE c.n <= 2), said);
		EXCEPTION WHEN data_exception THEN
			NULL;
		END;
	END IF;
	UPDATE external_sources SET status = 'error', checked_at = clock_timestamp(),
	    last_failure = left(p_failure, 64), last_error = left(said, 2000) WHERE id = p_source;
	RETURN left(said, 400);
END $$;

-- Returns our name for another server's tool: the source's name, _, and the
-- words of the tool's name. If the name is too long, it is cut, and a hash
-- tells it apart.
CREATE FUNCTION import_tool_name(p_source text, p_upstream text, p_longest int) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	n text := regexp_replace(p_upstream, '([a-z0-9])([A-Z])', '\1_\2', 'g');
BEGIN
	n := trim(regexp_replace(lower(n), '[^a-z0-9]+', '_', 'g'), '_');
	n := p_source || '_' || CASE n WHEN '' THEN 'tool' ELSE n END;
	IF length(n) > p_longest OR n ~ '_tool$' AND p_upstream !~* '[a-z0-9]' THEN
		n := rtrim(left(n, p_longest - 9), '_') || '_' || left(md5(p_upstream), 8);
	END IF;
	RETURN n;
END $$;

-- Returns one row for each name that was asked for. A row has the reason why
-- the tool is skipped, or JSON arguments. With these admind-check judges the
-- tool as if somebody had written it (schemas, names, lengths).
CREATE FUNCTION source_candidates(p_source uuid, p_names text[])
RETURNS TABLE (upstream text, arguments text, skip text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
	k source_tools;
	d json;
	n text;
	taken text[] := '{}'; -- by names before it: two may come to one of ours
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'no source has this id: see mcpbox_list_external_sources');
	ELSIF x.last_discovered_at IS NULL THEN
		PERFORM fail('conflict', 'its tools are not known yet: call'
		    || ' mcpbox_discover_external_tools first');
	END IF;
	SELECT * INTO STRICT s FROM servers WHERE id = x.server_id;
	FOR n IN SELECT DISTINCT unnest(p_names) ORDER BY 1 LOOP
		upstream := n;
		arguments := NULL;
		skip := NULL;
		SELECT * INTO k FROM source_tools y WHERE y.source_id = p_source AND y.name = n;
		IF NOT FOUND THEN
			skip := 'skipped_not_found';
		ELSIF EXISTS (SELECT 1 FROM tools t WHERE t.server_id = s.id AND t.deleted_at IS NULL
		    AND t.name = import_tool_name(x.name, n, 62 - length(s.name))
		    AND NOT EXISTS (SELECT 1 FROM imported_tools i WHERE i.tool_id = t.id
		    AND i.source_id = p_source AND i.upstream = n)) THEN
			skip := 'skipped_conflict';
		ELSIF EXISTS (SELECT 1 FROM imported_tools i JOIN tools t ON t.id = i.tool_id
		    AND t.deleted_at IS NULL JOIN LATERAL (SELECT * FROM tool_versions y
		    WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true
		    WHERE i.source_id = p_source AND i.upstream = n AND source_same(t.id, k.sha256)
		    AND version_text(v.preimage, 16)::json ->> 'url' = x.url
		    AND v.state NOT IN ('rejected', 'revoked')) THEN
			skip := 'skipped_unchanged';
		ELSIF import_tool_name(x.name, n, 62 - length(s.name)) = ANY (taken) THEN
			skip := 'skipped_conflict';
		ELSE
			taken := taken || import_tool_name(x.name, n, 62 - length(s.name));
			d := k.definition::json;
			arguments := '{"name":' || to_json(import_tool_name(x.name, n, 62 - length(s.name)))
			    || ',"description":' || coalesce((d -> 'description')::text, '""')
			    || coalesce(',"title":' || (d -> 'title')::text, '')
			    || ',"input_schema":' || (d -> 'input_schema')::text
			    || coalesce(',"output_schema":' || (d -> 'output_schema')::text, '')
			    || coalesce(',"annotations":' || (d -> 'annotations')::text, '') || '}';
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;

-- Makes tools of the definitions that admind-check let pass, and asks for their
-- review. p_arguments are the ones that were judged. If another listing changed
-- a definition meanwhile, they differ, and the import fails. p_skipped is a
-- JSON array of the tools that are not imported.
CREATE FUNCTION source_import(p_source uuid, p_names text[], p_arguments text[],
    p_skipped text, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	s servers;
	k source_tools;
	t uuid;
	a json;
	pre bytea;
	made json[] := '{}';
	c record;
BEGIN
	SELECT y.* INTO x FROM external_sources y WHERE y.id = p_source;
	SELECT y.* INTO s FROM servers y WHERE y.id = x.server_id FOR UPDATE;
	SELECT y.* INTO x FROM external_sources y WHERE y.id = p_source FOR UPDATE;
	IF x.id IS NULL OR s.deleted_at IS NOT NULL THEN
		PERFORM fail('not_found', 'the source was deleted meanwhile');
	END IF;
	FOR c IN SELECT y.* FROM source_candidates(p_source, p_names) y LOOP
		IF c.arguments IS NULL OR c.arguments IS DISTINCT FROM
		    p_arguments[array_position(p_names, c.upstream)] THEN
			PERFORM fail('conflict', 'the source was listed anew meanwhile: import again');
		END IF;
		SELECT * INTO STRICT k FROM source_tools y WHERE y.source_id = p_source
		    AND y.name = c.upstream;
		a := c.arguments::json;
		SELECT i.tool_id INTO t FROM imported_tools i JOIN tools y ON y.id = i.tool_id
		    AND y.deleted_at IS NULL WHERE i.source_id = p_source AND i.upstream = c.upstream;
		pre := mcp_preimage(s, coalesce(t, gen_random_uuid()), a ->> 'name', a ->> 'title',
		    a ->> 'description', (a -> 'input_schema')::text, (a -> 'output_schema')::text,
		    (a -> 'annotations')::text, source_spec(x)
		    || coalesce(',"era":' || to_json(x.era), '')
		    || ',"tool":' || to_json(k.name) || ',"sha256":' || to_json(k.sha256) || '}',
		    ARRAY[x.auth_secret_name], ARRAY[(url_host(x.url)).require], NULL);
		IF t IS NULL THEN
			t := version_uuid(pre, 3);
			PERFORM create_tool(gen_random_uuid(), pre, p_actor, 'import');
			INSERT INTO imported_tools VALUES (t, p_source, s.id, x.name, k.name);
		ELSE
			PERFORM add_version(gen_random_uuid(), pre, 'imported again from ' || x.name,
			    p_actor, NULL, 'import');
		END IF;
		PERFORM request_publish(gen_random_uuid(), gen_random_uuid(), t,
		    'Imported from the source ' || x.name || ' (' || x.url || '): its tool '
		    || k.name || '.', p_actor);
		made := made || (SELECT json_build_object('id', y.id, 'name', y.name,
		    'exposed_name', version_text(pre, 6), 'upstream', k.name,
		    'description', a ->> 'description', 'tool_type', 'mcp_passthrough',
		    'approval_status', 'pending_review') FROM tools y WHERE y.id = t);
	END LOOP;
	PERFORM audit_append(p_actor, 'source_imported', 'source ' || s.name || '/' || x.name,
	    json_build_object('source_id', p_source, 'tools', to_json(p_names))::text);
	RETURN json_build_object('success', cardinality(made) > 0,
	    'imported_tools', array_to_json(made), 'count', cardinality(made),
	    'skipped_tools', p_skipped::json, 'skipped_count', json_array_length(p_skipped::json),
	    'message', cardinality(made) || ' tools wait for an administrator'
	    || CASE json_array_length(p_skipped::json) WHEN 0 THEN '.' ELSE '; '
	    || json_array_length(p_skipped::json) || ' were skipped, each with its reason.' END)::text;
END $$;

CREATE FUNCTION oauth_body(p_body bytea) RETURNS json LANGUAGE sql IMMUTABLE AS $$
	SELECT convert_from(p_body, 'UTF8')::json -> 'structuredContent'
$$;

-- Notes that an authorisation began: the source that its state belongs to, and
-- for how long.
CREATE FUNCTION oauth_begun(p_source uuid, p_body bytea, p_redirect text, p_actor text,
    OUT sealed bytea, OUT server text, OUT key text, OUT answer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	b json := oauth_body(p_body);
	x external_sources;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source FOR UPDATE;
	IF NOT FOUND OR x.auth_type <> 'oauth' THEN
		PERFORM fail('not_found', 'there is no such source with OAuth');
	ELSIF length(b ->> 'state') NOT BETWEEN 40 AND 64 OR b ->> 'authorization_url' !~ '^https?://'
	    OR length(b ->> 'authorization_url') > 16384 OR b ->> 'sealed' IS NULL THEN
		PERFORM fail('internal', 'the run did not begin an authorisation');
	END IF;
	UPDATE external_sources SET oauth_state = sha256(convert_to(b ->> 'state', 'UTF8')),
	    oauth_state_until = clock_timestamp() + interval '10 minutes',
	    oauth_redirect = p_redirect,
	    oauth_status = CASE oauth_status WHEN 'authorised' THEN 'authorised' ELSE 'pending' END
	    WHERE id = p_source RETURNING * INTO x;
	sealed := decode(b ->> 'sealed', 'base64');
	server := (SELECT s.name FROM servers s WHERE s.id = x.server_id);
	key := x.auth_secret_name;
	answer := json_build_object('source_id', x.id, 'authorization_url', b ->> 'authorization_url',
	    'redirect_uri', p_redirect, 'issuer', b ->> 'issuer',
	    'expires_at', json_time(x.oauth_state_until), 'message',
	    'Open authorization_url in a browser and agree there; it comes back to redirect_uri.')::text;
	PERFORM audit_append(p_actor, 'source_authorising', 'source ' || server || '/' || x.name,
	    json_build_object('source_id', x.id, 'issuer', b ->> 'issuer')::text);
END $$;

-- Uses a state, which serves once. No row: nobody waits for this state. A row
-- without a source: the authorization server refused, and arguments say how.
CREATE FUNCTION oauth_state(p_state bytea, p_code text, p_iss text, p_error text)
RETURNS TABLE (source uuid, name text, arguments text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
BEGIN
	UPDATE external_sources y SET oauth_state = NULL, oauth_state_until = NULL
	    WHERE y.oauth_state = p_state AND y.oauth_state_until > clock_timestamp()
	    RETURNING y.* INTO x;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	IF p_error <> '' OR p_code = '' THEN
		arguments := 'the authorization server refused: '
		    || left(regexp_replace(p_error, '[^\x20-\x7e]', '?', 'g'), 200);
		UPDATE external_sources y SET last_failure = 'upstream_error', last_error = arguments,
		    checked_at = clock_timestamp(), oauth_status = CASE y.oauth_status
		    WHEN 'authorised' THEN 'authorised' ELSE 'failed' END WHERE y.id = x.id;
		RETURN NEXT;
		RETURN;
	END IF;
	source := x.id;
	name := source_object(x.id);
	arguments := json_build_object('op', 'token', 'code', p_code, 'iss', p_iss,
	    'redirect_uri', x.oauth_redirect)::text;
	RETURN NEXT;
END $$;

-- Returns the sealed tokens that a run got, and the secret to which they
-- belong.
CREATE FUNCTION oauth_got(p_source uuid, p_body bytea,
    OUT sealed bytea, OUT server text, OUT key text, OUT answer text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	b json := oauth_body(p_body);
	x external_sources;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source;
	IF NOT FOUND OR b ->> 'sealed' IS NULL THEN
		PERFORM fail('not_found', 'the source was deleted, or the run made no tokens');
	END IF;
	sealed := decode(b ->> 'sealed', 'base64');
	server := (SELECT s.name FROM servers s WHERE s.id = x.server_id);
	key := x.auth_secret_name;
	answer := json_build_object('source_id', x.id, 'name', x.name, 'server', server,
	    'status', 'authorised')::text;
END $$;

-- Notes on the source that the vault has committed the tokens.
CREATE FUNCTION oauth_stored(p_source uuid, p_body bytea, p_actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	b json := oauth_body(p_body);
	x external_sources;
BEGIN
	IF b ->> 'authorization_url' IS NOT NULL THEN
		RETURN;
	END IF;
	UPDATE external_sources SET oauth_expires_at = clock_timestamp() + CASE
		WHEN b ->> 'expires_in' ~ '^[0-9]{1,9}$'
		THEN (b ->> 'expires_in')::int * interval '1 second' END,
	    oauth_refreshable = coalesce((b ->> 'refreshable')::boolean, false),
	    oauth_status = 'authorised', oauth_busy_until = NULL,
	    last_failure = NULL, last_error = NULL, checked_at = clock_timestamp(),
	    status = 'active' WHERE id = p_source RETURNING * INTO x;
	IF FOUND THEN
		PERFORM audit_append(p_actor, 'source_authorised', 'source ' || (SELECT s.name
		    FROM servers s WHERE s.id = x.server_id) || '/' || x.name,
		    json_build_object('source_id', x.id, 'expires_at', json_time(x.oauth_expires_at),
		    'refreshable', x.oauth_refreshable)::text);
	END IF;
END $$;

-- Does what source_failed() does. Also, a refresh token that was refused is not
-- tried again.
CREATE FUNCTION oauth_failed(p_source uuid, p_failure text, p_text text, p_body bytea)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	said text := source_failed(p_source, p_failure, p_text, p_body);
	over boolean := coalesce(said, '') LIKE '%invalid_grant%';
BEGIN
	UPDATE external_sources SET oauth_busy_until = clock_timestamp() + interval '5 seconds',
	    oauth_refreshable = oauth_refreshable AND NOT over,
	    oauth_status = CASE WHEN over OR oauth_status <> 'authorised' THEN 'failed'
		ELSE oauth_status END WHERE id = p_source;
	RETURN said;
END $$;

-- Returns whether this node renews a source's tokens: "done" (nothing is to be
-- done), "busy" (another node renews them), or "run " and the name to be run
-- (this node renews them, and has a minute).
CREATE FUNCTION oauth_turn(p_source uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	x external_sources;
	name text;
BEGIN
	SELECT * INTO x FROM external_sources WHERE id = p_source FOR UPDATE;
	IF NOT FOUND OR NOT x.oauth_refreshable
	    OR x.oauth_expires_at > clock_timestamp() + interval '60 seconds' THEN
		RETURN 'done';
	ELSIF x.oauth_busy_until > clock_timestamp() THEN
		RETURN 'busy';
	END IF;
	name := (SELECT v.exposed_name FROM tools t JOIN tool_versions v ON v.id = t.serving_version
	    WHERE t.id = x.tool_id AND network_missing(x.server_id, v.requires) IS NULL);
	IF name IS NULL THEN
		RETURN 'done';
	END IF;
	UPDATE external_sources SET oauth_busy_until = clock_timestamp() + interval '60 seconds'
	    WHERE id = p_source;
	RETURN 'run ' || name;
END $$;

CREATE TRIGGER sources AFTER UPDATE OF deleted_at ON tools FOR EACH ROW
    WHEN (NEW.object = 'source' AND NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION sources_follow();

GRANT EXECUTE ON FUNCTION source_json, source_object, source_discovered,
    source_same, source_tool_json, source_failed, source_candidates,
    source_import, oauth_body, oauth_begun, oauth_state, oauth_got,
    oauth_stored, oauth_failed, oauth_turn TO mcpbox_app;
