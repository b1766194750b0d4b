-- Metadata in the form of Citus 14, with the columns that pg_snowflake reads.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer NOT NULL PRIMARY KEY);
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", partkey text, repmodel "char" DEFAULT 's');
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint, shardminvalue text, shardmaxvalue text);
CREATE TABLE pg_catalog.pg_dist_placement (
    shardid bigint, groupid integer, shardstate integer DEFAULT 1, placementid bigint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE pg_catalog.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer, noderole text);
CREATE TABLE pg_catalog.pg_dist_object (classid oid, objid oid);
CREATE FUNCTION pg_catalog.column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS 'SELECT $2';
CREATE FUNCTION pg_catalog.relation_is_a_known_shard(regclass) RETURNS boolean LANGUAGE sql AS
    $$SELECT relname LIKE '%\_102008' FROM pg_class WHERE oid = $1$$;
CREATE FUNCTION pg_catalog.get_shard_id_for_distribution_column(regclass, anyelement) RETURNS bigint LANGUAGE sql AS
    'SELECT shardid FROM pg_catalog.pg_dist_shard
     WHERE logicalrelid OPERATOR(pg_catalog.=) $1
        AND (shardminvalue IS NULL
            OR pg_catalog.hashint8($2::pg_catalog.int8)
                BETWEEN shardminvalue::pg_catalog.int4 AND shardmaxvalue::pg_catalog.int4)';
GRANT SELECT ON pg_dist_local_group, pg_dist_partition, pg_dist_shard, pg_dist_placement, pg_dist_node, pg_dist_object TO PUBLIC;
INSERT INTO pg_dist_local_group VALUES (3);
RESET allow_system_table_mods;
