#!/usr/bin/env python3
"""Writes charsets.bin: the character sets that are not Unicode, and what their collations weigh.

    charsets.py host:port charsets.bin      (a MySQL 9.7 server, root without a password; needs the package pymysql)

For each of CHARSETS, behind its length (u32):

  codes      count, count × (code from the end of the run before, count, count × code point, from the one before, in zigzag form): runs of
             codes that follow one another, each code its bytes as a big-endian number
  back       count, count × (code point from the one before, code): characters whose code is not the first one that stands for them
  undone     count, count × (code point from the one before, 0): characters that have codes but are not encoded
  upper      count, count × (code point from the one before, code point)
  lower      the same
  collations count, count × (id, count, count × (code from the one before, length, weights as a big-endian number)): weights of
             characters that are not their code

Numbers are varints. Left out are collations that look at more than one character at a time: latin2_czech_cs, cp1250_czech_cs, tis620_thai_ci.
"""
import struct
import sys

import pymysql

# In the order of `Charset` in src/collation/charset.rs.
CHARSETS = """ascii latin1 armscii8 big5 cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 cp932 dec8 eucjpms euckr gb2312 gbk geostd8 greek hebrew hp8
keybcs2 koi8r koi8u latin2 latin5 latin7 macce macroman sjis swe7 ujis""".split()
LEFT_OUT = {"latin2_czech_cs", "cp1250_czech_cs", "tis620_thai_ci"}


def varint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def numbers(*values):
    return b"".join(varint(v) for v in values)


def zigzag(v):
    return v << 1 if v >= 0 else -v * 2 - 1


def mapping(pairs):
    out, last = bytearray(numbers(len(pairs))), 0
    for cp, to in sorted(pairs.items()):
        out += numbers(cp - last, to)
        last = cp
    return out


def code_point(text):
    raw = text.encode("utf-32-be") if isinstance(text, str) else text
    return int.from_bytes(raw, "big") if len(raw) == 4 else None


