-- Network access: requests for it, the meaning of a grant, and how a grant
-- reaches a call (docs/decisions/0047).
--
-- proto is tcp or udp. host is a name, *.domain, an address, or * (every host
-- whose address is public). Port 0 of a grant means 80 and 443. The network
-- access policy of a server is require_approval or allow_all_public. With
-- allow_all_public the server has a grant of *. This grant is asked for,
-- decided, sealed, enforced and revoked as any other, and a version still has
-- to declare what it reaches.
--
-- The row of callable, and a call's lookup, have the time at which a server's
-- limits changed last. For a version that needs hosts, this is also the time at
-- which its server's grants changed last. So if grants changed after a call's
-- context was made, the call gets no row. A change that committed before the
-- call holds, on every node.
--
-- A call's connections are a JSON array, as egress told them. network_json()
-- replaces anything else, because text that a taken-over sandbox sends must not
-- become part of an answer.

CREATE TABLE network_requests (
	id uuid PRIMARY KEY,	-- approval_requests.subject of kind network
	server_id uuid NOT NULL REFERENCES servers (id),
	proto text NOT NULL DEFAULT 'tcp',
	host text COLLATE "C" NOT NULL CHECK (octet_length(host) BETWEEN 1 AND 253),
	port int NOT NULL CHECK (port BETWEEN 0 AND 65535),	-- 0: every port
	tool_ids uuid[] NOT NULL DEFAULT '{}',	-- the tools it is for
	justification text NOT NULL CHECK (length(justification) BETWEEN 1 AND 2000),
	CHECK (proto IN ('tcp', 'udp') AND (proto = 'tcp' OR port > 0))
);

CREATE INDEX ON network_requests (server_id, host, port);
CREATE INDEX ON network_requests USING gin (tool_ids);

-- Grants. A revoked grant keeps its row, which shows who had it, and when.
CREATE TABLE network_grants (
	request_id uuid PRIMARY KEY REFERENCES approval_seals (request_id),
	server_id uuid NOT NULL REFERENCES servers (id),
	proto text NOT NULL,
	host text COLLATE "C" NOT NULL,
	port int NOT NULL CHECK (port BETWEEN 0 AND 65535),
	automatic boolean NOT NULL,	-- by a policy, not by a person
	granted_at timestamptz NOT NULL,
	granted_by text NOT NULL CHECK (actor_ok(granted_by)),
	revoked_at timestamptz,
	revoked_by text CHECK (actor_ok(revoked_by)),
	-- When the row was written. Always later than changed_at of all other
	-- grants of the server, even if the clock is set back. So the server's
	-- newest changed_at differs after every change (limits_at() uses it).
	changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
	CHECK (proto IN ('tcp', 'udp') AND (proto = 'tcp' OR port > 0))
);

CREATE UNIQUE INDEX network_grants_live_idx ON network_grants (server_id, host, port, proto)
    WHERE revoked_at IS NULL;
CREATE INDEX ON network_grants (server_id, request_id);
CREATE INDEX ON network_grants (server_id, changed_at);

-- Returns the hosts that were granted to a server, as JSON.
CREATE FUNCTION server_hosts(p_server uuid) RETURNS json
LANGUAGE sql STABLE AS $$
	SELECT coalesce(json_agg(mcpbox.host_text(g.proto, g.host, g.port)
	    ORDER BY g.host, g.port, g.proto), '[]') FROM mcpbox.network_grants g
	WHERE g.server_id = p_server AND g.revoked_at IS NULL
$$;

-- Guards a grant. A grant says what its sealed bytes say. It ends once. Its time
-- of change rises even if the clock is set back; whoever changes a server's grants
-- holds the lock of the server's row.
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
	NEW.changed_at := greatest(clock_timestamp(), (SELECT max(g.changed_at)
	    + interval '1 microsecond' FROM mcpbox.network_grants g
	    WHERE g.server_id = NEW.server_id));
	RETURN NEW;
END $$;

-- Returns the one spelling of a host, or what is wrong with it. The host may be
-- * or a loopback address. For an international name, the sentence says its
-- ASCII form. The rules are those of grantreq_need() of common/grantreq.h, and
-- a test compares both with the same golden vectors.
CREATE FUNCTION host_spelled(p_host text, OUT host text, OUT wrong text)
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

