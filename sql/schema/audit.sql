-- The audit log: append-only, chained.
--
-- hash = SHA-256(prev || audit_row(...)). audit_row is "mcpbox audit 1" NUL,
-- u64be seq, u64be Unix time in ms, then actor, action, subject, detail as
-- u32be length and UTF-8 bytes. The first prev is 32 zero bytes. audit_head's
-- row lock is held to the commit, so the chain's order is commit order and
-- seq has no gaps. The vault signs heads (audit_anchors).

CREATE FUNCTION audit_row(seq bigint, at timestamptz, actor text, action text,
    subject text, detail text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT convert_to('mcpbox audit 1', 'UTF8') || '\x00'::bytea
	    || int8send(seq) || int8send((extract(epoch FROM at) * 1000)::bigint)
	    || int4send(octet_length(actor)) || convert_to(actor, 'UTF8')
	    || int4send(octet_length(action)) || convert_to(action, 'UTF8')
	    || int4send(octet_length(subject)) || convert_to(subject, 'UTF8')
	    || int4send(octet_length(detail)) || convert_to(detail, 'UTF8')
$$;

-- Returns the words that find a row. The configuration is 'simple', because the
-- words are names and not a language's prose. '_', '/', ':' and similar
-- characters separate words, so that the search for greet finds demo__greet.
CREATE FUNCTION audit_words(actor text, action text, subject text, detail text)
RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT to_tsvector('pg_catalog.simple', translate(actor || ' ' || action
	    || ' ' || subject || ' ' || detail, '_/:=@.-"{}', '          '))
$$;

CREATE TABLE audit_head (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	seq bigint NOT NULL,
	hash bytea NOT NULL CHECK (length(hash) = 32)
);

CREATE TABLE audit_log (
	seq bigint PRIMARY KEY CHECK (seq > 0),
	at timestamptz NOT NULL CHECK (at = date_trunc('milliseconds', at)),
	actor text NOT NULL CHECK (actor_ok(actor)),
	action text NOT NULL CHECK (name_ok(action, 64)),
	subject text NOT NULL CHECK (length(subject) <= 512),
	detail text NOT NULL CHECK (length(detail) <= 16384)
	    CHECK (json_typeof(detail::json) = 'object'),
	prev bytea NOT NULL CHECK (length(prev) = 32),
	hash bytea NOT NULL UNIQUE CHECK
	    (hash = sha256(prev || audit_row(seq, at, actor, action, subject, detail)))
);

CREATE INDEX audit_log_actor ON audit_log (actor, seq);
CREATE INDEX audit_log_action ON audit_log (action, seq);
CREATE INDEX audit_log_subject ON audit_log (subject, seq);
CREATE INDEX audit_log_at ON audit_log (at, seq);
CREATE INDEX audit_log_words ON audit_log
    USING gin (audit_words(actor, action, subject, detail));

CREATE TABLE audit_anchors (
	seq bigint PRIMARY KEY REFERENCES audit_log (seq),
	head bytea NOT NULL CHECK (length(head) = 32),
	signature bytea NOT NULL CHECK (length(signature) = 32),
	signed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	key_id bytea CHECK (length(key_id) = 8)
);

CREATE FUNCTION audit_append(p_actor text, p_action text, p_subject text,
    p_detail text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	h audit_head;
	t timestamptz;
BEGIN
	SELECT * INTO STRICT h FROM audit_head FOR UPDATE;
	t := date_trunc('milliseconds', clock_timestamp());
	INSERT INTO audit_log VALUES (h.seq + 1, t, p_actor, p_action, p_subject,
	    p_detail, h.hash,
	    sha256(h.hash || audit_row(h.seq + 1, t, p_actor, p_action, p_subject, p_detail)));
	UPDATE audit_head SET seq = h.seq + 1, hash =
	    (SELECT l.hash FROM audit_log l WHERE l.seq = h.seq + 1);
	RETURN h.seq + 1;
END $$;

-- Guards the head. It moves forward by one row at a time, and only to a row
-- that audit_log has already.
CREATE FUNCTION audit_head_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'UPDATE' OR NEW.seq <> OLD.seq + 1 OR NOT EXISTS
	    (SELECT 1 FROM mcpbox.audit_log l WHERE l.seq = NEW.seq
	    AND l.hash = NEW.hash AND l.prev = OLD.hash) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'audit_head only moves forward';
	END IF;
	RETURN NEW;
END $$;

-- A row is only ever appended after the head.
CREATE FUNCTION audit_log_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM mcpbox.audit_head h
	    WHERE h.seq + 1 = NEW.seq AND h.hash = NEW.prev) THEN
		RAISE EXCEPTION USING ERRCODE = 'MB002',
		    MESSAGE = 'audit_log grows only behind its head';
	END IF;
	RETURN NEW;
END $$;

-- Stores a head that the vault signed. An anchor must be a row of the chain.
CREATE FUNCTION anchor_store(p_seq bigint, p_head bytea, p_signature bytea, p_key bytea)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM audit_log WHERE seq = p_seq AND hash = p_head) THEN
		PERFORM fail('conflict', 'the anchor is not a row of the chain');
	END IF;
	INSERT INTO audit_anchors (seq, head, signature, key_id)
	    VALUES (p_seq, p_head, p_signature, p_key) ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION audit_query(words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT plainto_tsquery('pg_catalog.simple',
	    translate(words, '_/:=@.-"{}', '          '))
$$;

-- Returns one row as JSON for a reader. Its member `row` has the bytes that
-- were hashed after prev_hash.
CREATE FUNCTION audit_json(l audit_log) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = mcpbox, pg_temp AS $$
	SELECT json_build_object('seq', l.seq, 'at', to_char(l.at AT TIME ZONE 'UTC',
	    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'actor', l.actor, 'action', l.action,
	    'subject', l.subject, 'detail', l.detail::json,
	    'prev_hash', encode(l.prev, 'hex'), 'hash', encode(l.hash, 'hex'),
	    'row', encode(audit_row(l.seq, l.at, l.actor, l.action, l.subject,
	    l.detail), 'hex'), 'signature', (SELECT encode(x.signature, 'hex')
	    FROM audit_anchors x WHERE x.seq = l.seq))::text
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_log EXECUTE FUNCTION refuse();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_anchors EXECUTE FUNCTION refuse();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION audit_head_guard();
CREATE TRIGGER guard BEFORE INSERT ON audit_log
    FOR EACH ROW EXECUTE FUNCTION audit_log_guard();

GRANT EXECUTE ON FUNCTION audit_row, audit_words, audit_append, anchor_store,
    audit_query, audit_json TO mcpbox_app;

INSERT INTO audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
