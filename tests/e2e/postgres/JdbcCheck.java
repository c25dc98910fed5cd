import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Uses a server by PostgreSQL's driver for Java: java -cp postgresql.jar JdbcCheck.java PORT. */
public class JdbcCheck {
    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static List<String> texts(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(column));
        }
        return found;
    }

    public static void main(String[] args) throws Exception {
        Properties options = new Properties();
        options.setProperty("user", "ada");
        // From the second execution on values come in binary.
        options.setProperty("prepareThreshold", "2");
        String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/tidetable";
        try (Connection connection = DriverManager.getConnection(url, options)) {
            metadata(connection.getMetaData());

            String query = "SELECT id, ts, price, name, ok FROM T WHERE small > ? AND ok = ? AND name = ? ORDER BY id";
            try (PreparedStatement statement = connection.prepareStatement(query)) {
                for (int round = 0; round < 4; round++) {
                    statement.setInt(1, -10);
                    statement.setBoolean(2, false);
                    statement.setString(3, "plain");
                    int count = 0;
                    try (ResultSet rows = statement.executeQuery()) {
                        while (rows.next()) {
                            check(rows.getBigDecimal("price").scale() == 3, "scale");
                            check(rows.getTimestamp("ts").toInstant().toString().startsWith("2024-03-0"), "time");
                            check(!rows.getBoolean("ok"), "bool");
                            count++;
                        }
                    }
                    check(count > 10, "rows: " + count);
                }
            }

            // Rows in pieces.
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(37);
                int count = 0;
                try (ResultSet rows = statement.executeQuery("SELECT * FROM T")) {
                    while (rows.next()) {
                        count++;
                    }
                }
                check(count == 300, "pieces: " + count);
            }
            connection.commit();
            connection.setReadOnly(true);
            connection.setAutoCommit(true);

            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                statement.executeQuery("SELECT count(*) FROM generate_series(1, 100000) AS a (x), "
                    + "generate_series(1, 1000000) AS b (y) WHERE x * y % 7 = 3");
                throw new AssertionError("no timeout");
            } catch (SQLException error) {
                check("57014".equals(error.getSQLState()), error.toString());
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("INSERT INTO T VALUES (1)");
                throw new AssertionError("a write was accepted");
            } catch (SQLException error) {
                check("25006".equals(error.getSQLState()), error.toString());
            }
        }
    }

    static void metadata(DatabaseMetaData data) throws SQLException {
        check(data.getDatabaseProductVersion().startsWith("15"), data.getDatabaseProductVersion());
        check(texts(data.getSchemas(), "TABLE_SCHEM").contains("records"), "schemas");
        check(texts(data.getCatalogs(), "TABLE_CAT").contains("tidetable"), "catalogs");
        List<String> tables = texts(data.getTables(null, "records", "%", new String[] {"TABLE"}), "TABLE_NAME");
        check(tables.equals(List.of("T")), tables.toString());
        List<String> views = texts(data.getTables(null, "rows", "%", new String[] {"VIEW"}), "TABLE_NAME");
        check(views.equals(List.of("T")), views.toString());
        List<String> columns = texts(data.getColumns(null, "records", "T", "%"), "COLUMN_NAME");
        check(columns.equals(List.of("id", "ts", "small", "big", "price", "ratio", "ok", "day", "name")), columns.toString());
        List<String> types = texts(data.getColumns(null, "records", "T", "p%"), "TYPE_NAME");
        check(types.equals(List.of("numeric")), types.toString());
        check(texts(data.getPrimaryKeys(null, "records", "T"), "COLUMN_NAME").isEmpty(), "keys");
        check(texts(data.getImportedKeys(null, "records", "T"), "FKCOLUMN_NAME").isEmpty(), "foreign keys");
        check(texts(data.getIndexInfo(null, "records", "T", false, false), "INDEX_NAME").isEmpty(), "indexes");
        check(texts(data.getTypeInfo(), "TYPE_NAME").contains("timestamptz"), "types");
        check(texts(data.getProcedures(null, null, "%"), "PROCEDURE_NAME").isEmpty(), "procedures");
        check(data.getTableTypes().next(), "kinds of tables");
    }
}
