-- Drops the functions of pg_snowflake_managed.sql, without CASCADE: a default, view or index that still uses one is an error, and then
-- nothing is dropped. After a conversion to the extension, run it in the same transaction: docs/managed.md.

DO $uninstall$
DECLARE
    function pg_catalog.regprocedure;
BEGIN
    FOR function IN
        SELECT oid FROM pg_catalog.pg_proc
        WHERE pronamespace OPERATOR(pg_catalog.=) 'snowflake_managed'::pg_catalog.regnamespace::pg_catalog.oid
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', function);
    END LOOP;
    DROP SCHEMA snowflake_managed;
END $uninstall$;
