"""The driver of `scripts/bench training`: kolo against torch's DistributedDataParallel with Gloo.

    training_bench.py --bin DIR --kolo KOLO [--quick] [--json FILE] [--models a,b]

All contenders of a model are started first and then take turns, one round each, so that whatever
the machine does meets them alike; those not at work wait without using the processor. A round's
time is that of its slowest rank; the figure is the median over rounds.
"""

import argparse
import json
import os
import pathlib
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# name: batch per rank, steps per round, comparison with DDP and its goal
MODELS = {
    "mlp200": dict(batch=16, steps=20, ddp=0.6),
    "vgg": dict(batch=2, steps=4, ddp=0.6),
    "resnet18": dict(batch=32, steps=1, ddp=0.95, scaling=0.97, hidden=0.9),
    "transformer": dict(batch=8, steps=8, ddp=0.95, scaling=0.97),
}
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
PEER = pathlib.Path(__file__).with_name("training_ddp_peer.py")
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

    def ddp(self, name, ranks, model, batch):
        self.port += 1
        command = ["/usr/bin/python3", str(PEER), self.path, name, model, str(batch)]
        commands = [
            (command, {"RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(self.port)})
            for r in range(ranks)
        ]
        return Contender(self.reception, name, ranks, commands)

    def ratio(self, name, value, op, goal):
        good = value <= goal if op == "<=" else value >= goal
        self.ratios.append((name, value, f"{op}{goal:g}", good))

    def model(self, name, budget):
        """Rounds of all contenders in turn until the budget of seconds is spent."""
        how = MODELS[name]
        contenders = [self.kolo("kolo2", 2, name, how["batch"]), self.ddp("ddp2", 2, name, how["batch"])]
        if "scaling" in how:
            contenders.append(self.kolo("kolo1", 1, name, how["batch"]))
        pair = [contenders[-1], self.kolo("other", 1, name, how["batch"])] if "scaling" in how else []
        times = {c.name: [] for c in contenders}
        if pair:
            times["apart"] = []
        parts = []
        for contender in contenders + pair[1:]:
            contender.seconds_per_step(max(3, how["steps"]))  # agree, allocate, warm up
        if "hidden" in how:
            contenders[0].ask("times")
        deadline = time.monotonic() + budget
        rounds = 0
        while rounds < 5 or time.monotonic() < deadline:
            for contender in contenders if rounds % 2 == 0 else reversed(contenders):
                times[contender.name].append(contender.seconds_per_step(how["steps"]))
            if pair:
                times["apart"].append(self.apart(pair, how["steps"]))
            if "hidden" in how:
                parts.append(contenders[0].ask("times"))
            rounds += 1
        median = {key: statistics.median(values) for key, values in times.items()}
        for key, values in times.items():
            spread = statistics.quantiles(values, n=4)
            self.table.append((name, key, median[key], spread[0], spread[2], rounds))
        self.ratio(f"ddp_{name}", median["kolo2"] / median["ddp2"], "<=", how["ddp"])
        if "scaling" in how:
            self.ratio(f"scaling_{name}", median["kolo1"] / median["kolo2"], ">=", how["scaling"])
        if "hidden" in how:
            # The rank that comes last waits for nobody: what it still does is exposed.
            exposed = statistics.median(min(rank[1] for rank in step) for step in parts)
            total = statistics.median(statistics.mean(rank[0] for rank in step) for step in parts)
            self.ratio(f"hidden_share_{name}", 1 - exposed / total, ">=", how["hidden"])
        for contender in contenders + pair[1:]:
            contender.close()

    @staticmethod
    def apart(pair, steps):
        """Two processes that know nothing of each other, at once: what the machine allows."""
        seconds = []
        threads = [
            threading.Thread(target=lambda c=c: seconds.append(c.seconds_per_step(steps)))
            for c in pair
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(seconds)

    def overhead(self, budget):
        """Plain and wrapped steps of one rank, in turn."""
        alone = self.kolo("alone", 1, "mlp200", 16)
        alone.seconds_per_step(20), alone.seconds_per_step(20, "plain")
        ratios, deadline = [], time.monotonic() + budget
        while len(ratios) < 10 or time.monotonic() < deadline:
            first, second = ("run", "plain") if len(ratios) % 2 == 0 else ("plain", "run")
            seconds = {first: alone.seconds_per_step(10, first)}
            seconds[second] = alone.seconds_per_step(10, second)
            ratios.append(seconds["run"] / seconds["plain"])
        alone.close()
        self.ratio("overhead_1rank", statistics.median(ratios), "<=", 1.01)

    def memory(self):
        sharded = self.kolo("sharded", 2, "resnet18", 2, "sharded")
        whole = self.kolo("whole", 1, "resnet18", 2, "sharded")
        for contender in (sharded, whole):
            contender.seconds_per_step(1)
        largest = max(answer[0] for answer in sharded.ask("state"))
        self.ratio("zero1_memory_adam", largest / whole.ask("state")[0][0], "<=", 0.52)
        sharded.close(), whole.close()

    def report(self):
        print(f"{'model':<12} {'contender':<9} {'ms/step':>9} {'quartiles':>17} {'rounds':>6}")
        for name, contender, middle, low, high, rounds in self.table:
            print(f"{name:<12} {contender:<9} {middle * 1e3:9.2f} {low * 1e3:8.2f} {high * 1e3:8.2f} {rounds:6}")
        for name, value, goal, good in self.ratios:
            print(f"RATIO {name} {value:.3f} goal {goal} {'PASS' if good else 'FALLS-SHORT'}")
        if self.arguments.json:
            rows = [dict(name=n, value=v, goal=g, ok=o) for n, v, g, o in self.ratios]
            pathlib.Path(self.arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kolo", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--models")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    chosen = arguments.models.split(",") if arguments.models else list(MODELS)
    if arguments.quick and not arguments.models:
        chosen = ["mlp200"]
    for name in chosen:
        if name not in MODELS:
            sys.exit(f"bench: model '{name}' is unknown; known: {', '.join(MODELS)}")
        bench.model(name, 10 if arguments.quick else 40)
    if not arguments.models:
        bench.overhead(4 if arguments.quick else 15)
    if not arguments.quick and not arguments.models:
        bench.memory()
    bench.report()


if __name__ == "__main__":
    main()
