# SPDX-License-Identifier: GPL-2.0-only
"""Answers equal InnoDB's: types, shapes of queries, both protocols."""

import mysql.connector

from harness import refused, run, same

TYPES = """CREATE TABLE types (id INT PRIMARY KEY, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, m MEDIUMINT, mu MEDIUMINT UNSIGNED,
 i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(65,30), d0 DECIMAL(10), f FLOAT, g DOUBLE, bits BIT(1), bits64 BIT(64),
 dt DATE, tm TIME, tm6 TIME(6), dtm DATETIME, dtm3 DATETIME(3), dtm6 DATETIME(6), ts TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL, y YEAR,
 c CHAR(10), v VARCHAR(100), l VARCHAR(100) CHARACTER SET latin1, ci VARCHAR(20) COLLATE utf8mb4_general_ci, bn BINARY(4),
 vb VARBINARY(100), tx TEXT, bl BLOB, en ENUM('a','b','ü'), st SET('x','y','z'), j JSON)"""
FULL = r"""(1, -128, 255, -32768, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615,
 -12345678901234567890123456789012345.123456789012345678901234567890, 9999999999, 1.1, 0.1, 1, 0xFFFFFFFFFFFFFFFF,
 '9999-12-31', '-838:59:59', '838:59:58.999999', '1000-01-01 00:00:00', '2024-02-29 12:34:56.789', '9999-12-31 23:59:59.999999',
 '2038-01-19 03:14:07', '1970-01-01 00:00:01.000001', 2155, 'char  ', 'varchar 😀', 'latin1 é', 'ß', 'ab', x'00ff10', 'text',
 x'0001027f80ff', 'ü', 'x,z', '{"a": [1, 2.5, null, true, "é"], "b": {}}'),
 (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '1000-01-01', '00:00:00', '00:00:00', '1970-01-01', '1970-01-01', '1970-01-01',
 '1970-01-01 00:00:01', '1970-01-01 00:00:01', 1901, '', '', '', '', '', '', '', '', 'a', '', '[]'),
 (4, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0.5, 7, 3.4028e38, 1.7976931348623157e308, 0, 5, '2024-05-06', '-00:00:01', '-00:00:00.000001',
 '2024-05-06 07:08:09', '2024-05-06 07:08:09.01', '2024-05-06 07:08:09.5', '2024-05-06 07:08:09', '2024-05-06 07:08:09.25', 2024,
 'C', 'V', 'L', 'I', 'bbbb', 'bb', 'tx', 'bl', 'b', 'y', '"s"'), (5, 1, 1, 1, 1, 1, 1, 1, 1, 1, -0.5, 1, -1.17549e-38,
 2.2250738585072014e-308, 1, 6, '2024-05-07', '23:59:59', '23:59:59.5', '2024-05-07', '2024-05-07', '2024-05-07', '2024-05-07',
 '2024-05-07', 2025, 'd', 'w', 'm', 'j', 'cc', 'cc', 'ty', 'bm', NULL, 'x', '3')"""


def test_every_type(bench):
    admin = bench.connect()
    run(admin, TYPES)
    run(admin, f"INSERT INTO types VALUES {FULL}")
    run(admin, "INSERT INTO types (id) VALUES (3)")
    bench.load("types")
    names = [row[0] for row in run(admin, "SHOW COLUMNS FROM types")]
    queries = ["SELECT * FROM types ORDER BY id"]
    queries += [f"SELECT `{name}` FROM types ORDER BY id" for name in names]
    queries += [f"SELECT MAX(`{name}`), MIN(`{name}`), COUNT(DISTINCT `{name}`) FROM types"
                for name in names if name not in ("en", "st", "j", "bits", "bits64")]
    same(bench, queries)
    for charset in ("latin1", "utf8mb3"):
        same(bench, ["SELECT id, l, c, en, bl FROM types WHERE id <> 1 ORDER BY id", "SELECT 'é', l FROM types WHERE l = 'latin1 é'"],
             charset=charset)
    same(bench, ["SELECT id, en, c, vb FROM types ORDER BY id"], setup=["SET character_set_results = NULL"], charset="latin1")


