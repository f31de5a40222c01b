// JDBC, with the driver whose URL the first argument begins with: types both ways, batches, generated keys, metadata, cursors,
// transactions, errors.

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;

public final class Jdbc {
    private static String url(String kind, String options) {
        return kind + "//" + Steps.HOST + ":" + Steps.PORT + "/jdbc_suite?user=root&password=" + options;
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        String plain = kind + "//" + Steps.HOST + ":" + Steps.PORT + "/?user=root&password=&allowPublicKeyRetrieval=true";
        try (Connection admin = DriverManager.getConnection(plain); Statement statement = admin.createStatement()) {
            statement.execute("CREATE DATABASE jdbc_suite");
        }
        String options = "&allowMultiQueries=true&allowPublicKeyRetrieval=true";
        List<String> ways = List.of("&useServerPrepStmts=false", "&useServerPrepStmts=true", "&useCursorFetch=true&defaultFetchSize=2",
            "&rewriteBatchedStatements=true");
        try (Connection connection = DriverManager.getConnection(url(kind, options))) {
            Steps.step("create", () -> {
                try (Statement statement = connection.createStatement()) {
                    statement.execute("CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(30) NOT NULL UNIQUE)");
                    statement.execute("CREATE TABLE everything (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, parent_id INT, "
                        + "b TINYINT(1), i8 TINYINT, i16 SMALLINT UNSIGNED, i32 INT, i64 BIGINT, big BIGINT UNSIGNED, f FLOAT, "
                        + "d DOUBLE, dec1 DECIMAL(20,6), c CHAR(5), v VARCHAR(100), t TEXT, vb VARBINARY(20), bl BLOB, day DATE, "
                        + "at DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), y YEAR, e ENUM('a','b'), s SET('x','y'), bits BIT(10), "
                        + "flag BIT(1), j JSON, z INT(5) ZEROFILL, KEY k (i32, v), FOREIGN KEY (parent_id) REFERENCES parent (id))");
                    return statement.executeUpdate("INSERT INTO parent (name) VALUES ('one'), ('two')");
                }
            });
            for (String way : ways) {
                with(url(kind, options + way), way, Jdbc::values);
            }
            with(url(kind, options), "metadata", Jdbc::metadata);
            with(url(kind, options), "transactions", Jdbc::transactions);
            with(url(kind, options), "errors", Jdbc::errors);
        }
    }

    private interface Part {
        void run(Connection connection, String way) throws Exception;
    }

    private static void with(String url, String way, Part part) {
        Steps.step("connect " + way, () -> {
            try (Connection connection = DriverManager.getConnection(url)) {
                part.run(connection, way);
                return connection.getTransactionIsolation();
            }
        });
    }

