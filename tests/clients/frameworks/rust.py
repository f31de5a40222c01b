"""Drivers of Rust. mysql_async and mysql: the tests in their packages. sqlx, whose package has none: a program that does on both
servers what an application does (frameworks/rust), and prints what came of each step, which must be the same."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import servers

PROGRAMS = Path(__file__).resolve().parent / "rust"


def environ(cache):
    return {**os.environ, "CARGO_TARGET_DIR": str(cache / "rust-target")}


class OwnTests:
    """A crate's own tests, with features that need no other library on the machine."""

    def __init__(self, crate, version, features):
        self.crate, self.version, self.features = crate, version, features

    def install(self, cache):
        """A copy of the crate with its tests built."""
        folder = cache / f"{self.crate}-{self.version}"
        if not folder.exists():
            probe = cache / f"{self.crate}.probe"
            (probe / "src").mkdir(parents=True, exist_ok=True)
            (probe / "src" / "lib.rs").touch()
            (probe / "Cargo.toml").write_text(
                f'[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2024"\n'
                f'[dependencies]\n{self.crate} = {{ version = "={self.version}", default-features = false, '
                f'features = {json.dumps(self.features)} }}\n[workspace]\n')
            told = subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=probe, check=True, capture_output=True)
            manifest = next(package["manifest_path"] for package in json.loads(told.stdout)["packages"]
                            if package["name"] == self.crate)
            shutil.copytree(Path(manifest).parent, folder)
            shutil.rmtree(probe)
        self.build(folder, cache)
        return folder

    def command(self, *more):
        return ["cargo", "test", "--lib", "--no-default-features", "--features", ",".join(self.features), *more]

    def build(self, folder, cache):
        subprocess.run(self.command("--no-run"), cwd=folder, env=environ(cache), check=True)

    def run(self, package, address, work, parts):
        servers.execute(address, "CREATE DATABASE IF NOT EXISTS mysql_test", "SET GLOBAL local_infile = ON")
        env = {**environ(package.parent), "DATABASE_URL": f"mysql://root@{address.host}:{address.port}/mysql_test",
               "RUST_BACKTRACE": "0"}
        done = subprocess.run(self.command("--", "--test-threads=1", *parts), cwd=package, env=env, capture_output=True, text=True,
                              timeout=1200)
        why = dict(re.findall(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:)", done.stdout, re.M | re.S))
        outcomes = {}
        for test, outcome in re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (?:.*\n)*?.*?\b(ok|FAILED|ignored)\b", done.stdout, re.M):
            kind = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}[outcome]
            outcomes[test] = (kind, " ".join(why.get(test, "").split())[:400] if kind == "failed" else "")
        if not outcomes:
            sys.exit(f"{self.crate} has run no test:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return outcomes

    def name_of(self, test):
        return test


class Program:
    """frameworks/rust"""

    def install(self, cache):
        subprocess.run(["cargo", "build", "--manifest-path", PROGRAMS / "Cargo.toml"], env=environ(cache), check=True)
        return cache / "rust-target" / "debug" / "suites"

    def run(self, package, address, work, parts):
        env = {**os.environ, "SUITE_HOST": address.host, "SUITE_PORT": str(address.port)}
        done = subprocess.run([package], cwd=work, env=env, capture_output=True, text=True, timeout=600)
        outcomes = {}
        for line in done.stdout.splitlines():
            step = json.loads(line)
            outcomes[step["step"]] = ("failed" if "error" in step else "passed", step.get("error", step.get("gave")))
        if not outcomes:
            sys.exit(f"the program has done no step:\n{done.stderr[-3000:]}")
        return outcomes

    def name_of(self, test):
        return test
