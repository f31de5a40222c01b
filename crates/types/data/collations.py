#!/usr/bin/env python3
"""Writes collations.bin, the tables behind src/collation/, from public data.

    collations.py allkeys-9.0.0.txt characters.tsv collations.bin

- allkeys-9.0.0.txt: the Default Unicode Collation Element Table, version 9.0.0 (Unicode data files license).
- characters.tsv: one line for each code point but surrogates, as a MySQL server answers

    SELECT HEX(n), HEX(WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci)), HEX(WEIGHT_STRING(c COLLATE utf8mb4_general_ci)),
           HEX(CONVERT(LEFT(UPPER(d COLLATE utf8mb4_0900_ai_ci), 1) USING utf32)), HEX(CONVERT(LEFT(LOWER(d COLLATE utf8mb4_0900_ai_ci), 1) USING utf32)),
           HEX(CONVERT(LEFT(UPPER(d COLLATE utf8mb4_general_ci), 1) USING utf32)), HEX(CONVERT(LEFT(LOWER(d COLLATE utf8mb4_general_ci), 1) USING utf32))

  where d is CONCAT(c, '  '): MySQL changes a text where it stands, and has no room for an other case that takes more bytes at its end.

Six sections, each a u32 count of records, sorted by code point; code points are varint differences to the one
before, other numbers varints:
  1  collation elements, version 9.0.0: code point, count, count × (primary, secondary, tertiary)
  2  primary weights, version 4.0.0:    code point, count, count × weight
  3  general_ci:                        code point, weight (others weigh their code point)
  4  upper case, lower case, version 9: code point, mapped (others map to themselves)
  6  upper case, lower case, older
"""
import re
import struct
import sys


def varint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def section(records):
    out, last = bytearray(struct.pack("<I", len(records))), 0
    for cp, numbers in records:
        out += varint(cp - last)
        last = cp
        for n in numbers:
            out += varint(n)
    return out


def elements(path):
    records = []
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line or line.startswith("@"):
            continue
        cps, weights = line.split(";")
        cps = cps.split()
        if len(cps) == 1:  # MySQL's root collations have no contractions
            ces = re.findall(r"\[[.*](\w+)\.(\w+)\.(\w+)\]", weights)
            records.append((int(cps[0], 16), [len(ces)] + [int(w, 16) for ce in ces for w in ce]))
    return sorted(records)


def implicit4(cp):
    base = 0xFB40 if 0x4E00 <= cp <= 0x9FA5 else 0xFB80 if 0x3400 <= cp <= 0x4DB5 else 0xFBC0
    return [base + (cp >> 15), cp & 0x7FFF | 0x8000]


def main(allkeys, characters, target):
    uca4, general, cases = [], [], [[], [], [], []]
    for line in open(characters, encoding="ascii"):
        cp, *fields = line.rstrip("\n").split("\t")
        cp = int(cp, 16)
        unicode_ci, general_ci, *mapped = fields
        weights = [int(unicode_ci[i : i + 4], 16) for i in range(0, len(unicode_ci), 4)]
        if cp < 0x10000 and weights != implicit4(cp):
            uca4.append((cp, [len(weights)] + weights))
        if cp < 0x10000 and int(general_ci or "0", 16) != cp:
            general.append((cp, [int(general_ci or "0", 16)]))
        for table, to in zip(cases, mapped):
            if to and int(to, 16) != cp:
                table.append((cp, [int(to, 16)]))
    with open(target, "wb") as out:
        for records in [elements(allkeys), uca4, general, *cases]:
            out.write(section(records))


main(*sys.argv[1:])
