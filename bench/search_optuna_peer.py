#!/usr/bin/python3
"""Optuna's side of the search benches.

  search_optuna_peer.py quality --program search_quality_bench --cache FILE --seeds N [-- ARGS]
      Runs Optuna's TPE, univariate and multivariate, on each problem that the program describes and
      that FILE has no result for yet (same problem, checksum, seed and version), and appends lines of
      JSON to FILE. The program evaluates the points, so both sides see the same functions.

  search_optuna_peer.py speed --trials N --dimensions D
      Prints the seconds that TPE needs for N trials of D floats, in memory.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
BUDGETS = (50, 100, 200)
FORMS = ("optuna-tpe-mv", "optuna-tpe")


class Server:
    """Evaluates points of one problem."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def regret(self, point):
        self.process.stdin.write(json.dumps(point) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def suggest(trial, parameters):
    """A point by parameter name; numbers as they are, choices by index. Inactive ones are absent."""
    point = {}
    for p in parameters:
        if "parent" in p and point.get(p["parent"]) not in p["values"]:
            continue
        name = p["name"]
        if p["type"] == "real":
            point[name] = trial.suggest_float(name, p["low"], p["high"], log=p.get("log", False))
        elif p["type"] == "integer":
            point[name] = trial.suggest_int(name, p["low"], p["high"], log=p.get("log", False))
        elif p["type"] == "ordinal":
            point[name] = trial.suggest_int(name, 0, p["count"] - 1)
        else:
            point[name] = trial.suggest_categorical(name, list(range(p["count"])))
    return point


def search(task):
    command, problem, form, seed = task
    server = Server(command + ["--serve", problem["name"]])
    try:
        conditional = any("parent" in p for p in problem["parameters"])
        options = {"multivariate": True, "group": conditional} if form == "optuna-tpe-mv" else {}
        import warnings
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, **options))
        study.optimize(lambda trial: server.regret(suggest(trial, problem["parameters"])), n_trials=BUDGETS[-1])
        values = [trial.value for trial in study.trials]
    finally:
        server.close()
    return {"problem": problem["name"], "checksum": problem["checksum"], "form": form, "seed": seed,
            "version": optuna.__version__, "regret": {str(b): min(values[:b]) for b in BUDGETS}}


def known_results(path):
    known = set()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    r = json.loads(line)
                    known.add((r["problem"], r["checksum"], r["form"], r["seed"], r["version"]))
                except (ValueError, KeyError):
                    pass  # cut off by an interrupt
    return known


def quality(options, rest):
    command = [options.program] + rest
    problems = json.loads(subprocess.run(command + ["--describe"], check=True, capture_output=True, text=True).stdout)
    known = known_results(options.cache)
    tasks = [(command, problem, form, seed)
             for problem in problems for form in FORMS for seed in range(options.seeds)
             if (problem["name"], problem["checksum"], form, seed, optuna.__version__) not in known]
    total = len(problems) * len(FORMS) * options.seeds
    print(f"Optuna {optuna.__version__}: {total - len(tasks)} of {total} searches are in {options.cache}"
          + (f"; running {len(tasks)} more, which is slow and happens once" if tasks else ""), flush=True)
    if not tasks:
        return
    os.makedirs(os.path.dirname(os.path.abspath(options.cache)), exist_ok=True)
    begin = time.monotonic()
    with open(options.cache, "a", encoding="utf-8") as file, \
            concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for done, result in enumerate(pool.map(search, tasks), 1):
            file.write(json.dumps(result) + "\n")
            file.flush()
            if done % 20 == 0 or done == len(tasks):
                print(f"Optuna: {done} of {len(tasks)} searches after {time.monotonic() - begin:.0f} s", flush=True)


def speed(options):
    def objective(trial):
        return sum(trial.suggest_float(f"x{i}", -5, 5) ** 2 for i in range(options.dimensions))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    begin = time.perf_counter()
    study.optimize(objective, n_trials=options.trials)
    print(time.perf_counter() - begin)


def main():
    arguments = sys.argv[1:]
    rest = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    arguments = arguments[:arguments.index("--")] if "--" in arguments else arguments
    parser = argparse.ArgumentParser(description="Optuna's side of the search benches")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("quality")
    one.add_argument("--program", required=True)
    one.add_argument("--cache", required=True)
    one.add_argument("--seeds", type=int, default=30)
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    two = commands.add_parser("speed")
    two.add_argument("--trials", type=int, required=True)
    two.add_argument("--dimensions", type=int, required=True)
    options = parser.parse_args(arguments)
    if options.command == "quality":
        quality(options, rest)
    else:
        speed(options)


if __name__ == "__main__":
    main()
