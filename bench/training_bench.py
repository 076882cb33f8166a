"""The driver of `scripts/bench training`: kolo against torch's DistributedDataParallel with Gloo.

    training_bench.py --bin DIR --kolo KOLO [--quick] [--json FILE] [--models a,b]
"""

import argparse
import statistics
import sys
import threading
import time

from training_driver import Bench

# name: batch per rank, steps per round, comparison with DDP and its goal
MODELS = {
    "mlp200": dict(batch=16, steps=20, ddp=0.6),
    "vgg": dict(batch=2, steps=4, ddp=0.6),
    "resnet18": dict(batch=32, steps=1, ddp=0.95, scaling=0.97, hidden=0.9),
    "transformer": dict(batch=8, steps=8, ddp=0.95, scaling=0.97),
}


class TrainingBench(Bench):
    def model(self, name, budget):
        """Rounds of all contenders in turn until the budget of seconds is spent."""
        how = MODELS[name]
        contenders = [self.kolo("kolo2", 2, name, how["batch"]), self.ddp("ddp2", 2, name, how["batch"])]
        if "scaling" in how:
            contenders.append(self.kolo("kolo1", 1, name, how["batch"]))
        pair = [contenders[-1], self.kolo("other", 1, name, how["batch"])] if "scaling" in how else []
        parts = []
        for contender in contenders + pair[1:]:
            contender.seconds_per_step(max(3, how["steps"]))  # agree, allocate, warm up
        if "hidden" in how:
            contenders[0].ask("times")
        turns = {c.name: lambda c=c: c.seconds_per_step(how["steps"]) for c in contenders}
        if pair:
            turns["apart"] = lambda: self.apart(pair, how["steps"])
        if "hidden" in how:

            def with_times():
                seconds = contenders[0].seconds_per_step(how["steps"])
                parts.append(contenders[0].ask("times"))
                return seconds

            turns[contenders[0].name] = with_times
        median = self.note(name, self.take_turns(turns, budget))
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kolo", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--models")
    arguments = parser.parse_args()
    bench = TrainingBench(arguments)
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
