# SPDX-License-Identifier: GPL-2.0-only
"""What the tests share: a session on each side, comparison of answers, counters."""

import pymysql

from servers import until

SECONDARY_ENGINE_PLUGIN = 3877


class Bench:
    def __init__(self, source, avocet):
        self.source = source
        self.avocet = avocet

    def prepare(self):
        admin = self.connect("mysql")
        for statement in ("CREATE DATABASE t", "CREATE USER repl IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO repl",
                          "INSTALL PLUGIN avocet SONAME 'ha_avocet.so'"):
            run(admin, statement)
        admin.close()
        self.avocet.start()
        away = self.avocet.connect()
        for statement in ("SET GLOBAL super_read_only = OFF", "CREATE USER plugin IDENTIFIED BY 'pass''word'",
                          "GRANT SELECT, SHOW VIEW ON *.* TO plugin", "SET GLOBAL super_read_only = ON"):
            run(away, statement)
        away.close()
        self.point_plugin()

    def point_plugin(self, socket=False):
        admin = self.connect("mysql")
        run(admin, f"SET GLOBAL avocet_port = {self.avocet.port}")
        run(admin, f"SET GLOBAL avocet_socket = '{self.avocet.socket if socket else ''}'")
        run(admin, "SET GLOBAL avocet_user = 'plugin'")
        run(admin, "SET GLOBAL avocet_password = 'pass''word'")
        run(admin, "SET GLOBAL avocet_freshness_timeout = 5000")
        admin.close()

    def connect(self, database="t", engine=None, **options):
        """A session on MySQL; `engine` is its use_secondary_engine."""
        connection = self.source.connect(database=database, **options)
        if engine is not None:
            run(connection, f"SET use_secondary_engine = {engine}")
        return connection

    def load(self, *tables):
        admin = self.connect()
        for table in tables:
            run(admin, f"ALTER TABLE {table} SECONDARY_ENGINE = AVOCET")
            run(admin, f"ALTER TABLE {table} SECONDARY_LOAD")
        admin.close()

    def counter(self, name="avocet_offloaded_queries"):
        admin = self.connect("mysql")
        value = run(admin, f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1]
        admin.close()
        return value if name == "avocet_last_fallback" else int(value)


def run(connection, statement, arguments=None):
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return cursor.fetchall()


def error(connection, statement):
    """The number and text of the error that a statement ends with."""
    try:
        rows = run(connection, statement)
    except pymysql.err.Error as failure:
        return failure.args
    raise AssertionError(f"{statement}: no error, but {rows}")


def refused(connection, statement, words):
    number, text = error(connection, statement)
    assert number == SECONDARY_ENGINE_PLUGIN and words in text, f"{statement}: {number} {text}"


def answer(connection, statement):
    """Columns as announced and values as sent, unconverted; warnings. Which table a column comes from, and its flags, MySQL tells
    otherwise when it resolves a query for a secondary engine: it turns subqueries into derived tables."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows = cursor.fetchall()
        fields = cursor._result.fields
        columns = [(f.name, f.type_code, f.charsetnr, f.length, f.scale) for f in fields]
        return columns, rows, run(connection, "SHOW WARNINGS")


def same(bench, statements, setup=(), charset="utf8mb4"):
    """Each query has the same answer, byte for byte, from InnoDB and from Avocet, and did run there."""
    sessions = {}
    for engine in ("OFF", "FORCED"):
        sessions[engine] = bench.connect(engine=engine, conv={}, charset=charset)
        for statement in setup:
            run(sessions[engine], statement)
    before = bench.counter()
    for statement in statements:
        ours, theirs = answer(sessions["FORCED"], statement), answer(sessions["OFF"], statement)
        for what, left, right in zip(("columns", "rows", "warnings"), ours, theirs):
            assert left == right, f"{statement}: {what}\n  Avocet {left}\n  InnoDB {right}"
    ran = bench.counter() - before
    assert ran == len(statements), f"{ran} of {len(statements)} queries ran at Avocet"
    for connection in sessions.values():
        connection.close()


__all__ = ["answer", "error", "refused", "run", "same", "until"]
