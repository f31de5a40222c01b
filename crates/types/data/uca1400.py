#!/usr/bin/env python3
"""Writes uca1400.bin: what MariaDB's collations of UCA 14.0.0 have that those of 9.0.0 in collations.bin have not.

    uca1400.py host:port allkeys.txt collations.bin uca1400.bin      (a MariaDB 11.8 server, root without a password; needs the package pymysql)

- allkeys.txt: the Default Unicode Collation Element Table, version 13.0.0 or later (Unicode data files license). Only its
  sequences are read, as candidates; what they weigh, and what all characters weigh, the server is asked by WEIGHT_STRING.
- collations.bin: as collations.py writes it.

The file is in parts, each behind its length (u32). The first is the table of 14.0.0, told by how it differs from that of 9.0.0, since
most weights of characters that both have only moved:

  moves      for each of the first two levels: count, count × (weight of 9.0.0, how much weights are larger from there on); differences
             to the ones before, the second zigzag
  characters u32 count, count × (code point from the one before, 3 × (count, weights)): those that weigh otherwise than moves and
             implicit weights (in units.rs) say
  cases      upper and lower case where they differ from those of 9.0.0, as in collations.bin

The second is a tailoring as in tailorings.bin, of the root's sequences; then there is one for each language, which has the root's
sequences as well, but for those that it weighs otherwise. Numbers without a size are varints.
"""
import collections
import itertools
import struct
import sys

import pymysql
from tailorings import LETTERS, MARKS, OLD, OTHERS, greedy, numbers

MAX_ELEMENTS = 8  # MySQL and MariaDB take only so many of a character
POINTS = "seq_0_to_1114111 WHERE seq NOT BETWEEN 0xd800 AND 0xdfff"
CHARACTER = "CONVERT(CHAR(seq USING utf32) USING utf8mb4)"
# In the order of MariaDB's ids; `mariadb.rs` has the same list.
LANGUAGES = [name for name in OLD if name not in ("croatian", "vietnamese")] + ["vietnamese", "croatian"]
# Each adds a level to the one before.
LEVELS = ("ai_ci", "as_ci", "as_cs")


def words(weights):
    return struct.unpack(f">{len(weights) // 2}H", weights)


def split(by_name):
    """Weights by level, of those that the collations of one level, two, and three have: they write no zeros between them."""
    first, second, third = by_name
    assert second.startswith(first) and third.startswith(second)
    return words(first), words(second[len(first) :]), words(third[len(second) :])


