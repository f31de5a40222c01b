#!/usr/bin/env python3
"""Writes tailorings.bin: UCA 5.2.0, and what the collations of languages change in the tables of collations.bin.

    tailorings.py host:port tailorings.bin      (a MySQL 9.7 server, root without a password; needs the package pymysql)

The server is asked by WEIGHT_STRING for the weights of every code point and of every pair, and of those longer sequences that could be
a contraction. What a collation has in common with the table that it is made from is left out.

The file is a section of UCA 5.2.0 as collations.bin has them, two with the upper and lower case of its collations, where they
differ from those of the older ones, and then a tailoring for each line of TAILORINGS, behind its length (u32):

  reordered  count, count × (first, last: weights of the base table; whence they begin now; a weight put before each, or 0)
  leads      count, count × (of an implicit weight's first half: of the base table, now)
  cases      0, or 1 and what each tertiary weight below 32 is now
  runs       count, count × (code point from the end of the one before, count, count × u16): characters of one primary weight alone
  characters count, count × (code point from the one before, levels × (count, weights))
  sequences  count, count × (length, code points, levels × (count, weights))

Numbers without a size are varints. Levels are 1 (of UCA 4.0.0), 3, or 4. Weights that are zero are not there, as no comparison sees them, but
for one: sequences of kana that are neither hiragana nor katakana to MySQL (U+31F0 to U+31FF) weigh zero at the fourth level, and it writes that.
"""
import collections
import itertools
import struct
import sys

import pymysql

OLD = """icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian slovak spanish2 roman
persian esperanto hungarian sinhala german2 croatian vietnamese""".split()
NEW = """de_pb is lv ro sl pl et es sv tr cs da lt sk es_trad la eo hu hr vi ja ja_ks ru zh nb nn sr_latn bs bg gl mn_cyrl""".split()
# Several languages have one tailoring; `tailoring.rs` has the same list.
TAILORINGS = [("old", name) for name in OLD] + [("new", name) for name in NEW]

MARKS = [*range(0x300, 0x370)]
LETTERS = [*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xA8, 0x250), *range(0x1E00, 0x1F00)]
KANA_MARKS = [0x30FC, 0x309D, 0x309E, 0x30FD, 0x30FE, 0xFF70]
OTHERS = {
    "persian": [*range(0x600, 0x700), *range(0xFE70, 0xFEFD)],
    "sinhala": [*range(0xD80, 0xE00), 0x200D],
    "ja": [*range(0x3041, 0x3100), *range(0x31F0, 0x3200), *range(0xFF66, 0xFFA0)],
    "ja_ks": [*range(0x3041, 0x3100), *range(0x31F0, 0x3200), *range(0xFF66, 0xFFA0)],
    **{name: [*range(0x400, 0x530)] for name in ("ru", "bg", "mn_cyrl", "hr", "sr_latn", "bs")},
}


