-- 0025: versions that come to serve and versions that end, at once
-- (tests/database/test_lock_order.py).
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
