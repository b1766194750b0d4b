import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * JDBC: getLong and setLong serve a bigint column and a snowflake column alike. They differ in getObject.
 *
 * <p>Run with the driver, org.postgresql:postgresql, on the class path. PGHOST, PGPORT, PGUSER and PGDATABASE
 * name the server; the driver supports only TCP.
 */
class ReadWrite {
    static final long OLD_ID = 2235219950664999947L;

    /** More executions of one statement than the driver needs to switch to its binary format. */
    static final int MANY = 10;

    public static void main(String[] arguments) throws SQLException {
        String url = String.format(
                "jdbc:postgresql://%s:%s/%s?sslmode=disable", env("PGHOST"), env("PGPORT"), env("PGDATABASE"));
        try (Connection connection = DriverManager.getConnection(url, env("PGUSER"), "")) {
            readAndWrite(connection, "posts");
            readAndWrite(connection, "notes");

            // A bigint column is a Long. A snowflake column is a Long when cast to bigint.
            expect(firstObject(connection, "SELECT id FROM posts WHERE id = " + OLD_ID), OLD_ID);
            expect(firstObject(connection, "SELECT id::bigint FROM notes WHERE id = " + OLD_ID), OLD_ID);
            Object snowflake = firstObject(connection, "SELECT id FROM notes WHERE id = " + OLD_ID);
            expect(snowflake.getClass().getName(), "org.postgresql.util.PGobject");
            expect(snowflake.toString(), Long.toString(OLD_ID));

            System.out.println("JDBC driver " + connection.getMetaData().getDriverVersion()
                    + ": both column types read and written");
        }
    }

    static void readAndWrite(Connection connection, String table) throws SQLException {
        long newId;
        String insert = "INSERT INTO " + table + " (body) VALUES (?) RETURNING id, id::text";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setString(1, "new");
            ResultSet row = firstRow(statement);
            newId = row.getLong(1);
            expect(Long.toString(newId), row.getString(2));
            expect(row.getString(1), row.getString(2));
        }

        String insertWithId = "INSERT INTO " + table + " VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insertWithId)) {
            statement.setLong(1, OLD_ID);
            statement.setString(2, "old");
            expect(statement.executeUpdate(), 1);
        }

        String find = "SELECT id, body FROM " + table + " WHERE id = ?";
        try (PreparedStatement statement = connection.prepareStatement(find)) {
            for (int i = 0; i < MANY; i++) {
                statement.setLong(1, newId);
                ResultSet row = firstRow(statement);
                expect(row.getLong(1), newId);
                expect(row.getString(2), "new");
            }
        }

        // An ID as a String needs a cast, here and in an INSERT.
        try (PreparedStatement statement = connection.prepareStatement(find + "::snowflake")) {
            statement.setString(1, Long.toString(OLD_ID));
            expect(firstRow(statement).getString("body"), "old");
        }

        // The elements of an array of snowflake would be of class PGobject. Cast to bigint they are Long.
        String findAll = "SELECT array_agg(id ORDER BY body)::bigint[] FROM " + table + " WHERE id = ANY(?)";
        try (PreparedStatement statement = connection.prepareStatement(findAll)) {
            statement.setArray(1, connection.createArrayOf("bigint", new Long[] {OLD_ID, newId}));
            Long[] ids = (Long[]) firstRow(statement).getArray(1).getArray();
            expect(Arrays.asList(ids), List.of(newId, OLD_ID));
        }
    }

    static Object firstObject(Connection connection, String query) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            return firstRow(statement).getObject(1);
        }
    }

    static ResultSet firstRow(PreparedStatement statement) throws SQLException {
        ResultSet rows = statement.executeQuery();
        expect(rows.next(), true);
        return rows;
    }

    static void expect(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    static String env(String name) {
        return Objects.requireNonNull(System.getenv(name), name + " is not set");
    }
}
