#!/usr/bin/env python3
"""Writes src/collation/testdata/charsets.tsv: checksums of what a MySQL server answers of character sets but utf8mb3 and utf8mb4.

    expected_charsets.py host:port charsets.tsv      (root without a password; needs the package pymysql)

A line for each character set: its name, SUM(CRC32(CONCAT(n, ':', HEX(c in it)))) over all code points n, and the same over codes of
one to three bytes, of the text that they are. A line for each of their collations: name, and the sums of WEIGHT_STRING, UPPER and LOWER
over the code points below 0x10000; a character that the character set has not is `?`.
"""
import sys

import pymysql
import tailorings

SETS = """ascii latin1 armscii8 big5 cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 cp932 dec8 eucjpms euckr gb2312 gbk geostd8 greek hebrew hp8
keybcs2 koi8r koi8u latin2 latin5 latin7 macce macroman sjis swe7 ujis ucs2 utf16 utf16le utf32""".split()
LEFT_OUT = {"latin2_czech_cs", "cp1250_czech_cs"}


def main(address, target):
    server = tailorings.Server(address)
    server.ask("CREATE TABLE codes (b VARBINARY(4) PRIMARY KEY)")
    codes = [bytes([a]) for a in range(256)]
    codes += [bytes([a, b]) for a in range(0x80, 256) for b in range(0x40, 256)]
    codes += [bytes([0x8F, a, b]) for a in range(0xA1, 255) for b in range(0xA1, 255)]
    for chunk in (codes[i : i + 10000] for i in range(0, len(codes), 10000)):
        server.ask("INSERT INTO codes VALUES " + ", ".join(f"(x'{code.hex()}')" for code in chunk))
    with open(target, "w", encoding="ascii") as out:
        for name in SETS:
            encoded = server.ask(f"SELECT SUM(CRC32(CONCAT(n, ':', HEX(CONVERT(c USING {name}))))) FROM characters")[0][0]
            text = f"CONVERT(CAST(b AS CHAR CHARACTER SET {name}) USING utf8mb4)"
            # Without codes that have the form of a character, or of a part of one, but are none. By their bytes: the collations of utf8mb4
            # find a question mark in a wide one, and take control characters for nothing.
            known = f"b = x'3f' OR LENGTH({text}) > 0 AND LOCATE(x'3f', CAST({text} AS BINARY)) = 0"
            where = "WHERE FALSE" if name in ("ucs2", "utf16", "utf16le", "utf32") else f"WHERE {known}"
            # Pairs of bytes that are UTF-8 pass as ASCII there.
            where = "WHERE b < x'80'" if name == "ascii" else where
            decoded = server.ask(f"SELECT SUM(CRC32(CONCAT(HEX(b), ':', HEX({text})))) FROM codes {where}")[0][0]
            out.write(f"{name}\t{encoded}\t{decoded or 0}\n")
            rows = server.ask(f"SELECT collation_name FROM information_schema.collations WHERE character_set_name = '{name}' ORDER BY id")
            for (collation,) in rows:
                if collation in LEFT_OUT:
                    continue
                text = f"(CONVERT(c USING {name}) COLLATE {collation})"
                of = [f"HEX(WEIGHT_STRING({text}))", f"HEX(CONVERT(UPPER({text}) USING utf8mb4))", f"HEX(CONVERT(LOWER({text}) USING utf8mb4))"]
                sums = ", ".join(f"SUM(CRC32(CONCAT(n, ':', {answer})))" for answer in of)
                out.write("\t".join([collation, *map(str, server.ask(f"SELECT {sums} FROM characters WHERE n < 0x10000")[0])]) + "\n")
            out.flush()
            print(name, flush=True)
    server.ask("DROP DATABASE tailorings")


main(*sys.argv[1:])
