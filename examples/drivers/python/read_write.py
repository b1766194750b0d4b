"""psycopg: a bigint column is an int. A snowflake column is a str, or an int once its type is registered."""

import sys

import psycopg
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int8BinaryLoader, IntLoader

OLD_ID = 2235219950664999947


def main():
    # PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
    with psycopg.connect() as connection:
        bigint_is_int(connection)
        snowflake_is_str(connection)
        connection.execute("DELETE FROM notes")
        register_snowflake_as_int(connection)
        snowflake_is_int(connection)
    print(f"psycopg {psycopg.__version__}: both column types read and written")


def bigint_is_int(connection):
    new_id, text = one_row(
        connection, "INSERT INTO posts (body) VALUES (%s) RETURNING id, id::text", "new"
    )
    expect(new_id, int(text))
    expect(one_row(connection, "SELECT body FROM posts WHERE id = %s", new_id), ("new",))

    connection.execute("INSERT INTO posts VALUES (%s, %s)", (OLD_ID, "old"))
    ids = [OLD_ID, new_id]
    expect(
        one_row(connection, "SELECT array_agg(id ORDER BY id) FROM posts WHERE id = ANY(%s)", ids),
        (sorted(ids),),
    )


def snowflake_is_str(connection):
    new_id, text = one_row(
        connection, "INSERT INTO notes (body) VALUES (%s) RETURNING id, id::text", "new"
    )
    expect(new_id, text)
    expect(one_row(connection, "SELECT body FROM notes WHERE id = %s", new_id), ("new",))
    # An int can be written too.
    expect(one_row(connection, "SELECT body FROM notes WHERE id = %s", int(new_id)), ("new",))

    connection.execute("INSERT INTO notes VALUES (%s, %s)", (str(OLD_ID), "old"))
    # An array of the unregistered type is one str, "{…}". Cast to bigint it is a list of int.
    ids = [OLD_ID, int(new_id)]
    expect(
        one_row(
            connection,
            "SELECT array_agg(id ORDER BY id)::bigint[] FROM notes WHERE id = ANY(%s)",
            ids,
        ),
        (sorted(ids),),
    )


def register_snowflake_as_int(connection):
    """Makes snowflake an int, and snowflake[] a list of int, on this connection."""
    snowflake = TypeInfo.fetch(connection, "snowflake")
    snowflake.register(connection)
    connection.adapters.register_loader(snowflake.oid, IntLoader)
    connection.adapters.register_loader(snowflake.oid, Int8BinaryLoader)


def snowflake_is_int(connection):
    new_id, text = one_row(
        connection, "INSERT INTO notes (body) VALUES (%s) RETURNING id, id::text", "new"
    )
    expect(new_id, int(text))
    expect(one_row(connection, "SELECT body FROM notes WHERE id = %s", new_id), ("new",))

    connection.execute("INSERT INTO notes VALUES (%s, %s)", (OLD_ID, "old"))
    ids = [OLD_ID, new_id]
    query = "SELECT array_agg(id ORDER BY id) FROM notes WHERE id = ANY(%s)"
    for binary in [False, True]:
        row = connection.execute(query, (ids,), binary=binary).fetchone()
        expect(row, (sorted(ids),))


def one_row(connection, query, *parameters):
    return connection.execute(query, parameters).fetchone()


def expect(found, expected):
    if found != expected:
        sys.exit(f"found {found!r}, expected {expected!r}")


main()
