-- The route from the router to one logical shard: a separate foreign server, whatever machine the shard is on, so that
-- one ALTER SERVER moves all of its tables. psql sets :schema, :shard, :shards, :host and :dbname.
CREATE SERVER :schema FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'host', dbname :'dbname', batch_size '100');
CREATE USER MAPPING FOR CURRENT_USER SERVER :schema OPTIONS (user 'postgres');

CREATE SCHEMA :schema;
CREATE FOREIGN TABLE :schema.users PARTITION OF users
    FOR VALUES WITH (MODULUS :shards, REMAINDER :shard)
    SERVER :schema OPTIONS (schema_name :'schema');
CREATE FOREIGN TABLE :schema.posts PARTITION OF posts
    FOR VALUES WITH (MODULUS :shards, REMAINDER :shard)
    SERVER :schema OPTIONS (schema_name :'schema');
CREATE FOREIGN TABLE :schema.comments PARTITION OF comments
    FOR VALUES WITH (MODULUS :shards, REMAINDER :shard)
    SERVER :schema OPTIONS (schema_name :'schema');
CREATE FOREIGN TABLE :schema.posts_by_user PARTITION OF posts_by_user
    FOR VALUES WITH (MODULUS :shards, REMAINDER :shard)
    SERVER :schema OPTIONS (schema_name :'schema', table_name 'posts');
