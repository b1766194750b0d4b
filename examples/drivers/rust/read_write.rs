//! tokio-postgres: a bigint column is an `i64`. A snowflake column is a type of your own with two short impls, or an `i64`
//! if the query says `id::bigint`.

use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls};

const OLD_ID: i64 = 2235219950664999947;

/// An ID. On the wire it is a bigint under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snowflake(pub i64);

impl FromSql<'_> for Snowflake {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        i64::from_sql(&Type::INT8, raw).map(Snowflake)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "snowflake" || *ty == Type::INT8
    }
}

impl ToSql for Snowflake {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql(&Type::INT8, out)
    }

    // PostgreSQL takes the parameter of an INSERT as snowflake, and that of `id = $1` as bigint.
    fn accepts(ty: &Type) -> bool {
        <Snowflake as FromSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// Reads and writes both tables.
pub async fn read_and_write(config: &Config) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    bigint_is_i64(&client).await?;
    snowflake_is_a_type_of_our_own(&client).await?;
    client.execute("DELETE FROM notes", &[]).await?;
    snowflake_is_i64_as_bigint(&client).await?;
    drop(client);
    connection.await.expect("the connection does not panic")
}

async fn bigint_is_i64(client: &Client) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO posts (body) VALUES ('new') RETURNING id, id::text";
    let row = client.query_one(insert, &[]).await?;
    let new_id: i64 = row.get(0);
    assert_eq!(new_id.to_string(), row.get::<_, String>(1));

    client.execute("INSERT INTO posts VALUES ($1, 'old')", &[&OLD_ID]).await?;
    let row = client.query_one("SELECT body FROM posts WHERE id = $1", &[&OLD_ID]).await?;
    assert_eq!(row.get::<_, &str>(0), "old");

    let find_all = "SELECT array_agg(id ORDER BY body) FROM posts WHERE id = ANY($1)";
    let row = client.query_one(find_all, &[&vec![OLD_ID, new_id]]).await?;
    assert_eq!(row.get::<_, Vec<i64>>(0), [new_id, OLD_ID]);
    Ok(())
}

async fn snowflake_is_a_type_of_our_own(client: &Client) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO notes (body) VALUES ('new') RETURNING id, id::text";
    let row = client.query_one(insert, &[]).await?;
    let new_id: Snowflake = row.get(0);
    assert_eq!(new_id.0.to_string(), row.get::<_, String>(1));
    // It is not an i64 without a cast.
    assert!(row.try_get::<_, i64>(0).is_err());
    assert!(client.execute("INSERT INTO notes VALUES ($1, 'old')", &[&OLD_ID]).await.is_err());

    let old_id = Snowflake(OLD_ID);
    client.execute("INSERT INTO notes VALUES ($1, 'old')", &[&old_id]).await?;
    let row = client.query_one("SELECT body FROM notes WHERE id = $1", &[&old_id]).await?;
    assert_eq!(row.get::<_, &str>(0), "old");

    let find_all = "SELECT array_agg(id ORDER BY body) FROM notes WHERE id = ANY($1)";
    let row = client.query_one(find_all, &[&vec![old_id, new_id]]).await?;
    assert_eq!(row.get::<_, Vec<Snowflake>>(0), [new_id, old_id]);
    Ok(())
}

async fn snowflake_is_i64_as_bigint(client: &Client) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO notes (body) VALUES ('new') RETURNING id::bigint, id::text";
    let row = client.query_one(insert, &[]).await?;
    let new_id: i64 = row.get(0);
    assert_eq!(new_id.to_string(), row.get::<_, String>(1));

    client.execute("INSERT INTO notes VALUES ($1::bigint, 'old')", &[&OLD_ID]).await?;
    let row = client.query_one("SELECT body FROM notes WHERE id = $1", &[&OLD_ID]).await?;
    assert_eq!(row.get::<_, &str>(0), "old");

    let find_all = "SELECT array_agg(id ORDER BY body)::bigint[] FROM notes WHERE id = ANY($1)";
    let row = client.query_one(find_all, &[&vec![OLD_ID, new_id]]).await?;
    assert_eq!(row.get::<_, Vec<i64>>(0), [new_id, OLD_ID]);
    Ok(())
}
