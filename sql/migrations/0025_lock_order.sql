-- 0025: one order of locks, first of all for versions that come to serve and
-- versions that end at once (tests/database/test_lock_order.py).
--
-- Locks are taken in one order: server, tool, version, request, callable_turn,
-- audit head. An approved version took its turn in `callable` as soon as its state
-- was approved, one statement before it serves, and so before the requests that
-- are made anew because it serves: who revoked another version of the server had
-- those requests and waited for the turn. PostgreSQL ended one of the two.
SET LOCAL search_path = mcpbox, pg_temp;

-- Only what serves is callable, and only what is approved may serve (tools_guard):
-- to be approved changes nothing in `callable` by itself, to serve does. Who ends a
-- version that served has the requests by then: its guard lets go of it first.
DROP TRIGGER callable ON tool_versions;
CREATE TRIGGER callable AFTER UPDATE ON tool_versions FOR EACH ROW
    WHEN (OLD.state = 'approved' AND NEW.state <> 'approved')
    EXECUTE FUNCTION callable_follow();

-- 0012's, until there is none left: one that somebody else made anew while we
-- waited for it has a successor, which knows what that somebody did and not what we
-- did. The next look sees it.
CREATE OR REPLACE FUNCTION grants_refresh(p_server uuid, p_module text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	a approval_requests;
	fresh uuid;
	missed boolean := true;
BEGIN
	WHILE missed LOOP
		missed := false;
		FOR a IN SELECT x.* FROM approval_requests x JOIN grant_requests g ON g.id = x.id
		    WHERE x.state = 'pending' AND x.kind IN ('module', 'network')
		    AND (p_server IS NULL OR x.server_id = p_server)
		    AND (p_module IS NULL OR x.subject IN (SELECT r.id FROM module_requests r
		    WHERE r.name = p_module))
		    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
		    AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.id = x.tool_id
		    AND t.deleted_at IS NOT NULL) ORDER BY x.server_id, x.tool_id, x.id LOOP
			PERFORM 1 FROM servers WHERE id = a.server_id FOR KEY SHARE;
			PERFORM 1 FROM tools WHERE id = a.tool_id FOR KEY SHARE;
			SELECT x.* INTO a FROM approval_requests x JOIN grant_requests g ON g.id = x.id
			    WHERE x.id = a.id AND x.state = 'pending'
			    AND g.preimage IS DISTINCT FROM grant_preimage(x.kind, x.subject, x.id)
			    FOR UPDATE OF x;
			IF NOT FOUND THEN
				missed := true;
				CONTINUE;
			END IF;
			fresh := request_uuid();
			UPDATE approval_requests SET state = 'superseded', decided_by = 'mcpbox',
			    decided_at = clock_timestamp(), reason = 'what it would change is another now:'
			    || ' request ' || fresh WHERE id = a.id;
			PERFORM grant_request(fresh, a.kind, a.subject, a.server_id, a.tool_id,
			    a.requested_by, a.notes);
		END LOOP;
	END LOOP;
END $$;

---------------------------------------------------------------------------
-- The same order for those who took another (a test makes them meet, all but the
-- pruning). What they lock, and why it is first, is all that is new in them.

-- The server, as of everybody who changes one of its tools: whoever deletes it has
-- its turn before its tools.
CREATE OR REPLACE FUNCTION set_tool_enabled(p_tool uuid, p_enabled boolean, p_actor text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	PERFORM 1 FROM servers WHERE id = (SELECT x.server_id FROM tools x WHERE x.id = p_tool)
	    FOR SHARE;
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

CREATE OR REPLACE FUNCTION tool_named(p_tool text) RETURNS tools
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	t tools;
BEGIN
	PERFORM 1 FROM servers WHERE id IN (SELECT x.server_id FROM tools x
	    WHERE x.id::text = p_tool OR x.id = (SELECT n.tool_id FROM tool_names n
	    WHERE n.exposed_name = p_tool)) FOR SHARE;
	SELECT x.* INTO t FROM tools x WHERE x.id::text = p_tool OR x.id =
	    (SELECT n.tool_id FROM tool_names n WHERE n.exposed_name = p_tool) FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such tool');
	END IF;
	RETURN t;
END $$;

CREATE OR REPLACE FUNCTION act_versions_prune(p_actor text, p_id text, p_seen bytea, p_body json)
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

-- Who imports a source again has the audit head before its pending requests.
CREATE OR REPLACE FUNCTION act_approval_comment(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r uuid := act_uuid(p_id, 'request');
	said text := btrim(p_body ->> 'text', E' \t\r\n');
BEGIN
	PERFORM 1 FROM servers WHERE id = (SELECT a.server_id FROM approval_requests a
	    WHERE a.id = r) FOR SHARE;
	PERFORM 1 FROM approval_requests WHERE id = r FOR SHARE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such request');
	ELSIF length(said) NOT BETWEEN 1 AND 2000 THEN
		PERFORM fail('invalid_params', 'a comment has 1 to 2000 characters');
	ELSIF (SELECT count(*) FROM approval_comments WHERE request_id = r) >= 200 THEN
		PERFORM fail('limit', 'a request has at most 200 comments');
	END IF;
	INSERT INTO approval_comments (id, request_id, author, text)
	    VALUES (request_uuid(), r, p_actor, said);
	PERFORM audit_append(p_actor, 'approval_commented', 'request ' || r,
	    json_build_object('text', left(said, 500))::text);
	RETURN json_build_object('items', comments_json(r))::text;
END $$;

-- A secret's history refers to the server, which a new value has before the secret.
CREATE OR REPLACE FUNCTION secret_find(p_id text) RETURNS server_secrets
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	s server_secrets;
BEGIN
	PERFORM 1 FROM servers WHERE name = split_part(p_id, '/', 1) AND deleted_at IS NULL
	    FOR SHARE;
	SELECT x.* INTO s FROM server_secrets x JOIN servers v ON v.id = x.server_id
	    WHERE v.name = split_part(p_id, '/', 1) AND v.deleted_at IS NULL AND x.key = split_part(p_id, '/', 2)
	    FOR UPDATE OF x;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such secret');
	END IF;
	RETURN s;
END $$;

-- The source's tool before the source, as whoever deletes the tool.
CREATE OR REPLACE FUNCTION delete_source(p_id uuid, p_actor text) RETURNS void
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

-- The server alone: the first tool that is made gives the audit head, and the name
-- of a later one waits for whoever changes the tool that bears it.
CREATE OR REPLACE FUNCTION import_http_tools(p_server uuid, p_versions uuid[], p_requests uuid[],
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
