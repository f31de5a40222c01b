"""Packages of Python, their sources with the tests, and pytest's outcomes."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from xml.etree import ElementTree


def environment(cache, name, requirements):
    """The interpreter of a virtual environment that has these packages."""
    folder = cache / name
    python = folder / "bin" / "python"
    kept = folder / "requirements"
    wanted = "\n".join(requirements)
    if not kept.exists() or kept.read_text() != wanted:
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        kept.write_text(wanted)
    return python


def package(cache, python, requirement, form="sdist"):
    """The unpacked sources (or wheel) of a package."""
    folder = cache / f"{requirement.replace('==', '-')}-{form}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        download = cache / "download"
        which = "--no-binary" if form == "sdist" else "--only-binary"
        subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", which, ":all:", "--dest", download,
                        requirement], check=True)
        (archive,) = download.iterdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(folder)
        else:
            partial = folder.with_suffix(".partial")
            with tarfile.open(archive) as sources:
                sources.extractall(partial, filter="data")
            (inner,) = partial.iterdir()
            inner.rename(folder)
            partial.rmdir()
        archive.unlink()
    return folder


def pytest(python, folder, work, arguments, environ=()):
    """Runs pytest in a folder; the outcomes by test."""
    report = work / "junit.xml"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    with open(work / "pytest.log", "w") as log:
        subprocess.run(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **dict(environ)})
    if not report.exists():
        sys.exit(f"pytest has made no report:\n{(work / 'pytest.log').read_text()[-3000:]}")
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if bad is not None:
            outcomes[test] = ("failed", " ".join((bad.get("message") or "").split())[:400])
        elif test not in outcomes:
            outcomes[test] = ("skipped" if case.find("skipped") is not None else "passed", "")
    return outcomes
