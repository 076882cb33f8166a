"""What the drivers of `scripts/bench training` and `scripts/bench python` share.

Contenders are started first and then take turns, one round each, so that whatever the machine does
meets them alike; those not at work wait without using the processor. A round's time is that of its
slowest rank; a figure is the median over rounds.
"""

import json
import os
import pathlib
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
PEER = pathlib.Path(__file__).with_name("training_peer.py")
PATIENCE = 120


class Contender:
    """The ranks of one system under test."""

    def __init__(self, reception, name, ranks, commands, environment=()):
        self.name, self.ranks = name, ranks
        self.log = tempfile.TemporaryFile()
        self.processes = [
            subprocess.Popen(
                command,
                env={**os.environ, **ONE_THREAD, **dict(environment), **more},
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                start_new_session=True,
            )
            for command, more in commands
        ]
        self.lines = {}
        deadline = time.monotonic() + PATIENCE
        while len(self.lines) < ranks:
            if select.select([reception], [], [], 0.2)[0]:
                lines = reception.accept()[0].makefile("rw")
                caller, rank = lines.readline().split()
                assert caller == name, f"{caller} called instead of {name}"
                self.lines[int(rank)] = lines
            elif any(p.poll() is not None for p in self.processes) or time.monotonic() > deadline:
                self.fail("did not start")

    def fail(self, what):
        self.log.seek(0)
        sys.exit(f"bench: {self.name} {what}:\n{self.log.read().decode()[-2000:]}")

    def ask(self, line):
        """Every rank's answer, as numbers."""
        for lines in self.lines.values():
            print(line, file=lines, flush=True)
        answers = []
        for rank in sorted(self.lines):
            answer = self.lines[rank].readline()
            if not answer:
                self.fail(f"ended at '{line}'")
            answers.append([float(word) for word in answer.split()])
        return answers

    def seconds_per_step(self, steps, verb="run"):
        return max(answer[0] for answer in self.ask(f"{verb} {steps}")) / steps

    def close(self):
        for lines in self.lines.values():
            try:
                print("quit", file=lines, flush=True)
                lines.close()
            except OSError:
                pass
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


class Bench:
    """Starts contenders, and prints what came of them."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.scratch = tempfile.TemporaryDirectory(prefix="kolo-bench.")
        self.path = os.path.join(self.scratch.name, "reception")
        self.reception = socket.socket(socket.AF_UNIX)
        self.reception.bind(self.path)
        self.reception.listen(16)
        self.port = 29500 + os.getpid() % 1000
        self.ratios, self.table = [], []

    def kolo(self, name, ranks, model, batch, *more):
        rank = [str(pathlib.Path(self.arguments.bin) / "training_rank"), self.path, name, model,
                str(batch), *more]
        command = rank if ranks == 1 else [self.arguments.kolo, "run", "-np", str(ranks), *rank]
        return Contender(self.reception, name, ranks, [(command, {})])

    def ddp(self, name, ranks, model, batch, interpreter="/usr/bin/python3"):
        self.port += 1
        command = [interpreter, str(PEER), "ddp", self.path, name, model, str(batch)]
        commands = [
            (command, {"RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(self.port)})
            for r in range(ranks)
        ]
        return Contender(self.reception, name, ranks, commands)

    @staticmethod
    def take_turns(rounds_of, budget, least=5):
        """Calls each function of {name: function} once a round, forwards and backwards in turn,
        until the budget of seconds is spent. Returns {name: figures}."""
        figures = {name: [] for name in rounds_of}
        deadline = time.monotonic() + budget
        rounds = 0
        while rounds < least or time.monotonic() < deadline:
            names = list(rounds_of)
            for name in names if rounds % 2 == 0 else reversed(names):
                figures[name].append(rounds_of[name]())
            rounds += 1
        return figures

    def note(self, what, figures):
        """Adds lines to the table; returns the medians."""
        for name, values in figures.items():
            low, _, high = statistics.quantiles(values, n=4)
            self.table.append((what, name, statistics.median(values), low, high, len(values)))
        return {name: statistics.median(values) for name, values in figures.items()}

    def ratio(self, name, value, op, goal):
        good = value <= goal if op == "<=" else value >= goal
        self.ratios.append((name, value, f"{op}{goal:g}", good))

    def report(self):
        print(f"{'model':<14} {'contender':<9} {'ms/step':>9} {'quartiles':>17} {'rounds':>6}")
        for name, contender, middle, low, high, rounds in self.table:
            print(f"{name:<14} {contender:<9} {middle * 1e3:9.2f} {low * 1e3:8.2f} {high * 1e3:8.2f} {rounds:6}")
        for name, value, goal, good in self.ratios:
            print(f"RATIO {name} {value:.3f} goal {goal} {'PASS' if good else 'FALLS-SHORT'}")
        if self.arguments.json:
            rows = [dict(name=n, value=v, goal=g, ok=o) for n, v, g, o in self.ratios]
            pathlib.Path(self.arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
