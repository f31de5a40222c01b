"""go-sql-driver/mysql: the tests in its module."""

import json
import os
import re
import shutil
import subprocess
import sys

from . import servers

MODULE = "github.com/go-sql-driver/mysql"
VERSION = "v1.10.1"
# It waits for an address outside this machine that does not answer.
LEFT_OUT = "TestConnectorReturnsTimeout"


def install(cache):
    """A copy of the module that go test can write beside."""
    folder = cache / f"go-sql-driver-{VERSION}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True,
                              cwd=cache)
        partial = folder.with_suffix(".partial")
        shutil.copytree(json.loads(done.stdout)["Dir"], partial, copy_function=shutil.copyfile)
        for place, folders, _ in os.walk(partial):
            for name in [".", *folders]:
                os.chmod(os.path.join(place, name), 0o755)
        partial.rename(folder)
    return folder


def outcomes_of(events):
    outcomes, texts = {}, {}
    for line in events.splitlines():
        event = json.loads(line)
        test = event.get("Test")
        if test is None:
            continue
        if event["Action"] == "output":
            texts.setdefault(test, []).append(event["Output"].strip())
        elif event["Action"] in ("pass", "fail", "skip"):
            outcome = {"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]]
            said = [text for text in texts.get(test, []) if text and not re.match(r"(===|---)", text)]
            outcomes[test] = (outcome, " ".join(said)[:400] if outcome == "failed" else "")
    return outcomes


def run(package, address, work, parts):
    program = ("-run", "|".join(parts)) if parts else ()
    environ = {**os.environ, "MYSQL_TEST_ADDR": f"{address.host}:{address.port}", "MYSQL_TEST_DBNAME": "gotest",
               "MYSQL_TEST_CONCURRENT": "1"}
    servers.execute(address, "CREATE DATABASE gotest")
    outcomes = {}
    while True:
        # A test that panics ends the run: the others are run after it, without those that were.
        done_before = {test.split("/")[0] for test in outcomes} | {LEFT_OUT}
        done = subprocess.run(["go", "test", "-json", "-count=1", "-timeout", "600s", "-skip",
                               f"^({'|'.join(sorted(done_before))})$", *program, "."],
                              cwd=package, env=environ, capture_output=True, text=True)
        found = outcomes_of(done.stdout)
        outcomes.update(found)
        if not found or "panic: " not in done.stdout:
            break
    if not outcomes:
        sys.exit(f"go test has run no test:\n{done.stderr[-3000:]}")
    return outcomes


def name_of(test):
    return test