-- Returns the first host that a version needs and that its server is not
-- granted. Null: there is none.
CREATE FUNCTION network_missing(p_server uuid, p_requires text[]) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT r FROM unnest(p_requires) r CROSS JOIN LATERAL mcpbox.need_parts(r) n
	WHERE n.wrong IS NOT NULL OR NOT EXISTS (SELECT 1
	    FROM mcpbox.network_grants g WHERE g.server_id = p_server AND g.revoked_at IS NULL
	    AND mcpbox.grant_covers(g.proto, g.host, g.port, n.proto, n.host, n.port))
	ORDER BY r COLLATE "C" LIMIT 1
$$;

-- Updates callable when a grant is made or revoked, and withdraws calls that
-- run with a revoked grant (mask 0: no list changed).
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

-- Asks for a host in an administrator's name. The request is approved like
-- others, so the vault seals it. The host may contain the port.
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

-- Returns whether a host is an address that is not public, as far as that can
-- be told here; egress judges. Such an address is only granted by itself, with
-- its port.
CREATE FUNCTION host_private(p_host text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN p_host ~ '^[0-9.]+$|:' THEN p_host::inet <<= ANY ('{127.0.0.0/8,
	    10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,::1/128,fc00::/7}'::inet[])
	    ELSE false END
$$;

-- Returns the ASCII form (RFC 3492) of an international name, for a sentence
-- that suggests it. People still have to write the ASCII form themselves.
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

-- Reads a host as an author writes it: host, host:port, *.domain, *,
-- udp:host:port, [IPv6]:port. port is 0 if the author named none. wrong is null
-- if the text has one of these forms.
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

-- Returns whether p_host is one of those that p_those (a host, *.domain, *)
-- means.
CREATE FUNCTION host_within(p_those text, p_host text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN p_those = p_host THEN true
	    WHEN p_those = '*' THEN NOT mcpbox.host_private(p_host)
	    ELSE p_those LIKE '*.%' AND length(p_host) >= length(p_those)
	        AND right(p_host, length(p_those) - 1) = substr(p_those, 2) END
$$;

-- Returns whether a grant covers a need. A grant of any port of the host covers
-- a need without a port, because only the granted port is opened. A need of
-- *.domain or of * is not covered by anything narrower.
CREATE FUNCTION grant_covers(p_proto text, p_host text, p_port int, n_proto text,
    n_host text, n_port int) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT p_proto = n_proto AND (n_port IN (0, p_port) OR (p_port = 0 AND n_port IN (80, 443)))
	    AND mcpbox.host_within(p_host, n_host)
	    AND (p_port > 0 OR NOT mcpbox.host_private(p_host))
$$;

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

CREATE FUNCTION network_changed(p_server uuid) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
	SELECT max(g.changed_at) FROM mcpbox.network_grants g WHERE g.server_id = p_server
$$;

-- Returns grants of a server, without revoked ones, as the material of a
-- context (common/context.h: CTX_GRANT_SEAL, CTX_GRANT_PREIMAGE). These are the
-- grants that overlap with the needs, and those of private addresses, because a
-- name may turn out to have such an address.
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

-- For REGRANT: returns each server of which a sandbox has open calls that may
-- connect, with its present grants, if these changed since the first of the
-- calls was made. A change in the five minutes before counts, too, because the
-- clocks of two machines may differ.
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

-- Returns those open calls of one sandbox and one server whose versions may
-- connect to hosts.
CREATE FUNCTION network_calls(p_epoch uuid, p_server uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT e.id FROM executions e JOIN tool_versions v ON v.id = e.version_id
	WHERE e.state = 'open' AND e.kind = 'tool' AND e.owner_epoch = p_epoch
	    AND v.server_id = p_server AND v.requires <> '{}'
$$;

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

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON network_requests
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON network_requests EXECUTE FUNCTION refuse();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION network_grants_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON network_grants EXECUTE FUNCTION refuse();
CREATE TRIGGER callable AFTER INSERT OR UPDATE ON network_grants
    FOR EACH ROW EXECUTE FUNCTION network_grants_follow();

GRANT EXECUTE ON FUNCTION server_hosts, host_spelled, network_missing,
    host_private, host_alabel, need_parts, host_within, grant_covers,
    request_network, network_access_policy, network_changed, network_material,
    network_regrants, network_calls TO mcpbox_app;
