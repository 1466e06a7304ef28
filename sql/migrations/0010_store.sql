-- 0010: a change of the access document, and of the policy of review, is stored
-- only over the row that it was made from (docs/decisions/0090;
-- tests/database/test_access.py, test_approvals.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- Returns the greatest serial that the next document must follow; 0: none.
-- Documents that are void, or dated more than a day ahead, do not count.
CREATE FUNCTION access_serial_newest() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = mcpbox, pg_temp AS $$
	SELECT coalesce(max(d.serial), 0) FROM access_documents d
	    WHERE d.serial <= (SELECT access_serial_max())
	    AND NOT EXISTS (SELECT FROM access_voids v WHERE v.serial = d.serial)
$$;

-- Returns what the vault needs for a change: seal and SHA-256 of the document
-- that is shown to people, and the serial that the next one must follow. Without
-- a document the first two are null.
CREATE FUNCTION access_read(OUT seal bytea, OUT sha256 bytea, OUT serial bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
	SELECT n.seal, n.sha256, access_serial_newest()
	FROM (SELECT) one LEFT JOIN access_now n ON true
$$;

-- Replaces the function of 0009. p_over is the SHA-256 of the document that the
-- vault was told about; 32 zero bytes: there was none. Two changes that were
-- made from one document meet here: the lock lets one pass at a time, and the
-- second finds another document.
DROP FUNCTION access_store(bigint, text, bytea, text, bytea, text[], text[]);
CREATE FUNCTION access_store(p_serial bigint, p_document text, p_sha256 bytea,
    p_actor text, p_seal bytea, p_names text[], p_urls text[], p_over bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	day CONSTANT bigint := 86400 * 1000000::bigint;
	none CONSTANT bytea := decode(repeat('00', 32), 'hex');
	last bigint;
	newest bigint;
	gone bigint[];
	other record;
BEGIN
	LOCK TABLE access_documents IN SHARE ROW EXCLUSIVE MODE;
	IF coalesce((SELECT n.sha256 FROM access_now n), none) IS DISTINCT FROM p_over THEN
		PERFORM fail('hash_mismatch',
		    'the access document was changed meanwhile: read it again');
	END IF;
	last := access_serial_max();
	IF p_serial > last THEN
		PERFORM fail('conflict', 'the access document is dated more than a day after the'
		    ' time of the database: set the clocks of both machines right, then set'
		    ' the document again');
	END IF;
	IF cardinality(p_names) IS DISTINCT FROM cardinality(p_urls)
	    OR (SELECT count(DISTINCT n) FROM unnest(p_names) n) <> cardinality(p_names) THEN
		PERFORM fail('invalid_params', 'each issuer has a URL and a name of its own');
	END IF;
	SELECT coalesce(array_agg(d.serial ORDER BY d.serial), '{}') INTO gone
	    FROM access_documents d WHERE d.serial > last
	    AND NOT EXISTS (SELECT FROM access_voids v WHERE v.serial = d.serial);
	newest := access_serial_newest();
	IF newest > p_serial + day THEN
		PERFORM fail('conflict', 'the access document is dated more than a day before the'
		    ' one that holds: set the clocks of both machines right, then set the'
		    ' document again');
	ELSIF newest >= p_serial THEN
		PERFORM fail('hash_mismatch',
		    'the access document was changed meanwhile: read it again');
	END IF;
	SELECT n.name, i.issuer INTO other FROM unnest(p_names, p_urls) n (name, url)
	    JOIN access_issuers i ON i.name = n.name AND i.issuer <> n.url
	    ORDER BY n.name LIMIT 1;
	IF FOUND THEN
		PERFORM fail('conflict', 'the name ' || other.name || ' means the issuer '
		    || other.issuer || ' for good, because people''s principals have it: give'
		    ' the other issuer another name');
	END IF;
	INSERT INTO access_issuers (name, issuer)
	    SELECT n.name, n.url FROM unnest(p_names, p_urls) n (name, url)
	    ON CONFLICT DO NOTHING;
	INSERT INTO access_voids (serial) SELECT unnest(gone);
	INSERT INTO access_documents (serial, document, sha256, actor, seal)
	    VALUES (p_serial, p_document, p_sha256, p_actor, p_seal);
	PERFORM audit_append(p_actor, 'access_set', 'access document', json_build_object(
	    'serial', p_serial, 'sha256', encode(p_sha256, 'hex'),
	    'issuers', array_to_json(p_names), 'voided', array_to_json(gone))::text);
END $$;

-- Replaces the function of sql/schema/approvals.sql. p_over is the serial of the
-- newest policy that the vault was told about, or 0. A policy's seal changes when
-- the master key does, and its serial never does, so the serial is compared.
DROP FUNCTION policy_store(bigint, text, text, text, text, timestamptz, bytea);
CREATE FUNCTION policy_store(p_serial bigint, p_tool text, p_module text,
    p_network text, p_actor text, p_until timestamptz, p_seal bytea, p_over bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	newest bigint;
BEGIN
	LOCK TABLE approval_policies IN SHARE ROW EXCLUSIVE MODE;
	newest := coalesce((SELECT max(serial) FROM approval_policies), 0);
	IF newest IS DISTINCT FROM p_over THEN
		PERFORM fail('hash_mismatch', 'the policy was changed meanwhile: read it again');
	ELSIF newest >= p_serial THEN
		PERFORM fail('conflict', 'the newest row of the policies is dated more than a day'
		    ' ahead, so no policy can follow it');
	END IF;
	INSERT INTO approval_policies (serial, tool, module, network, until, actor, seal)
	    VALUES (p_serial, p_tool, p_module, p_network, p_until, p_actor, p_seal);
	PERFORM audit_append(p_actor, 'policy_set', 'policy', json_build_object(
	    'tool', p_tool, 'module', p_module, 'network', p_network, 'until',
	    to_char(p_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text);
END $$;

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON FUNCTION access_serial_newest, access_read, access_store, policy_store
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION access_read, access_store, policy_store TO mcpbox_app;
