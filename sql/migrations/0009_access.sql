-- 0009: the access document says who may come in with a signed token of which
-- issuer (docs/decisions/0090; tests/database/test_access.py). Here are also the
-- people who came in, and who of them was withdrawn.
SET LOCAL search_path = mcpbox, pg_temp;

-- Each access document that was ever set. The newest one that is not void holds
-- (access_now). admind uses a document only if the vault knows its seal, so a
-- row that somebody writes opens no door.
CREATE TABLE access_documents (
	serial bigint PRIMARY KEY CHECK (serial > 0),	-- Unix time in us
	-- The bytes that the administrator sent, as text: UTF-8 JSON of at most
	-- ACCESS_DOCUMENT_MAX bytes (common/base/bounds.h).
	document text NOT NULL CHECK (octet_length(document) BETWEEN 1 AND 262144)
	    CHECK (json_typeof(document::json) = 'object'),
	sha256 bytea NOT NULL CHECK (sha256 = sha256(convert_to(document, 'UTF8'))),
	actor text NOT NULL CHECK (actor_ok(actor)),
	seal bytea NOT NULL CHECK (length(seal) BETWEEN 1 AND 512),
	stored_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Documents that were dated more than a day ahead when the next one came. The
-- clock was wrong when they were set. They never hold again, also not when
-- their time comes.
CREATE TABLE access_voids (
	serial bigint PRIMARY KEY REFERENCES access_documents (serial),
	voided_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The issuer of each name, which never changes. A principal is oidc:NAME:SUB,
-- and tasks, records and rate limits belong to it. So a name that came to mean
-- another issuer would give one person's things to another person.
CREATE TABLE access_issuers (
	name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,31}$'),
	issuer text COLLATE "C" NOT NULL CHECK (length(issuer) BETWEEN 1 AND 512),
	since timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- People who came in with a signed token, and people who were withdrawn. Who
-- was withdrawn before they ever came has no first_seen.
CREATE TABLE identities (
	principal text COLLATE "C" PRIMARY KEY
	    CHECK (principal = 'oidc:' || issuer || ':' || subject),
	issuer text COLLATE "C" NOT NULL REFERENCES access_issuers (name),
	subject text COLLATE "C" NOT NULL CHECK (subject ~ '^[!-~]{1,200}$'),
	email text CHECK (actor_ok(email)),
	permission_set text COLLATE "C" CHECK (actor_ok(permission_set)),
	first_seen timestamptz,
	last_used_at timestamptz,
	last_used_listener text CHECK (last_used_listener IN ('local', 'tunnel')),
	withdrawn_at timestamptz,
	withdrawn_by text CHECK (actor_ok(withdrawn_by)),
	reason text CHECK (length(reason) BETWEEN 1 AND 2000),
	CHECK ((withdrawn_at IS NULL) = (withdrawn_by IS NULL)),
	CHECK (withdrawn_at IS NOT NULL OR reason IS NULL),
	CHECK ((first_seen IS NULL) = (last_used_at IS NULL)),
	CHECK ((first_seen IS NULL) = (last_used_listener IS NULL)),
	CHECK (first_seen IS NOT NULL OR (email IS NULL AND permission_set IS NULL))
);

CREATE INDEX identities_issuer ON identities (issuer, principal);
CREATE INDEX identities_withdrawn ON identities (principal) WHERE withdrawn_at IS NOT NULL;

-- No row: no document was ever set.
CREATE VIEW access_now AS
    SELECT d.serial, d.document, d.sha256, d.actor, d.seal, d.stored_at
    FROM access_documents d
    WHERE NOT EXISTS (SELECT FROM access_voids v WHERE v.serial = d.serial)
    ORDER BY d.serial DESC LIMIT 1;

---------------------------------------------------------------------------
-- The document.

-- Returns a time in us that a serial may have at most: a day after now. The
-- clocks of two machines may differ, but not by so much.
CREATE FUNCTION access_serial_max() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = mcpbox, pg_temp AS $$
	SELECT ((extract(epoch FROM clock_timestamp()) + 86400) * 1000000)::bigint
$$;

-- Stores a document that the vault sealed and admind-check found valid. p_names
-- and p_urls are the names and the URLs of its issuers, in the same order.
-- Serials rise, so the newest row holds. A clock that was once ahead by years
-- must not lock changes out: rows that are dated more than a day ahead become
-- void here, and the vault does not count their serials either.
CREATE FUNCTION access_store(p_serial bigint, p_document text, p_sha256 bytea,
    p_actor text, p_seal bytea, p_names text[], p_urls text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	day CONSTANT bigint := 86400 * 1000000::bigint;
	last bigint;
	newest bigint;
	gone bigint[];
	other record;
BEGIN
	LOCK TABLE access_documents IN SHARE ROW EXCLUSIVE MODE;
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
	SELECT max(d.serial) INTO newest FROM access_documents d WHERE d.serial <= last
	    AND NOT EXISTS (SELECT FROM access_voids v WHERE v.serial = d.serial);
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

-- Returns the document that holds as REST shows it. admind adds in_force and
-- why.
CREATE FUNCTION access_json() RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('document', d.document::json,
	    'sha256', encode(d.sha256, 'hex'), 'serial', d.serial, 'actor', d.actor,
	    'stored_at', json_time(d.stored_at))::text
	FROM (SELECT) one LEFT JOIN access_now d ON true
$$;

CREATE FUNCTION access_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM pg_notify('mcpbox_access', 'document');
	RETURN NULL;
END $$;

-- Guards voids. Only a document that is dated ahead becomes void, so nobody
-- brings an older document back by them.
CREATE FUNCTION access_voids_guard() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NEW.serial <= access_serial_max() THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'only a document that is dated more than a day ahead becomes void';
	END IF;
	RETURN NEW;
END $$;

-- Guards the order of documents.
CREATE FUNCTION access_documents_guard() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NEW.serial > access_serial_max() OR NEW.serial <= (SELECT n.serial FROM access_now n) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'a document''s serial is after the one before and at most a day ahead';
	END IF;
	RETURN NEW;
END $$;

---------------------------------------------------------------------------
-- People.

-- Returns an identity as REST shows it.
CREATE FUNCTION identity_json(i identities) RETURNS text
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('principal', i.principal, 'issuer', i.issuer,
	    'subject', i.subject, 'email', i.email, 'set', i.permission_set,
	    'state', CASE WHEN i.withdrawn_at IS NULL THEN 'active' ELSE 'withdrawn' END,
	    'first_seen', json_time(i.first_seen), 'last_used_at', json_time(i.last_used_at),
	    'last_used_listener', i.last_used_listener,
	    'withdrawn_at', json_time(i.withdrawn_at), 'withdrawn_by', i.withdrawn_by,
	    'reason', i.reason)::text
$$;

-- Notes who came in, when and at which listener; admind calls this every few
-- seconds, for all people at once. The arrays have one element for each person;
-- an empty e-mail address or set is none. A person may be in them twice. Rows
-- are taken in the order of principals, so two nodes never wait for each other.
-- Nothing here withdraws or restores a person.
CREATE FUNCTION identity_seen(p_principals text[], p_issuers text[], p_subjects text[],
    p_emails text[], p_sets text[], p_at timestamptz[], p_listeners text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
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
	    WHERE i.last_used_at IS NULL OR i.last_used_at < excluded.last_used_at
$$;

-- Guards identities. A principal is one person for good, and the first time
-- stays.
CREATE FUNCTION identities_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.principal, NEW.issuer, NEW.subject)
	    IS DISTINCT FROM (OLD.principal, OLD.issuer, OLD.subject)
	    OR (OLD.first_seen IS NOT NULL AND NEW.first_seen IS DISTINCT FROM OLD.first_seen)
	    OR (OLD.withdrawn_at IS NOT NULL AND NEW.withdrawn_at IS NOT NULL
	    AND (NEW.withdrawn_at, NEW.withdrawn_by, NEW.reason)
	    IS DISTINCT FROM (OLD.withdrawn_at, OLD.withdrawn_by, OLD.reason)) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
		    'a principal, its first time and its withdrawal are not changed';
	END IF;
	RETURN NEW;
END $$;

-- Tells every admind about a withdrawal and a restoration, whoever makes it.
CREATE FUNCTION identities_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	PERFORM pg_notify('mcpbox_access', CASE WHEN NEW.withdrawn_at IS NULL
	    THEN 'restored ' ELSE 'withdrawn ' END || NEW.principal);
	RETURN NULL;
END $$;

-- Splits a principal of a person into the issuer's name and the subject. A name
-- that no document ever had is refused, because it is most likely mistyped and
-- the withdrawal would withdraw nobody.
CREATE FUNCTION identity_parts(p_principal text, OUT issuer text, OUT subject text)
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF p_principal IS NULL OR p_principal !~ '^oidc:[a-z][a-z0-9-]{0,31}:[!-~]{1,200}$' THEN
		PERFORM fail('invalid_params', 'a principal is oidc:ISSUER:SUBJECT, as the list of'
		    ' identities shows it');
	END IF;
	issuer := split_part(p_principal, ':', 2);
	subject := substr(p_principal, length('oidc:' || issuer || ':') + 1);
	IF NOT EXISTS (SELECT FROM access_issuers i
	    WHERE i.name = identity_parts.issuer COLLATE "C") THEN
		PERFORM fail('not_found', 'no access document ever had an issuer ' || issuer);
	END IF;
END $$;

-- POST /api/identities/withdraw: lets a person in no more, also one who never
-- came. A repetition is harmless: the first withdrawal holds. The number is
-- bounded, because every admind has all withdrawn people in memory.
CREATE FUNCTION act_identity_withdraw(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_principal text := p_body ->> 'principal';
	v_reason text := nullif(p_body ->> 'reason', '');
	x record;
	i identities;
BEGIN
	SELECT * INTO x FROM identity_parts(v_principal);
	IF length(v_reason) > 2000 THEN
		PERFORM fail('invalid_params', 'a reason has at most 2000 characters');
	END IF;
	-- One at a time, so that the number below is right.
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox.identities'));
	SELECT * INTO i FROM identities y WHERE y.principal = v_principal FOR UPDATE;
	IF i.withdrawn_at IS NOT NULL THEN
		RETURN identity_json(i);
	END IF;
	IF (SELECT count(*) FROM identities y WHERE y.withdrawn_at IS NOT NULL) >= 16384 THEN
		PERFORM fail('limit', '16384 people are withdrawn, which is the limit: take them out'
		    ' of the rules of the access document, then restore them');
	END IF;
	INSERT INTO identities AS y (principal, issuer, subject, withdrawn_at, withdrawn_by, reason)
	    VALUES (v_principal, x.issuer, x.subject, clock_timestamp(), p_actor, v_reason)
	    ON CONFLICT (principal) DO UPDATE SET withdrawn_at = excluded.withdrawn_at,
	    withdrawn_by = excluded.withdrawn_by, reason = excluded.reason RETURNING * INTO i;
	PERFORM audit_append(p_actor, 'identity_withdrawn', 'identity ' || v_principal,
	    json_build_object('reason', left(v_reason, 1000), 'email', i.email)::text);
	RETURN identity_json(i);
END $$;

-- POST /api/identities/restore: lets a withdrawn person in again, if the access
-- document does. Of a person who was not withdrawn, nothing changes.
CREATE FUNCTION act_identity_restore(p_actor text, p_id text, p_seen bytea, p_body json)
RETURNS text LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	v_principal text := p_body ->> 'principal';
	i identities;
BEGIN
	PERFORM identity_parts(v_principal);
	SELECT * INTO i FROM identities y WHERE y.principal = v_principal FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'this person never came in and was not withdrawn');
	END IF;
	IF i.withdrawn_at IS NOT NULL THEN
		UPDATE identities y SET withdrawn_at = NULL, withdrawn_by = NULL, reason = NULL
		    WHERE y.principal = v_principal RETURNING * INTO i;
		PERFORM audit_append(p_actor, 'identity_restored', 'identity ' || v_principal,
		    json_build_object('email', i.email)::text);
	END IF;
	RETURN identity_json(i);
END $$;

---------------------------------------------------------------------------
-- Rates, and the master key.

-- Replaces the function of sql/schema/rates.sql. A person who comes in with a
-- signed token has the limit of a token, if no limit holds for every principal.
CREATE OR REPLACE FUNCTION rate_limit_of(p_scope text, p_subject text)
RETURNS TABLE (per_minute bigint, burst bigint)
LANGUAGE sql STABLE SET search_path = mcpbox, pg_temp AS $$
	SELECT x.per_minute, x.burst FROM (
	    SELECT l.per_minute, l.burst, 1 FROM rate_limits l
	        WHERE l.scope = p_scope AND l.subject = p_subject
	    UNION ALL SELECT d.n, greatest(d.n, 1), 2 FROM (SELECT setting('rate_'
	        || CASE WHEN p_scope = 'listener' THEN p_subject
	        WHEN p_scope = 'principal' AND (starts_with(p_subject, 'token:')
	        OR starts_with(p_subject, 'oidc:'))
	        AND setting('rate_principal_per_minute')::bigint = 0 THEN 'token' ELSE p_scope END
	        || '_per_minute')::bigint) d (n)
	    ORDER BY 3 LIMIT 1) x (per_minute, burst, prefer)
	    WHERE x.per_minute > 0
$$;

-- Replaces the view of sql/schema/keys.sql: the document that holds rests under
-- the master key, too. Older documents are not renewed. They end with the older
-- key, which makes them worthless for good.
CREATE OR REPLACE VIEW resting AS
    SELECT 'secret' AS kind, s.server_id::text || '/' || s.key AS id, v.name AS place,
    s.key AS "column", s.value, sealed_key(s.value) AS key_id
    FROM server_secrets s JOIN servers v ON v.id = s.server_id WHERE s.value IS NOT NULL
    UNION ALL SELECT 'verifier', username, username, role, verifier, sealed_key(verifier)
    FROM admin_users
    UNION ALL SELECT 'seal', a.request_id::text, '', seal_purpose(r.kind), a.seal, sealed_key(a.seal)
    FROM approval_seals a JOIN approval_requests r ON r.id = a.request_id
    UNION ALL SELECT 'first', f.request_id::text, '', '', f.seal, sealed_key(f.seal)
    FROM approval_firsts f JOIN approval_requests r ON r.id = f.request_id
    WHERE r.state = 'pending'
    UNION ALL (SELECT 'policy', serial::text, '', '', seal, sealed_key(seal)
    FROM approval_policies ORDER BY serial DESC LIMIT 1)
    UNION ALL SELECT 'access', serial::text, '', '', seal, sealed_key(seal) FROM access_now
    UNION ALL SELECT 'anchor', lpad(seq::text, 20, '0'), seq::text, encode(head, 'hex'),
    signature, coalesce(key_id, '\x0000000000000000') FROM audit_anchors;

-- Replaces the function of sql/schema/keys.sql, for the kind access.
CREATE OR REPLACE FUNCTION renew_store(p_kind text, p_ids text[], p_old bytea[], p_new bytea[])
RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	m master_key;
	done int := 0;
	n int;
BEGIN
	SELECT * INTO STRICT m FROM master_key FOR SHARE;
	IF m.next_id IS NULL THEN
		PERFORM fail('conflict', 'no rotation is under way');
	END IF;
	FOR i IN 1 .. coalesce(array_length(p_ids, 1), 0) LOOP
		IF p_kind <> 'anchor' AND sealed_key(p_new[i]) <> m.next_id THEN
			PERFORM fail('conflict', 'it is not under the next key');
		END IF;
		CASE p_kind
		WHEN 'secret' THEN
			UPDATE server_secrets SET value = p_new[i]
			    WHERE server_id = split_part(p_ids[i], '/', 1)::uuid
			    AND key = split_part(p_ids[i], '/', 2) AND value = p_old[i];
		WHEN 'verifier' THEN
			UPDATE admin_users SET verifier = p_new[i]
			    WHERE username = p_ids[i] AND verifier = p_old[i];
		WHEN 'seal' THEN
			UPDATE approval_seals SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'first' THEN
			UPDATE approval_firsts SET seal = p_new[i]
			    WHERE request_id = p_ids[i]::uuid AND seal = p_old[i];
		WHEN 'policy' THEN
			UPDATE approval_policies SET seal = p_new[i]
			    WHERE serial = p_ids[i]::bigint AND seal = p_old[i];
		WHEN 'access' THEN
			UPDATE access_documents SET seal = p_new[i]
			    WHERE serial = p_ids[i]::bigint AND seal = p_old[i];
		WHEN 'anchor' THEN
			UPDATE audit_anchors SET signature = p_new[i], key_id = m.next_id
			    WHERE seq = p_ids[i]::bigint AND signature = p_old[i];
		END CASE;
		GET DIAGNOSTICS n = ROW_COUNT;
		done := done + n;
	END LOOP;
	RETURN done;
END $$;

---------------------------------------------------------------------------
-- Guards.

CREATE TRIGGER key BEFORE INSERT ON access_documents
    FOR EACH ROW EXECUTE FUNCTION seal_key_guard();
CREATE TRIGGER guard BEFORE INSERT ON access_documents
    FOR EACH ROW EXECUTE FUNCTION access_documents_guard();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON access_documents
    FOR EACH ROW EXECUTE FUNCTION renewal_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON access_documents EXECUTE FUNCTION refuse();
CREATE TRIGGER changed AFTER INSERT OR UPDATE ON access_documents
    FOR EACH STATEMENT EXECUTE FUNCTION access_changed();
CREATE TRIGGER guard BEFORE INSERT ON access_voids
    FOR EACH ROW EXECUTE FUNCTION access_voids_guard();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON access_voids
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON access_voids EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON access_issuers
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON access_issuers EXECUTE FUNCTION refuse();
CREATE TRIGGER guard BEFORE UPDATE ON identities
    FOR EACH ROW EXECUTE FUNCTION identities_guard();
CREATE TRIGGER no_delete BEFORE DELETE ON identities FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON identities EXECUTE FUNCTION refuse();
CREATE TRIGGER withdrawn AFTER INSERT ON identities FOR EACH ROW
    WHEN (NEW.withdrawn_at IS NOT NULL) EXECUTE FUNCTION identities_changed();
CREATE TRIGGER changed AFTER UPDATE ON identities FOR EACH ROW
    WHEN (NEW.withdrawn_at IS DISTINCT FROM OLD.withdrawn_at)
    EXECUTE FUNCTION identities_changed();

---------------------------------------------------------------------------
-- Privileges.

REVOKE ALL ON access_documents, access_voids, access_issuers, identities, access_now
    FROM PUBLIC;
GRANT SELECT ON access_documents, access_voids, access_issuers, identities, access_now
    TO mcpbox_app;
REVOKE ALL ON FUNCTION access_serial_max, access_store, access_json, access_changed,
    access_voids_guard, access_documents_guard, identity_json, identity_seen,
    identities_guard, identities_changed, identity_parts, act_identity_withdraw,
    act_identity_restore FROM PUBLIC;
GRANT EXECUTE ON FUNCTION access_store, access_json, identity_json, identity_seen
    TO mcpbox_app;
