//! sqlx: the INSERT returns the ID, for one row, for many, and for a parent and its children.

use sqlx::migrate::Migrator;
use sqlx::{FromRow, PgConnection, Type};
use std::path::Path;

/// Of shard 5, generated at noon on 2024-05-01.
const OLD_ID: i64 = 1896919282483208199;

#[derive(Debug, PartialEq, FromRow)]
struct Post {
    id: i64,
    body: String,
}

/// The ID of a column of type snowflake.
#[derive(Clone, Copy, Debug, PartialEq, Type)]
#[sqlx(type_name = "snowflake")]
struct Snowflake(i64);

#[derive(Debug, PartialEq, FromRow)]
struct Comment {
    id: Snowflake,
    post_id: i64,
    body: String,
}

/// Creates the tables by the migrations in that folder, and writes and reads rows.
pub async fn blog(connection: &mut PgConnection, migrations: &Path) -> sqlx::Result<()> {
    Migrator::new(migrations).await?.run(&mut *connection).await?;
    one_row(connection).await?;
    many_rows(connection).await?;
    a_parent_and_its_children(connection).await?;
    rows_of_a_time(connection).await
}

async fn one_row(connection: &mut PgConnection) -> sqlx::Result<()> {
    let post: Post =
        sqlx::query_as("INSERT INTO posts (body) VALUES ($1) RETURNING id, body").bind("first").fetch_one(&mut *connection).await?;
    let found: Post = sqlx::query_as("SELECT id, body FROM posts WHERE id = $1").bind(post.id).fetch_one(connection).await?;
    assert_eq!(found, post);
    Ok(())
}

async fn many_rows(connection: &mut PgConnection) -> sqlx::Result<()> {
    let bodies: Vec<String> = (0..200).map(|i| format!("bulk {i}")).collect();
    let posts: Vec<Post> = sqlx::query_as(
        "INSERT INTO posts (body)
         SELECT body FROM unnest($1::text[]) WITH ORDINALITY AS row (body, n) ORDER BY n
         RETURNING id, body",
    )
    .bind(&bodies)
    .fetch_all(connection)
    .await?;
    assert!(posts.iter().map(|post| &post.body).eq(&bodies));
    assert!(posts.is_sorted_by(|a, b| a.id < b.id));
    Ok(())
}

async fn a_parent_and_its_children(connection: &mut PgConnection) -> sqlx::Result<()> {
    let mut transaction = sqlx::Connection::begin(&mut *connection).await?;
    let post_id: i64 =
        sqlx::query_scalar("INSERT INTO posts (body) VALUES ($1) RETURNING id").bind("parent").fetch_one(&mut *transaction).await?;
    let mut comments = Vec::new();
    for body in ["one", "two"] {
        let comment: Comment = sqlx::query_as("INSERT INTO comments (post_id, body) VALUES ($1, $2) RETURNING id, post_id, body")
            .bind(post_id)
            .bind(body)
            .fetch_one(&mut *transaction)
            .await?;
        comments.push(comment);
    }
    transaction.commit().await?;

    for comment in comments {
        assert_eq!(comment.post_id, post_id);
        let found: Comment =
            sqlx::query_as("SELECT id, post_id, body FROM comments WHERE id = $1").bind(comment.id).fetch_one(&mut *connection).await?;
        assert_eq!(found, comment);
    }
    Ok(())
}

async fn rows_of_a_time(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO posts (id, body) VALUES ($1, 'imported')").bind(OLD_ID).execute(&mut *connection).await?;

    let of_that_day: Vec<i64> = sqlx::query_scalar("SELECT id FROM posts WHERE snowflake_between(id, $1::timestamptz, $2::timestamptz)")
        .bind("2024-05-01 00:00Z")
        .bind("2024-05-02 00:00Z")
        .fetch_all(&mut *connection)
        .await?;
    assert_eq!(of_that_day, [OLD_ID]);

    let since_then: i64 = sqlx::query_scalar("SELECT count(*) FROM posts WHERE id >= snowflake_min_id($1::timestamptz)")
        .bind("2024-05-02 00:00Z")
        .fetch_one(connection)
        .await?;
    assert_eq!(since_then, 202);
    Ok(())
}