class Server:
    def __init__(self, address):
        host, port = address.split(":")
        self.cursor = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4").cursor()
        for sql in (
            "CREATE DATABASE IF NOT EXISTS charsets",
            "USE charsets",
            "SET SESSION cte_max_recursion_depth = 2000000",
            "DROP TABLE IF EXISTS characters, codes",
            "CREATE TABLE characters (n INT PRIMARY KEY, c VARCHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)",
            "INSERT INTO characters WITH RECURSIVE points (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM points WHERE n < 0xffff)"
            " SELECT n, CONVERT(UNHEX(LPAD(HEX(n), 8, '0')) USING utf32) FROM points WHERE n NOT BETWEEN 0xd800 AND 0xdfff",
            "CREATE TABLE codes (b VARBINARY(4) PRIMARY KEY)",
        ):
            self.ask(sql)
        codes = [bytes([a]) for a in range(256)]
        codes += [bytes([a, b]) for a in range(0x80, 256) for b in range(0x40, 256)]
        codes += [bytes([0x8F, a, b]) for a in range(0xA1, 255) for b in range(0xA1, 255)]
        for chunk in (codes[i : i + 10000] for i in range(0, len(codes), 10000)):
            self.ask("INSERT INTO codes VALUES " + ", ".join(f"(x'{code.hex()}')" for code in chunk))

    def ask(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall()

    def charset(self, name, max_len):
        """The character of each code, and the code of each character."""
        rows = self.ask(f"SELECT b, CONVERT(CAST(b AS CHAR CHARACTER SET {name}) USING utf32) FROM codes WHERE LENGTH(b) <= {max_len}")
        decoded = {bytes(b): code_point(u) for b, u in rows if u is not None}
        # What has no character in Unicode is shown as a question mark.
        decoded = {b: cp for b, cp in decoded.items() if cp is not None and (cp != 0x3F or b == b"?")}
        code = f"CONVERT(CONVERT(c USING {name}) USING binary)"
        encoded = {n: bytes(b) for n, b in self.ask(f"SELECT n, {code} FROM characters WHERE n = 0x3f OR {code} <> x'3f'")}
        return decoded, encoded

    def weights(self, name, codes, encoded):
        """The collations of a character set: by id, what each code weighs. And its upper and lower case."""
        self.ask(f"CREATE TEMPORARY TABLE letters (b VARBINARY(4) PRIMARY KEY, c VARCHAR(2) CHARACTER SET {name} COLLATE {name}_bin)")
        for chunk in (codes[i : i + 5000] for i in range(0, len(codes), 5000)):
            self.ask("INSERT INTO letters VALUES " + ", ".join(f"(x'{b.hex()}', _{name} x'{b.hex()}')" for b in chunk))
        collations = {}
        for coll, number in self.ask(f"SELECT collation_name, id FROM information_schema.collations WHERE character_set_name = '{name}'"):
            if coll not in LEFT_OUT and not coll.endswith("_bin"):
                rows = self.ask(f"SELECT b, WEIGHT_STRING(c COLLATE {coll}) FROM letters")
                collations[number] = {bytes(b): bytes(w) for b, w in rows}
        rows = self.ask("SELECT b, CONVERT(c USING utf32), CONVERT(UPPER(c) USING utf32), CONVERT(LOWER(c) USING utf32) FROM letters")
        cases = [[bytes(b), *map(code_point, row)] for b, *row in rows]
        # Of several codes of a character, the one that it is encoded as.
        cases = [row for b, *row in cases if encoded.get(row[0]) == b]
        self.ask("DROP TEMPORARY TABLE letters")
        upper = {c: u for c, u, _ in cases if u is not None and u != c}
        lower = {c: l for c, _, l in cases if l is not None and l != c}
        return collations, upper, lower


def number_of(code):
    return int.from_bytes(code, "big")


def check_prefixes(weights, max_len, coll):
    """Weights must order by characters as they do by bytes."""
    if max_len == 1:
        return
    kinds = {}
    for w in weights.values():
        assert kinds.setdefault(w[0], len(w)) == len(w), (coll, w)


def main(address, target):
    server = Server(address)
    out = bytearray()
    lengths = dict(server.ask("SELECT character_set_name, maxlen FROM information_schema.character_sets"))
    for name in CHARSETS:
        max_len = lengths[name]
        decoded, encoded = server.charset(name, max_len)
        codes = sorted(decoded, key=lambda b: (len(b), b))
        part, runs = bytearray(), []
        for code in codes:
            if runs and runs[-1][0] + len(runs[-1][1]) == number_of(code):
                runs[-1][1].append(decoded[code])
            else:
                runs.append((number_of(code), [decoded[code]]))
        part += numbers(len(runs))
        last = last_cp = 0
        for start, points in runs:
            part += numbers(start - last, len(points))
            last = start + len(points)
            for cp in points:
                part += numbers(zigzag(cp - last_cp))
                last_cp = cp
        first = {}
        for code in codes:
            first.setdefault(decoded[code], code)
        part += mapping({cp: number_of(code) for cp, code in encoded.items() if first.get(cp) != code})
        part += mapping({cp: 0 for cp in first if cp not in encoded})
        collations, upper, lower = server.weights(name, codes, encoded)
        part += mapping(upper) + mapping(lower)
        part += numbers(len(collations))
        for number, weights in sorted(collations.items()):
            check_prefixes(weights, max_len, number)
            part += numbers(number)
            own = {number_of(code): w for code, w in weights.items() if w != code}
            part += numbers(len(own))
            last = 0
            for code, w in sorted(own.items()):
                part += numbers(code - last, len(w), number_of(w))
                last = code
        print(f"{name}: {len(codes)} codes, {len(upper)} upper, {len(collations)} collations, {len(part)} bytes", flush=True)
        out += struct.pack("<I", len(part)) + part
    server.ask("DROP DATABASE charsets")
    with open(target, "wb") as file:
        file.write(out)


main(*sys.argv[1:])
