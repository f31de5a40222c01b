"""SQLAlchemy: its suite for dialects (sqlalchemy.testing.suite), and its tests of the MySQL dialect."""

import re

from . import pip, servers

VERSION = "SQLAlchemy==2.1.9"
REQUIREMENTS = [VERSION, "PyMySQL[rsa]==1.2.4", "pytest==8.4.2"]
PARTS = ["test/dialect/test_suite.py", "test/dialect/mysql"]


def install(cache):
    python = pip.environment(cache, "sqlalchemy", REQUIREMENTS)
    return python, pip.package(cache, python, VERSION)


def run(package, address, work, parts):
    python, sources = package
    servers.execute(address, "CREATE DATABASE test", "CREATE DATABASE test_schema")
    url = f"mysql+pymysql://root@{address.host}:{address.port}/test?charset=utf8mb4"
    return pip.pytest(python, sources, work, ["--dburi", url, "-p", "no:logging", *(parts or PARTS)])


def name_of(test):
    """Classes of tests are named with the server's version."""
    return re.sub(r"_mysql\+pymysql_[0-9_]+", "", test)
