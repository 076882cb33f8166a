"""Queues of jobs, in SQLite and PostgreSQL, with two launchers."""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from common import KOLO, Loss, Round

JOB = """
import fcntl, os, pathlib, time
here = pathlib.Path(os.environ["CHAOS_JOBS"]) / os.environ["KOLO_JOB_ID"]
lock = open(f"{here}.lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    pathlib.Path(f"{here}.twice").touch()
time.sleep(0.1)
with open(f"{here}.done", "a") as done:
    done.write("done\\n")
"""


class Postgres:
    """A server of the run's own, which may be killed."""

    def __init__(self, folder):
        self.folder = folder / "postgresql"
        self.bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        self.folder.mkdir()
        shutil.chown(self.folder, "postgres", "postgres")
        self.call("initdb", "-D", self.folder / "data", "-A", "trust", "-N")
        self.start()
        self.url = f"postgresql://postgres@/postgres?host={self.folder}"

    def call(self, program, *arguments):
        command = ["runuser", "-u", "postgres", "--", str(self.bin / program), *map(str, arguments)]
        subprocess.run(command, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def start(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "-t", "60",
                  "-o", f"-k {self.folder} -c listen_addresses=", "start")

    def crash(self):
        pid = int((self.folder / "data/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        for _ in range(20):  # processes of the dead server hold its memory for a while
            time.sleep(0.3)
            try:
                return self.start()
            except subprocess.CalledProcessError:
                continue
        raise Loss("the database server does not start again")

    def close(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


def jobs(rng, folder, until, server=None):
    """Forty jobs and two launchers."""
    (folder / "job.py").write_text(JOB)
    round_ = Round("jobs", rng, folder, until)
    family = round_.family
    family.environment |= {"KOLO_DB": str(folder / "queue"), "CHAOS_JOBS": str(folder)}
    where = ["--db", server.url] if server else []
    family.run([KOLO, "init", "queue", *where], folder)
    family.run([KOLO, "app", "--name", "work", "--executable", f"{sys.executable} {folder / 'job.py'}"], folder)
    for number in range(40):
        family.run([KOLO, "job", "--name", f"job{number}", "--application", "work", "--max-retries", "1000"], folder)
    launcher = [KOLO, "launcher", "--lease-seconds", "3", "--idle-seconds", "1", "--nodes", "2", "--cpus-per-node", "2"]
    second = family.start(launcher, folder, folder / "log2")

    def fault():
        nonlocal second
        if server and rng.random() < 0.15:
            server.crash()
            family.kills["the database"] += 1
        else:
            family.kill_one()
        if second.poll() is not None:
            second = family.start(launcher, folder, folder / "log2")

    def states():
        return collections.Counter(row["state"] for row in json.loads(family.run([KOLO, "ls", "--json"], folder)))

    def is_finished():
        return set(states()) == {"JOB_FINISHED"}

    round_.keep_going(lambda: family.start(launcher, folder, round_.log), is_finished, fault, 15)
    second.wait(60)
    if twice := sorted(folder.glob("*.twice")):
        raise Loss(f"jobs ran twice at a time: {[path.stem for path in twice]}")
    if len(list(folder.glob("*.done"))) != 40:
        raise Loss("jobs that are said to be finished have never ended")
    family.expect_nobody()
    return family.kills


def jobs_postgresql(rng, folder, until):
    """The same with a database server that is killed too."""
    server = Postgres(folder)
    try:
        return jobs(rng, folder, until, server)
    finally:
        server.close()