    private static void values(Connection connection, String way) {
        String insert = "INSERT INTO everything (parent_id, b, i8, i16, i32, i64, big, f, d, dec1, c, v, t, vb, bl, day, at, ts, tm, y, e, s, "
            + "bits, flag, j, z) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
        Steps.step("empty" + way, () -> connection.createStatement().executeUpdate("TRUNCATE TABLE everything"));
        Steps.step("insert" + way, () -> {
            try (PreparedStatement statement = connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
                Object[] row = {1, true, -8, 65535, -32, Long.MIN_VALUE, new BigInteger("18446744073709551615"), 1.5f, Math.PI,
                    new BigDecimal("12345678901234.567890"), "abc", "\u00fcn\u00ef \ud83e\udd9c", "text\\with'quotes\"\n", new byte[] {0, 1, -1},
                    "blob".getBytes(), LocalDate.of(2024, 2, 29), LocalDateTime.of(2024, 2, 29, 12, 34, 56, 123456000),
                    LocalDateTime.of(2024, 2, 29, 12, 34, 56, 789000000), LocalTime.of(12, 34, 56), 2024, "b", "x,y",
                    new byte[] {2, -86}, true, "{\"a\": [1, 2.5, \"z\", null]}", 42};
                for (int at = 0; at < row.length; at++) {
                    statement.setObject(at + 1, row[at]);
                }
                int count = statement.executeUpdate();
                try (ResultSet keys = statement.getGeneratedKeys()) {
                    return List.of(count, Steps.rows(keys));
                }
            }
        });
        Steps.step("insert nulls" + way, () -> {
            try (PreparedStatement statement = connection.prepareStatement(insert)) {
                for (int at = 1; at <= 26; at++) {
                    statement.setNull(at, Types.NULL);
                }
                return statement.executeUpdate();
            }
        });
        Steps.step("select" + way, () -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM everything WHERE i8 < ? ORDER BY id DESC LIMIT 2")) {
                statement.setLong(1, 0);
                try (ResultSet result = statement.executeQuery()) {
                    return List.of(Steps.columns(result.getMetaData()), Steps.rows(result));
                }
            }
        });
        Steps.step("getters" + way, () -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT at, ts, day, tm, y, z, dec1, big, b, flag, j FROM everything "
                    + "WHERE i8 = ? ORDER BY id DESC LIMIT 1")) {
                statement.setInt(1, -8);
                try (ResultSet result = statement.executeQuery()) {
                    result.next();
                    List<Object> all = new ArrayList<>();
                    all.add(result.getTimestamp(1));
                    all.add(result.getTimestamp(2));
                    all.add(result.getDate(3));
                    all.add(result.getTime(4));
                    all.add(result.getInt(5));
                    all.add(result.getString(6));
                    all.add(result.getBigDecimal(7));
                    all.add(result.getString(8));
                    all.add(result.getBoolean(9));
                    all.add(result.getBoolean(10));
                    all.add(result.getString(11));
                    all.add(result.getObject(1, LocalDateTime.class));
                    return all;
                }
            }
        });
        Steps.step("batch" + way, () -> {
            try (PreparedStatement statement = connection.prepareStatement("INSERT INTO everything (i32, v) VALUES (?, ?)")) {
                for (int at = 0; at < 5; at++) {
                    statement.setInt(1, at);
                    statement.setString(2, "row " + at);
                    statement.addBatch();
                }
                return statement.executeBatch();
            }
        });
        Steps.step("several statements" + way, () -> {
            try (Statement statement = connection.createStatement()) {
                List<Object> all = new ArrayList<>();
                boolean isResult = statement.execute("SELECT 1 AS one; UPDATE everything SET i16 = 7 WHERE i32 = 3; SELECT COUNT(*) FROM parent");
                while (isResult || statement.getUpdateCount() != -1) {
                    all.add(isResult ? Steps.rows(statement.getResultSet()) : statement.getUpdateCount());
                    isResult = statement.getMoreResults();
                }
                return all;
            }
        });
        Steps.step("derived tables" + way, () -> {
            try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(
                    "SELECT q.*, p.name, COUNT(*) AS n, CONCAT(p.name, 'x') AS cx, MAX(q.total) AS m FROM (SELECT parent_id, SUM(i32) AS total "
                    + "FROM everything GROUP BY parent_id) AS q JOIN parent AS p ON p.id = q.parent_id GROUP BY p.id, p.name, q.parent_id, q.total")) {
                return List.of(Steps.columns(result.getMetaData()), Steps.rows(result).size());
            }
        });
        Steps.step("scroll and update" + way, () -> {
            try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    ResultSet result = statement.executeQuery("SELECT id, name FROM parent ORDER BY id")) {
                result.last();
                int count = result.getRow();
                result.absolute(1);
                result.updateString("name", "one" + way.length());
                result.updateRow();
                return List.of(count, result.getString("name"));
            }
        });
    }

    private static void metadata(Connection connection, String way) throws Exception {
        DatabaseMetaData meta = connection.getMetaData();
        Steps.step("tables", () -> Steps.rows(meta.getTables("jdbc_suite", null, "%", new String[] {"TABLE", "VIEW"})));
        Steps.step("columns", () -> Steps.rows(meta.getColumns("jdbc_suite", null, "everything", "%")));
        Steps.step("primary keys", () -> Steps.rows(meta.getPrimaryKeys("jdbc_suite", null, "everything")));
        Steps.step("indexes", () -> {
            List<Object> all = new ArrayList<>();
            try (ResultSet indexes = meta.getIndexInfo("jdbc_suite", null, "everything", false, false)) {
                while (indexes.next()) {
                    all.add(List.of(indexes.getString("INDEX_NAME"), indexes.getBoolean("NON_UNIQUE"), indexes.getString("COLUMN_NAME"),
                        indexes.getInt("ORDINAL_POSITION")));
                }
            }
            return all;
        });
        Steps.step("imported keys", () -> Steps.rows(meta.getImportedKeys("jdbc_suite", null, "everything")));
        Steps.step("exported keys", () -> Steps.rows(meta.getExportedKeys("jdbc_suite", null, "parent")).stream().map(Steps::shown)
            .sorted().toList());
        Steps.step("catalogs", () -> {
            List<String> all = new ArrayList<>();
            try (ResultSet catalogs = meta.getCatalogs()) {
                while (catalogs.next()) {
                    all.add(catalogs.getString(1));
                }
            }
            all.sort(null);
            return all;
        });
        Steps.step("parameters", () -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM parent WHERE id = ? AND name = ?")) {
                return List.of(statement.getParameterMetaData().getParameterCount(), Steps.columns(statement.getMetaData()));
            }
        });
    }

    private static void transactions(Connection connection, String way) {
        Steps.step("transaction", () -> {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("INSERT INTO parent (name) VALUES ('three')");
                Savepoint savepoint = connection.setSavepoint("s");
                statement.executeUpdate("INSERT INTO parent (name) VALUES ('four')");
                connection.rollback(savepoint);
                connection.commit();
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                List<Object> rows = Steps.rows(statement.executeQuery("SELECT name FROM parent WHERE id > 2 ORDER BY id"));
                connection.rollback();
                return List.of(rows, connection.getTransactionIsolation());
            }
        });
        Steps.step("read only", () -> {
            connection.setReadOnly(true);
            Object refused = Steps.refused(() -> connection.createStatement().executeUpdate("DELETE FROM parent"));
            connection.setReadOnly(false);
            connection.rollback();
            return refused;
        });
        Steps.step("time-out", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                return Steps.refused(() -> statement.executeQuery("SELECT SLEEP(20) FROM parent"));
            }
        });
        Steps.step("is valid", () -> connection.isValid(2));
    }

    private static void errors(Connection connection, String way) {
        String[] wrong = {"SELECT nothing", "SELECT * FROM nowhere", "SELEC 1", "INSERT INTO parent (id, name) VALUES (1, 'x')",
            "INSERT INTO everything (i8) VALUES (1000)", "INSERT INTO everything (parent_id) VALUES (99)", "INSERT INTO parent (name) VALUES (NULL)",
            "CREATE TABLE parent (a INT)", "DELETE FROM parent WHERE id = 1", "INSERT INTO everything (c) VALUES ('too long')",
            "SELECT 1; SELEC 2"};
        for (String sql : wrong) {
            Steps.step("error: " + sql, () -> Steps.refused(() -> {
                try (Statement statement = connection.createStatement()) {
                    boolean isResult = statement.execute(sql);
                    while (isResult || statement.getUpdateCount() != -1) {
                        isResult = statement.getMoreResults();
                    }
                    return null;
                }
            }));
        }
        Steps.step("warnings", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.execute("INSERT IGNORE INTO everything (i8) VALUES (1000)");
                return List.of(statement.getWarnings().getErrorCode(), statement.getWarnings().getMessage());
            }
        });
    }
}
