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
