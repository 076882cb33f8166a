"""Bayesian optimisation with a limit to trials at once, and what an analysis tells.

Run:     python examples/python/tune_bayesopt.py
Expect:  "best lr" near 0.05.
"""

from kolo import tune  # was: from ray import tune
from kolo.tune.suggest import ConcurrencyLimiter  # was: from ray.tune.suggest
from kolo.tune.suggest.bayesopt import BayesOptSearch


def training_function(config):
    for step in range(1, 4):
        tune.report(mean_loss=(config["lr"] - 0.05) ** 2 + 1.0 / step)


algo = BayesOptSearch()
algo = ConcurrencyLimiter(algo, max_concurrent=4)
results = tune.run(
    training_function,
    config={
        "lr": tune.uniform(0.001, 0.1),
        "double": tune.sample_from(lambda spec: spec.config.lr * 2),
        "const": "hello",
    },
    metric="mean_loss",
    mode="min",
    num_samples=20,
    search_alg=algo,
    stop={"training_iteration": 20},
    verbose=0,
)
print(f"best trial {results.best_trial} in {results.best_logdir}")
print(f"best lr {results.best_config['lr']:.3f}")
print(f"last result {results.best_result['mean_loss']:.4f}")