def varint(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def numbers(*values):
    return b"".join(varint(v) for v in values)


def collation(kind, name):
    if kind == "old":
        return f"utf8mb4_{name}_ci"
    return "utf8mb4_ja_0900_as_cs_ks" if name == "ja_ks" else f"utf8mb4_{name}_0900_as_cs"


def levels_of(kind, name):
    return 1 if kind == "old" else 4 if name == "ja_ks" else 3


def split(weights, levels):
    """Weights by level."""
    words = struct.unpack(f">{len(weights) // 2}H", weights)
    if words.count(0) > max(levels - 1, 2):
        # MySQL emits a zero that should be no weight where a sequence of marks has its own (utf8mb4_lt_0900_*).
        words = words[1:]
    out, at = [[] for _ in range(levels)], 0
    for word in words:
        if word == 0 and levels > 1:
            at += 1
        else:
            out[at].append(word)
    return tuple(map(tuple, out))


def joined(parts):
    return tuple(tuple(itertools.chain(*(part[i] for part in parts))) for i in range(len(parts[0])))


def is_implicit(cp, primary):
    """Whether the second weight is the one that UTS #10 computes; of Tangut it counts from the first."""
    return len(primary) == 2 and primary[1] == ((cp - 0x17000 if 0x17000 <= cp <= 0x18AFF else cp & 0x7FFF) | 0x8000)


class Server:
    def __init__(self, address):
        host, port = address.split(":")
        self.cursor = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4").cursor()
        self.ask("CREATE DATABASE IF NOT EXISTS tailorings")
        self.ask("USE tailorings")
        self.ask("SET SESSION cte_max_recursion_depth = 2000000, max_heap_table_size = 1 << 30, tmp_table_size = 1 << 30")
        self.ask("DROP TABLE IF EXISTS characters, parts")
        self.ask("CREATE TABLE characters (n INT PRIMARY KEY, c VARCHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
        self.ask(
            "INSERT INTO characters WITH RECURSIVE all_points (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM all_points WHERE n < 0x10ffff)"
            " SELECT n, CONVERT(UNHEX(LPAD(HEX(n), 8, '0')) USING utf32) FROM all_points WHERE n NOT BETWEEN 0xd800 AND 0xdfff"
        )
        # The parts of a character's weights, to see by a join which pairs weigh otherwise than their characters.
        self.ask("CREATE TABLE parts (n INT PRIMARY KEY, c VARCHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
                 " w1 VARBINARY(60), w2 VARBINARY(60), w3 VARBINARY(60), w4 VARBINARY(60))")

    def ask(self, sql, *arguments):
        self.cursor.execute(sql, arguments or None)
        return self.cursor.fetchall()

    def characters(self, name, levels, other_than=None):
        where = f"WHERE WEIGHT_STRING(c COLLATE {name}) <> WEIGHT_STRING(c COLLATE {other_than})" if other_than else ""
        rows = self.ask(f"SELECT n, WEIGHT_STRING(c COLLATE {name}) FROM characters {where} ORDER BY n")
        return {n: split(w, levels) for n, w in rows}

    def pairs(self, name, weights, levels):
        """Pairs of these characters that weigh otherwise than one after the other."""
        self.ask("TRUNCATE parts")
        rows = []
        for n, parts in weights.items():
            packed = [struct.pack(f">{len(p)}H", *p).hex() for p in parts] + [""] * (4 - levels)
            rows.append("(%d, _utf8mb4 x'%s', %s)" % (n, chr(n).encode().hex(), ", ".join(f"x'{p}'" for p in packed)))
        self.ask("INSERT INTO parts VALUES " + ", ".join(rows))
        sum_of_parts = "CONCAT(a.w1, b.w1)"
        for level in range(2, min(levels, 3) + 1):
            sum_of_parts = f"CONCAT({sum_of_parts}, x'0000', a.w{level}, b.w{level})"
        if levels == 4:
            fourth = "CONCAT(a.w4, b.w4)"
            sum_of_parts = f"CONCAT({sum_of_parts}, IF({fourth} = '', '', CONCAT(x'0000', {fourth})))"
        weight = f"WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE {name})"
        rows = self.ask(f"SELECT a.n, b.n, {weight} FROM parts a JOIN parts b WHERE {weight} <> {sum_of_parts}")
        return {(a, b): split(w, levels) for a, b, w in rows}

    def sequences(self, name, levels, candidates):
        found = {}
        for start in range(0, len(candidates), 5000):
            chunk = candidates[start : start + 5000]
            values = ", ".join("ROW(_utf8mb4 x'%s')" % "".join(map(chr, c)).encode().hex() for c in chunk)
            rows = self.ask(f"SELECT WEIGHT_STRING(column_0 COLLATE {name}) FROM (VALUES {values}) v")
            found.update((c, split(w[0], levels)) for c, w in zip(chunk, rows, strict=True))
        return found


def greedy(sequence, singles, contractions):
    """The weights of a sequence if there are no other contractions: the longest ones from left to right."""
    parts, at = [], 0
    while at < len(sequence):
        for end in range(min(len(sequence), at + 6), at, -1):
            part = sequence[at:end]
            weights = contractions.get(part) if len(part) > 1 else singles[part[0]]
            if weights is not None:
                parts.append(weights)
                at = end
                break
    return joined(parts)


def contractions(server, name, levels, singles, alphabet):
    """Sequences of two and more characters that have weights of their own."""
    known = server.pairs(name, {n: singles[n] for n in alphabet}, levels)
    # At the second and third level MySQL takes the end of a string for what stands before its start.
    known = {pair: weights for pair, weights in known.items() if pair[0] not in KANA_MARKS}
    letters = sorted({c for pair in known for c in pair if chr(c).isalpha() and c < 0x250})
    marks = sorted({b for _, b in known if b in MARKS})
    heads = sorted({a for a, b in known if b in MARKS})
    plain = [c for c in letters if c < 0x80]
    candidates = [*itertools.product(plain, repeat=3), *itertools.product(heads, marks, marks)]
    if len(plain) >= 12:
        candidates += itertools.product(plain, repeat=4)
    for length in (3, 4):
        for sequence, weights in server.sequences(name, levels, [c for c in candidates if len(c) == length]).items():
            if weights != greedy(sequence, singles, known):
                known[sequence] = weights
    return known


def reordering(base, tailored, levels):
    """Ranges of primary weights that only moved: [first, last, new first, lead]."""
    votes, has_leads = collections.defaultdict(collections.Counter), False
    for cp, (primary, *_) in tailored.items():
        before = base[cp][0]
        if is_implicit(cp, before):
            continue
        now, lead = [], 0
        for weight in primary:
            if weight == 0xFB86:
                lead = weight
            else:
                now.append((weight, lead))
                lead = 0
        if len(now) == len(before):
            for b, n in zip(before, now):
                votes[b][n] += 1
    # Where a weight did not move in most of its characters, it did not move.
    counts = collections.Counter(w for parts in base.values() for w in parts[0])
    moved = {b: n.most_common(1)[0][0] for b, n in votes.items() if n.most_common(1)[0][1] * 2 > counts[b]}
    ranges, open_range = [], None
    for weight in sorted(counts):
        to = moved.get(weight)
        if to is None or to == (weight, 0):
            open_range = None
        elif open_range and (to[0] - weight, to[1]) == (open_range[2] - open_range[0], open_range[3]):
            open_range[1] = weight
        else:
            open_range = [weight, weight, *to]
            ranges.append(open_range)
    # A few weights that moved alone are the tailored characters' own.
    return [r for r in ranges if r[1] - r[0] > 8]


def predicted(cp, before, ranges, leads, cases, levels):
    primary = before[0]
    if is_implicit(cp, primary) and leads:
        primary = (leads.get(primary[0], primary[0]), primary[1])
    elif not (is_implicit(cp, primary) and primary[0] >= 0xFB00):
        out = []
        for weight in primary:
            moved = next((r for r in ranges if r[0] <= weight <= r[1]), None)
            if moved and moved[3]:
                out.append(moved[3])
            out.append(weight - moved[0] + moved[2] if moved else weight)
        primary = tuple(out)
    rest = list(before[1:])
    if cases and len(rest) > 1:
        rest[1] = tuple(cases[w] if w < 32 else w for w in rest[1])
    return (primary, *rest, *[()] * (levels - 1 - len(rest)))


def tailoring(server, kind, name, bases):
    levels, coll = levels_of(kind, name), collation(kind, name)
    base_name, base = bases[kind]
    changed = server.characters(coll, levels, base_name)
    ranges, leads, cases = [], {}, None
    if kind == "new" and len(changed) > 500:
        ranges = reordering(base, changed, levels)
    for cp, (primary, *_) in changed.items():
        # Of unassigned characters, whose implicit weights no tailoring names.
        if is_implicit(cp, base[cp][0]) and is_implicit(cp, primary) and primary != base[cp][0]:
            leads[base[cp][0][0]] = primary[0]
    if name == "da":
        cases = list(range(32))
        for cp, weights in changed.items():
            if len(base[cp][2]) == 1 and len(weights[2]) == 1 and base[cp][0] == weights[0]:
                cases[base[cp][2][0]] = weights[2][0]
    out = bytearray(numbers(len(ranges), *itertools.chain(*ranges)))
    out += numbers(len(leads), *itertools.chain(*sorted(leads.items())))
    out += numbers(1, *cases) if cases else numbers(0)

    extended = {cp: (*w, *[()] * (levels - len(w))) for cp, w in base.items()}
    singles = extended | changed
    own = {}
    for cp, weights in singles.items():
        # Syllables of Hangul are computed from their letters.
        if not 0xAC00 <= cp < 0xD7A4 and predicted(cp, base[cp], ranges, leads, cases, levels) != weights:
            own[cp] = weights
    is_plain = lambda w: levels > 1 and len(w[0]) == 1 and w[1:] == ((0x20,), (2,), ())[: levels - 1]
    runs, characters = [], {}
    for cp in sorted(own):
        if not (is_plain(own[cp]) and cp >= 0x2E80):
            characters[cp] = own[cp]
        elif runs and runs[-1][0] + len(runs[-1][1]) == cp:
            runs[-1][1].append(own[cp][0][0])
        else:
            runs.append((cp, [own[cp][0][0]]))
    out += numbers(len(runs))
    last = 0
    for cp, weights in runs:
        out += numbers(cp - last, len(weights)) + struct.pack(f"<{len(weights)}H", *weights)
        last = cp + len(weights)
    out += numbers(len(characters))
    last = 0
    for cp, weights in sorted(characters.items()):
        out += numbers(cp - last)
        last = cp
        for level in weights:
            out += numbers(len(level), *level)

    known = contractions(server, coll, levels, singles, LETTERS + MARKS + OTHERS.get(name, []))
    out += numbers(len(known))
    for sequence, weights in sorted(known.items()):
        out += numbers(len(sequence), *sequence)
        for number, level in enumerate(weights):
            # Where all weights of the fourth level are zero, as here, MySQL leaves it out; behind others it does not.
            level = level or (0,) if number == 3 else level
            out += numbers(len(level), *level)
    print(f"{coll}: {len(ranges)} ranges, {len(leads)} leads, {len(runs)} runs of {sum(len(r[1]) for r in runs)}, "
          f"{len(characters)} characters, {len(known)} sequences, {len(out)} bytes", flush=True)
    return struct.pack("<I", len(out)) + out


def implicit4(cp):
    base = 0xFB40 if 0x4E00 <= cp <= 0x9FA5 else 0xFB80 if 0x3400 <= cp <= 0x4DB5 else 0xFBC0
    return (base + (cp >> 15), cp & 0x7FFF | 0x8000)


def main(address, target):
    server = Server(address)
    records, last = [], 0
    for cp, (weights,) in sorted(server.characters("utf8mb4_unicode_520_ci", 1).items()):
        if weights != implicit4(cp):
            records.append(numbers(cp - last, len(weights), *weights))
            last = cp
    out = struct.pack("<I", len(records)) + b"".join(records)
    print(f"UCA 5.2.0: {len(records)} characters, {len(out)} bytes", flush=True)
    for function in ("UPPER", "LOWER"):
        # By those of utf16: in UTF-8, MySQL has no room for an other case that takes more bytes. As HEX: to the collation of utf32,
        # all characters beyond U+FFFF are equal, and so are the two cases of one.
        mapped = [
            f"HEX(CONVERT({function}(CONVERT(c USING utf16) COLLATE {name}) USING utf32))"
            for name in ("utf16_unicode_520_ci", "utf16_unicode_ci")
        ]
        rows = server.ask(f"SELECT n, {mapped[0]} FROM characters WHERE {mapped[0]} <> {mapped[1]} ORDER BY n")
        out += struct.pack("<I", len(rows))
        last = 0
        for cp, to in rows:
            out += numbers(cp - last, int(to, 16))
            last = cp
        print(f"{function}: {len(rows)} characters", flush=True)
    bases = {
        "old": ("utf8mb4_unicode_ci", server.characters("utf8mb4_unicode_ci", 1)),
        "new": ("utf8mb4_0900_as_cs", server.characters("utf8mb4_0900_as_cs", 3)),
    }
    for kind, name in TAILORINGS:
        out += tailoring(server, kind, name, bases)
    server.ask("DROP DATABASE tailorings")
    with open(target, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
