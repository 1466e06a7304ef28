-- Figures for the dashboard and for health. Figures of calls (of tools; not of
-- management tools, inspections and tests) come from execution_stats, by hours.
-- The present hour counts as far as it has gone.

CREATE FUNCTION dashboard(p_period text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	word text := coalesce(nullif(p_period, ''), '24h');
	span interval := CASE word WHEN '1h' THEN interval '1 hour'
	    WHEN '6h' THEN interval '6 hours' WHEN '24h' THEN interval '24 hours'
	    WHEN '7d' THEN interval '7 days' END;
	f timestamptz := date_trunc('hour', clock_timestamp() - span, 'UTC');
	calls json;
BEGIN
	IF span IS NULL THEN
		PERFORM fail('invalid_params', 'period is 1h, 6h, 24h or 7d');
	END IF;
	calls := execution_statistics(f, NULL, 'hour', '', '', '', 'tool', '')::json;
	RETURN json_build_object('period', word, 'since', calls -> 'since', 'until', calls -> 'until',
	    'servers', (SELECT json_build_object('all', count(*),
	        'running', count(*) FILTER (WHERE status = 'running')) FROM servers
	        WHERE deleted_at IS NULL),
	    'tools', (SELECT json_build_object('all', count(*),
	        'serving', count(*) FILTER (WHERE serving_version IS NOT NULL AND enabled),
	        'disabled', count(*) FILTER (WHERE NOT enabled)) FROM tools
	        WHERE object = 'tool' AND deleted_at IS NULL),
	    'prompts', (SELECT count(*) FROM tools WHERE object = 'prompt' AND deleted_at IS NULL),
	    'resources', (SELECT count(*) FROM tools WHERE object = 'resource' AND deleted_at IS NULL),
	    'pending', (SELECT json_build_object('all', coalesce(sum(n), 0),
	        'tool', coalesce(sum(n) FILTER (WHERE kind = 'tool'), 0),
	        'module', coalesce(sum(n) FILTER (WHERE kind = 'module'), 0),
	        'network', coalesce(sum(n) FILTER (WHERE kind = 'network'), 0),
	        'call', coalesce(sum(n) FILTER (WHERE kind = 'call'), 0))
	        FROM (SELECT kind, count(*) AS n FROM approval_requests
	        WHERE state = 'pending' GROUP BY 1) p),
	    'calls', calls -> 'total', 'calls_over_time', calls -> 'periods',
	    'outcomes', calls -> 'outcomes', 'failures', calls -> 'failures',
	    'top_tools', (SELECT coalesce(json_agg(t.value), '[]') FROM (SELECT value
	        FROM json_array_elements(calls -> 'tools') WITH ORDINALITY o(value, n)
	        ORDER BY n LIMIT 5) t),
	    'busiest_servers', (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name,
	        'status', s.status, 'calls', c.calls, 'errors', c.errors)
	        ORDER BY c.calls DESC, s.name), '[]')
	        FROM (SELECT t.server_id, sum(x.calls) AS calls,
	        coalesce(sum(x.calls) FILTER (WHERE x.outcome <> 'done'), 0) AS errors
	        FROM execution_stats x JOIN tool_names n ON n.exposed_name = x.tool
	        JOIN tools t ON t.id = n.tool_id WHERE x.hour >= f AND x.kind = 'tool'
	        GROUP BY 1 ORDER BY 2 DESC LIMIT 10) c JOIN servers s ON s.id = c.server_id),
	    'recent_errors', (SELECT coalesce(json_agg(json_build_object('id', r.id, 'tool', r.tool,
	        'principal', r.principal, 'outcome', r.outcome, 'failure_mode', r.failure,
	        'created_at', to_char(r.created_at AT TIME ZONE 'UTC',
	        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY r.created_at DESC, r.id DESC), '[]')
	        FROM (SELECT e.* FROM unnest(ARRAY['failed', 'killed', 'refused', 'lost']) o(outcome)
	        CROSS JOIN LATERAL executions_of_outcome(o.outcome, f, 10) e
	        ORDER BY e.created_at DESC, e.id DESC LIMIT 10) r))::text;
END $$;

-- Figures of the database that tell whether all is well.
CREATE FUNCTION health_figures() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('postgresql', current_setting('server_version'),
	    'database_bytes', pg_database_size(current_database()),
	    'schema', (SELECT max(version) FROM schema_migrations),
	    'nodes', (SELECT coalesce(json_agg(json_build_object('node', node, 'kind', kind,
	        'since', to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
	        ORDER BY node, kind), '[]') FROM epochs WHERE ended_at IS NULL),
	    'open_executions', (SELECT count(*) FROM executions WHERE state = 'open'),
	    'overdue_executions', (SELECT count(*) FROM executions WHERE state = 'open'
	        AND deadline < clock_timestamp() - interval '5 minutes'),
	    'waiting_statistics', (SELECT count(*) FROM (SELECT 1 FROM execution_queue
	        LIMIT 100000) q),
	    'audit_rows', (SELECT seq FROM audit_head),
	    'audit_not_anchored', (SELECT seq FROM audit_head)
	        - coalesce((SELECT max(seq) FROM audit_anchors), 0),
	    'pending_approvals', (SELECT count(*) FROM approval_requests WHERE state = 'pending'))::text
$$;

GRANT EXECUTE ON FUNCTION dashboard, health_figures TO mcpbox_app;
