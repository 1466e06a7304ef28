-- 0024: an import of many objects without a subtransaction for each
-- (tests/database/test_transfer.py, a thousand and two thousand lines).
--
-- What stands in an object's way is an exception, and a block that catches one is a
-- subtransaction. Each left the head of the audit log a version that several
-- transactions had locked, and whoever reads the head passes all of them: twice the
-- time for a thousand objects, and more for each that follows. Fifty objects are
-- tried in one block now; where one fails, those before it are one block again, and
-- those behind it another.
SET LOCAL search_path = mcpbox, pg_temp;

DROP FUNCTION import_object(json, servers, text);

-- One object: a draft of its own.
CREATE FUNCTION import_object(j json, s servers, p_actor text) RETURNS json
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	pre bytea := decode(j ->> 'preimage', 'base64');
	tool uuid := gen_random_uuid();
	name text := version_text(pre, 5);
	exposed text := CASE s.expose WHEN 'bare' THEN name ELSE s.name || '__' || name END;
BEGIN
	PERFORM create_tool(gen_random_uuid(),
	    import_preimage(pre, s.id, tool, s.name, exposed), p_actor, 'import');
	IF (j ->> 'enabled') = 'false' THEN
		PERFORM set_tool_enabled(tool, false, p_actor);
	END IF;
	RETURN json_build_object('made', json_build_object('id', tool, 'server', s.name,
	    'kind', coalesce(version_text(pre, 36), 'tool'), 'name', name, 'exposed_name', exposed,
	    'modules', (SELECT coalesce(json_agg(split_part(m, ' ', 1) || ' ' || split_part(m, ' ', 2)), '[]')
	        FROM unnest(version_texts(pre, 17)) m)));
END $$;

-- Objects of one server, in their order. What another object's name or URI stands
-- in the way of is left out and said; anything else ends the whole import.
CREATE FUNCTION import_objects(p_objects json[], s servers, p_actor text) RETURNS SETOF json
LANGUAGE plpgsql SET search_path = mcpbox, pg_temp AS $$
DECLARE
	j json;
	done json[] := '{}';
	kept int := 0;	-- of done, what stands
	at int := 1;	-- the first that is neither made nor left out
	last int := cardinality(p_objects);
	i int;
	said text;
BEGIN
	FOREACH j IN ARRAY p_objects LOOP
		IF version_text(decode(j ->> 'preimage', 'base64'), 5) IS NULL THEN
			PERFORM fail('invalid_params', 'an object''s line is not one of an export');
		END IF;
	END LOOP;
	WHILE at <= cardinality(p_objects) LOOP
		BEGIN
			FOR i IN at..last LOOP
				done := done || import_object(p_objects[i], s, p_actor);
			END LOOP;
			at := last + 1;
			last := cardinality(p_objects);
		EXCEPTION WHEN unique_violation OR check_violation OR SQLSTATE 'MB001' THEN
			-- what the block made is gone, its variables are not
			GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
			i := at + cardinality(done) - kept;
			done := done[1:kept];
			IF i > at THEN
				last := i - 1;	-- those before it stand by themselves
			ELSE
				done := done || json_build_object('skipped', json_build_object(
				    'server', s.name, 'name',
				    version_text(decode(p_objects[i] ->> 'preimage', 'base64'), 5),
				    'why', left(said, 500)));
				at := i + 1;
				last := cardinality(p_objects);
			END IF;
		END;
		kept := cardinality(done);
	END LOOP;
	RETURN QUERY SELECT unnest(done);
END $$;

-- 0017's. The lines are taken in turns: a server's own, or up to fifty objects of it.
CREATE OR REPLACE FUNCTION import_finish(p_id uuid, p_sha256 bytea, p_actor text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mcpbox, pg_temp AS $$
DECLARE
	whole text;
	lines json[];
	objects json[];
	n int := 1;
	j json;
	s servers;
	from_name text;
	hosts json[] := '{}';
	made json[] := '{}';
	skipped json[] := '{}';
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('mcpbox transfer'));
	-- The first server that is made has the audit head; what comes behind it may
	-- need these, which everybody else has before the head.
	PERFORM 1 FROM master_key FOR SHARE;
	PERFORM 1 FROM callable_turn FOR UPDATE;
	PERFORM 1 FROM imports WHERE id = p_id FOR UPDATE;
	IF NOT FOUND THEN
		PERFORM fail('not_found', 'there is no such import');
	END IF;
	whole := import_text(p_id);
	IF sha256(convert_to(whole, 'UTF8')) <> p_sha256 THEN
		PERFORM fail('conflict', 'the import was changed meanwhile');
	END IF;
	-- one transaction, and admind's statements end after 8 s
	IF length(whole) - length(replace(whole, E'\n', '')) > 2000 THEN
		PERFORM fail('too_large', 'an import has at most 2000 lines: export fewer servers at a time');
	END IF;
	lines := ARRAY(SELECT l::json FROM string_to_table(rtrim(whole, E'\n'), E'\n')
	    WITH ORDINALITY t (l, at) ORDER BY at);
	WHILE n <= cardinality(lines) LOOP
		j := lines[n];
		objects := '{}';
		IF j -> 'server' IS NOT NULL THEN
			s := import_server(j -> 'server', p_actor);
			from_name := j -> 'server' ->> 'name';
			hosts := hosts || json_build_object('id', s.id, 'name', s.name,
			    'exported_as', from_name);
			n := n + 1;
			CONTINUE;
		END IF;
		WHILE n <= cardinality(lines) AND cardinality(objects) < 50
		    AND lines[n] -> 'server' IS NULL AND lines[n] -> 'object' IS NOT NULL
		    AND from_name = lines[n] -> 'object' ->> 'server' LOOP
			objects := objects || (lines[n] -> 'object');
			n := n + 1;
		END LOOP;
		IF cardinality(objects) = 0 THEN
			PERFORM fail('invalid_params', 'a line is not one of an export');
		END IF;
		FOR j IN SELECT o FROM import_objects(objects, s, p_actor) o LOOP
			IF j -> 'made' IS NOT NULL THEN
				made := made || (j -> 'made');
			ELSE
				skipped := skipped || (j -> 'skipped');
			END IF;
		END LOOP;
	END LOOP;
	DELETE FROM imports WHERE id = p_id;
	PERFORM audit_append(p_actor, 'imported', 'import ' || p_id, json_build_object(
	    'sha256', encode(p_sha256, 'hex'), 'servers', cardinality(hosts),
	    'objects', cardinality(made), 'skipped', cardinality(skipped))::text);
	RETURN json_build_object('servers', array_to_json(hosts), 'objects', cardinality(made),
	    'skipped', array_to_json(skipped[1:100]), 'skipped_count', cardinality(skipped),
	    'needs_modules', (SELECT coalesce(json_agg(json_build_object('tool', m ->> 'exposed_name',
	    'id', m ->> 'id', 'modules', m -> 'modules')), '[]') FROM (SELECT m FROM unnest(made) m
	    WHERE json_array_length(m -> 'modules') > 0 LIMIT 1000) x));
END $$;

REVOKE ALL ON FUNCTION import_object, import_objects FROM PUBLIC;
