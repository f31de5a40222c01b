# SPDX-License-Identifier: GPL-2.0-only
"""KILL, time limits, DDL, restarts of either side, and the end of the plugin."""

import signal
import threading
import time

from harness import error, refused, run, until

LONG = "SELECT COUNT(*) FROM orders a, orders b, orders c, orders d WHERE a.amount + b.amount + c.amount + d.amount = -1"


def running_at_avocet(bench):
    away = bench.avocet.connect()
    rows = run(away, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%orders d%' AND info NOT LIKE '%processlist%'")
    away.close()
    return rows[0][0]


def test_kill_query(bench):
    victim = bench.connect(engine="FORCED")
    ended = []
    thread = threading.Thread(target=lambda: ended.append(error(victim, LONG)))
    thread.start()
    until("it runs at Avocet", lambda: running_at_avocet(bench) == 1)
    run(bench.connect(), f"KILL QUERY {victim.thread_id()}")
    begin = time.monotonic()
    thread.join(10)
    assert ended and ended[0][0] == 1317 and time.monotonic() - begin < 5, ended
    until("it has ended at Avocet", lambda: running_at_avocet(bench) == 0)
    assert run(victim, "SELECT COUNT(*) FROM orders") == ((900,),)


def test_max_execution_time(bench):
    session = bench.connect(engine="FORCED")
    run(session, "SET max_execution_time = 300")
    assert error(session, LONG)[0] == 3024
    run(session, "SET max_execution_time = 0")
    assert error(session, LONG.replace("SELECT", "SELECT /*+ MAX_EXECUTION_TIME(300) */", 1))[0] == 3024
    until("it has ended at Avocet", lambda: running_at_avocet(bench) == 0)


def test_client_leaves(bench):
    victim = bench.connect(engine="FORCED")
    victim._execute_command(3, "SELECT a.id, b.note, c.note FROM orders a, orders b, orders c, orders d")
    until("it runs at Avocet", lambda: running_at_avocet(bench) == 1)
    victim._force_close()
    until("it has ended at Avocet", lambda: running_at_avocet(bench) == 0)


def test_unix_socket(bench):
    bench.point_plugin(socket=True)
    assert run(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders") == ((900,),)
    bench.point_plugin()


def test_wrong_password(bench):
    admin = bench.connect()
    run(admin, "SET GLOBAL avocet_password = 'wrong'")
    refused(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders", "1045")
    on = bench.connect(engine="ON")
    run(on, "SET secondary_engine_cost_threshold = 0")
    assert run(on, "SELECT COUNT(*) FROM orders") == ((900,),)
    bench.point_plugin()
    assert run(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders") == ((900,),)


def test_ddl(bench):
    session = bench.connect(engine="FORCED")
    run(session, "CREATE TABLE ddl (id INT PRIMARY KEY, a INT)")
    refused_text = error(session, "SELECT * FROM ddl")[1]
    assert "secondary engine" in refused_text, refused_text
    run(session, "ALTER TABLE ddl SECONDARY_ENGINE = AVOCET")
    refused(session, "SELECT * FROM ddl", "not loaded")
    run(session, "INSERT INTO ddl VALUES (1, 10), (2, 20)")
    run(session, "ALTER TABLE ddl SECONDARY_LOAD")

    def both(query):
        run(session, "SET use_secondary_engine = FORCED")
        there = run(session, query)
        run(session, "SET use_secondary_engine = OFF")
        here = run(session, query)
        run(session, "SET use_secondary_engine = FORCED")
        assert there == here, f"{query}: Avocet {there}, InnoDB {here}"
        return there

    assert both("SELECT * FROM ddl ORDER BY id") == ((1, 10), (2, 20))
    run(session, "ALTER TABLE ddl ADD COLUMN b VARCHAR(10) DEFAULT 'new', ADD KEY (a)")
    assert both("SELECT * FROM ddl ORDER BY id") == ((1, 10, "new"), (2, 20, "new"))
    run(session, "ALTER TABLE ddl DROP COLUMN a")
    assert both("SELECT * FROM ddl ORDER BY id") == ((1, "new"), (2, "new"))
    run(session, "TRUNCATE TABLE ddl")
    assert both("SELECT COUNT(*) FROM ddl") == ((0,),)
    run(session, "INSERT INTO ddl VALUES (3, 'three')")
    assert both("SELECT * FROM ddl") == ((3, "three"),)
    run(session, "RENAME TABLE ddl TO ddl2")
    assert both("SELECT * FROM ddl2") == ((3, "three"),)
    run(session, "ALTER TABLE ddl2 SECONDARY_UNLOAD")
    refused(session, "SELECT * FROM ddl2", "not loaded")
    run(session, "ALTER TABLE ddl2 SECONDARY_LOAD")
    assert both("SELECT * FROM ddl2") == ((3, "three"),)
    run(session, "DROP TABLE ddl2")
    run(session, "CREATE TABLE ddl2 (id INT PRIMARY KEY) SECONDARY_ENGINE = AVOCET")
    refused(session, "SELECT * FROM ddl2", "not loaded")
    run(session, "DROP TABLE ddl2")


def test_table_that_is_not_followed(bench):
    session = bench.connect(engine="FORCED")
    run(session, "CREATE TABLE excluded (id INT PRIMARY KEY) SECONDARY_ENGINE = AVOCET")
    refused(session, "ALTER TABLE excluded SECONDARY_LOAD", "Avocet does not have the table")


def test_avocet_stops_and_comes_back(bench):
    on, forced = bench.connect(engine="ON"), bench.connect(engine="FORCED")
    run(on, "SET secondary_engine_cost_threshold = 0")
    assert run(forced, "SELECT COUNT(*) FROM orders") == ((900,),)
    victim = bench.connect(engine="ON")
    run(victim, "SET secondary_engine_cost_threshold = 0")
    # A query whose Avocet goes away before the first row is InnoDB's.
    rows = []
    short = "SELECT COUNT(*), MAX(a.amount + b.amount) FROM orders a, orders b, orders d WHERE a.id + b.id + d.id < 0 AND d.id < 40"
    thread = threading.Thread(target=lambda: rows.append(run(victim, short)))
    thread.start()
    bench.avocet.stop(signal.SIGKILL)
    thread.join(120)
    assert rows == [((0, None),)], rows
    refused(forced, "SELECT COUNT(*) FROM orders", "cannot connect to Avocet")
    assert run(on, "SELECT COUNT(*) FROM orders") == ((900,),)
    run(on, "UPDATE orders SET note = 'away' WHERE id = 3")
    bench.avocet.start()
    until("it follows again", lambda: run(forced, "SELECT note FROM orders WHERE id = 3") == (("away",),), 60)


def test_stale_avocet(bench):
    admin, on = bench.connect(), bench.connect(engine="ON")
    run(on, "SET secondary_engine_cost_threshold = 0")
    run(admin, "SET GLOBAL avocet_freshness_timeout = 200")
    run(admin, "SET GLOBAL avocet_connect_timeout = 200")
    bench.avocet.process.send_signal(signal.SIGSTOP)
    try:
        run(admin, "UPDATE orders SET note = 'later' WHERE id = 4")
        assert run(on, "SELECT note FROM orders WHERE id = 4") == (("later",),)
    finally:
        bench.avocet.process.send_signal(signal.SIGCONT)
        run(admin, "SET GLOBAL avocet_freshness_timeout = 5000")
        run(admin, "SET GLOBAL avocet_connect_timeout = 2000")
    until("it answers again", lambda: run(bench.connect(engine="FORCED"), "SELECT note FROM orders WHERE id = 4") == (("later",),), 60)


def test_avocet_stops_answering_in_mid_query(bench):
    victim = bench.connect(engine="ON")
    run(victim, "SET secondary_engine_cost_threshold = 0")
    rows = []
    query = "SELECT COUNT(*), MAX(a.amount + b.amount) FROM orders a, orders b, orders d WHERE a.id + b.id + d.id < 0 AND d.id < 100"
    thread = threading.Thread(target=lambda: rows.append(run(victim, query)))
    thread.start()
    until("it runs at Avocet", lambda: running_at_avocet(bench) == 1)
    bench.avocet.process.send_signal(signal.SIGSTOP)
    try:
        thread.join(60)
        assert rows == [((0, None),)], rows
        assert "does not answer any more" in bench.counter("avocet_last_fallback")
    finally:
        bench.avocet.process.send_signal(signal.SIGCONT)


def test_mysql_restarts(bench):
    for how in (signal.SIGTERM, signal.SIGKILL):
        bench.source.stop(how)
        bench.source.start()
        # SET GLOBAL was not PERSIST.
        refused(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders", "cannot connect to Avocet")
        bench.point_plugin()
        forced = bench.connect(engine="FORCED")
        run(forced, "UPDATE orders SET note = 'again' WHERE id = 5")
        until("it follows again", lambda: run(forced, "SELECT note FROM orders WHERE id = 5") == (("again",),), 60)


def test_uninstall(bench):
    admin = bench.connect()
    run(admin, "FLUSH TABLES")
    run(admin, "UNINSTALL PLUGIN avocet")
    assert run(admin, "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'AVOCET'") == ((0,),)
    on = bench.connect(engine="ON")
    run(on, "SET secondary_engine_cost_threshold = 0")
    assert run(on, "SELECT COUNT(*) FROM orders") == ((900,),)
    run(admin, "INSTALL PLUGIN avocet SONAME 'ha_avocet.so'")
    bench.point_plugin()
    until("it is used again", lambda: run(bench.connect(engine="FORCED"), "SELECT COUNT(*) FROM orders") == ((900,),))
