-- 0011: an issuer that was taken over can name people without end, so the rows
-- of its people are bounded; and each node notes by which access document it
-- judged last (docs/decisions/0090; tests/database/test_access.py).
SET LOCAL search_path = mcpbox, pg_temp;

---------------------------------------------------------------------------
-- Rows of people.

-- Finds the people of an issuer whose rows go first.
CREATE INDEX identities_unseen ON identities (issuer, last_used_at NULLS FIRST, principal)
    WHERE withdrawn_at IS NULL;

-- Removes rows of an issuer beyond the bound (IDENTITIES_ISSUER_MAX in
-- admind/access/identities.h). Who came longest ago goes first. A withdrawal is
-- never removed, or a withdrawn person could come in again. Rows that another
-- node holds are left out, so no two nodes wait for each other; the next new
-- person's row removes them.
CREATE FUNCTION identities_prune(p_issuer text) RETURNS void
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	most CONSTANT bigint := 16384;
	n bigint;
BEGIN
	SELECT count(*) - most INTO n FROM identities i WHERE i.issuer = p_issuer COLLATE "C";
	IF n > 0 THEN
		DELETE FROM identities i WHERE i.principal = ANY (ARRAY(
		    SELECT y.principal FROM identities y
		    WHERE y.issuer = p_issuer COLLATE "C" AND y.withdrawn_at IS NULL
		    ORDER BY y.last_used_at NULLS FIRST, y.principal LIMIT n
		    FOR UPDATE SKIP LOCKED));
	END IF;
END $$;

-- Replaces the function of 0009, which says the rest: here rows of new people
-- make old ones of the same issuer go.
CREATE OR REPLACE FUNCTION identity_seen(p_principals text[], p_issuers text[],
    p_subjects text[], p_emails text[], p_sets text[], p_at timestamptz[], p_listeners text[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_issuers text[];
	v_issuer text;
BEGIN
	SELECT array_agg(DISTINCT s.issuer) INTO v_issuers
	    FROM unnest(p_principals, p_issuers) s (principal, issuer)
	    WHERE NOT EXISTS (SELECT FROM identities i
	    WHERE i.principal = s.principal COLLATE "C");
	INSERT INTO identities AS i (principal, issuer, subject, email, permission_set,
	    first_seen, last_used_at, last_used_listener)
	    SELECT DISTINCT ON (s.principal COLLATE "C") s.principal, s.issuer, s.subject,
	        nullif(s.email, ''), nullif(s.permission_set, ''),
	        min(s.at) OVER (PARTITION BY s.principal COLLATE "C"), s.at, s.listener
	    FROM unnest(p_principals, p_issuers, p_subjects, p_emails, p_sets, p_at, p_listeners)
	        s (principal, issuer, subject, email, permission_set, at, listener)
	    ORDER BY s.principal COLLATE "C", s.at DESC
	    ON CONFLICT (principal) DO UPDATE SET email = excluded.email,
	        permission_set = excluded.permission_set,
	        first_seen = coalesce(i.first_seen, excluded.first_seen),
	        last_used_at = excluded.last_used_at,
	        last_used_listener = excluded.last_used_listener
	    WHERE i.last_used_at IS NULL OR i.last_used_at < excluded.last_used_at;
	FOREACH v_issuer IN ARRAY coalesce(v_issuers, '{}') LOOP
		PERFORM identities_prune(v_issuer);
	END LOOP;
END $$;

-- Guards deletions: a withdrawal stays.
CREATE FUNCTION identities_delete_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.withdrawn_at IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'the row of a withdrawn identity is not removed';
	END IF;
	RETURN OLD;
END $$;

DROP TRIGGER no_delete ON identities;
CREATE TRIGGER withdrawn_stays BEFORE DELETE ON identities
    FOR EACH ROW EXECUTE FUNCTION identities_delete_guard();

---------------------------------------------------------------------------
-- The document by which a node judged.

-- A row a node: the access document by which its admind ended what people may
-- not do any more. If another document holds when that admind starts, it judges
-- once more (admind/access/identities_runs.c).
CREATE TABLE access_judged (
	node text COLLATE "C" PRIMARY KEY CHECK (actor_ok(node)),
	serial bigint NOT NULL REFERENCES access_documents (serial),
	judged_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION access_judged_note(p_node text, p_serial bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	INSERT INTO access_judged AS j (node, serial) VALUES (p_node, p_serial)
	    ON CONFLICT (node) DO UPDATE SET serial = excluded.serial,
	    judged_at = clock_timestamp() WHERE j.serial <> excluded.serial
$$;

REVOKE ALL ON access_judged FROM PUBLIC;
GRANT SELECT ON access_judged TO mcpbox_app;
REVOKE ALL ON FUNCTION identities_prune, identities_delete_guard, access_judged_note
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION access_judged_note TO mcpbox_app;
