-- What the owner of a database can put into the schema of the extension to catch its calls: an operator for every pair
-- of types, an overload for every function with other or fewer arguments, and relations and types with core's names.
-- All of them raise an error when called. Run again after the extension exists, it adds what the extension's types
-- allow.

CREATE SCHEMA evil;
CREATE SCHEMA plant;

CREATE TABLE plant.types (name pg_catalog.text);
INSERT INTO plant.types
VALUES ('oid'), ('regclass'), ('regproc'), ('regprocedure'), ('regtype'), ('regnamespace'), ('xid'), ('smallint'),
    ('integer'), ('bigint'), ('"char"'), ('text'), ('name'), ('varchar'), ('boolean'), ('numeric'), ('double precision'),
    ('timestamptz'), ('timestamp'), ('date'), ('interval'), ('uuid'), ('pg_node_tree'), ('oid[]'), ('"char"[]'), ('text[]'),
    ('integer[]'), ('bigint[]'),
    ('regprocedure[]'), ('int2vector'), ('anyelement'), ('anyarray'), ('anynonarray'), ('anycompatible'),
    ('evil.snowflake'), ('evil.snowflake_layout');

-- Filled by the test: what the extension's SQL names, and the extension's own functions.
CREATE TABLE plant.operators (name pg_catalog.text);
CREATE TABLE plant.relations (name pg_catalog.text);
CREATE TABLE plant.functions (name pg_catalog.text, args pg_catalog.text[], result pg_catalog.text, is_ours boolean);

CREATE FUNCTION evil.caught() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;

CREATE FUNCTION plant.sow() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog
SET check_function_bodies = off
AS $sow$
DECLARE
    made bigint := 0;
    statement text;
BEGIN
    CREATE TEMP TABLE known AS
    SELECT name, typ.oid, typ.typtype = 'p' AND typ.typname !~ '^any' AS is_pseudo
    FROM plant.types JOIN pg_type AS typ ON typ.oid = to_regtype(name);

    FOR statement IN
        SELECT format(
            'CREATE FUNCTION evil.caught(%s, %s) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION ''planted''; END $$',
            l.name, r.name)
        FROM known AS l, known AS r
        WHERE to_regprocedure(format('evil.caught(%s, %s)', l.name, r.name)) IS NULL
    LOOP
        EXECUTE statement;
        made := made + 1;
    END LOOP;

    FOR statement IN
        SELECT format('CREATE OPERATOR evil.%s (FUNCTION = evil.caught, LEFTARG = %s, RIGHTARG = %s)', o.name, l.name, r.name)
        FROM plant.operators AS o, known AS l, known AS r
        WHERE NOT EXISTS (
            SELECT FROM pg_operator
            WHERE oprnamespace = 'evil'::regnamespace AND oprname = o.name AND (oprleft, oprright) = (l.oid, r.oid))
    LOOP
        EXECUTE statement;
        made := made + 1;
    END LOOP;

    FOR statement IN
        WITH prefix AS (
            SELECT name, args[1:n] AS args, result
            FROM plant.functions, generate_series(0, cardinality(args)) AS n
        ), variant AS (
            SELECT * FROM prefix
            UNION ALL
            SELECT p.name, p.args[:n - 1] || t.name || p.args[n + 1:], p.result
            FROM prefix AS p, generate_series(1, cardinality(p.args)) AS n, plant.types AS t
            UNION ALL
            SELECT p.name, array_fill(t.name, ARRAY[cardinality(p.args)]), p.result
            FROM prefix AS p, plant.types AS t
            WHERE cardinality(p.args) > 0
        ), resolved AS (
            SELECT v.name, v.args, v.result,
                (SELECT coalesce(string_agg(to_regtype(a)::oid::text, ' ' ORDER BY n), '')
                 FROM unnest(v.args) WITH ORDINALITY AS u (a, n)) AS oids
            FROM (SELECT DISTINCT ON (name, args) * FROM variant) AS v
            WHERE NOT EXISTS (
                SELECT FROM unnest(v.args) AS a
                LEFT JOIN pg_type AS t ON t.oid = to_regtype(a)
                WHERE t.oid IS NULL OR t.typtype = 'p' AND t.typname !~ '^any.')
        )
        SELECT DISTINCT ON (r.name, r.oids) format(
            'CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION ''planted''; END $$',
            r.name, array_to_string(r.args, ', '),
            (SELECT CASE WHEN count(*) FILTER (WHERE typtype <> 'p') = 0 THEN 'boolean' ELSE r.result END
             FROM pg_type WHERE oid = to_regtype(r.result)))
        FROM resolved AS r
        WHERE NOT EXISTS (
                SELECT FROM pg_proc AS p
                WHERE p.pronamespace = 'evil'::regnamespace AND p.proname = r.name AND p.proargtypes::text = r.oids)
            -- CREATE EXTENSION would fail on objects that it is about to create.
            AND NOT EXISTS (
                SELECT FROM plant.functions AS f
                WHERE f.is_ours AND f.name = r.name
                    AND cardinality(f.args) = cardinality(r.args)
                    AND r.oids = (
                        SELECT coalesce(string_agg(to_regtype(a)::oid::text, ' ' ORDER BY n), '')
                        FROM unnest(f.args) WITH ORDINALITY AS u (a, n)))
    LOOP
        EXECUTE statement;
        made := made + 1;
    END LOOP;

    FOR statement IN
        SELECT format('CREATE VIEW evil.%I AS SELECT evil.caught() AS oid', name)
        FROM plant.relations WHERE to_regclass('evil.' || quote_ident(name)) IS NULL
        UNION ALL
        SELECT format('CREATE DOMAIN evil.%I AS %s CHECK (evil.caught())', t.typname, t.oid::regtype)
        FROM known JOIN pg_type AS t USING (oid)
        WHERE t.typtype = 'b' AND t.typcategory <> 'A' AND to_regtype('evil.' || quote_ident(t.typname)) IS NULL
            AND t.typnamespace = 'pg_catalog'::regnamespace
    LOOP
        EXECUTE statement;
        made := made + 1;
    END LOOP;

    DROP TABLE known;
    RETURN made;
END $sow$;

-- Every cast that would change what the extension's SQL means needs a type that its owner does not own.
CREATE FUNCTION plant.casts() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog
AS $casts$
DECLARE
    made bigint := 0;
    statement text;
BEGIN
    FOR statement IN
        SELECT format('CREATE CAST (%s AS %s) WITH INOUT AS IMPLICIT', l.name, r.name)
        FROM plant.types AS l, plant.types AS r
        WHERE to_regtype(l.name) <> to_regtype(r.name)
    LOOP
        BEGIN
            EXECUTE statement;
            made := made + 1;
        EXCEPTION WHEN insufficient_privilege OR wrong_object_type OR invalid_object_definition OR duplicate_object THEN
        END;
    END LOOP;
    RETURN made;
END $casts$;
