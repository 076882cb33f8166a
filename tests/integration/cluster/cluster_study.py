"""The same from Python: cluster_study.py CLUSTER DIRECTORY"""

import socket
import sys

from kolo import tune


def train(config):
    tune.report(loss=config["x"], on=socket.gethostname())


analysis = tune.run(
    train,
    name="python",
    metric="loss",
    mode="min",
    config={"x": tune.grid_search([1, 2, 3, 4, 5, 6])},
    cluster=sys.argv[1],
    local_dir=sys.argv[2],
    verbose=0,
)
hosts = sorted({trial.last_result["on"] for trial in analysis.trials})
print(len(analysis.trials), "trials on", *hosts)
