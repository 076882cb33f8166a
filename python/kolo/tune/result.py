"""Keys of results, by Ray Tune's names for them."""

import os
from typing import Optional

DONE = "done"
TRAINING_ITERATION = "training_iteration"
TIME_THIS_ITER_S = "time_this_iter_s"
TIME_TOTAL_S = "time_total_s"
TIMESTEPS_TOTAL = "timesteps_total"
TRIAL_ID = "trial_id"
TIMESTEPS_THIS_ITER = "timesteps_this_iter"
EPISODES_TOTAL = "episodes_total"
PID = "pid"
HOSTNAME = "hostname"
NODE_IP = "node_ip"
EXPERIMENT_TAG = "experiment_tag"
# The files of a trial.
EXPR_PARAM_FILE = "params.json"
EXPR_PARAM_PICKLE_FILE = "params.pkl"
EXPR_PROGRESS_FILE = "progress.csv"
EXPR_RESULT_FILE = "result.json"
# What says only when and where a result was made.
DEBUG_METRICS = ("trial_id", "experiment_id", "date", "timestamp", "pid", "hostname", "node_ip")
# What the study adds to each result.
AUTO_RESULT_KEYS = (
    TRAINING_ITERATION,
    TIME_TOTAL_S,
    TIME_THIS_ITER_S,
    TIMESTEPS_TOTAL,
    TIMESTEPS_THIS_ITER,
    EPISODES_TOTAL,
    DONE,
    TRIAL_ID,
    PID,
    HOSTNAME,
    NODE_IP,
    EXPERIMENT_TAG,
    "experiment_id",
    "date",
    "timestamp",
    "time_since_restore",
    "timesteps_since_restore",
    "iterations_since_restore",
    "config",
)
# The key of a value that a function reports or returns without a name.
DEFAULT_METRIC = "_metric"


def results_dir(local_dir: Optional[str] = None) -> str:
    """Where studies are kept."""
    folder = local_dir or os.environ.get("KOLO_RESULTS") or "~/kolo_results"
    return os.path.expanduser(folder)


DEFAULT_RESULTS_DIR = results_dir()
