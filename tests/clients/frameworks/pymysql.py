"""PyMySQL: the tests of 0.9.3, the last release whose package has them; they run with the driver of the same release."""

import json

from . import pip, servers

VERSION = "PyMySQL==0.9.3"
# unittest2, which they are written for, was unittest's younger brother, and does not load on today's Python.
STAND_IN = "from unittest import *\nfrom unittest import skipIf, skipUnless, TestCase, main\n"


def install(cache):
    python = pip.environment(cache, "pymysql", [VERSION, "cryptography==50.0.2", "pytest==8.4.2", "pytest-timeout==2.4.0"])
    return python, pip.package(cache, python, VERSION)


def run(package, address, work, parts):
    python, sources = package
    (work / "unittest2.py").write_text(STAND_IN)
    common = {"host": address.host, "port": address.port, "user": "root", "passwd": "", "use_unicode": True,
              "local_infile": True}
    (sources / "pymysql" / "tests" / "databases.json").write_text(
        json.dumps([{**common, "db": "test1"}, {**common, "db": "test2"}]))
    servers.execute(address, "CREATE DATABASE test1", "CREATE DATABASE test2", "SET GLOBAL local_infile = 1")
    return pip.pytest(python, sources, work, ["--timeout", "120", *(parts or ["pymysql/tests"])],
                      {"PYTHONPATH": f"{work}:{sources}"})


def name_of(test):
    return test
