-- The schema, its errors, and functions that tables build on.
--
-- The run-time role mcpbox_app may read (privileges.sql) and call the functions
-- that each file grants at its end. It writes no table directly. So each change
-- of state is one function, one transaction, with its audit row inside.
-- Constraints and triggers enforce the invariants, so they also stop a wrong
-- function, and a person at psql who is the owner.
--
-- An error that is meant for callers has ERRCODE 'MB001' and the message
-- 'failure_mode: sentence', with a failure mode of common/failure.def.
--
-- Locks are taken in one order everywhere: server, tool, version, request,
-- callable_turn, catalogue, audit head (tests/database/test_lock_order.py).
--
-- A version's fields are in its pre-image (common/version.h). Tables show them
-- as generated columns, so a column never says anything else than what was
-- hashed, reviewed and approved. pg_dump knows which functions a function needs
-- only if its body was parsed when the function was made. So functions that
-- generated columns use have parsed bodies (BEGIN ATOMIC, or RETURN). Otherwise
-- a restore would make the table before these functions (docs/decisions/0034).

CREATE SCHEMA mcpbox;
REVOKE ALL ON SCHEMA mcpbox FROM PUBLIC;
GRANT USAGE ON SCHEMA mcpbox TO mcpbox_app;
SET LOCAL search_path = mcpbox, pg_temp;
SET LOCAL check_function_bodies = off;