class Server:
    def __init__(self, address):
        host, port = address.split(":")
        self.cursor = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4", database="mysql").cursor()

    def ask(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall()

    def weights(self, text, language):
        return ", ".join(f"WEIGHT_STRING({text} COLLATE utf8mb4_uca1400_{language}nopad_{level})" for level in LEVELS)

    def characters(self, language=""):
        rows = self.ask(f"SELECT seq, {self.weights(CHARACTER, language)} FROM {POINTS}")
        return {n: split(levels) for n, *levels in rows}

    def changes(self, language):
        """The characters that weigh otherwise than in the root."""
        by_name = [f"WEIGHT_STRING({CHARACTER} COLLATE utf8mb4_uca1400_{of}nopad_as_cs)" for of in ("", language)]
        rows = self.ask(f"SELECT seq, {self.weights(CHARACTER, language)} FROM {POINTS} AND {by_name[0]} <> {by_name[1]}")
        return {n: split(levels) for n, *levels in rows}

    def sequences(self, sequences, language=""):
        found = {}
        for start in range(0, len(sequences), 5000):
            chunk = sequences[start : start + 5000]
            values = ", ".join("(%d, _utf8mb4 x'%s')" % (i, "".join(map(chr, s)).encode().hex()) for i, s in enumerate(chunk))
            self.ask("CREATE OR REPLACE TEMPORARY TABLE texts (n INT PRIMARY KEY, c VARCHAR(8) CHARACTER SET utf8mb4) ENGINE = MEMORY")
            self.ask(f"INSERT INTO texts VALUES {values}")
            rows = self.ask(f"SELECT {self.weights('c', language)} FROM texts ORDER BY n")
            found.update((sequence, split(row)) for sequence, row in zip(chunk, rows, strict=True))
        return found

    def pairs(self, heads, seconds, singles, language=""):
        """Pairs of these characters that weigh otherwise than one after the other."""
        for table, side in (("heads", heads), ("seconds", seconds)):
            self.ask(f"CREATE OR REPLACE TEMPORARY TABLE {table} (n INT PRIMARY KEY, c VARCHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
                     " w1 VARBINARY(60), w2 VARBINARY(60), w3 VARBINARY(60)) ENGINE = MEMORY")
            packed = lambda weights: struct.pack(f">{len(weights)}H", *weights).hex()
            rows = ["(%d, _utf8mb4 x'%s', x'%s', x'%s', x'%s')" % (n, chr(n).encode().hex(), *map(packed, singles[n])) for n in side]
            for start in range(0, len(rows), 5000):
                self.ask(f"INSERT INTO {table} VALUES " + ", ".join(rows[start : start + 5000]))
        weights = f"WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE utf8mb4_uca1400_{language}as_cs)"
        return set(self.ask(f"SELECT a.n, b.n FROM heads a JOIN seconds b WHERE {weights} <> CONCAT(a.w1, b.w1, a.w2, b.w2, a.w3, b.w3)"))


def joined(parts):
    return tuple(sum((part[level] for part in parts), ()) for level in range(3))


class Of9:
    """What collations.bin has of UCA 9.0.0: weights of characters by level, and their upper and lower case."""

    def __init__(self, path):
        self.data, self.at, point = open(path, "rb").read(), 0, 0
        self.elements, self.cases = {}, ({}, {})
        for _ in range(self.count()):
            point += self.number()
            elements = [[self.number() for _ in range(3)] for _ in range(self.number())][:MAX_ELEMENTS]
            self.elements[point] = tuple(tuple(e[level] for e in elements if e[level]) for level in range(3))
        for _ in range(self.count()):  # UCA 4.0.0
            self.number()
            for _ in range(self.number()):
                self.number()
        for _ in range(2 * self.count()):  # general_ci
            self.number()
        for mapping in self.cases:
            point = 0
            for _ in range(self.count()):
                point += self.number()
                mapping[point] = self.number()

    def count(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def moved_weights(before, now, level):
    """Where weights of 9.0.0 are now, by most of their characters; and that as runs of weights that moved as far."""
    votes = collections.defaultdict(collections.Counter)
    for cp, weights in before.items():
        if len(weights[level]) == len(now[cp][level]):
            for a, b in zip(weights[level], now[cp][level]):
                votes[a][b] += 1
    moves, shift, runs = {a: v.most_common(1)[0][0] for a, v in votes.items()}, 0, []
    for a in sorted(moves):
        if moves[a] - a != shift:
            shift = moves[a] - a
            runs.append((a, shift))
    return moves, runs


def zigzag(n):
    return n << 1 if n >= 0 else -n << 1 | 1


def implicit(cp):
    """As units.rs has it."""
    for first, last, base in ((0x17000, 0x18AFF, 0xFB00), (0x18D00, 0x18D7F, 0xFB00), (0x18B00, 0x18CFF, 0xFB02), (0x1B170, 0x1B2FF, 0xFB01)):
        if first <= cp <= last:
            from_block = {0xFB00: 0x17000, 0xFB01: 0x1B170, 0xFB02: 0x18B00}[base]
            return ((base, cp - from_block | 0x8000), (0x20,), (2,))
    base = 0xFBC0
    if 0x4E00 <= cp <= 0x9FFF:
        base = 0xFB40
    for first, last in ((0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B738), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1), (0x2CEB0, 0x2EBE0), (0x30000, 0x3134A)):
        if first <= cp <= last:
            base = 0xFB80
    return ((base + (cp >> 15), cp & 0x7FFF | 0x8000), (0x20,), (2,))


def packed(levels):
    return b"".join(numbers(len(level), *level) for level in levels)


def section(records):
    """Of code points in order, with the bytes of each."""
    out, last = bytearray(struct.pack("<I", len(records))), 0
    for cp, rest in records:
        out += numbers(cp - last) + rest
        last = cp
    return bytes(out)


def table(server, of_9, now):
    out, moves, before = b"", [], of_9.elements
    for level in range(2):
        moved, runs = moved_weights(before, now, level)
        moves.append(moved)
        out += numbers(len(runs))
        last = (0, 0)
        for run in runs:
            out += numbers(run[0] - last[0], zigzag(run[1] - last[1]))
            last = run
    moves.append({})
    own = []
    for cp, weights in now.items():
        if cp in before:
            wanted = tuple(tuple(m.get(w, w) for w in level) for m, level in zip(moves, before[cp]))
        else:
            wanted = implicit(cp)
        if weights != wanted:
            own.append((cp, packed(weights)))
    out += section(own)
    print(f"{len(own)} characters, {len(out)} bytes", flush=True)
    for function, before in zip(("UPPER", "LOWER"), of_9.cases):
        mapped = f"CONVERT({function}({CHARACTER} COLLATE utf8mb4_uca1400_ai_ci) USING utf32)"
        rows = [(cp, int(to, 16)) for cp, to in server.ask(f"SELECT seq, HEX({mapped}) FROM {POINTS}")]
        changes = [(cp, numbers(to)) for cp, to in rows if to != before.get(cp, cp)]
        print(f"{function}: {len(changes)} characters", flush=True)
        out += section(changes)
    return out


def candidates(path):
    for line in open(path, encoding="utf-8"):
        points = line.split("#")[0].split(";")[0].split()
        if len(points) > 1 and not line.startswith("@"):
            yield tuple(int(point, 16) for point in points)


def root_sequences(server, path, now):
    wanted = set(candidates(path))
    # Pairs that the file lacks: of characters of one block, and of any with a mark.
    blocks = collections.defaultdict(list)
    assigned = [cp for cp, weights in now.items() if weights != implicit(cp) and weights[2]]
    for cp in assigned:
        blocks[cp >> 8].append(cp)
    pairs = set().union(*(server.pairs(block, block, now) for block in blocks.values()))
    pairs |= server.pairs(assigned, MARKS, now)
    print(f"{len(wanted)} sequences in the file; pairs beyond them: {sorted(pairs - wanted)}", flush=True)
    found = server.sequences(sorted(wanted | pairs))
    return {s: weights for s, weights in found.items() if weights != joined([now[cp] for cp in s])}


def language_changes(server, name, now, root):
    """Characters and sequences of a language."""
    language = f"{name}_"
    changed = server.changes(language)
    singles = now | changed
    alphabet = sorted({*LETTERS, *MARKS, *OTHERS.get(name, []), *(cp for cp in changed if cp not in HAN)})
    pairs = server.pairs(alphabet, alphabet, singles, language)
    known = server.sequences(sorted({*root, *pairs}), language)
    letters = sorted({c for pair in pairs - root.keys() for c in pair if chr(c).isalpha() and c < 0x80})
    heads = sorted({a for a, b in pairs if b in MARKS and (a, b) not in root})
    marks = sorted({b for a, b in pairs if b in MARKS and (a, b) not in root})
    longer = [*itertools.product(letters, repeat=3), *itertools.product(heads, marks, marks)]
    if len(letters) >= 12:
        longer += itertools.product(letters, repeat=4)
    for length in (3, 4):
        for sequence, weights in server.sequences([s for s in longer if len(s) == length], language).items():
            if weights != greedy(sequence, singles, known):
                known[sequence] = weights
    own = {s: weights for s, weights in known.items() if root.get(s) != weights}
    return changed, own


HAN = range(0x2E80, 0xFB00)


def tailoring(characters, sequences):
    out = numbers(0, 0, 0, 0, len(characters))
    last = 0
    for cp, weights in sorted(characters.items()):
        out += numbers(cp - last) + packed(weights)
        last = cp
    out += numbers(len(sequences))
    for sequence, weights in sorted(sequences.items()):
        out += numbers(len(sequence), *sequence) + packed(weights)
    print(f"{len(characters)} characters, {len(sequences)} sequences, {len(out)} bytes", flush=True)
    return out


def part(content):
    return struct.pack("<I", len(content)) + content


def main(address, allkeys, of_9, target):
    server = Server(address)
    now = server.characters()
    out = part(table(server, Of9(of_9), now))
    root = root_sequences(server, allkeys, now)
    out += part(tailoring({}, root))
    for name in LANGUAGES:
        print(name, end=": ", flush=True)
        out += part(tailoring(*language_changes(server, name, now, root)))
    with open(target, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
