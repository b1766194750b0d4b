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

    -- In tables, so that the planner knows how many there are: some of them are joined with each other.
    CREATE TEMP TABLE types AS
    SELECT DISTINCT a.name, typ.oid, typ.typtype = 'p' AND typ.typname !~ '^any.' AS is_pseudo
    FROM (SELECT name FROM plant.types UNION SELECT unnest(args) FROM plant.functions) AS a
    JOIN pg_type AS typ ON typ.oid = to_regtype(a.name);
    -- CREATE EXTENSION would fail on objects that it is about to create.
    CREATE TEMP TABLE taken AS
    SELECT proname::text AS name, proargtypes::text AS oids FROM pg_proc WHERE pronamespace = 'evil'::regnamespace
    UNION
    SELECT f.name, (
        SELECT coalesce(string_agg(t.oid::text, ' ' ORDER BY n), '')
        FROM unnest(f.args) WITH ORDINALITY AS u (a, n) LEFT JOIN types AS t ON t.name = u.a)
    FROM plant.functions AS f
    WHERE f.is_ours;
    CREATE TEMP TABLE variants AS
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
    )
    SELECT DISTINCT ON (name, args) name, args, result FROM variant;
    CREATE TEMP TABLE resolved AS
    SELECT v.name, v.args, v.result, coalesce(string_agg(t.oid::text, ' ' ORDER BY u.n), '') AS oids
    FROM variants AS v
    LEFT JOIN LATERAL unnest(v.args) WITH ORDINALITY AS u (a, n) ON true
    LEFT JOIN types AS t ON t.name = u.a
    GROUP BY v.name, v.args, v.result
    HAVING count(u.n) = count(t.oid) AND NOT coalesce(bool_or(t.is_pseudo), false);
    ANALYZE types, taken, resolved;

    FOR statement IN
        SELECT DISTINCT ON (r.name, r.oids) format(
            'CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION ''planted''; END $$',
            r.name, array_to_string(r.args, ', '),
            CASE WHEN EXISTS (SELECT FROM pg_type WHERE oid = to_regtype(r.result) AND typtype <> 'p') THEN r.result
                ELSE 'boolean' END)
        FROM resolved AS r
        WHERE NOT EXISTS (SELECT FROM taken WHERE taken.name = r.name AND taken.oids = r.oids)
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

    DROP TABLE known, types, taken, variants, resolved;
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
