//! The behaviour of a converted column, and of converting it again.

use pg_snowflake_harness::prelude::*;

const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

/// Its compiled functions have the old type of the column. Those of another role are named.
#[test]
fn an_open_session_goes_on_with_its_triggers_after_a_column_was_widened() {
    let (database, mut superuser) = database_with(
        "GRANT ALL ON SCHEMA public TO owner, writer;
         SET ROLE owner;
         CREATE TABLE posts (id serial PRIMARY KEY, body text);
         CREATE TABLE comments (post_id int REFERENCES posts);
         CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.body := NEW.id + 1; RETURN NEW; END $$;
         CREATE TRIGGER checks BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION checks();
         CREATE FUNCTION \"is seen\"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN IF NEW.post_id + 1 > 1 THEN RETURN NEW; END IF; END $$;
         CREATE TRIGGER seen BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION \"is seen\"();
         CREATE FUNCTION last() RETURNS bigint LANGUAGE plpgsql AS
             $$ DECLARE last posts.id%TYPE; BEGIN SELECT max(id) INTO last FROM posts; RETURN last; END $$;
         CREATE FUNCTION label(post posts) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN post.id + 1; END $$;
         CREATE FUNCTION Shouts() RETURNS bigint LANGUAGE plpgsql AS
             $$ DECLARE last POSTS.id%TYPE; BEGIN last := 9; SELECT max(id) INTO last FROM POSTS; RETURN last; END $$;
         SET ROLE writer;
         CREATE FUNCTION theirs() RETURNS bigint LANGUAGE plpgsql AS
             $$ DECLARE last posts.id%TYPE; BEGIN SELECT max(id) INTO last FROM posts; RETURN last; END $$;
         RESET ROLE",
    );
    let mut writer = database.connect();
    let uses = "WITH post AS (INSERT INTO posts DEFAULT VALUES RETURNING id) SELECT id::bigint FROM post";
    let uses = [uses, "INSERT INTO comments SELECT max(id) FROM posts", "SELECT last(), shouts()", "SELECT label(p) FROM posts AS p"];
    run(&mut writer, &uses.join(";"));
    let mut theirs = database.connect();
    run(&mut theirs, "SELECT theirs()");
    let routines = "SELECT oid::regprocedure, prosecdef FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prolang IN
                    (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') ORDER BY 1";
    let before = printed(&mut superuser, routines);

    run(&mut database.connect_as("owner"), "SELECT snowflake_convert_column('posts', 'id', 5)");

    run(&mut writer, &uses.join(";"));
    assert_eq!(printed(&mut superuser, routines), before);
    refused(&mut theirs, "SELECT theirs()");
    let hint = "run as their owners: ALTER ROUTINE public.theirs() SECURITY INVOKER;\n";
    let (_, alter) = hint.split_once(": ").unwrap();
    assert!(database.log().contains(hint), "{}", database.log());
    run(&mut superuser, alter);
    run(&mut theirs, "SELECT theirs()");
}

#[test]
fn an_identity_removed_in_the_catalog_is_refused_until_it_is_restored() {
    let (source, mut client) = database();
    // What convert_sequence_to_snowflake() of pgEdge's extension does to an identity column.
    let sql = "CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
        UPDATE pg_attribute SET attidentity = '' WHERE attrelid = 'posts'::regclass AND attname = 'id';
        ALTER TABLE posts ALTER COLUMN id SET DEFAULT nextval('posts_id_seq')";
    run(&mut client, sql);
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5, 'pgedge')";
    assert_refused(&mut client, convert, Refusal { sqlstate: "55000", message: "belongs to an identity column", hint: "docs/migrate.md" });

    let sql = "ALTER TABLE posts ALTER COLUMN id DROP DEFAULT;
        UPDATE pg_attribute SET attidentity = 'd' WHERE attrelid = 'posts'::regclass AND attname = 'id'";
    run(&mut client, sql);
    run(&mut client, convert);

    let restored = Database::restored(&source.dump());
    let id = take_one(&mut restored.connect(), INSERT);
    assert_eq!(printed(&mut client, &format!("SELECT snowflake_shard_id({id}, 'pgedge')")), "5");
}

#[test]
fn names_in_another_encoding_are_preserved() {
    let cluster = Cluster::new();
    let latin1 = "CREATE DATABASE latin1 TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'";
    run(&mut cluster.connect(), latin1);
    let mut client = cluster.connect_to("postgres", "latin1");
    let sql = "CREATE EXTENSION pg_snowflake;
        CREATE SCHEMA größe; CREATE TABLE größe.bücher (größe int, körper text CONSTRAINT prüfung CHECK (körper <> ''));
        CREATE TABLE größe.éditions (\"É\" serial PRIMARY KEY); CREATE TABLE prêts (édition int REFERENCES größe.éditions);
        SELECT snowflake_convert_column('größe.bücher', 'größe', 5, check_shard => true);
        SELECT snowflake_convert_column('größe.éditions', 'É', 5);
        ALTER TABLE größe.éditions ADD CONSTRAINT étroit CHECK (\"É\" < 7)";
    run(&mut client, sql);

    let sequences = "SELECT seqrelid::regclass FROM pg_sequence ORDER BY 1::text COLLATE \"C\"";
    assert_eq!(printed(&mut client, sequences), "\"größe\".\"bücher_größe_seq\"\n\"größe\".\"éditions_É_seq\"");
    let id = take_one(&mut client, "INSERT INTO größe.bücher (körper) VALUES ('x') RETURNING größe");
    assert_eq!(split(id).shard, 5);
    run(&mut client, "CREATE TABLE größe.mesures (clé bigint, créé date)");
    let too_few = refusal("22023", "could not find the layout of column");
    assert_refused(&mut client, "SELECT snowflake_find_layout('größe.mesures', 'clé', 'créé')", too_few);
    let refusal = Refusal { sqlstate: "55000", message: "violate constraint \"?troit\" of table", hint: "DROP CONSTRAINT" };
    assert_refused(&mut client, "SELECT snowflake_convert_column('größe.éditions', 'É', 5)", refusal);
}

#[test]
fn a_standby_refuses_a_conversion() {
    let (cluster, _) = server_with("CREATE TABLE posts (id serial)");
    let standby = Refusal { sqlstate: "25006", message: "snowflake_convert_column() during recovery", hint: "primary" };
    assert_refused(&mut cluster.standby().connect(), "SELECT snowflake_convert_column('posts', 'id', 5)", standby);
}
