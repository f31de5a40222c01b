# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of the plugin: each function `test_…` of the modules below, in order, with the two servers running."""

import argparse
import shutil
import sys
import tempfile
import time
import traceback

import answers
import failures
import session
from harness import Bench
from servers import Avocet, MySql


def main():
    parser = argparse.ArgumentParser()
    for name in ("mysql", "avocet", "plugin"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--only", help="tests whose names have this")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="avocet-plugin-")
    source = MySql(options.mysql, options.plugin, folder)
    failed = 0
    bench = None
    try:
        source.start()
        bench = Bench(source, Avocet(options.avocet, source, folder))
        bench.prepare()
        for module in (answers, session, failures):
            for name, test in vars(module).items():
                if not name.startswith("test_") or (options.only and options.only not in name):
                    continue
                begin = time.monotonic()
                try:
                    test(bench)
                    print(f"ok      {name} ({time.monotonic() - begin:.1f} s)", flush=True)
                except Exception:  # each test is told, whatever went wrong in it
                    failed += 1
                    print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
    finally:
        if bench is not None:
            bench.avocet.stop()
        source.stop()
        if failed:
            print(f"logs are in {folder}")
        else:
            shutil.rmtree(folder)
    sys.exit(1 if failed else 0)


main()