CREATE FUNCTION fail(failure text, sentence text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'MB001',
	    MESSAGE = failure || ': ' || sentence;
END $$;

-- Checks the name of a server or tool: lower-case words joined by single
-- underscores.
CREATE FUNCTION name_ok(name text, longest int) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT name ~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' AND length(name) <= longest
$$;

-- Checks the name of a principal or administrator: one line of printable text.
CREATE FUNCTION actor_ok(name text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT length(name) BETWEEN 1 AND 254 AND name !~ '[\u0001-\u001f\u007f]'
$$;

CREATE FUNCTION version_fields(preimage bytea, wanted int) RETURNS bytea[]
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	p bytea := substring(preimage FROM 1);	-- out of TOAST once
	pos bigint := 17;	-- after the magic
	total bigint := length(p);
	tag int;
	n bigint;
	found bytea[] := '{}';
BEGIN
	IF total < 17 OR substring(p FROM 1 FOR 17) <>
	    convert_to('mcpbox version 1', 'UTF8') || '\x00'::bytea THEN
		PERFORM mcpbox.fail('invalid_params', 'not a version pre-image');
	END IF;
	WHILE pos < total LOOP
		IF total - pos < 5 THEN
			PERFORM mcpbox.fail('invalid_params', 'pre-image cut short');
		END IF;
		tag := get_byte(p, pos::int);
		n := (get_byte(p, pos::int + 1)::bigint << 24)
		    | (get_byte(p, pos::int + 2) << 16)
		    | (get_byte(p, pos::int + 3) << 8)
		    | get_byte(p, pos::int + 4);
		IF n > total - pos - 5 THEN
			PERFORM mcpbox.fail('invalid_params', 'pre-image cut short');
		END IF;
		IF tag = wanted THEN
			found := found || substring(p FROM pos::int + 6 FOR n::int);
		ELSIF tag > wanted THEN
			EXIT;	-- fields are in order
		END IF;
		pos := pos + 5 + n;
	END LOOP;
	RETURN found;
END $$;

-- Returns the bytes of a pre-image's field, or null. See the note on backups above.
CREATE FUNCTION version_bytes(preimage bytea, wanted int) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT
RETURN (mcpbox.version_fields(preimage, wanted))[1];

CREATE FUNCTION version_text(preimage bytea, wanted int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
RETURN convert_from((mcpbox.version_fields(preimage, wanted))[1], 'UTF8');

CREATE FUNCTION version_texts(preimage bytea, wanted int) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT
RETURN (SELECT coalesce(array_agg(convert_from(f, 'UTF8')), '{}')
	FROM unnest(mcpbox.version_fields(preimage, wanted)) f);

CREATE FUNCTION version_uuid(preimage bytea, wanted int) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT
RETURN encode((mcpbox.version_fields(preimage, wanted))[1], 'hex')::uuid;

CREATE FUNCTION version_number(preimage bytea, wanted int) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	b bytea := (mcpbox.version_fields(preimage, wanted))[1];
	v bigint := 0;
BEGIN
	IF b IS NULL THEN
		RETURN NULL;
	END IF;
	IF length(b) <> 8 OR get_byte(b, 0) > 127 THEN
		PERFORM mcpbox.fail('invalid_params', 'a number of the pre-image is not one');
	END IF;
	FOR i IN 0..7 LOOP
		v := (v << 8) | get_byte(b, i);
	END LOOP;
	RETURN v;
END $$;

CREATE FUNCTION version_content_bytes(preimage bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
RETURN (SELECT coalesce(length(mcpbox.version_bytes(preimage, 40)),
	    length(b) / 4 * 3 - (length(b) - length(rtrim(b, '='))))
	FROM (SELECT mcpbox.version_text(preimage, 41)) AS x (b));

-- Returns the words that find an object. Their weights are those of the
-- ranking: a word in the name counts most. The characters of addresses and
-- paths separate words, because PostgreSQL's parser is slow with whole
-- addresses and paths.
CREATE FUNCTION search_words(exposed_name text, title text, description text)
RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
	SELECT setweight(to_tsvector('simple'::regconfig, translate(exposed_name, '_', ' ')), 'A')
	    || setweight(to_tsvector('simple'::regconfig, translate(coalesce(title, ''),
	        '.-+_/~@:<>&%?=#;', '                ')), 'B')
	    || setweight(to_tsvector('simple'::regconfig, translate(coalesce(description, ''),
	        '.-+_/~@:<>&%?=#;', '                ')), 'D')
$$;

CREATE FUNCTION stop_reason_ok(reason text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT length(reason) BETWEEN 1 AND 200 AND octet_length(reason) <= 600 AND reason !~ '[\u0001-\u001f\u007f]'
$$;

-- Applied migrations (mcpbox-admind -m writes them); admind starts only on the
-- version it was built for.
CREATE TABLE schema_migrations (
	version int PRIMARY KEY CHECK (version > 0),
	name text NOT NULL,
	sha256 bytea NOT NULL CHECK (length(sha256) = 32),
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'MB002', MESSAGE =
	    TG_TABLE_NAME || ' is append-only: ' || TG_OP || ' refused';
END $$;

-- Returns the bit of the catalogue's list that shows an object (0: a source, which
-- no list shows).
CREATE FUNCTION list_bit(object text) RETURNS int
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT CASE object WHEN 'tool' THEN 1 WHEN 'prompt' THEN 2
	    WHEN 'resource' THEN 4 WHEN 'template' THEN 8 ELSE 0 END
$$;

CREATE FUNCTION json_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
	SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION json_bytes(b bytea) RETURNS json
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT convert_from(b, 'UTF8')::json
$$;

-- Returns JSON text as JSON, and other text as a JSON string: the text may have
-- been cut in the middle of its JSON.
CREATE FUNCTION json_or_text(t text) RETURNS json
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	RETURN t::json;
EXCEPTION WHEN OTHERS THEN
	RETURN to_json(t);
END $$;

-- Joins two JSON objects into one. json_build_object made both, and neither is
-- empty.
CREATE FUNCTION json_members(a json, b json) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT left(a::text, -1) || ', ' || substr(b::text, 2)
$$;

-- Makes a query of words: "red shirt" becomes 'red':* | 'shirt':*. A tokenizer
-- makes the words, so they contain no operator of the query language. Without
-- words, the query is empty.
CREATE FUNCTION search_query(p_words text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT coalesce(string_agg(quote_literal(w) || ':*', ' | '), '')::tsquery
	FROM (SELECT w FROM unnest(tsvector_to_array(to_tsvector('simple'::regconfig,
	    translate(p_words, '.-+_/~@:<>&%?=#;', '                ')))) w LIMIT 16) x
$$;

-- Makes an id (RFC 9562 section 5.7) for a row that SQL makes by itself. Such
-- ids rise with time, and requests are listed in the order of their ids.
CREATE FUNCTION request_uuid() RETURNS uuid LANGUAGE sql VOLATILE AS $$
	SELECT encode(set_byte(overlay(uuid_send(gen_random_uuid()) PLACING substring(
	    int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
	    FROM 1 FOR 6), 6, 112 | (get_byte(uuid_send(gen_random_uuid()), 0) & 15)),
	    'hex')::uuid
$$;

-- Replaces the characters of addresses, paths and compounds by blanks, so that
-- only words remain. An address, a path or a compound would cost PostgreSQL's
-- parser the square of its length: 3 s for 8 kB of '1a@1a@1a@', which a caller
-- can write in each call.
CREATE FUNCTION plain_words(p text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT translate(p, '.-+_/~@:<>&%?=#;', '                ')
$$;

-- Returns a host as people read and write it: host, host:port, udp:host:port or
-- [IPv6]:port.
CREATE FUNCTION host_text(p_proto text, p_host text, p_port int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE p_proto WHEN 'udp' THEN 'udp:' ELSE '' END
	    || CASE WHEN p_port > 0 AND strpos(p_host, ':') > 0 THEN '[' || p_host || ']'
	    ELSE p_host END || CASE WHEN p_port > 0 THEN ':' || p_port ELSE '' END
$$;

-- Returns one field of a pre-image (common/version.h), and no bytes for null.
CREATE FUNCTION version_tlv(tag int, value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(set_byte('\x00'::bytea, 0, tag) || int4send(length(value)) || value,
	    ''::bytea)
$$;

-- Returns the fields of a set: its items sorted bytewise, each once.
CREATE FUNCTION version_tlvs(tag int, items text[]) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(string_agg(mcpbox.version_tlv(tag, convert_to(i, 'UTF8')), ''::bytea
	    ORDER BY i COLLATE "C"), ''::bytea) FROM (SELECT DISTINCT unnest(items)) x (i)
	    WHERE i <> ''
$$;

GRANT EXECUTE ON FUNCTION search_words, json_time, json_bytes, json_or_text,
    json_members, search_query, plain_words, host_text TO mcpbox_app;
