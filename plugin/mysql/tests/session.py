# SPDX-License-Identifier: GPL-2.0-only
"""What a session is set to holds at Avocet; what is committed is seen."""

import random
import threading

from harness import refused, run, same


def test_settings(bench):
    for setup, queries in (
        (["SET time_zone = '+05:30'"], ["SELECT ts, ts6, UNIX_TIMESTAMP(ts6) FROM types ORDER BY id"]),
        (["SET timestamp = 1700000000.123456"], ["SELECT NOW(6), CURDATE(), UTC_TIMESTAMP(3), UNIX_TIMESTAMP() FROM orders LIMIT 1"]),
        (["SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'"], ["SELECT \"id\" || 'x' FROM orders ORDER BY id LIMIT 2"]),
        (["SET sql_mode = 'NO_BACKSLASH_ESCAPES'"], ["SELECT 'a\\', id FROM orders ORDER BY id LIMIT 2"]),
        (["SET sql_mode = ''"], ["SELECT note, COUNT(*) FROM orders WHERE note = 'n1' GROUP BY note"]),
        (["SET sql_select_limit = 3"], ["SELECT id FROM orders ORDER BY id", "SELECT id FROM orders ORDER BY id LIMIT 5"]),
        (["SET group_concat_max_len = 10"], ["SELECT GROUP_CONCAT(id ORDER BY id) FROM orders"]),
        (["SET div_precision_increment = 9"], ["SELECT amount / 7, AVG(amount) FROM orders GROUP BY id ORDER BY id LIMIT 2"]),
        (["SET NAMES utf8mb4 COLLATE utf8mb4_bin"], ["SELECT COUNT(*) FROM orders WHERE 'a' = 'A'"]),
        (["SET lc_time_names = 'de_DE'"], ["SELECT MONTHNAME(day), DAYNAME(day), DATE_FORMAT(day, '%a %b') FROM orders ORDER BY id LIMIT 5"]),
        (["SET default_week_format = 3"], ["SELECT WEEK(day) FROM orders ORDER BY id LIMIT 3"]),
        (["CREATE DATABASE IF NOT EXISTS away", "USE away"], ["SELECT DATABASE(), COUNT(*) FROM t.orders"]),
    ):
        same(bench, queries, setup)
    session = bench.connect(engine="FORCED")
    run(session, "SET sql_auto_is_null = ON")
    refused(session, "SELECT id FROM orders WHERE id IS NULL", "sql_auto_is_null")


def test_found_rows_and_counts(bench):
    session = bench.connect(engine="FORCED")
    run(session, "SELECT id FROM orders WHERE id < 8")
    assert run(session, "SELECT FOUND_ROWS()") == ((7,),)


def test_transactions_stay(bench):
    session = bench.connect(engine="ON")
    run(session, "SET secondary_engine_cost_threshold = 0")
    run(session, "BEGIN")
    run(session, "UPDATE orders SET note = 'mine' WHERE id = 1")
    before = bench.counter()
    assert run(session, "SELECT COUNT(*) FROM orders WHERE note = 'mine'") == ((1,),)
    run(session, "ROLLBACK")
    assert bench.counter() == before
    assert run(session, "SELECT COUNT(*) FROM orders WHERE note = 'mine'") == ((0,),)
    assert bench.counter() == before + 1


def test_last_write_is_seen(bench):
    session = bench.connect(engine="FORCED")
    for round_ in range(200):
        run(session, f"UPDATE orders SET amount = {round_} WHERE id = 2")
        assert run(session, "SELECT amount FROM orders WHERE id = 2") == ((round_,),)


def test_sums_are_constant(bench):
    admin = bench.connect()
    run(admin, "CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL)")
    run(admin, "INSERT INTO accounts SELECT id, 100 FROM orders WHERE id <= 100")
    bench.load("accounts")
    stop = threading.Event()
    done = []

    def transfer(seed):
        random_ = random.Random(seed)
        session = bench.connect(autocommit=False)
        count = 0
        while not stop.is_set():
            payer, payee = sorted(random_.sample(range(1, 101), 2))
            run(session, f"UPDATE accounts SET balance = balance - 7 WHERE id = {payer}")
            run(session, f"UPDATE accounts SET balance = balance + 7 WHERE id = {payee}")
            session.commit()
            count += 1
        done.append(count)

    writers = [threading.Thread(target=transfer, args=(seed,)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    try:
        forced, innodb = bench.connect(engine="FORCED"), bench.connect(engine="OFF")
        run(admin, "CREATE TABLE counted (id INT PRIMARY KEY, n INT)")
        run(admin, "INSERT INTO counted VALUES (1, 0)")
        bench.load("counted")
        for round_ in range(200):
            assert run(forced, "SELECT SUM(balance), COUNT(*) FROM accounts") == ((10000, 100),)
            run(innodb, "UPDATE counted SET n = n + 1 WHERE id = 1")
            # What another session has seen in InnoDB is seen at Avocet, too.
            seen = run(innodb, "SELECT n FROM counted WHERE id = 1")[0][0]
            assert run(forced, "SELECT n FROM counted")[0][0] >= seen == round_ + 1
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert sum(done) > 100, done