def test_binary_protocol(bench):
    # The connector reads neither a YEAR nor a time of no bytes.
    names = [row[0] for row in run(bench.connect(), "SHOW COLUMNS FROM types") if row[0] != "y"]
    answers = {}
    for engine in ("OFF", "FORCED"):
        connection = mysql.connector.connect(host="127.0.0.1", port=bench.source.port, user="root", database="t", autocommit=True,
                                             use_pure=True, ssl_disabled=True)
        plain = connection.cursor()
        plain.execute(f"SET use_secondary_engine = {engine}")
        before = bench.counter()
        cursor = connection.cursor(prepared=True)
        results = []
        for statement, values in (
            (f"SELECT {', '.join(names)} FROM types WHERE id >= %s AND id <> 2 ORDER BY id", [(1,), (2,), (3,), (1,)]),
            ("SELECT id, t, bu, d, f, g, bits64, dtm6, ts6, c, vb, en, st, j FROM types WHERE id = %s", [(2,)]),
            ("SELECT id, g * %s, %s FROM types WHERE v = %s OR id < %s ORDER BY id LIMIT 3", [(1.0, "é", "varchar 😀", 3)]),
            ("SELECT id, dtm6 FROM types WHERE dtm6 < %s AND id > %s ORDER BY id", [("2024-05-06 07:08:09.6", 1), ("2024-05-08", 0)]),
            ("SELECT SUM(d), AVG(i), SUM(g), %s / 3 FROM types", [(1.5,), (None,), (2.25,)]),
        ):
            for row in values:
                cursor.execute(statement, row)
                results.append((cursor.description, cursor.fetchall()))
        answers[engine] = results
        assert engine == "OFF" or bench.counter() - before == len(results), bench.counter("avocet_last_fallback")
        connection.close()
    assert answers["OFF"] == answers["FORCED"], answers


def test_statements_prepared_in_sql(bench):
    connection = bench.connect(engine="FORCED")
    run(connection, "SET @a = 2, @b = 'L'")
    run(connection, "PREPARE q FROM 'SELECT id, v FROM types WHERE id > ? OR l = ? ORDER BY id'")
    before = bench.counter()
    for _ in range(3):
        assert run(connection, "EXECUTE q USING @a, @b") == ((3, None), (4, "V"), (5, "w"))
    assert bench.counter() - before == 3


def test_shapes(bench):
    admin = bench.connect()
    run(admin, "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(30), region VARCHAR(10))")
    run(admin, "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount DECIMAL(12,2), day DATE, note VARCHAR(20), KEY (customer))")
    run(admin, "INSERT INTO customers SELECT n, CONCAT('c', n), ELT(n % 3 + 1, 'north', 'south', NULL) FROM (WITH RECURSIVE s AS "
               "(SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 100) SELECT n FROM s) s")
    run(admin, "INSERT INTO orders WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 900) "
               "SELECT n, n * 7 % 120, n * 1.25, '2024-01-01' + INTERVAL n DAY, IF(n % 5 = 0, NULL, CONCAT('n', n % 9)) FROM s")
    run(admin, "CREATE VIEW totals AS SELECT customer, SUM(amount) total FROM orders GROUP BY customer")
    run(admin, "ANALYZE TABLE customers, orders")
    bench.load("customers", "orders")
    same(bench, [
        "SELECT COUNT(*), SUM(amount), AVG(amount), MIN(day), MAX(note) FROM orders",
        "SELECT region, COUNT(*), SUM(amount) FROM customers c JOIN orders o ON o.customer = c.id GROUP BY region ORDER BY region",
        "SELECT region, name, SUM(amount) FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY region, name WITH ROLLUP "
        "ORDER BY region IS NULL, region, name IS NULL, name LIMIT 20",
        "SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > 1000) ORDER BY id",
        "SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id) ORDER BY name",
        "SELECT name, (SELECT MAX(amount) FROM orders o WHERE o.customer = c.id) m FROM customers c ORDER BY m DESC, name LIMIT 5 OFFSET 3",
        "SELECT id FROM customers WHERE id < 3 UNION SELECT id FROM orders WHERE id < 5 ORDER BY id",
        "SELECT id, name FROM customers WHERE id < 3 UNION ALL SELECT id, note FROM orders WHERE id < 3 ORDER BY 1, 2",
        "(SELECT id FROM customers ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM orders ORDER BY id DESC LIMIT 2) ORDER BY id",
        "SELECT id FROM customers INTERSECT SELECT customer FROM orders ORDER BY id LIMIT 4",
        "SELECT id FROM orders WHERE id < 10 EXCEPT SELECT id FROM customers WHERE id < 5 ORDER BY id",
        "WITH big AS (SELECT * FROM orders WHERE amount > 900) SELECT COUNT(*), MIN(b.id) FROM big b JOIN customers c ON c.id = b.customer",
        "SELECT * FROM (SELECT customer, RANK() OVER (ORDER BY SUM(amount) DESC, customer) r FROM orders GROUP BY customer) x WHERE r <= 5 ORDER BY r",
        "SELECT * FROM totals ORDER BY total DESC, customer LIMIT 5",
        "SELECT GROUP_CONCAT(DISTINCT region ORDER BY region SEPARATOR '|'), 'it''s', \"q\\\"\", 'a\\'?@' FROM customers",
        "SELECT DISTINCT region FROM customers ORDER BY region",
        "SELECT * FROM orders WHERE 1 = 0",
        "SELECT MAX(id) FROM orders WHERE id > 100000",
        "SELECT day, YEAR(day), DATE_FORMAT(day, '%W %M'), day + INTERVAL 1 MONTH FROM orders ORDER BY id LIMIT 5",
        "SELECT CASE WHEN amount > 500 THEN 'high' ELSE 'low' END k, COUNT(*) FROM orders GROUP BY k ORDER BY k",
        "SELECT amount / 3, amount DIV 7, amount * 1.5, ROUND(amount, 1), CAST(amount AS DOUBLE) FROM orders ORDER BY id LIMIT 5",
        "SELECT /*+ SET_VAR(sort_buffer_size = 300000) */ o.id /* comment ' */ FROM orders o -- tail\n ORDER BY id LIMIT 1",
        "SELECT id FROM orders ORDER BY id LIMIT 0",
        "TABLE customers ORDER BY id LIMIT 3",
        "SELECT amount / 0, note + 1 FROM orders WHERE id < 3 ORDER BY id",
    ])


