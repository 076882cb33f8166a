# Optuna's seconds per trial: tune_optuna_peer.py sqlite|memory TRIALS JOBS
import sys
import tempfile
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
storage_kind, trials, jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def objective(trial):
    return trial.suggest_float("x", -10, 10) ** 2


with tempfile.TemporaryDirectory() as scratch:
    storage = f"sqlite:///{scratch}/optuna.db" if storage_kind == "sqlite" else None
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=4, n_jobs=jobs)
    start = time.perf_counter()
    study.optimize(objective, n_trials=trials, n_jobs=jobs)
    print((time.perf_counter() - start) / trials)
