# SPDX-License-Identifier: GPL-2.0-only
"""A MySQL with the plugin, and an Avocet that follows it, in a scratch folder."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pymysql


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, condition, seconds=30.0):
    """Polls until a condition holds; fails by name."""
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except pymysql.err.Error:
            pass
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Server:
    def __init__(self, folder, name):
        self.port = free_port()
        self.socket = os.path.join(folder, name + ".sock")
        self.log = os.path.join(folder, name + ".log")
        self.process = None

    def launch(self, command):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(f"{self.log}: up", self.is_up)

    def is_up(self):
        assert self.process.poll() is None, f"{self.log}: it has ended"
        self.connect().close()
        return True

    def connect(self, **options):
        options = {"user": "root", "autocommit": True, **options}
        return pymysql.connect(host="127.0.0.1", port=self.port, **options)

    def stop(self, how=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None


class MySql(Server):
    def __init__(self, root, plugin, folder):
        super().__init__(folder, "mysql")
        plugins = os.path.join(folder, "plugins")
        os.mkdir(plugins)
        shutil.copy(plugin, plugins)
        libraries = f"{root}/usr/lib/x86_64-linux-gnu"
        self.command = [f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, f"{root}/usr/sbin/mysqld",
                        "--no-defaults", f"--basedir={root}/usr", f"--lc-messages-dir={root}/usr/share/mysql",
                        f"--character-sets-dir={root}/usr/share/mysql/charsets", f"--plugin-dir={plugins}",
                        "--secure-file-priv=NULL", f"--datadir={folder}/mysql"]
        if os.geteuid() == 0:
            self.command.append("--user=root")
        subprocess.run([*self.command, "--initialize-insecure"], check=True, stderr=subprocess.DEVNULL)

    def start(self):
        self.launch([*self.command, f"--socket={self.socket}", f"--pid-file={self.socket}.pid", "--bind-address=127.0.0.1",
                     f"--port={self.port}", "--mysqlx=OFF", "--server-id=1", "--log-bin=binlog", "--gtid-mode=ON",
                     "--enforce-gtid-consistency=ON", "--binlog-row-metadata=FULL", "--innodb-buffer-pool-size=256M",
                     "--default-time-zone=+00:00"])


class Avocet(Server):
    def __init__(self, binary, source, folder):
        super().__init__(folder, "avocet")
        self.command = [binary, "attach", f"mysql://repl:secret@127.0.0.1:{source.port}/", "--data", f"{folder}/avocet",
                        "--exclude", "t.excluded", "--memory-limit", "2G"]

    def start(self):
        self.launch([*self.command, "--listen", f"127.0.0.1:{self.port}", "--socket", self.socket])
