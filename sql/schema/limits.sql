-- Limits of the calls of a server. Names and bounds are common/limit.h's; a test
-- compares the two.

-- Limits that an administrator set for a server. They hold for each tool of the
-- server that does not have such a limit itself. If a row is missing or a limit
-- is null, the configured default holds.
CREATE TABLE server_limits (
	server_id uuid PRIMARY KEY REFERENCES servers (id),
	timeout_ms bigint CHECK (timeout_ms BETWEEN 100 AND 600000),
	memory_bytes bigint CHECK (memory_bytes BETWEEN 33554432 AND 17179869184),
	processes bigint CHECK (processes BETWEEN 1 AND 1024),
	tmp_bytes bigint CHECK (tmp_bytes BETWEEN 65536 AND 17179869184),
	result_bytes bigint CHECK (result_bytes BETWEEN 1024 AND 1048576),
	cpu_ms bigint CHECK (cpu_ms BETWEEN 100 AND 3600000),
	files bigint CHECK (files BETWEEN 16 AND 4096),
	file_bytes bigint CHECK (file_bytes BETWEEN 4096 AND 17179869184),
	stdout_bytes bigint CHECK (stdout_bytes BETWEEN 1024 AND 65536),
	argument_bytes bigint CHECK (argument_bytes BETWEEN 64 AND 1048576),
	log_rate bigint CHECK (log_rate BETWEEN 1 AND 1000),
	progress_rate bigint CHECK (progress_rate BETWEEN 1 AND 100),
	code_bytes bigint CHECK (code_bytes BETWEEN 1000 AND 100000),
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_by text NOT NULL CHECK (actor_ok(updated_by)),
	connections bigint CHECK (connections BETWEEN 1 AND 65536),
	network_bytes bigint CHECK (network_bytes BETWEEN 1024 AND 1099511627776),
	network_rate bigint CHECK (network_rate BETWEEN 1024 AND 1099511627776)
);

-- Returns what REST and mcpboxctl show of a server's limits (by id or name). The
-- SHA-256 of these bytes is the ETag that a change must name. Null: no such server.
CREATE FUNCTION server_limits_json(p_server text) RETURNS text
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

CREATE FUNCTION version_limits(v tool_versions) RETURNS json
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

CREATE FUNCTION limits_at(p_limits timestamptz, p_server uuid, p_requires text[])
RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN p_requires = '{}' THEN p_limits
	    ELSE greatest(p_limits, mcpbox.network_changed(p_server)) END
$$;

GRANT EXECUTE ON FUNCTION server_limits_json, version_limits, set_server_limits,
    limits_at TO mcpbox_app;
