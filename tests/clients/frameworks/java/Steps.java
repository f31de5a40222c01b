// What the programs of this folder share: steps, each of which prints one line of JSON with its name and what it gave.

import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

final class Steps {
    static final String HOST = System.getenv("SUITE_HOST");
    static final String PORT = System.getenv("SUITE_PORT");

    interface Run {
        Object run() throws Exception;
    }

    private Steps() {}

    static void step(String name, Run run) {
        try {
            print(name, "gave", shown(run.run()));
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            while (cause.getCause() != null && cause.getCause() != cause) {
                cause = cause.getCause();
            }
            print(name, "error", String.valueOf(cause));
        }
    }

    private static void print(String name, String key, String value) {
        System.out.println("{\"step\": " + quoted(name) + ", \"" + key + "\": " + quoted(value) + "}");
    }

    private static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }

    static String shown(Object value) {
        if (value instanceof byte[] bytes) {
            return "bytes " + Arrays.toString(bytes);
        }
        if (value instanceof int[] numbers) {
            return Arrays.toString(numbers);
        }
        if (value instanceof Object[] values) {
            return shown(Arrays.asList(values));
        }
        if (value instanceof List<?> values) {
            return values.stream().map(Steps::shown).toList().toString();
        }
        return String.valueOf(value);
    }

    /** The rows of a result, each value with its class. */
    static List<Object> rows(ResultSet result) throws SQLException {
        List<Object> rows = new ArrayList<>();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int at = 1; at <= columns; at++) {
                Object value = result.getObject(at);
                row.add(value == null ? "null" : value.getClass().getSimpleName() + " " + shown(value));
            }
            rows.add(row);
        }
        return rows;
    }

    /** What a driver makes of the columns of a result. */
    static List<Object> columns(ResultSetMetaData meta) throws SQLException {
        List<Object> columns = new ArrayList<>();
        for (int at = 1; at <= meta.getColumnCount(); at++) {
            columns.add(List.of(meta.getColumnLabel(at), meta.getColumnName(at), meta.getTableName(at),
                meta.getColumnType(at), meta.getColumnTypeName(at), meta.getColumnClassName(at),
                meta.isNullable(at), meta.isAutoIncrement(at), meta.isSigned(at)));
        }
        return columns;
    }

    /** The error that is expected. */
    static Object refused(Run run) throws Exception {
        try {
            run.run();
        } catch (SQLException error) {
            return List.of(error.getErrorCode(), error.getSQLState(), error.getClass().getSimpleName());
        }
        throw new AssertionError("was not refused");
    }
}
