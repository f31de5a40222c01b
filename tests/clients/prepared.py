#!/usr/bin/env python3
"""MySQL's own connector for Python, whose prepared statements are of a form of their own, against the fixed answers of
`cargo run -p avocet-server --example fixed_answers`.

Usage: prepared.py PORT
"""

import decimal
import sys

import mysql.connector

PORT = int(sys.argv[1])


def check(name, got, expected):
    if got != expected:
        sys.exit(f"{name}: {got!r} instead of {expected!r}")
    print(f"ok  {name}")


# In Python alone: the form with the C library is that of every other client.
connection = mysql.connector.connect(host="127.0.0.1", port=PORT, user="root", use_pure=True)
cursor = connection.cursor(prepared=True)
for value, read in [
    (2, "UInt(2)"),
    (-300, "Int(-300)"),
    ("grün", 'Str("grün")'),
    (1.5, "Double(1.5)"),
    (decimal.Decimal("-12.05"), "Decimal"),
    (None, "Null"),
]:
    cursor.execute("ECHO ?", (value,))
    shown = cursor.fetchone()[0]
    check(f"prepared, with {value!r}", shown[: len(read)], read)
connection.close()
