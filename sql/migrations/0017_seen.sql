-- 0017: a request for review that names the version that was read
-- (docs/decisions/0111; tests/database/test_approvals.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- Asks for the review of a version, as request_publish() does. p_seen is the
-- hash of the version that a person read. If the newest version has another
-- hash, the whole request fails: a client that drafts at the same time must not
-- put its own content into a person's request.
CREATE FUNCTION request_publish_seen(p_request uuid, p_version uuid, p_tool uuid,
    p_notes text, p_actor text, p_seen bytea,
    OUT version_no int, OUT exposed_name text, OUT automatic boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	r record;
BEGIN
	SELECT * INTO STRICT r FROM request_publish(p_request, p_version, p_tool, p_notes, p_actor);
	IF (SELECT v.hash FROM tool_versions v WHERE v.id = r.version_id) IS DISTINCT FROM p_seen THEN
		PERFORM fail('hash_mismatch', 'version ' || r.version_no
		    || ' is not the one that you read: read it first');
	END IF;
	version_no := r.version_no;
	exposed_name := r.exposed_name;
	automatic := r.automatic;
END $$;

REVOKE ALL ON FUNCTION request_publish_seen FROM PUBLIC;
GRANT EXECUTE ON FUNCTION request_publish_seen TO mcpbox_app;
