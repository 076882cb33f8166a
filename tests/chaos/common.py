"""What all topics of scripts/chaos share: families of processes, disks that run full, rounds."""

import collections
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KOLO = ROOT / "build/release/bin/kolo"
PATIENCE = 180  # seconds that a round may take before it counts as stuck


class Loss(Exception):
    """Something that must not happen has happened."""


class Family:
    """All processes that one topic has started, known by a mark in their environment."""

    def __init__(self, rng, mark):
        self.rng, self.mark = rng, f"KOLO_CHAOS={mark}".encode()
        # The share of cores depends on the number of ranks, and the bits of a training on the threads.
        self.environment = {**os.environ, "KOLO_CHAOS": mark, "OMP_NUM_THREADS": "1"}
        self.kills = collections.Counter()

    def start(self, command, folder, log):
        with open(log, "a") as output:
            return subprocess.Popen(
                list(map(str, command)), cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )

    def run(self, command, folder):
        done = subprocess.run(
            list(map(str, command)), cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60,
        )
        if done.returncode != 0:
            raise Loss(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def members(self):
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name), (entry / "comm").read_text().strip()
            except OSError:
                continue  # it has ended

    def kill_one(self):
        members = list(self.members())
        if members:
            pid, name = self.rng.choice(members)
            self.kills[name] += 1
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def expect_nobody(self):
        deadline = time.monotonic() + 15
        while left := list(self.members()):
            if time.monotonic() > deadline:
                for pid, _ in left:
                    os.kill(pid, signal.SIGKILL)
                raise Loss(f"processes are left: {left}")
            time.sleep(0.1)


class FullDisk:
    """A small disk that can be filled; an ordinary folder for users who cannot mount one."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
        self.mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0

    def fill_for(self, seconds):
        filler = self.folder / "filler"
        try:
            with open(filler, "wb") as file:
                while True:
                    file.write(bytes(1 << 16))
        except OSError:
            pass
        time.sleep(seconds)
        filler.unlink()

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


class Round:
    """One study or queue, from its start to its checked end."""

    def __init__(self, name, rng, folder, until):
        self.rng, self.folder, self.until = rng, folder, until
        self.family = Family(rng, f"{name}-{os.getpid()}-{rng.getrandbits(32):x}")
        self.log = folder / "log"

    def keep_going(self, start, is_finished, fault, faults):
        """Starts the command again whenever it has ended, until all is finished."""
        process, left, deadline = None, faults, time.monotonic() + PATIENCE
        while True:
            if process is None or process.poll() is not None:
                if process is not None and is_finished():
                    return
                process = start()
            if left > 0 and time.monotonic() < self.until:
                time.sleep(self.rng.uniform(0.02, 0.6))
                fault()
                left -= 1
            else:
                time.sleep(0.05)
            if time.monotonic() > deadline:
                process.kill()
                raise Loss(f"stuck for {PATIENCE} s; see {self.log}")
