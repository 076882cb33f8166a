"""Hyperparameter search over trials that are data-parallel themselves (Horovod + Ray Tune).

Run:     python examples/python/tune_horovod.py
Expect:  eighteen trials of two ranks each, and "best config" with the largest learning rate.
"""

import sys

import kolo.torch as hvd  # was: import horovod.torch as hvd
from kolo import tune  # was: from ray import tune
from kolo.tune.integration.horovod import DistributedTrainableCreator  # was: ray.tune


class Model:
    """Stands for a network."""

    def __init__(self, learning_rate):
        self.learning_rate = learning_rate


def training_function(config):
    hvd.init()
    for _ in range(config["epochs"]):
        model = Model(learning_rate=config["lr"])
        tune.report(test=model.learning_rate, rank=hvd.rank())


samples = int(sys.argv[1]) if len(sys.argv) > 1 else 2
trainable = DistributedTrainableCreator(training_function, num_slots=2, use_gpu=False)
analysis = tune.run(
    trainable,
    num_samples=samples,
    config={
        "epochs": tune.grid_search([1, 2, 3]),
        "lr": tune.grid_search([0.1, 0.2, 0.3]),
    },
    metric="test",
    mode="max",
    verbose=0,
)
print(f"{len(analysis.trials)} trials")
print(f"best config {analysis.best_config}")
