"""Programs for drivers and frameworks of Node.js whose packages have no tests: each does on both servers what an application
does (frameworks/node/NAME.mjs), and prints what came of each step, which must be the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "node"


class Program:
    def __init__(self, name):
        self.name = name

    def install(self, cache):
        """The folder with node_modules, of the versions in node/package.json."""
        folder = cache / "node"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = (PROGRAMS / "package.json").read_text()
        kept = folder / "installed.json"
        if not kept.exists() or kept.read_text() != wanted:
            (folder / "package.json").write_text(wanted)
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
            kept.write_text(wanted)
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copy(program, folder)
        return folder

    def run(self, package, address, work, parts):
        environ = {**os.environ, "SUITE_HOST": address.host, "SUITE_PORT": str(address.port)}
        done = subprocess.run(["node", f"{self.name}.mjs", *parts], cwd=package, env=environ, capture_output=True,
                              text=True, timeout=600)
        outcomes = {}
        for line in done.stdout.splitlines():
            step = json.loads(line)
            outcomes[step["step"]] = ("failed" if "error" in step else "passed", step.get("error", step.get("gave")))
        if not outcomes:
            sys.exit(f"{self.name}.mjs has done no step:\n{done.stderr[-3000:]}")
        return outcomes

    def name_of(self, test):
        return test
