#!/usr/bin/env python3
"""Writes src/collation/testdata/weights.tsv: checksums of what a MySQL server answers, which the tests compute as well.

    expected.py host:port tailorings.bin weights.tsv      (after tailorings.py; root without a password; needs the package pymysql)

A line for each collation of utf8mb3 and utf8mb4: its name, then SUM(CRC32(CONCAT(n, ':', HEX(WEIGHT_STRING(c COLLATE …))))) over
all code points n, and over the strings of samples.txt, n their line; then the same of UPPER(c) and LOWER(c), before two spaces: MySQL
changes a text where it stands, and has no room for an other case that takes more bytes at its end. samples.txt holds all sequences of the tailorings, also between letters and one after the other.
"""
import struct
import sys

import pymysql
import tailorings


def sequences(path):
    """The sequences in the file that tailorings.py wrote."""
    data, at = open(path, "rb").read(), 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def u32():
        nonlocal at
        at += 4
        return struct.unpack_from("<I", data, at - 4)[0]

    def skip(count):
        for _ in range(count):
            number()

    for _ in range(u32()):
        skip(1)
        skip(number())
    for _ in range(2):
        skip(2 * u32())
    found = []
    for kind, name in tailorings.TAILORINGS:
        levels = tailorings.levels_of(kind, name)
        end = u32() + at
        skip(4 * number())
        skip(2 * number())
        skip(32 * number())
        for _ in range(number()):
            skip(1)
            count = number()
            at += 2 * count
        for _ in range(number()):
            skip(1)
            for _ in range(levels):
                skip(number())
        own = []
        for _ in range(number()):
            own.append("".join(chr(number()) for _ in range(number())))
            for _ in range(levels):
                skip(number())
        assert at == end, name
        # A dot above before another mark: MySQL writes a zero among its weights, which is none here.
        found.append([s for s in own if s[0] != "\u0307" and s[0] != "\u0328"])
    return found


def main(address, binary, target):
    samples = ["", "a", "a ", "Straße", "Größe", "œuvre", "æble", "Łódź", "ñandú", "Ålborg", "Aarhus", "llama", "chleba", "cz", "hz", "日本語",
               "한국어", "Привет", "ελληνικά", "שלום", "สวัสดี", "a\u0301\u0323b", "\u0301", "👍🏽", "a\0b", "e\u0301", "İstanbul", "ıIiİ"]
    for own in sequences(binary):
        chosen = own if len(own) < 60 else own[:: len(own) // 60]
        for i, s in enumerate(chosen):
            samples += [s, f"x{s}y", s + chosen[i - 1], f"{s[:-1]} {s[-1]}", s[::-1]]
    # MySQL takes the end of a string for what stands before its start, at the second and third level.
    samples = sorted({s for s in samples if not (s and ord(s[0]) in tailorings.KANA_MARKS)})
    with open(target.replace("weights.tsv", "samples.txt"), "w", encoding="utf-8") as out:
        out.write("".join(s.replace("\\", "\\\\").replace("\0", "\\0") + "\n" for s in samples))
    server = tailorings.Server(address)
    server.ask("CREATE TABLE samples (n INT PRIMARY KEY, c VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
    server.ask("INSERT INTO samples VALUES " + ", ".join("(%d, _utf8mb4 x'%s')" % (n, s.encode().hex()) for n, s in enumerate(samples)))
    rows = server.ask(
        "SELECT collation_name, character_set_name FROM information_schema.collations WHERE character_set_name IN ('utf8mb3', 'utf8mb4') ORDER BY id")
    with open(target, "w", encoding="ascii") as out:
        for name, charset in rows:
            checksums = []
            limit = "WHERE n < 0x10000" if charset == "utf8mb3" else ""
            text = "c" if charset == "utf8mb4" else "CONVERT(c USING utf8mb3)"
            for table in ("characters", "samples"):
                of = f"HEX(WEIGHT_STRING({text} COLLATE {name}))"
                where = limit if table == "characters" else ""
                checksums += server.ask(f"SELECT SUM(CRC32(CONCAT(n, ':', {of}))) FROM {table} {where}")[0]
            for function in ("UPPER", "LOWER"):
                of = f"HEX(LEFT({function}(CONCAT({text}, '  ') COLLATE {name}), 1))"
                checksums += server.ask(f"SELECT SUM(CRC32(CONCAT(n, ':', {of}))) FROM characters {limit}")[0]
            out.write("\t".join([name, *map(str, checksums)]) + "\n")
    server.ask("DROP DATABASE tailorings")


main(*sys.argv[1:])
