"""Runs DuckDB for the benchmarks: one JSON request a line on stdin, one JSON answer a line on stdout.

Requests: {"load": {table: parquet file}} and {"query": sql}. Times are seconds inside this process.
"""
import json
import sys
import time

import duckdb


def answer(connection, request):
    begin = time.perf_counter()
    rows = []
    if "load" in request:
        for table, file in request["load"].items():
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{file}')")
        connection.execute("CHECKPOINT")
    else:
        rows = connection.execute(request["query"]).fetchall()
    seconds = time.perf_counter() - begin
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    return {"seconds": seconds, "rows": texts}


def main():
    connection = duckdb.connect(sys.argv[1])
    connection.execute("SET enable_progress_bar = false")
    for line in sys.stdin:
        try:
            result = answer(connection, json.loads(line))
        except Exception as error:
            result = {"error": str(error)}
        print(json.dumps(result), flush=True)


main()
