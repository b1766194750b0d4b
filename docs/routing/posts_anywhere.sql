-- One server of a router that cannot derive the server from an ID: its partitions are by another column, by core's
-- hash, so that WHERE id = … queries every server. It is only read. psql sets :number, :servers and :host.
CREATE TABLE IF NOT EXISTS posts_anywhere (id bigint NOT NULL, user_id bigint NOT NULL, body text NOT NULL)
    PARTITION BY HASH (user_id);
SELECT 'server_' || :number AS server, 'posts_on_' || :number AS name \gset
CREATE SERVER :server FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'host', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER :server OPTIONS (user 'postgres');
CREATE FOREIGN TABLE :name PARTITION OF posts_anywhere
    FOR VALUES WITH (MODULUS :servers, REMAINDER :number)
    SERVER :server OPTIONS (table_name 'posts_here', async_capable 'false');
