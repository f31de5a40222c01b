"""Django: those of its tests that use the database, with PyMySQL in the place of mysqlclient, which has to be compiled."""

import os
import subprocess
import sys

from . import pip

VERSION = "Django==5.2.8"
REQUIREMENTS = [VERSION, "PyMySQL[rsa]==1.2.4"]
PARTS = """
    aggregation aggregation_regress annotations backends basic bulk_create cache composite_pk constraints contenttypes_tests
    custom_columns custom_lookups custom_pk datatypes dates datetimes db_functions db_typecasts db_utils defer delete
    delete_regress distinct_on_fields expressions expressions_case expressions_window extra_regress field_defaults
    filtered_relation fixtures force_insert_update foreign_object from_db_value generic_relations get_or_create indexes
    inspectdb introspection known_related_objects lookup m2m_through managers_regress many_to_many many_to_one
    migrate_signals migration_test_data_persistence migrations model_fields model_inheritance model_inheritance_regress
    multiple_database nested_foreign_keys null_fk null_fk_ordering null_queries one_to_one or_lookups order_with_respect_to
    ordering prefetch_related proxy_models queries raw_query reverse_lookup save_delete_hooks schema select_for_update
    select_related select_related_regress serializers string_lookup timezones transaction_hooks transactions
    unmanaged_models update update_only_fields validation
""".split()

SETTINGS = """
import os
import unittest

import pymysql

pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()


def database(name):
    return {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": "root", "HOST": os.environ["SUITE_HOST"],
            "PORT": os.environ["SUITE_PORT"], "TEST": {"CHARSET": "utf8mb4"}}


DATABASES = {"default": database("django"), "other": database("django_other")}
SECRET_KEY = "tests"
USE_TZ = False
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TEST_RUNNER = "suite_runner.Runner"
"""

RUNNER = """
import os
import unittest

from django.test.runner import DiscoverRunner


class Outcomes(unittest.TextTestResult):
    def note(self, test, outcome, why=""):
        with open(os.environ["SUITE_OUTCOMES"], "a") as file:
            print(test.id(), outcome, " ".join(str(why).split())[:400], sep="\\t", file=file)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "skipped")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "succeeds, where Django expects a failure")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", repr(err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", repr(err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", repr(err[1]))


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Outcomes
"""


def install(cache):
    python = pip.environment(cache, "django", REQUIREMENTS)
    return python, pip.package(cache, python, VERSION)


def run(package, address, work, parts):
    python, sources = package
    (work / "suite_settings.py").write_text(SETTINGS)
    (work / "suite_runner.py").write_text(RUNNER)
    report = work / "outcomes"
    environ = {**os.environ, "SUITE_HOST": address.host, "SUITE_PORT": str(address.port), "SUITE_OUTCOMES": str(report),
               "PYTHONPATH": f"{work}:{sources}"}
    command = [python, "-W", "ignore", "runtests.py", "--settings", "suite_settings", "--noinput", "--parallel", "1",
               *(parts or PARTS)]
    with open(work / "django.log", "w") as log:
        subprocess.run(command, cwd=sources / "tests", stdout=log, stderr=log, env=environ)
    if not report.exists():
        sys.exit(f"Django has run no test:\n{(work / 'django.log').read_text()[-3000:]}")
    outcomes = {}
    for line in report.read_text().splitlines():
        test, outcome, why = line.split("\t", 2)
        # A test one of whose subtests has failed has failed.
        if outcomes.get(test, ("", ""))[0] != "failed":
            outcomes[test] = (outcome, why)
    return outcomes


def name_of(test):
    return test
