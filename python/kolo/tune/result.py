"""Keys of results, by Ray Tune's names for them."""

import os

DONE = "done"
TRAINING_ITERATION = "training_iteration"
TIME_THIS_ITER_S = "time_this_iter_s"
TIME_TOTAL_S = "time_total_s"
TIMESTEPS_TOTAL = "timesteps_total"
TRIAL_ID = "trial_id"
# What says only when and where a result was made.
DEBUG_METRICS = ("trial_id", "experiment_id", "date", "timestamp", "pid", "hostname", "node_ip")
# The key of a value that a function reports or returns without a name.
DEFAULT_METRIC = "_metric"

# Where studies are kept, unless local_dir says otherwise.
DEFAULT_RESULTS_DIR = os.path.expanduser(os.environ.get("KOLO_RESULTS") or "~/kolo_results")
