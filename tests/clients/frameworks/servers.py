"""Starts an Avocet or a MySQL 9.7 on an empty data directory, with root without a password, and ends it."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]


class Address(NamedTuple):
    host: str
    port: int


def cache():
    return Path(os.environ.get("AVOCET_CACHE", Path.home() / ".cache" / "avocet"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def avocet_command(work, port, binary):
    target = Path(os.environ.get("CARGO_TARGET_DIR", cache() / "target"))
    binary = binary or Path(os.environ.get("AVOCET_BIN", target / "release" / "avocet"))
    if not binary.exists():
        sys.exit(f"{binary} is not there: build it with `make build`, or name another with --avocet")
    # A suite makes and drops tables all the time: what is asked here is what a server answers, not how fast a disk syncs.
    return [binary, "serve", "--data", work / "avocet", "--listen", f"127.0.0.1:{port}", "--memory-limit", "2G",
            "--durability", "os", "--max-connections", "151"]


def mysql_program(path):
    root = cache() / "mysql-9.7"
    if not root.exists():
        sys.exit(f"{root} is not there: `bench/run slt --target mysql tests/slt/select/basic.slt` fetches MySQL 9.7")
    return [root / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", root / "usr/lib/x86_64-linux-gnu", root / path]


def mysql_command(work, port):
    usr = cache() / "mysql-9.7" / "usr"
    base = [*mysql_program("usr/sbin/mysqld"), "--no-defaults", f"--basedir={usr}",
            f"--lc-messages-dir={usr}/share/mysql", f"--character-sets-dir={usr}/share/mysql/charsets",
            f"--plugin-dir={usr}/lib/mysql/plugin", "--secure-file-priv=NULL", f"--datadir={work}/mysql"]
    if os.geteuid() == 0:
        base.append("--user=root")
    subprocess.run([*base, "--initialize-insecure"], check=True, capture_output=True)
    # Time zones by name, once bench/run has made the file.
    zones = usr.parent / "zones.sql"
    if zones.exists():
        base.append(f"--init-file={zones}")
    return [*base, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={work}/socket", f"--pid-file={work}/pid",
            "--mysqlx=OFF", "--skip-log-bin", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF"]


def execute(address, *statements):
    """Statements that make what a suite expects to find."""
    subprocess.run([*mysql_program("usr/bin/mysql"), "--no-defaults", f"--host={address.host}", f"--port={address.port}",
                    "--user=root"], input=";\n".join(statements), text=True, check=True)


@contextmanager
def start(server, work, avocet=None):
    """Runs the server while the block runs; gives its address."""
    port = free_port()
    command = avocet_command(work, port, avocet) if server == "avocet" else mysql_command(work, port)
    with open(work / "server.log", "w") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(process, port, work / "server.log")
        yield Address("127.0.0.1", port)
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(process, port, log, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"the server has ended:\n{log.read_text()[-2000:]}")
        try:
            # A MySQL that still starts refuses, or closes the connection without a greeting.
            with socket.create_connection(("127.0.0.1", port), timeout=5) as stream:
                if stream.recv(5):
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"the server does not answer after {seconds} s:\n{log.read_text()[-2000:]}")
