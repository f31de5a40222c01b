#!/usr/bin/env python3
"""Writes cases.txt anew: keeps its expressions, asks a real MySQL for their results.

usage: record.py CLIENT [ARGUMENT...] < expressions > cases.txt
CLIENT and its arguments start a mysql client on a server with default settings, for example
`mysql --socket=/tmp/s.sock -uroot`. A line of input is an expression, or a case of an earlier cases.txt.
"""
import subprocess
import sys

MARK = "@@case@@"


def main():
    lines = [line.rstrip("\n") for line in sys.stdin]
    kept = [line.split(" => ")[0] for line in lines]
    script = ["SET NAMES utf8mb4; SET time_zone='+00:00', timestamp=1710498030.123456; SET character_set_results=NULL;"]
    for number, expression in enumerate(kept):
        if expression and not expression.startswith("#"):
            script.append(f"SELECT '{MARK}{number}';\nSELECT {expression};\nSHOW WARNINGS;")
    client = subprocess.run(
        sys.argv[1:] + ["-N", "-B", "-r", "--force", "--default-character-set=utf8mb4"],
        input="\n".join(script).encode(), capture_output=True, check=False)
    answers = {}
    for part in client.stdout.decode(errors="replace").split(MARK)[1:]:
        number, *rows = part.split("\n")[:-1]
        value, conditions = None, []
        for row in rows:
            fields = row.split("\t")
            if len(fields) == 3 and fields[0] in ("Error", "Warning", "Note"):
                conditions.append((fields[0], fields[1]))
            else:
                value = row if value is None else value + "\\n" + row
        errors = [errno for level, errno in conditions if level == "Error"]
        if value is None:
            answers[int(number)] = f"ERROR {errors[-1] if errors else '?'}"
        else:
            answers[int(number)] = value + "".join(f" !{errno}" for _, errno in conditions)
    for number, expression in enumerate(kept):
        print(f"{expression} => {answers[number]}" if number in answers else expression)


if __name__ == "__main__":
    main()
