-- 0020: tools of kind http (decision 0048).
SET LOCAL search_path = mcpbox, pg_temp;

-- web_fetch comes with mcpbox, and is what the prefix was kept free for. Bare
-- names are those of servers that an administrator made bare, so no author can
-- take it (decision 0049).
ALTER TABLE tool_names DROP CONSTRAINT tool_names_exposed_name_check,
    ADD CONSTRAINT tool_names_exposed_name_check
    CHECK (exposed_name = 'web_fetch' OR exposed_name !~ '^(mcpbox|sandbox|web)_');

-- Operations of an OpenAPI document, as drafts that admind made: each becomes a
-- tool and a request for its review, all in one transaction. One whose name is
-- taken, or that cannot stand for another reason, is left out and said to be.
-- No policy approves them: nobody wrote them, so somebody has to read them.
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
	PERFORM 1 FROM servers WHERE id = p_server AND deleted_at IS NULL FOR SHARE;
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
REVOKE ALL ON FUNCTION import_http_tools FROM PUBLIC;
GRANT EXECUTE ON FUNCTION import_http_tools TO mcpbox_app;