def test_large_rows_and_results(bench):
    admin = bench.connect(max_allowed_packet=64 << 20)
    run(admin, "CREATE TABLE wide (id INT PRIMARY KEY, b LONGBLOB)")
    run(admin, "INSERT INTO wide VALUES (1, REPEAT('a', 20000000)), (2, REPEAT('b', 16777215)), (3, '')")
    bench.load("wide")
    same(bench, ["SELECT id, b FROM wide ORDER BY id"])
    assert run(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders a, orders b WHERE a.id <> b.id") == ((809100,),)
    big = run(bench.connect(engine="FORCED"), "SELECT a.id, b.id FROM orders a, orders b WHERE a.id < 200")
    assert len(big) == 199 * 900 and sum(row[0] for row in big) == 199 * 100 * 900


def test_cost_decides(bench):
    connection = bench.connect(engine="ON")
    before = bench.counter()
    assert run(connection, "SELECT COUNT(*) FROM orders") == ((900,),)
    assert bench.counter() == before
    run(connection, "SET secondary_engine_cost_threshold = 10")
    assert run(connection, "SELECT COUNT(*) FROM orders") == ((900,),)
    assert run(connection, "SELECT amount FROM orders WHERE id = 4") == ((5,),)
    assert bench.counter() == before + 1, bench.counter("avocet_last_fallback")
    assert "AVOCET" in str(run(connection, "EXPLAIN SELECT COUNT(*) FROM orders"))


def test_refused_by_name(bench):
    forced = bench.connect(engine="FORCED")
    run(forced, "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN 2 * n")
    run(forced, "CREATE PROCEDURE look() SELECT COUNT(*) FROM orders")
    run(forced, "CREATE VIEW mine AS SELECT id, CURRENT_USER() who FROM orders")
    run(forced, "CREATE TABLE copy_of (n BIGINT)")
    for statement, words in (
        ("SELECT @a FROM orders", "variables"), ("SELECT @@sql_mode FROM orders", "variables"),
        ("SELECT RAND() FROM orders", "RAND()"), ("SELECT LAST_INSERT_ID() FROM orders", "LAST_INSERT_ID()"),
        ("SELECT CONNECTION_ID() FROM orders", "CONNECTION_ID()"), ("SELECT current_user FROM orders", "CURRENT_USER"),
        ("SELECT USER () FROM orders", "USER()"), ("SELECT UUID() FROM orders", "UUID()"),
        ("SELECT id FROM orders FOR UPDATE", "locks"), ("SELECT id FROM orders LOCK IN SHARE MODE", "locks"),
        ("SELECT COUNT(*) FROM orders INTO @n", "INTO"), ("SELECT SQL_CALC_FOUND_ROWS id FROM orders LIMIT 1", "SQL_CALC"),
        ("SELECT /*!80000 id */ FROM orders", "version comments"), ("SELECT twice(id) FROM orders", "functions"),
        ("CALL look()", "stored program"), ("SELECT who FROM mine", "view mine"),
        ("INSERT INTO copy_of SELECT COUNT(*) FROM orders", "only SELECT"),
        ("CREATE TABLE other AS SELECT COUNT(*) FROM orders", "only SELECT"),
        ("EXPLAIN ANALYZE SELECT COUNT(*) FROM orders", "EXPLAIN ANALYZE"),
    ):
        refused(forced, statement, words)
    on = bench.connect(engine="ON")
    run(on, "SET secondary_engine_cost_threshold = 0")
    before = bench.counter()
    run(on, "INSERT INTO copy_of SELECT COUNT(*) FROM orders")
    run(on, "CREATE TABLE other AS SELECT COUNT(*) n FROM orders")
    assert run(on, "SELECT n FROM copy_of UNION ALL SELECT n FROM other") == ((900,), (900,))
    assert run(on, "CALL look()") == ((900,),)
    run(on, "SELECT COUNT(*) FROM orders INTO @n")
    assert run(on, "SELECT @n, COUNT(*) FROM orders") == ((900, 900),)
    assert run(on, "SELECT DISTINCT who FROM mine") == (("root@localhost",),)
    assert len(run(on, "SELECT RAND() FROM orders")) == 900
    run(on, "CREATE TEMPORARY TABLE orders (id INT)")
    assert run(on, "SELECT COUNT(*) FROM orders") == ((0,),)
    assert bench.counter() == before
    assert "view mine" in run(on, "SHOW STATUS LIKE 'avocet_last_fallback'")[0][1] or bench.counter("avocet_fallbacks") > 0
