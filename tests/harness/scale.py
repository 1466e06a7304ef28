"""Ten thousand tools and a million records, made by SQL: for what must stay
quick when they are there.

Rows are written with triggers off (session_replication_role), so they are as
the constraints want them but nobody approved them: seals are made up, and the
vault refuses to run any. Tools that are called are made by the usual road."""
SERVERS, TOOLS, EXECUTIONS, AUDIT = 100, 10_000, 1_000_000, 5_000

FILL = r"""
SET session_replication_role = replica;
SET search_path = mcpbox;
SET synchronous_commit = off;
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION pg_temp.field(tag int, v bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
    $$ SELECT set_byte('\x00'::bytea, 0, tag) || int4send(length(v)) || v $$;
CREATE FUNCTION pg_temp.field(tag int, v text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
    $$ SELECT pg_temp.field(tag, convert_to(v, 'UTF8')) $$;
CREATE FUNCTION pg_temp.id(kind int, n int) RETURNS uuid LANGUAGE sql IMMUTABLE AS
    $$ SELECT (lpad(to_hex(kind), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid $$;

INSERT INTO servers (id, name, description, created_by)
    SELECT pg_temp.id(1, n), 'bulk_' || n, 'server ' || n, 'local'
    FROM generate_series(1, {servers}) n;

-- Of ten tools one is a draft, one waits for review, one was revoked, one is
-- disabled; the rest serve. All are numbered 1 to {tools}, a hundred a server.
CREATE TEMP TABLE made AS SELECT n, pg_temp.id(2, n) AS tool, pg_temp.id(3, n) AS version,
    pg_temp.id(4, n) AS request, pg_temp.id(1, 1 + (n - 1) / ({tools} / {servers})) AS server,
    'bulk_' || 1 + (n - 1) / ({tools} / {servers}) AS server_name, 'tool_' || n AS name,
    (ARRAY['draft', 'pending_review', 'revoked', 'approved', 'approved', 'approved',
    'approved', 'approved', 'approved', 'approved'])[1 + n % 10] AS state
    FROM generate_series(1, {tools}) n;
INSERT INTO tools (id, server_id, name, enabled, created_by, created_at, disabled_by,
    disabled_authority, disabled_at)
    SELECT tool, server, name, n % 10 <> 9, 'local', now() - n * interval '1 minute',
    CASE WHEN n % 10 = 9 THEN 'local' END, CASE WHEN n % 10 = 9 THEN 'principal' END,
    CASE WHEN n % 10 = 9 THEN now() END FROM made;
INSERT INTO tool_versions (id, version_no, state, preimage, hash, created_by)
    SELECT version, 1, state, p, sha256(p), 'local' FROM made m, LATERAL (SELECT
    convert_to('mcpbox version 1', 'UTF8') || '\x00'::bytea
    || pg_temp.field(1, int8send(1)) || pg_temp.field(2, uuid_send(server))
    || pg_temp.field(3, uuid_send(tool)) || pg_temp.field(4, server_name)
    || pg_temp.field(5, name) || pg_temp.field(6, server_name || '__' || name)
    || pg_temp.field(8, 'Finds what is number ' || n || ' of many, and says '
    || (ARRAY['weather', 'tides', 'prices', 'trains', 'names', 'stars', 'birds'])[1 + n % 7])
    || pg_temp.field(11, '{{"type":"object","properties":{{"n":{{"type":"integer"}}}}}}')
    || pg_temp.field(14, 'python')
    || pg_temp.field(15, 'def main(n: int = 0) -> int:' || chr(10) || '    return n' || chr(10))
    AS p OFFSET 0) x;
UPDATE tools t SET serving_version = m.version FROM made m
    WHERE m.tool = t.id AND m.state = 'approved';
INSERT INTO tool_names (exposed_name, tool_id) SELECT server_name || '__' || name, tool FROM made;
INSERT INTO approval_requests (id, kind, subject, hash, state, server_id, tool_id, requested_at,
    requested_by, decided_at, decided_by)
    SELECT request, 'tool', version, v.hash, CASE m.state WHEN 'pending_review' THEN 'pending'
    ELSE 'approved' END, server, tool, now() - n * interval '1 minute', 'token:author' || n / 100,
    CASE WHEN m.state <> 'pending_review' THEN now() END,
    CASE WHEN m.state <> 'pending_review' THEN 'root' END
    FROM made m JOIN tool_versions v ON v.id = m.version WHERE m.state <> 'draft';
UPDATE approval_requests a SET search = approval_words(a) WHERE a.search IS NULL;
INSERT INTO approval_seals (request_id, subject, hash, seal, sealed_at)
    SELECT request, version, v.hash, 'made up', now()
    FROM made m JOIN tool_versions v ON v.id = m.version WHERE m.state = 'approved';
INSERT INTO callable (version_id, epoch, hash, exposed_name, limits_at, tool_id)
    SELECT version_id, epoch, hash, exposed_name, limits_at, tool_id FROM callable_now
    ON CONFLICT DO NOTHING;

-- Indexes are made behind the rows: that is several times as fast.
CREATE TEMP TABLE later AS SELECT i.indexrelid::regclass::text AS name,
    pg_get_indexdef(i.indexrelid) AS def FROM pg_index i
    WHERE i.indrelid IN ('executions'::regclass, 'execution_index'::regclass) AND NOT i.indisprimary AND NOT i.indisunique;
DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT * FROM later LOOP EXECUTE 'DROP INDEX ' || r.name; END LOOP;
END $$;
INSERT INTO executions (id, kind, state, outcome, failure, delivered, owner_epoch, principal,
    listener, tool, version_id, version_hash, args_sha256, arguments, created_at, deadline,
    started_at, ended_at, cpu_us, stdout, result)
    SELECT pg_temp.id(6, n), CASE WHEN n % 50 = 0 THEN 'management' ELSE 'tool' END, 'closed',
    CASE WHEN n % 20 = 0 THEN 'failed' WHEN n % 997 = 0 THEN 'killed' ELSE 'done' END,
    CASE WHEN n % 20 = 0 THEN 'exception' WHEN n % 997 = 0 THEN 'timeout' END, true,
    pg_temp.id(7, 1), CASE WHEN n % 10 = 0 THEN 'token:t' || n % 40 ELSE 'local' END,
    CASE WHEN n % 10 = 0 THEN 'tunnel' ELSE 'local' END, 'bulk_' || 1 + (n % {tools}) / ({tools} / {servers})
    || '__tool_' || 1 + n % {tools}, pg_temp.id(3, 1 + n % {tools}), NULL,
    '\x0000000000000000000000000000000000000000000000000000000000000000', '{{"n":' || n || '}}',
    t, t + interval '60 s', t, t + interval '20 ms', 1000, '', '{{"content":[]}}'
    FROM (SELECT n, date_trunc('second', now()) - ({executions} - n) * interval '1 second' AS t
    FROM generate_series(1, {executions}) n OFFSET 0) x;
-- Words of the newest alone.
INSERT INTO execution_index (id, created_at, tool, principal, listener, kind, outcome, failure,
    version_id, server_id, words)
    SELECT id, created_at, tool, principal, listener, kind, outcome, failure, version_id,
    pg_temp.id(1, 1 + (1 + (row_number() OVER ()) % {tools} - 1)::int / ({tools} / {servers})),
    CASE WHEN created_at > now() - interval '50000 s'
    THEN to_tsvector('simple', tool || ' ' || principal || ' ' || arguments) ELSE '' END
    FROM executions WHERE state = 'closed' ON CONFLICT DO NOTHING;
DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT * FROM later LOOP EXECUTE r.def; END LOOP;
END $$;
INSERT INTO execution_stats (hour, tool, principal, listener, kind, outcome, failure, calls,
    duration_us, duration_max_us, cpu_us)
    SELECT date_trunc('hour', created_at, 'UTC'), tool, principal, listener, kind, outcome,
    coalesce(failure, ''), count(*), 20000, 20000, 1000 FROM executions
    WHERE state = 'closed' AND created_at > now() - interval '8 days' GROUP BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT DO NOTHING;
SELECT execution_sum(array_agg(s)) FROM execution_stats s GROUP BY hour;
INSERT INTO activity (at, node, kind, level, principal, listener, subject, failure, count)
    SELECT now() - n * interval '1 s', 'node1', 'refused', CASE WHEN n % 100 = 0 THEN 'error'
    WHEN n % 10 = 0 THEN 'warning' ELSE 'info' END, CASE WHEN n % 10 = 0 THEN 'token:t' || n % 40
    ELSE 'local' END, 'local', 'bulk_1__tool_' || n % 1000, 'busy', 1
    FROM generate_series(20000, 1, -1) n;
INSERT INTO rate_limits (scope, subject, per_minute, burst, updated_by)
    SELECT 'tool', 'bulk_1__tool_' || n, 6000, 6000, 'root' FROM generate_series(1, 5000) n;
INSERT INTO api_tokens (id, name, digest, scopes, listeners, allow, deny, created_by, created_at)
    SELECT pg_temp.id(8, n), 'bulk' || n, sha256(n::text::bytea), '{{tools:call}}', '{{tunnel}}', '{{*}}',
    '{{}}', 'root', now() FROM generate_series(1, 2000) n;
INSERT INTO script_keys (name, digest, scopes, created_by, expires_at, revoked_at, revoked_by)
    SELECT 'bulk' || n, sha256(n::text::bytea), '{{read}}', 'root', now() + interval '30 days', now(), 'root'
    FROM generate_series(1, 5000) n;
INSERT INTO access_issuers (name, issuer) VALUES ('many', 'https://many.example.org'),
    ('few', 'https://few.example.org');
INSERT INTO identities (principal, issuer, subject, first_seen, last_used_at, last_used_listener)
    SELECT 'oidc:many:' || n, 'many', n::text, now(), now(), 'tunnel' FROM generate_series(1, 50000) n;
INSERT INTO identities (principal, issuer, subject, withdrawn_at, withdrawn_by)
    SELECT 'oidc:many:z' || n, 'many', 'z' || n, now(), 'root' FROM generate_series(1, 200) n
    UNION ALL SELECT 'oidc:few:z' || n, 'few', 'z' || n, now(), 'root' FROM generate_series(1, 2) n;

-- A chain behind the one that is there, as audit_append() makes it.
DO $$ DECLARE
	h audit_head; d bytea; t timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
	SELECT * INTO h FROM audit_head;
	FOR n IN 1 .. {audit} LOOP
		h.seq := h.seq + 1;
		d := sha256(h.hash || audit_row(h.seq, t, CASE WHEN n % 50 = 0 THEN 'alice' ELSE 'root' END,
		    CASE WHEN n % 20 = 0 THEN 'setting_changed' ELSE 'approved' END, 'tool bulk_1__tool_' || n, '{{}}'));
		INSERT INTO audit_log VALUES (h.seq, t, CASE WHEN n % 50 = 0 THEN 'alice' ELSE 'root' END,
		    CASE WHEN n % 20 = 0 THEN 'setting_changed' ELSE 'approved' END, 'tool bulk_1__tool_' || n, '{{}}',
		    h.hash, d);
		h.hash := d;
	END LOOP;
	UPDATE audit_head SET seq = h.seq, hash = h.hash;
END $$;
RESET session_replication_role;
UPDATE catalogue SET revision = revision + 1;
"""


def fill(connection, servers=SERVERS, tools=TOOLS, executions=EXECUTIONS, audit=AUDIT):
    """connection: psycopg, autocommit, as PostgreSQL's superuser."""
    connection.execute(FILL.format(servers=servers, tools=tools, executions=executions,
                                   audit=audit))
    connection.execute("VACUUM (ANALYZE)")
