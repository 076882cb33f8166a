"""The driver of `scripts/bench python`: kolo from Python, beside torch's DistributedDataParallel and kolo from C++.

    python_bench.py --bin DIR --kolo KOLO --package DIR [--interpreter PYTHON] [--tensorflow PYTHON] [--quick] [--json FILE]

The interpreter is one with the newest torch if there is one. What is compared with C++ is measured
with Debian's torch, which the C++ ranks are linked with.
"""

import argparse
import os
import pathlib
import subprocess
import sys

from training_driver import ONE_THREAD, PEER, Bench, Contender

DEBIAN = "/usr/bin/python3"
# name: batch per rank, steps per round, goal of the comparison with DDP
MODELS = {
    "mlp200": (16, 20, 0.6),
    "resnet18": (32, 1, 0.95),
    "transformer": (8, 8, 0.95),
}
SMALL, LARGE = 2, 16 << 20  # floats
START = """
import time, torch
begin = time.perf_counter()
import kolo.torch
kolo.torch.init()
print("START", time.perf_counter() - begin)
"""
KERAS_STEP = pathlib.Path(__file__).with_name("tensorflow_step.py")


class PythonBench(Bench):
    """Every comparison of the topic."""

    def python(self, name, ranks, model, batch, interpreter):
        """Ranks of kolo.torch."""
        rank = [interpreter, str(PEER), "kolo", self.path, name, model, str(batch)]
        command = rank if ranks == 1 else [self.arguments.kolo, "run", "-np", str(ranks), *rank]
        return Contender(self.reception, name, ranks, [(command, {})], self.environment())

    def environment(self):
        return {"PYTHONPATH": self.arguments.package}

    def model(self, name, budget):
        batch, steps, goal = MODELS[name]
        contenders = [
            self.python("python", 2, name, batch, self.arguments.interpreter),
            self.ddp("ddp", 2, name, batch, self.arguments.interpreter),
        ]
        median = self.compare(name, contenders, lambda c: c.seconds_per_step(steps), budget)
        self.ratio(f"python_ddp_{name}", median["python"] / median["ddp"], "<=", goal)

    def against_cpp(self, name, budget):
        batch, steps, _ = MODELS[name]
        contenders = [
            self.python("debian", 2, name, batch, DEBIAN),
            self.kolo("c++", 2, name, batch),
        ]
        median = self.compare(name, contenders, lambda c: c.seconds_per_step(steps), budget)
        self.ratio(f"python_cpp_{name}", median["debian"] / median["c++"], "<=", 1.05)
        # What Python's own work is of that: one rank, without kolo and with it, and one of C++.
        contenders = [
            self.ddp("plain", 1, name, batch, DEBIAN),
            self.python("debian", 1, name, batch, DEBIAN),
            self.kolo("c++", 1, name, batch),
        ]
        self.compare(f"{name}, 1 rank", contenders, lambda c: c.seconds_per_step(steps), budget / 2)

    def reductions(self, budget):
        python = self.python("python", 2, "mlp200", 16, self.arguments.interpreter)
        ddp = self.ddp("ddp", 2, "mlp200", 16, self.arguments.interpreter)
        cpp = self.kolo("c++", 2, "mlp200", 16)

        def seconds(contender, count, repeats, verb="allreduce"):
            return max(a[0] for a in contender.ask(f"{verb} {count} {repeats}")) / repeats

        # kolo.allreduce, as torch's, must come in the same order on all ranks; hvd.allreduce_ need not.
        small = self.compare("8 B", [python, ddp], lambda c: seconds(c, SMALL, 1000), budget, False)
        self.ratio("python_allreduce_8B_us", small["python"] * 1e6, "<=", 5)
        self.ratio("python_allreduce_8B_torch", small["python"] / small["ddp"], "<=", 0.05)
        named = self.compare("8 B named", [python], lambda c: seconds(c, SMALL, 1000, "named"), budget, False)
        self.ratio("python_hvd_allreduce_8B_us", named["python"] * 1e6, "<=", 5)
        self.ratio("python_hvd_allreduce_8B_torch", named["python"] / small["ddp"], "<=", 0.05)
        large = self.compare("64 MB", [python, cpp], lambda c: seconds(c, LARGE, 4), budget, False)
        self.ratio("python_allreduce_64MB_cpp", large["python"] / large["c++"], "<=", 1.2)
        named = self.compare("64 MB named", [python], lambda c: seconds(c, LARGE, 4, "named"), budget, False)
        self.ratio("python_hvd_allreduce_64MB_cpp", named["python"] / large["c++"], "<=", 1.2)
        used = max(answer[0] for answer in python.ask("idle 4")) / 4
        self.ratio("python_idle_cores", used, "<=", 0.005)
        for contender in (python, ddp, cpp):
            contender.close()

    def compare(self, what, contenders, measure, budget, closes=True):
        for contender in contenders:
            measure(contender)  # agree, allocate, warm up
        turns = {c.name: lambda c=c: measure(c) for c in contenders}
        median = self.note(what, self.take_turns(turns, budget))
        if closes:
            for contender in contenders:
                contender.close()
        return median

    def start(self):
        """What kolo adds to `import torch`, for ranks of a job."""
        command = [self.arguments.kolo, "run", "-np", "2", self.arguments.interpreter, "-c", START]

        def once():
            printed = subprocess.run(
                command, env=self.variables(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
            ).stdout
            return max(float(line.split()[-1]) for line in printed.splitlines() if "START" in line)

        median = self.note("start", self.take_turns({"python": once}, 0))
        self.ratio("python_start_ms", median["python"] * 1e3, "<=", 50)

    def tensorflow(self):
        if not self.arguments.tensorflow:
            print("MISSING tensorflow: no interpreter that has it (--tensorflow PYTHON)")
            return

        def seconds(ranks):
            rank = [self.arguments.tensorflow, str(KERAS_STEP)]
            command = [self.arguments.kolo, "run", "-np", str(ranks), *rank]
            printed = subprocess.run(
                command, env=self.variables(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
            ).stdout
            return max(float(line.split()[-1]) for line in printed.splitlines() if "STEP" in line)

        median = self.note("tensorflow", self.take_turns({"2 ranks": lambda: seconds(2), "1 rank": lambda: seconds(1)}, 0, 3))
        self.ratio("tensorflow_step", median["2 ranks"] / median["1 rank"], "<=", 1.1)

    def variables(self):
        return {**os.environ, **ONE_THREAD, **self.environment()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kolo", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--interpreter", default=DEBIAN)
    parser.add_argument("--tensorflow")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    bench = PythonBench(arguments)
    budget = 5 if arguments.quick else 25
    for name in ["mlp200"] if arguments.quick else MODELS:
        bench.model(name, budget)
    bench.against_cpp("mlp200", budget)
    bench.reductions(budget / 3)
    bench.start()
    if not arguments.quick:
        bench.tensorflow()
    bench.report()


if __name__ == "__main__":
    sys.exit(main())
