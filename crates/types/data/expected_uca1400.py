#!/usr/bin/env python3
"""Writes src/collation/testdata/uca1400.tsv: checksums of what MariaDB answers, which the tests compute as well.

    expected_uca1400.py host:port allkeys.txt uca1400.tsv      (the arguments of uca1400.py)

A line for each collation of UCA 14.0.0: its name and id. For those of the root, and two of each language, then follow SUM(CRC32(CONCAT(n, ':', HEX(WEIGHT_STRING(c COLLATE …))))) over the strings of
uca1400_samples.txt, n their line from 0; the same of each one's DENSE_RANK() in the order of all. For one of each language then the sum
of weights of all code points, and for one of those that have a case of their own those of UPPER(c) and LOWER(c).

The samples are made here: all sequences of the table, letters and sequences that languages weigh otherwise, and random strings of their characters and others, which often differ in little.
"""
import random
import sys

from uca1400 import CHARACTER, POINTS, Server, candidates

MARKS = [*range(0x300, 0x370)]
IGNORABLE = [0, 1, 8, 0xAD, 0x200B, 0x200D, 0xFE0F, 0xFEFF, 0x111C9]
IMPLICIT = [(0xAC00, 0xD7FF), (0x3400, 0xA000), (0x17000, 0x18D90), (0x1B100, 0x1B300), (0x20000, 0x32000), (0xE000, 0x10000)]
RANDOM = 2500
LETTERS = ["ch", "Ch", "cH", "CH", "ll", "Ll", "lL", "LL", "aa", "Aa", "aA", "AA", "lj", "Lj", "LJ", "nj", "Nj", "dž", "Dž", "dŽ", "DŽ", "dz", "ae", "oe",
           "ue", "ij", "cs", "ssz", "i\u0307", "i\u0328", *"iIıİjJuUvVyYšŠžŽčČćĆđĐðÐłŁøØåÅäÄöÖüÜűŰőŐñÑţŢșȘưƯơƠăĂâÂßæœþ"]


def samples(sequences):
    choose = random.Random(14)
    members = sorted({c for s in sequences for c in s})

    def piece():
        kind = choose.randrange(9)
        if kind < 3:
            return choose.choice("aAbBlL  ··\u0387zZ09_-'")
        if kind == 8:
            return chr(choose.choice([choose.randrange(*choose.choice(IMPLICIT)), choose.randrange(0x250, 0x2000), choose.randrange(0x1D000, 0x1F700)]))
        return "".join(map(chr, choose.choice([[choose.choice(MARKS)], choose.choice(sequences), [choose.choice(members)], [choose.choice(IGNORABLE)], map(ord, choose.choice(LETTERS)),
                                               [choose.randrange(0xA0, 0x250)]])))

    made = ["", " ", "a", "a ", "  \t", " \0", "Straße", "œuvre", "สวัสดี", "ເວລາ", "한국어", "日本語", "👍🏽"]
    while len(made) < RANDOM:
        if choose.randrange(2):
            # One that differs in little from another.
            s = list(choose.choice(made))
            at = choose.randrange(len(s) + 1)
            s[at : at + choose.randrange(2)] = piece()
            s = "".join(s)
        else:
            s = "".join(piece() for _ in range(choose.randrange(1, 6)))
        s += " " * choose.choice([0] * 8 + [1, 2])
        if len(s) < 16 and not any(0xD800 <= ord(c) < 0xE000 for c in s):
            made.append(s)
    texts = {"".join(map(chr, s)) for s in sequences}
    changed = {chr(cp) for cp in [*range(0xA0, 0x250), *range(0x1EA0, 0x1F00), *range(0x600, 0x700), *range(0xD80, 0xE00)]}
    return sorted({*made, *texts, *LETTERS, *changed})


def main(address, allkeys, target):
    texts = samples(sorted(candidates(allkeys)))
    # Lines end in a line feed, which none of them has.
    with open(target.replace(".tsv", "_samples.txt"), "w", encoding="utf-8", newline="\n") as out:
        out.write("".join(s.replace("\\", "\\\\").replace("\0", "\\0") + "\n" for s in texts))
    server = Server(address)
    server.ask("SET SESSION sql_mode = ''")  # characters that utf8mb3 has not become question marks
    for charset in ("utf8mb3", "utf8mb4"):
        server.ask(f"CREATE TEMPORARY TABLE {charset} (n INT PRIMARY KEY, c VARCHAR(20) CHARACTER SET {charset})")
        server.ask(f"INSERT INTO {charset} VALUES " + ", ".join("(%d, CONVERT(_utf8mb4 x'%s' USING %s))" % (n, s.encode().hex(), charset)
                                                               for n, s in enumerate(texts)))
    rows = server.ask(
        "SELECT full_collation_name, id, character_set_name FROM information_schema.collation_character_set_applicability"
        " WHERE full_collation_name LIKE 'utf8mb%\\_uca1400\\_%' ORDER BY id")
    with open(target, "w", encoding="ascii") as out:
        for name, number, charset in rows:
            queries = [f"SELECT SUM(CRC32(CONCAT(n, ':', HEX(WEIGHT_STRING(c COLLATE {name}))))) FROM {charset}",
                    "SELECT SUM(CRC32(CONCAT(n, ':', HEX(o)))) FROM"
                    f" (SELECT n, CONVERT(DENSE_RANK() OVER (ORDER BY c COLLATE {name}) - 1, CHAR) o FROM {charset}) ranks"]
            of = [f"{function}({CHARACTER} COLLATE {name})" for function in ("WEIGHT_STRING", "UPPER", "LOWER")]
            queries += [f"SELECT SUM(CRC32(CONCAT(seq, ':', HEX({answer})))) FROM {POINTS}" for answer in of]
            sums = [server.ask(query)[0][0] for query in queries[: wanted(name)]]
            out.write("\t".join(map(str, [name, number, *sums])) + "\n")


def wanted(name):
    """How many sums its line has."""
    charset, _, *language, level, case = name.replace("nopad_", "").split("_")
    # Persian has primary weights below all others, by which MariaDB's ORDER BY contradicts its comparisons where there is no padding.
    most = "_persian_as_cs" if language == ["persian"] else "_nopad_as_cs"
    if charset == "utf8mb4" and name.endswith(most):
        return 5 if language in ([], ["turkish"]) else 3
    return 2 if not language or (charset == "utf8mb4" and name.endswith(f"_{language[0]}_ai_ci")) else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
