#!/usr/bin/env python3
"""PyMySQL against the fixed answers of `cargo run -p avocet-server --example fixed_answers`.

Usage: protocol.py PORT
"""

import datetime
import decimal
import ssl
import sys

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE

PORT = int(sys.argv[1])


def connect(**options):
    return pymysql.connect(host="127.0.0.1", port=PORT, **{"user": "root", **options})


def one(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


def check(name, got, expected):
    if got != expected:
        sys.exit(f"{name}: {got!r} instead of {expected!r}")
    print(f"ok  {name}")


def number(call):
    try:
        call()
    except pymysql.MySQLError as error:
        return error.args[0]
    return None


TLS = {"ssl": ssl._create_unverified_context()}
check("empty password", one(connect(), "SELECT USER"), ("root@localhost",))
check("native password", one(connect(user="native", password="secret"), "SELECT USER"), ("native@%",))
check("sha2 password by RSA", one(connect(user="sha2", password="secret"), "SELECT USER"), ("sha2@%",))
check("sha2 password from the cache", one(connect(user="sha2", password="secret"), "SELECT USER"), ("sha2@%",))
check("sha2 password under TLS", one(connect(user="sha2", password="secret", **TLS), "SELECT USER"), ("sha2@%",))
check("wrong password", number(lambda: connect(user="sha2", password="wrong")), 1045)
check("unknown database", number(lambda: connect(database="nowhere")), 1049)

connection = connect(client_flag=CLIENT.MULTI_STATEMENTS)
with connection.cursor() as cursor:
    cursor.execute("SELECT TYPES")
    row = cursor.fetchone()
    codes = [column[1] for column in cursor.description]
check("integers", row[:7], (-8, 200, -300, 70000, -70000, -(2**63), 2**64 - 1))
check("floating point and decimals", row[7:10], (1.5, 0.1, decimal.Decimal("-12.05")))
check("text and bytes", row[10:12], ("grün", b"\x00\xff'"))
check("dates", row[12:14], (datetime.date(2024, 2, 29), datetime.datetime(2023, 11, 14, 22, 13, 20, 123456)))
check("times", row[14:], (-datetime.timedelta(hours=25, minutes=1, seconds=1), 2024, None))
check("type codes", codes[9:11], [FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.VAR_STRING])
with connection.cursor() as cursor:
    cursor.execute("SELECT 1; INSERT; SELECT 1")
    check("first of several results", cursor.fetchall(), ((1,),))
    cursor.nextset()
    check("second of several results", (cursor.rowcount, cursor.lastrowid), (2, 41))
    cursor.nextset()
    check("last of several results", (cursor.fetchall(), cursor.nextset()), (((1,),), None))
check("syntax error", number(lambda: one(connection, "NONSENSE")), 1064)
with connection.cursor(pymysql.cursors.SSCursor) as cursor:
    cursor.execute("SELECT NUMBERS 50000")
    check("streamed rows", sum(row[0] for row in cursor.fetchall_unbuffered()), 50000 * 49999 // 2)
check("a value over 16 MB", len(one(connection, "SELECT LONG 17000000")[0]), 17000000)
connection.select_db("shop")
connection.ping()
connection.close()
