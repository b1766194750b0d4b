SELECT bool_and(success) FROM run_command_on_all_nodes('CREATE SEQUENCE public.ids');

CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('public.ids'::text::regclass), body text);
SELECT create_distributed_table('posts', 'id');

CREATE TABLE homed_posts (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed_in_ranges(
        'public.ids'::text::regclass, snowflake_current_shard(), snowflake_citus_ranges('public.homed_posts'::text::regclass)),
    body text
);
SELECT create_distributed_table('homed_posts', 'id');
