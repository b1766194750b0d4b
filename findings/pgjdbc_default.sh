#!/usr/bin/env bash
# pgjdbc 42.5.5 (Debian's libpostgresql-jdbc-java) takes a default of my_nextval('posts_id_seq') for that of a serial, because it contains
# `nextval(`. Expected: int8, not auto-increment. The driver needs TCP: port 54329.
export LISTEN=127.0.0.1 PGPORT=54329
# shellcheck source=findings/server.sh
source "$(dirname "$0")/server.sh"
jar=/usr/share/java/postgresql.jar
cat >Columns.java <<'JAVA'
import java.sql.*;
class Columns {
    public static void main(String[] arguments) throws SQLException {
        try (var connection = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:54329/postgres", "postgres", "")) {
            var metadata = connection.getMetaData();
            var columns = metadata.getColumns(null, "public", "posts", "id");
            columns.next();
            System.out.println(metadata.getDriverVersion() + " " + columns.getString("TYPE_NAME") + " " + columns.getString("IS_AUTOINCREMENT"));
        }
    }
}
JAVA
expect "driver, type and IS_AUTOINCREMENT" "$(java -cp "$jar" Columns.java)" "42.5.5 bigserial YES"
