-- 0019: network access that acts: what a grant means, where it stands in a
-- call, and what a call did with it (docs/decisions/0047).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Three limits more, as in 0002.

ALTER TABLE tool_versions
	ADD COLUMN connections bigint GENERATED ALWAYS AS (version_number(preimage, 44)) STORED
	    CHECK (connections BETWEEN 1 AND 65536),
	ADD COLUMN network_bytes bigint GENERATED ALWAYS AS (version_number(preimage, 45)) STORED
	    CHECK (network_bytes BETWEEN 1024 AND 1099511627776),
	ADD COLUMN network_rate bigint GENERATED ALWAYS AS (version_number(preimage, 46)) STORED
	    CHECK (network_rate BETWEEN 1024 AND 1099511627776);
ALTER TABLE server_limits
	ADD COLUMN connections bigint CHECK (connections BETWEEN 1 AND 65536),
	ADD COLUMN network_bytes bigint CHECK (network_bytes BETWEEN 1024 AND 1099511627776),
	ADD COLUMN network_rate bigint CHECK (network_rate BETWEEN 1024 AND 1099511627776);

-- 0002's, with them.
CREATE OR REPLACE FUNCTION server_limits_json(p_server text) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT json_build_object('server_id', s.id, 'server', s.name, 'limits',
	    json_build_object('timeout_ms', l.timeout_ms, 'memory_bytes', l.memory_bytes,
    'processes', l.processes, 'tmp_bytes', l.tmp_bytes, 'result_bytes', l.result_bytes,
    'cpu_ms', l.cpu_ms, 'files', l.files, 'file_bytes', l.file_bytes, 'stdout_bytes',
    l.stdout_bytes, 'argument_bytes', l.argument_bytes, 'log_rate', l.log_rate,
    'progress_rate', l.progress_rate, 'connections', l.connections,
    'network_bytes', l.network_bytes, 'network_rate', l.network_rate,
    'code_bytes', l.code_bytes),
	    'updated_at', to_char(l.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
	    'updated_by', l.updated_by)::text
	FROM mcpbox.servers s LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id
	WHERE s.name = p_server OR s.id::text = p_server
$$;

-- 0002's, with them. Its time rises, whatever the clock does: a call is made
-- under the limits of that time (limits_at).
DROP FUNCTION set_server_limits(uuid, bytea, text, bigint, bigint, bigint, bigint,
    bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint);
CREATE FUNCTION set_server_limits(p_server uuid, p_expected bytea, p_actor text,
    p_timeout_ms bigint, p_memory_bytes bigint, p_processes bigint, p_tmp_bytes bigint,
    p_result_bytes bigint, p_cpu_ms bigint, p_files bigint, p_file_bytes bigint,
    p_stdout_bytes bigint, p_argument_bytes bigint, p_log_rate bigint,
    p_progress_rate bigint, p_connections bigint, p_network_bytes bigint,
    p_network_rate bigint, p_code_bytes bigint)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s servers;
	l text;
BEGIN
	SELECT * INTO s FROM servers WHERE id = p_server FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such server');
	END IF;
	IF sha256(convert_to(server_limits_json(p_server::text), 'UTF8')) IS DISTINCT FROM p_expected THEN
		PERFORM fail('hash_mismatch', 'the limits were changed meanwhile: read them again');
	END IF;
	INSERT INTO server_limits AS o (server_id, timeout_ms, memory_bytes, processes,
    tmp_bytes, result_bytes, cpu_ms, files, file_bytes, stdout_bytes, argument_bytes,
    log_rate, progress_rate, connections, network_bytes, network_rate, code_bytes,
    updated_at, updated_by)
	    VALUES (p_server, p_timeout_ms, p_memory_bytes, p_processes,
    p_tmp_bytes, p_result_bytes, p_cpu_ms, p_files, p_file_bytes, p_stdout_bytes,
    p_argument_bytes, p_log_rate, p_progress_rate, p_connections, p_network_bytes,
    p_network_rate, p_code_bytes, clock_timestamp(), p_actor)
	    ON CONFLICT (server_id) DO UPDATE SET
	    timeout_ms = excluded.timeout_ms, memory_bytes = excluded.memory_bytes,
    processes = excluded.processes, tmp_bytes = excluded.tmp_bytes,
    result_bytes = excluded.result_bytes, cpu_ms = excluded.cpu_ms,
    files = excluded.files, file_bytes = excluded.file_bytes,
    stdout_bytes = excluded.stdout_bytes, argument_bytes = excluded.argument_bytes,
    log_rate = excluded.log_rate, progress_rate = excluded.progress_rate,
    connections = excluded.connections, network_bytes = excluded.network_bytes,
    network_rate = excluded.network_rate, code_bytes = excluded.code_bytes,
	    updated_at = greatest(excluded.updated_at, o.updated_at + interval '1 microsecond'),
	    updated_by = excluded.updated_by;
	l := server_limits_json(p_server::text);
	PERFORM audit_append(p_actor, 'server_limits_set', 'server ' || s.name,
	    json_build_object('server_id', p_server, 'limits',
	    json_strip_nulls(l::json -> 'limits'))::text);
	RETURN l;
END $$;
REVOKE ALL ON FUNCTION set_server_limits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_server_limits TO mcpbox_app;

---------------------------------------------------------------------------
-- What a grant means. proto is tcp or udp; host a name, *.domain, an address,
-- or * (every host whose address is public); port 0 of a grant: 80 and 443.

ALTER TABLE network_requests DROP CONSTRAINT network_requests_proto_check,
    ADD CHECK (proto IN ('tcp', 'udp') AND (proto = 'tcp' OR port > 0));
ALTER TABLE network_grants DROP CONSTRAINT network_grants_proto_check,
    ADD CHECK (proto IN ('tcp', 'udp') AND (proto = 'tcp' OR port > 0)),
    -- rises with every change of a server's grants (limits_at below)
    ADD COLUMN changed_at timestamptz NOT NULL DEFAULT clock_timestamp();
CREATE INDEX ON network_grants (server_id, changed_at);

-- An address that is no public one, as far as that can be told here: egress
-- judges. It is granted by itself alone, with its port.
CREATE FUNCTION host_private(p_host text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN p_host ~ '^[0-9.]+$|:' THEN p_host::inet <<= ANY ('{127.0.0.0/8,
	    10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,::1/128,fc00::/7}'::inet[])
	    ELSE false END
$$;

-- host, host:port, udp:host:port, [IPv6]:port: as people read and write it.
CREATE FUNCTION host_text(p_proto text, p_host text, p_port int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE p_proto WHEN 'udp' THEN 'udp:' ELSE '' END
	    || CASE WHEN p_port > 0 AND strpos(p_host, ':') > 0 THEN '[' || p_host || ']'
	    ELSE p_host END || CASE WHEN p_port > 0 THEN ':' || p_port ELSE '' END
$$;

-- RFC 3492 of an international name, for a sentence that names it: what people
-- ask for is still what they spell in ASCII themselves.
CREATE FUNCTION host_alabel(p_host text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	name text := translate(normalize(p_host, NFKC), U&'\3002\FF0E\FF61', '...');
	label text;
	out text := '';
	points int[];
	made text;
	n int;
	delta bigint;
	bias int;
	done int;
	basic int;
	m int;
	q bigint;
	k int;
	t int;
	d int;
	at int;
BEGIN
	BEGIN
		name := lower(name COLLATE "und-x-icu");
	EXCEPTION WHEN undefined_object THEN
		name := lower(name);
	END;
	FOREACH label IN ARRAY string_to_array(name, '.') LOOP
		IF label ~ '^[\u0001-\u007f]*$' THEN
			out := out || '.' || label;
			CONTINUE;
		END IF;
		points := ARRAY(SELECT ascii(c) FROM regexp_split_to_table(label, '')
		    WITH ORDINALITY s (c, i) ORDER BY i);
		made := regexp_replace(label, '[^\u0001-\u007f]', '', 'g');
		basic := length(made);
		done := basic;
		IF basic > 0 THEN
			made := made || '-';
		END IF;
		n := 128;
		delta := 0;
		bias := 72;
		WHILE done < cardinality(points) LOOP
			SELECT min(p) INTO m FROM unnest(points) p WHERE p >= n;
			delta := delta + (m - n)::bigint * (done + 1);
			n := m;
			FOREACH at IN ARRAY points LOOP
				IF at < n THEN
					delta := delta + 1;
				ELSIF at = n THEN
					q := delta;
					k := 36;
					LOOP
						t := least(greatest(k - bias, 1), 26);
						EXIT WHEN q < t;
						d := t + (q - t) % (36 - t);
						made := made || substr('abcdefghijklmnopqrstuvwxyz0123456789', d + 1, 1);
						q := (q - t) / (36 - t);
						k := k + 36;
					END LOOP;
					made := made || substr('abcdefghijklmnopqrstuvwxyz0123456789', q::int + 1, 1);
					-- bias
					delta := CASE WHEN done = basic THEN delta / 700 ELSE delta / 2 END;
					delta := delta + delta / (done + 1);
					k := 0;
					WHILE delta > 455 LOOP
						delta := delta / 35;
						k := k + 36;
					END LOOP;
					bias := k + (36 * delta / (delta + 38))::int;
					delta := 0;
					done := done + 1;
				END IF;
			END LOOP;
			delta := delta + 1;
			n := n + 1;
		END LOOP;
		out := out || '.xn--' || made;
	END LOOP;
	RETURN substr(out, 2);
END $$;

-- 0012's, and: *, loopback addresses, U-labels named by their A-labels. Spelled
-- as grantreq_need() of common/grantreq.h does; the golden vectors there are
-- asked here, too.
CREATE OR REPLACE FUNCTION host_spelled(p_host text, OUT host text, OUT wrong text)
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	name text;
	a inet;
BEGIN
	host := regexp_replace(lower(p_host COLLATE "C"), '^(.{2,}?)\.+$', '\1');
	IF host ~ '^[a-z]+://' OR host ~ '/' THEN
		wrong := 'a host is asked for, not a URL: name it without scheme and path';
	ELSIF octet_length(host) NOT BETWEEN 1 AND 253 THEN
		wrong := 'a host has 1 to 253 characters';
	ELSIF host = '*' THEN
		RETURN;
	ELSIF host ~ '[^\u0001-\u007f]' THEN
		wrong := 'that is not a host name: write an international name in its ASCII form, '
		    || coalesce('as ' || (SELECT h FROM host_alabel(host) h
		    WHERE h ~ '^(\*\.)?[a-z0-9.-]+$' AND length(h) <= 253), 'xn--...');
	ELSIF host ~ '^[0-9]+(\.[0-9]+){3}$' OR host ~ ':' THEN
		BEGIN
			a := host::inet;
		EXCEPTION WHEN data_exception THEN
			wrong := 'that is not an address';
			RETURN;
		END;
		IF masklen(a) <> (CASE family(a) WHEN 4 THEN 32 ELSE 128 END)
		    OR (family(a) = 4 AND host <> host(a)) THEN
			wrong := 'that is not an address of one host in its usual spelling';
		ELSIF a <<= '0.0.0.0/8' OR a <<= '169.254.0.0/16' OR a <<= '224.0.0.0/3'
		    OR (a <<= '::/80' AND a <> '::1') OR a <<= 'fe80::/10' OR a <<= 'ff00::/8' THEN
			wrong := 'this address can not be granted: link-local, multicast and'
			    ' disguised ones never are';
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
			wrong := 'localhost is no name that can be granted: this machine''s own'
			    ' services by their address and port, as 127.0.0.1:8080';
		ELSIF host LIKE '*.%' AND name !~ '\.' THEN
			wrong := '*. stands before a domain of two labels at least';
		END IF;
	END IF;
END $$;

-- What an author wrote: host, host:port, *.domain, *, udp:host:port,
-- [IPv6]:port. port 0: it named none. wrong null: it is one of these.
CREATE FUNCTION need_parts(p_need text, OUT proto text, OUT host text, OUT port int,
    OUT wrong text)
LANGUAGE plpgsql IMMUTABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	rest text;
	first text;
	m text[];
BEGIN
	-- udp:53 is port 53 of a host named udp
	FOREACH proto IN ARRAY CASE WHEN p_need ~ '^udp:..*:[0-9]*$' THEN '{udp,tcp}'::text[]
	    ELSE '{tcp}' END LOOP
		rest := CASE proto WHEN 'udp' THEN substr(p_need, 5) ELSE p_need END;
		m := regexp_match(rest, '^\[([^]]*:[^]]*)\](?::([1-9][0-9]{0,4}))?$');
		IF m IS NULL AND rest ~ '^[^:[]*$|^[^[]*:[^[]*:' THEN
			m := ARRAY[rest, NULL];
		ELSIF m IS NULL THEN
			m := regexp_match(rest, '^([^:[]*):([1-9][0-9]{0,4})$');
		END IF;
		port := coalesce(m[2]::int, 0);
		SELECT s.host, s.wrong INTO host, wrong FROM host_spelled(m[1]) s;
		IF m IS NULL OR port > 65535 THEN
			wrong := 'that is no host, host:port or udp:host:port with a port from 1 to 65535';
		ELSIF wrong IS NULL AND proto = 'udp' AND port = 0 THEN
			wrong := 'behind udp: stand a host and a port';
		END IF;
		IF wrong IS NULL THEN
			RETURN;
		END IF;
		first := coalesce(first, wrong);
	END LOOP;
	host := NULL;
	wrong := first;
END $$;

-- Is this host one of those (a host, *.domain, *)?
CREATE FUNCTION host_within(p_those text, p_host text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN p_those = p_host THEN true
	    WHEN p_those = '*' THEN NOT mcpbox.host_private(p_host)
	    ELSE p_those LIKE '*.%' AND length(p_host) >= length(p_those)
	        AND right(p_host, length(p_those) - 1) = substr(p_those, 2) END
$$;

-- Does what is granted meet what is needed? A need without a port is met by any
-- port of its host: what is opened is what was granted. One of *.domain or of *
-- is met by nothing narrower.
CREATE FUNCTION grant_covers(p_proto text, p_host text, p_port int, n_proto text,
    n_host text, n_port int) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_proto = n_proto AND (n_port IN (0, p_port) OR (p_port = 0 AND n_port IN (80, 443)))
	    AND mcpbox.host_within(p_host, n_host)
	    AND (p_port > 0 OR NOT mcpbox.host_private(p_host))
$$;

-- What a version needs of the network and its server does not have: the first.
-- Null: nothing.
CREATE OR REPLACE FUNCTION network_missing(p_server uuid, p_requires text[]) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT r FROM unnest(p_requires) r CROSS JOIN LATERAL mcpbox.need_parts(r) n
	WHERE n.wrong IS NOT NULL OR NOT EXISTS (SELECT 1
	    FROM mcpbox.network_grants g WHERE g.server_id = p_server AND g.revoked_at IS NULL
	    AND mcpbox.grant_covers(g.proto, g.host, g.port, n.proto, n.host, n.port))
	ORDER BY r COLLATE "C" LIMIT 1
$$;

-- 0012's, and: what is wrong with what no grant could cover.
CREATE OR REPLACE FUNCTION grant_missing(p_server uuid, p_tool uuid, p_modules text[], p_requires text[])
RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT coalesce(CASE WHEN p_modules <> '{}' THEN
	    'the module ' || regexp_replace(mcpbox.module_missing(p_tool, p_modules),
	    ' [0-9a-f]{64}$', '') || ' is not granted to this tool (any more): ask for it with'
	    || ' mcpbox_request_module.' END,
	    CASE WHEN p_requires <> '{}' THEN (SELECT CASE WHEN n.wrong IS NOT NULL THEN
	    'requires names ' || m || ', which nothing can be granted for (' || n.wrong
	    || '): change it with mcpbox_update_tool.'
	    ELSE 'network access to ' || m || ' is not granted to this tool''s server (any'
	    || ' more): ask for it with mcpbox_request_network_access.' END
	    FROM mcpbox.network_missing(p_server, p_requires) m
	    CROSS JOIN LATERAL mcpbox.need_parts(m) n WHERE m IS NOT NULL) END)
$$;

-- A version is drafted with hosts that can be granted, or not at all. (What is
-- older keeps what it names.)
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
CREATE TRIGGER requires BEFORE INSERT ON tool_versions FOR EACH ROW
    EXECUTE FUNCTION tool_versions_requires();

-- 0012's, and: which protocol.
DROP FUNCTION grant_affected(text, uuid, uuid, text, text, int);
CREATE FUNCTION grant_affected(p_kind text, p_server uuid, p_tool uuid, p_line text,
    p_proto text, p_host text, p_port int) RETURNS bytea
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(string_agg(grant_field(15, h.hash), ''::bytea ORDER BY h.hash), ''::bytea)
	FROM (SELECT DISTINCT v.hash FROM tools t JOIN tool_versions v ON v.id = t.serving_version
	    WHERE t.deleted_at IS NULL AND t.server_id = p_server AND CASE p_kind
	    WHEN 'module' THEN t.id = p_tool AND p_line = ANY (v.modules)
	    ELSE v.requires <> '{}' AND EXISTS (SELECT 1 FROM unnest(v.requires) r
	    CROSS JOIN LATERAL need_parts(r) n
	    WHERE grant_covers(p_proto, p_host, p_port, n.proto, n.host, n.port)) END LIMIT 4097) h
$$;

-- 0012's, with that.
CREATE OR REPLACE FUNCTION grant_preimage(p_kind text, p_subject uuid, p_id uuid) RETURNS bytea
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
		    || ' ' || encode(m.digest, 'hex'), NULL, NULL, NULL);
	ELSE
		SELECT * INTO n FROM network_requests WHERE id = p_subject;
		SELECT * INTO s FROM servers WHERE id = n.server_id;
		body := grant_field(12, convert_to(n.proto, 'UTF8'))
		    || grant_field(13, convert_to(n.host, 'UTF8'))
		    || grant_field(14, int8send(n.port));
		affected := grant_affected('network', s.id, NULL, NULL, n.proto, n.host, n.port);
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

-- 0012's, and: the time of the change, which rises whatever the clock does. Who
-- changes a server's grants holds its row's lock.
CREATE OR REPLACE FUNCTION network_grants_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
	NEW.changed_at := greatest(clock_timestamp(), (SELECT max(g.changed_at)
	    + interval '1 microsecond' FROM mcpbox.network_grants g
	    WHERE g.server_id = NEW.server_id));
	RETURN NEW;
END $$;

---------------------------------------------------------------------------
-- Asking.

-- 0012's, and: p_host in any of need_parts()' spellings, p_port beside it (0:
-- none); what the answer has to say. asked: host, port and all in one text. tools:
-- declared says whether the newest version of each names it in requires.
DROP FUNCTION request_network(uuid, uuid, uuid, uuid[], text, int, text, text, boolean);
CREATE FUNCTION request_network(p_request uuid, p_subject uuid, p_server uuid,
    p_tools uuid[], p_host text, p_port int, p_justification text, p_actor text,
    p_person boolean, OUT host text, OUT server text, OUT tools text, OUT proto text,
    OUT port int, OUT asked text, OUT undeclared text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
#variable_conflict use_column
DECLARE
	s servers;
	n record;
	a approval_requests;
	found int;
BEGIN
	SELECT * INTO s FROM servers x WHERE x.id = coalesce(p_server,
	    (SELECT t.server_id FROM mcpbox.tools t WHERE t.id = p_tools[1])) FOR UPDATE;
	SELECT count(*) INTO found
	    FROM mcpbox.tools t WHERE t.id = ANY (p_tools) AND t.server_id = s.id
	    AND t.deleted_at IS NULL;
	IF s.id IS NULL OR s.name LIKE '%@%' THEN
		PERFORM fail('not_found', 'there is no such '
		    || CASE WHEN p_server IS NULL THEN 'tool' ELSE 'server' END);
	ELSIF found <> cardinality(p_tools) THEN
		PERFORM fail(CASE WHEN cardinality(p_tools) > 1 THEN 'invalid_arguments'
		    ELSE 'not_found' END, 'the tools must exist and be of one server, each named once');
	END IF;
	SELECT * INTO n FROM need_parts(btrim(p_host));
	IF n.wrong IS NOT NULL THEN
		PERFORM fail('invalid_arguments', n.wrong);
	ELSIF p_port NOT BETWEEN 0 AND 65535 THEN
		PERFORM fail('invalid_arguments', 'a port is from 1 to 65535');
	ELSIF n.port > 0 AND p_port NOT IN (0, n.port) THEN
		PERFORM fail('invalid_arguments', 'host names port ' || n.port || ', and port another');
	END IF;
	proto := n.proto;
	host := n.host;
	port := greatest(n.port, p_port);
	asked := host_text(n.proto, n.host, request_network.port);
	server := s.name;
	IF request_network.port = 0 AND host_private(n.host) THEN
		PERFORM fail('invalid_arguments', 'an address of this machine or of the local network'
		    || ' is granted with its port alone: name it, as in '
		    || host_text('tcp', n.host, 8080));
	END IF;
	SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name, 'declared',
	    t.declared) ORDER BY t.name)::text, '[]'),
	    string_agg(t.name, ', ' ORDER BY t.name) FILTER (WHERE NOT t.declared)
	    INTO request_network.tools, undeclared
	    FROM (SELECT t.id, t.name, EXISTS (SELECT 1 FROM unnest((SELECT v.requires
	    FROM tool_versions v WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1)) r
	    CROSS JOIN LATERAL need_parts(r) d WHERE d.wrong IS NULL AND d.proto = n.proto
	    AND host_within(d.host, n.host) AND (d.port IN (0, request_network.port)
	    OR (request_network.port = 0 AND d.port IN (80, 443)))) AS declared
	    FROM mcpbox.tools t WHERE t.id = ANY (p_tools)) t;
	IF EXISTS (SELECT 1 FROM network_grants g WHERE g.server_id = s.id
	    AND g.revoked_at IS NULL AND grant_covers(g.proto, g.host, g.port, n.proto, n.host,
	    request_network.port) AND (request_network.port > 0 OR g.port = 0)) THEN
		PERFORM fail('conflict', asked || ' is granted to the server ' || s.name
		    || ' already' || coalesce(': add it to requires of ' || undeclared
		    || ' with mcpbox_update_tool, whose version does not name it yet', ''));
	END IF;
	SELECT x.* INTO a FROM approval_requests x JOIN network_requests r ON r.id = x.subject
	    WHERE x.kind = 'network' AND r.server_id = s.id AND r.host = n.host
	    AND r.proto = n.proto AND r.port = request_network.port
	    ORDER BY x.requested_at DESC, x.id DESC LIMIT 1;
	IF a.state = 'pending' THEN
		PERFORM fail('conflict', asked || ' is asked for already: request ' || a.id::text);
	ELSIF a.state = 'rejected' AND NOT p_person THEN
		PERFORM fail('conflict', 'an administrator refused ' || asked
		    || ' for this server: ' || a.reason);
	END IF;
	IF NOT p_person AND (SELECT count(*) FROM approval_requests x WHERE x.kind = 'network'
	    AND x.server_id = s.id AND x.state = 'pending') >= 32 THEN
		PERFORM fail('limit', 'this server has 32 pending requests for network access, '
		    || 'which is the limit: an administrator decides them first');
	ELSIF (SELECT count(*) FROM network_grants g WHERE g.server_id = s.id
	    AND g.revoked_at IS NULL) >= 1000 THEN
		-- NET_GRANTS_MAX of common/bounds.h, with room for those that wait
		PERFORM fail('limit', 'this server has 1000 network grants, which is the limit: '
		    || 'one of *.domain covers many, and those not needed can be revoked');
	END IF;
	INSERT INTO network_requests (id, server_id, proto, host, port, tool_ids, justification)
	    VALUES (p_subject, s.id, n.proto, n.host, request_network.port, p_tools, p_justification);
	PERFORM grant_request(p_request, 'network', p_subject, s.id, NULL, p_actor,
	    p_justification);
	PERFORM audit_append(p_actor, 'network_requested', 'server ' || s.name,
	    json_build_object('request_id', p_request, 'server_id', s.id, 'proto', n.proto,
	    'host', n.host, 'port', nullif(request_network.port, 0),
	    'tools', request_network.tools::json)::text);
END $$;

-- 0012's; the port may stand in the host.
CREATE OR REPLACE FUNCTION act_network_request(p_actor text, p_id text, p_seen bytea, p_body json)
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
-- The network access policy of a server: require_approval, or allow_all_public,
-- which is a live grant of * . It is a grant as any other, so it acts wherever
-- grants do, is asked for, decided, sealed and revoked as they are, and a
-- version still has to declare what it reaches.

CREATE FUNCTION network_access_policy(p_server uuid) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN EXISTS (SELECT 1 FROM mcpbox.network_grants g WHERE g.server_id = p_server
	    AND g.revoked_at IS NULL AND g.proto = 'tcp' AND g.host = '*' AND g.port = 0)
	    THEN 'allow_all_public' ELSE 'require_approval' END
$$;

-- POST /api/servers/{id}/network-policy. allow_all_public: a request for * is
-- made, and becomes the policy once it is approved. require_approval: grants of *
-- are revoked, a request for it is withdrawn.
CREATE FUNCTION act_network_policy(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_server uuid := act_uuid(p_id, 'server');
	v_policy text := p_body ->> 'policy';
	s servers;
	a approval_requests;
	g network_grants;
BEGIN
	SELECT * INTO s FROM servers WHERE id = v_server FOR UPDATE;
	IF NOT FOUND OR s.name LIKE '%@%' THEN
		PERFORM fail('not_found', 'there is no such server');
	ELSIF v_policy IS NULL OR v_policy NOT IN ('require_approval', 'allow_all_public') THEN
		PERFORM fail('invalid_params', 'policy is require_approval or allow_all_public');
	END IF;
	SELECT x.* INTO a FROM approval_requests x JOIN network_requests n ON n.id = x.subject
	    WHERE x.kind = 'network' AND x.state = 'pending' AND n.server_id = v_server
	    AND n.proto = 'tcp' AND n.host = '*' AND n.port = 0 FOR UPDATE OF x;
	IF v_policy = 'allow_all_public' AND network_access_policy(v_server) <> v_policy THEN
		IF a.id IS NULL THEN
			a.id := act_network_request(p_actor, p_id, NULL, json_build_object('host', '*',
			    'justification', coalesce(p_body ->> 'justification',
			    'network_access_policy allow_all_public')))::json ->> 'id';
		END IF;
	ELSIF v_policy = 'require_approval' THEN
		UPDATE approval_requests SET state = 'superseded', decided_by = p_actor,
		    decided_at = clock_timestamp(), reason = 'network_access_policy require_approval'
		    WHERE id = a.id;
		a.id := NULL;
		FOR g IN UPDATE network_grants x SET revoked_at = clock_timestamp(), revoked_by = p_actor
		    WHERE x.server_id = v_server AND x.revoked_at IS NULL AND x.host = '*' RETURNING * LOOP
			PERFORM audit_append(p_actor, 'network_revoked', 'server ' || s.name,
			    json_build_object('request_id', g.request_id, 'server_id', v_server, 'proto',
			    g.proto, 'host', g.host, 'port', nullif(g.port, 0),
			    'reason', 'network_access_policy require_approval')::text);
		END LOOP;
	END IF;
	RETURN json_build_object('server_id', v_server, 'server', s.name, 'network_access_policy',
	    network_access_policy(v_server), 'pending_request', a.id)::text;
END $$;

---------------------------------------------------------------------------
-- In calls. The row of callable, and a call's lookup, bear the time from which
-- on its server's limits are as they are; of a version that needs hosts, its
-- server's grants, too. So a context made from grants that were changed since
-- gets no row: what committed before wins, on every node.

CREATE FUNCTION network_changed(p_server uuid) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
	SELECT max(g.changed_at) FROM mcpbox.network_grants g WHERE g.server_id = p_server
$$;
CREATE FUNCTION limits_at(p_limits timestamptz, p_server uuid, p_requires text[])
RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN p_requires = '{}' THEN p_limits
	    ELSE greatest(p_limits, mcpbox.network_changed(p_server)) END
$$;

-- 0012's, with that.
CREATE OR REPLACE VIEW callable_now AS
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

-- 0012's, with that.
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
	    AND v.exposed_name = p_tool
	    AND limits_at(l.updated_at, s.id, v.requires) IS NOT DISTINCT FROM p_limits
	    AND (v.modules = '{}' OR module_missing(v.tool_id, v.modules) IS NULL)
	    AND (v.requires = '{}' OR network_missing(v.server_id, v.requires) IS NULL);
	IF FOUND THEN
		RETURN 'ok';
	END IF;
	IF EXISTS (SELECT 1 FROM tool_versions v LEFT JOIN server_limits l USING (server_id)
	    WHERE v.id = p_version
	    AND limits_at(l.updated_at, v.server_id, v.requires) IS DISTINCT FROM p_limits) THEN
		RETURN 'stale';
	END IF;
	RETURN execution_open(p_id, 'tool', p_version, p_hash, p_epoch, p_principal,
	    p_listener, p_tool, p_args_sha256, p_arguments, p_client, p_protocol,
	    p_created, p_deadline);
END $$;

-- Live grants of a server as the material of a context (common/context.h:
-- CTX_GRANT_SEAL, CTX_GRANT_PREIMAGE): those that have something to do with these
-- needs, and private addresses, which names may turn out to have.
CREATE FUNCTION network_material(p_server uuid, p_requires text[]) RETURNS bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(string_agg(grant_field(31, x.seal) || grant_field(32, q.preimage),
	    ''::bytea ORDER BY g.host, g.port, g.proto), ''::bytea)
	FROM network_grants g JOIN approval_seals x ON x.request_id = g.request_id
	    JOIN grant_requests q ON q.id = g.request_id
	WHERE g.server_id = p_server AND g.revoked_at IS NULL AND EXISTS (SELECT 1
	    FROM unnest(p_requires) r CROSS JOIN LATERAL need_parts(r) n
	    WHERE n.proto = g.proto
	    AND (n.port IN (0, g.port) OR (g.port = 0 AND n.port IN (80, 443)))
	    AND (host_private(g.host) OR host_within(g.host, n.host) OR host_within(n.host, g.host)))
$$;

-- For REGRANT: servers of which a sandbox has open calls that may connect, with
-- what they are granted now, if that changed since the first of those calls was
-- made (or shortly before: clocks of two machines).
CREATE FUNCTION network_regrants(p_epoch uuid)
RETURNS TABLE (server_id uuid, material bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT o.server_id, network_material(o.server_id, o.requires) FROM (
	    SELECT v.server_id, min(e.created_at) AS since,
	        array_agg(DISTINCT r) AS requires
	    FROM executions e JOIN tool_versions v ON v.id = e.version_id
	        CROSS JOIN LATERAL unnest(v.requires) r
	    WHERE e.state = 'open' AND e.kind = 'tool' AND e.owner_epoch = p_epoch
	    GROUP BY 1) o
	WHERE network_changed(o.server_id) >= o.since - interval '5 minutes'
$$;
-- Those calls.
CREATE FUNCTION network_calls(p_epoch uuid, p_server uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT e.id FROM executions e JOIN tool_versions v ON v.id = e.version_id
	WHERE e.state = 'open' AND e.kind = 'tool' AND e.owner_epoch = p_epoch
	    AND v.server_id = p_server AND v.requires <> '{}'
$$;

---------------------------------------------------------------------------
-- Showing.

CREATE OR REPLACE FUNCTION server_hosts(p_server uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(mcpbox.host_text(g.proto, g.host, g.port)
	    ORDER BY g.host, g.port, g.proto), '[]') FROM mcpbox.network_grants g
	WHERE g.server_id = p_server AND g.revoked_at IS NULL
$$;

-- 0012's, and: the protocol.
CREATE OR REPLACE FUNCTION approval_item(a approval_requests) RETURNS text
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

-- 0012's, with the meaning of above.
CREATE OR REPLACE FUNCTION approval_circumstances(a approval_requests) RETURNS text
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

DROP FUNCTION host_covers(text, int, text);
DROP FUNCTION require_parts(text);
-- Which version may be called, by the new meaning of its hosts.
SELECT callable_refresh(ARRAY(SELECT tool_id FROM tool_versions WHERE requires <> '{}'
    UNION SELECT tool_id FROM callable));
-- What waits for review shows what it would touch.
SELECT grants_refresh(NULL, NULL);

---------------------------------------------------------------------------
-- What a call did: its connections, as egress told them. JSON, or nothing: what
-- a taken-over sandbox sends in its place must not become part of an answer.

ALTER TABLE executions ADD COLUMN network json;

CREATE FUNCTION network_json(p_text text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	-- NET_REPORT_MAX
	IF octet_length(p_text) <= 16384 AND json_typeof(p_text::json) = 'array' THEN
		RETURN p_text::json;
	END IF;
	RETURN '[{"verdict":"unreadable"}]';
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
	RETURN '[{"verdict":"unreadable"}]';
END $$;

-- 0015's, and: the connections belong to the ending.
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
		    AND length(NEW.arguments) <= 4096
		    AND length(NEW.span_id) = 8) IS FALSE THEN
			RAISE EXCEPTION USING ERRCODE = 'check_violation',
			    CONSTRAINT = 'executions_intent', MESSAGE = 'not an intent';
		END IF;
		IF NEW.version_id IS NOT NULL AND NOT EXISTS
		    (SELECT 1 FROM mcpbox.tool_versions v WHERE v.id = NEW.version_id) THEN
			RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			    CONSTRAINT = 'executions_version', MESSAGE = 'there is no such version';
		END IF;
	ELSE
		IF OLD.state <> 'open' OR (NEW.state <> 'closed' AND NOT (NEW.state = 'open'
		    AND OLD.trace_id IS NULL AND OLD.session_id IS NULL
		    AND length(NEW.span_id) = 8 IS NOT FALSE)) THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an execution closes once';
		END IF;
		IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.owner_epoch <> OLD.owner_epoch
		    OR NEW.principal <> OLD.principal OR NEW.listener <> OLD.listener
		    OR NEW.tool <> OLD.tool OR NEW.version_id IS DISTINCT FROM OLD.version_id
		    OR NEW.version_hash IS DISTINCT FROM OLD.version_hash
		    OR NEW.args_sha256 <> OLD.args_sha256 OR NEW.arguments <> OLD.arguments
		    OR NEW.client <> OLD.client OR NEW.protocol <> OLD.protocol
		    OR NEW.deadline <> OLD.deadline
		    OR NEW.created_at <> OLD.created_at OR NEW.restored <> OLD.restored
		    OR (NEW.state = 'closed' AND (NEW.trace_id IS DISTINCT FROM OLD.trace_id
		    OR NEW.span_id IS DISTINCT FROM OLD.span_id
		    OR NEW.session_id IS DISTINCT FROM OLD.session_id)) THEN
			RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE = 'an intent is immutable';
		END IF;
	END IF;
	IF (CASE NEW.state WHEN 'closed' THEN
	    NEW.outcome IN ('done', 'failed', 'killed', 'refused', 'lost')
	    AND NEW.outcome IS NOT NULL AND NEW.ended_at IS NOT NULL
	    AND (NEW.outcome = 'done') = (NEW.failure IS NULL)
	    AND length(NEW.stdout) <= 65536 AND length(NEW.result) <= 1048576
	    AND octet_length(NEW.network::text) <= 16384
	ELSE
	    NEW.outcome IS NULL AND NEW.ended_at IS NULL AND NEW.failure IS NULL
	    AND NEW.result IS NULL AND NEW.stdout IS NULL AND NEW.delivered IS NULL
	    AND NEW.network IS NULL
	END) IS FALSE THEN
		RAISE EXCEPTION USING ERRCODE = 'check_violation',
		    CONSTRAINT = 'executions_ending', MESSAGE = 'not an ending';
	END IF;
	RETURN NEW;
END $$;

-- 0015's, with them.
DROP FUNCTION execution_close(uuid, uuid, text, text, boolean, timestamptz, timestamptz,
    bigint, text, text, text, uuid, bytea, text, text, text, bytea, text, timestamptz,
    timestamptz);
CREATE FUNCTION execution_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz, p_network text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	-- twice: the intent's own INSERT may commit while ours waits for it
	FOR i IN 1..2 LOOP
		WITH c AS (UPDATE executions SET state = 'closed', outcome = p_outcome,
		    failure = p_failure, delivered = p_delivered, started_at = p_started,
		    ended_at = p_ended, cpu_us = p_cpu_us, stdout = p_stdout, result = p_result,
		    network = CASE WHEN p_network <> '' THEN network_json(p_network) END
		WHERE id = p_id AND state = 'open' AND owner_epoch = p_epoch RETURNING id)
		INSERT INTO execution_queue SELECT id FROM c;
		IF FOUND THEN
			RETURN 'closed';
		END IF;
		IF EXISTS (SELECT 1 FROM executions WHERE id = p_id) THEN
			RETURN 'already';
		END IF;
		IF p_kind IS NULL THEN
			RETURN 'unknown';
		END IF;
		WITH c AS (INSERT INTO executions (id, kind, state, outcome, failure, delivered,
		    owner_epoch, principal, listener, tool, version_id, version_hash,
		    args_sha256, arguments, created_at, deadline, started_at, ended_at,
		    cpu_us, stdout, result, network, restored)
		VALUES (p_id, p_kind, 'closed', p_outcome, p_failure, p_delivered, p_epoch,
		    p_principal, p_listener, p_tool,
		    (SELECT v.id FROM tool_versions v WHERE v.id = p_version), p_hash,
		    p_args_sha256, p_arguments, p_created, p_deadline, p_started, p_ended,
		    p_cpu_us, p_stdout, p_result,
		    CASE WHEN p_network <> '' THEN network_json(p_network) END, true)
		ON CONFLICT (id) DO NOTHING RETURNING id)
		INSERT INTO execution_queue SELECT id FROM c;
		IF FOUND THEN
			RETURN 'restored';
		END IF;
	END LOOP;
	RETURN 'already';
END $$;

-- Likewise.
DROP FUNCTION executions_close(uuid, uuid[], text[], text[], boolean[], timestamptz[],
    timestamptz[], bigint[], text[], text[]);
CREATE FUNCTION executions_close(p_epoch uuid, p_ids uuid[], p_outcomes text[],
    p_failures text[], p_delivered boolean[], p_started timestamptz[],
    p_ended timestamptz[], p_cpu_us bigint[], p_stdout text[], p_results text[],
    p_network text[] DEFAULT '{}')
RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN QUERY WITH c AS (UPDATE executions x SET state = 'closed', outcome = r.outcome,
	    failure = r.failure, delivered = r.delivered, started_at = r.started_at,
	    ended_at = r.ended_at, cpu_us = r.cpu_us, stdout = r.stdout, result = r.result,
	    network = CASE WHEN r.network <> '' THEN network_json(r.network) END
	FROM unnest(p_ids, p_outcomes, p_failures, p_delivered, p_started, p_ended,
	    p_cpu_us, p_stdout, p_results, p_network) AS r (id, outcome, failure, delivered,
	    started_at, ended_at, cpu_us, stdout, result, network)
	WHERE x.id = r.id AND x.state = 'open' AND x.owner_epoch = p_epoch
	RETURNING x.id)
	INSERT INTO execution_queue SELECT c.id FROM c RETURNING execution;
END $$;

-- 0005's, likewise.
DROP FUNCTION task_close(uuid, uuid, text, text, boolean, timestamptz, timestamptz, bigint,
    text, text, text, uuid, bytea, text, text, text, bytea, text, timestamptz,
    timestamptz, text, text, text);
CREATE FUNCTION task_close(p_id uuid, p_epoch uuid, p_outcome text,
    p_failure text, p_delivered boolean, p_started timestamptz,
    p_ended timestamptz, p_cpu_us bigint, p_stdout text, p_result text,
    p_kind text, p_version uuid, p_hash bytea, p_principal text,
    p_listener text, p_tool text, p_args_sha256 bytea, p_arguments text,
    p_created timestamptz, p_deadline timestamptz,
    p_state text, p_whole text, p_meta text, p_network text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	how text := execution_close(p_id, p_epoch, p_outcome, p_failure, p_delivered,
	    p_started, p_ended, p_cpu_us, p_stdout, p_result, p_kind, p_version, p_hash,
	    p_principal, p_listener, p_tool, p_args_sha256, p_arguments, p_created,
	    p_deadline, p_network);
	message text;
BEGIN
	IF how IN ('closed', 'restored') THEN
		BEGIN
			message := p_whole::json #>> '{content,0,text}';
		EXCEPTION WHEN data_exception THEN
			message := NULL;
		END;
		PERFORM task_end(p_id, p_state, p_outcome, p_failure, message, p_whole, p_meta);
	END IF;
	RETURN how;
END $$;

-- 0015's, and: where it connected to.
CREATE OR REPLACE FUNCTION execution_lexemes(x executions) RETURNS tsvector
LANGUAGE sql STABLE AS $$
	SELECT to_tsvector('pg_catalog.simple', mcpbox.plain_words(replace(replace(
	    concat_ws(' ', x.tool, x.principal, x.failure, x.arguments,
	    left(x.result, 8192), left(x.stdout, 4096), left(x.network::text, 4096)),
	    '\n', ' '), '\t', ' ')))
$$;

---------------------------------------------------------------------------
-- Privileges, as in 0001.

REVOKE ALL ON FUNCTION host_private, host_text, host_alabel, need_parts, host_within,
    grant_covers, tool_versions_requires, grant_affected, request_network,
    network_access_policy, act_network_policy, network_changed, limits_at,
    network_material, network_regrants, network_calls, network_json, execution_close,
    executions_close, task_close FROM PUBLIC;
-- those that only read, as whoever calls them
GRANT EXECUTE ON FUNCTION host_private, host_text, host_alabel, host_spelled, need_parts,
    host_within, grant_covers, network_access_policy, network_changed, limits_at
    TO mcpbox_app;
GRANT EXECUTE ON FUNCTION request_network, network_material, network_regrants,
    network_calls, execution_close, executions_close, task_close TO mcpbox_app;

---------------------------------------------------------------------------
-- 0010's, and: where each call connected to; as much as the other texts.
CREATE OR REPLACE FUNCTION manage_get_logs(p_id uuid, p_limit bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
DECLARE
	longest int := greatest(500, least(4000, 20000 / p_limit));
BEGIN
	RETURN (SELECT json_build_object('tool_id', t.id, 'tool_name', t.name,
	    'logs', coalesce(l.logs, '[]'), 'total', coalesce(json_array_length(l.logs), 0))
	    FROM tools t LEFT JOIN LATERAL (SELECT json_agg(json_build_object('id', x.id,
		'kind', x.kind, 'success', CASE x.state WHEN 'closed' THEN x.outcome = 'done' END,
		'outcome', x.outcome, 'failure_mode', x.failure,
		'duration_ms', (extract(epoch FROM x.ended_at
		    - coalesce(x.started_at, x.created_at)) * 1000)::bigint,
		'version', x.version_no,
		'error', CASE WHEN x.outcome <> 'done' THEN
		    coalesce(left(x.result, longest), replace(x.failure, '_', ' ')) END,
		'input_args', json_or_text(left(x.arguments, longest)),
		'result', CASE WHEN x.outcome = 'done' THEN
		    json_or_text(left(x.result, longest)) END,
		'stdout', left(x.stdout, longest),
		'network', (SELECT coalesce(json_agg(k.c ORDER BY k.i), '[]') FROM (SELECT c, i,
		    sum(length(c::text)) OVER (ORDER BY i) AS n
		    FROM json_array_elements(coalesce(x.network, '[]')) WITH ORDINALITY a (c, i)) k
		    WHERE k.n <= longest),
		'executed_by', x.principal,
		'created_at', json_time(x.created_at)) ORDER BY x.created_at DESC, x.id DESC) AS logs
		FROM (SELECT e.*, v.version_no FROM
		    (SELECT DISTINCT n.exposed_name FROM tool_versions n WHERE n.tool_id = t.id) k
		    CROSS JOIN LATERAL executions_of_tool(k.exposed_name,
			'{tool,test,management}', p_limit) e
		    JOIN tool_versions v ON v.id = e.version_id AND v.tool_id = t.id
		    ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit) x) l ON true
	    WHERE t.id = p_id AND t.deleted_at IS NULL);
END $$;

-- 0010's, and: the network access policy.
CREATE OR REPLACE FUNCTION server_json(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = mcpbox, pg_temp AS $$
BEGIN
	RETURN (SELECT json_build_object('id', s.id, 'name', split_part(s.name, '@', 1),
	    'description', s.description, 'status', s.status, 'expose', s.expose,
	    'created_at', json_time(s.created_at), 'created_by', s.created_by,
	    'updated_at', json_time(s.updated_at), 'deleted_at', json_time(s.deleted_at),
	    'deleted_by', s.deleted_by, 'network_access_policy', network_access_policy(s.id),
	    'tool_count', (SELECT count(*) FROM tools x
		WHERE x.server_id = s.id AND x.object = 'tool' AND x.deleted_at IS NULL))::text
	    FROM servers s WHERE s.id = p_id);
END $$;

---------------------------------------------------------------------------
-- Where else limits are listed: 0010's and 0017's, with the three.

CREATE OR REPLACE FUNCTION version_limits(v tool_versions) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT json_strip_nulls(json_build_object('timeout_ms', v.timeout_ms,
	    'memory_bytes', v.memory_bytes, 'processes', v.processes,
	    'tmp_bytes', v.tmp_bytes, 'result_bytes', v.result_bytes,
	    'cpu_ms', v.cpu_ms, 'files', v.files, 'file_bytes', v.file_bytes,
	    'stdout_bytes', v.stdout_bytes, 'argument_bytes', v.argument_bytes,
	    'log_rate', v.log_rate, 'progress_rate', v.progress_rate,
	    'connections', v.connections, 'network_bytes', v.network_bytes,
	    'network_rate', v.network_rate))
$$;
CREATE OR REPLACE FUNCTION import_server(j json, p_actor text) RETURNS servers
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	made servers;
	l json := coalesce(j -> 'limits', '{}');
	x json;
BEGIN
	IF NOT coalesce(j ->> 'expose', '') IN ('prefixed', 'bare') THEN
		PERFORM fail('invalid_params', 'a server''s line is not one of an export');
	END IF;
	made.id := gen_random_uuid();
	made.name := import_name(j ->> 'name');
	PERFORM create_server(made.id, made.name, coalesce(j ->> 'description', ''), p_actor);
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
