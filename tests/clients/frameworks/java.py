"""Programs for drivers and frameworks of Java: each does on both servers what an application does (frameworks/java/NAME.java),
and prints what came of each step, which must be the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "java"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class Program:
    def __init__(self, name, *arguments):
        self.name = name
        self.arguments = arguments

    def install(self, cache):
        """The folder with the compiled programs and, in lib, the packages of java/pom.xml."""
        folder = cache / "java"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = (PROGRAMS / "pom.xml").read_text()
        kept = folder / "pom.xml"
        if not kept.exists() or kept.read_text() != wanted:
            shutil.rmtree(folder / "lib", ignore_errors=True)
            subprocess.run(["mvn", "-q", "-B", "-f", PROGRAMS / "pom.xml", COPY, f"-DoutputDirectory={folder / 'lib'}"], check=True)
            kept.write_text(wanted)
        sources = sorted(PROGRAMS.glob("*.java"))
        subprocess.run(["javac", "-nowarn", "-encoding", "UTF-8", "-cp", f"{folder}/lib/*", "-d", folder / "classes", *sources],
                       check=True)
        return folder

    def run(self, package, address, work, parts):
        environ = {**os.environ, "SUITE_HOST": address.host, "SUITE_PORT": str(address.port), "TZ": "UTC"}
        command = ["java", "-Duser.timezone=UTC", "-cp", f"{package}/classes:{package}/lib/*", self.name, *self.arguments, *parts]
        done = subprocess.run(command, cwd=work, env=environ, capture_output=True, text=True, timeout=600)
        outcomes = {}
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            step = json.loads(line)
            outcomes[step["step"]] = ("failed" if "error" in step else "passed", step.get("error", step.get("gave")))
        if not outcomes:
            sys.exit(f"{self.name} has done no step:\n{done.stderr[-3000:]}")
        return outcomes

    def name_of(self, test):
        return test
