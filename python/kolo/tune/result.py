"""Keys of results, by Ray Tune's names for them."""

DONE = "done"
TRAINING_ITERATION = "training_iteration"
TIME_THIS_ITER_S = "time_this_iter_s"
TIME_TOTAL_S = "time_total_s"
TIMESTEPS_TOTAL = "timesteps_total"
TRIAL_ID = "trial_id"
# The key of a value that a function reports or returns without a name.
DEFAULT_METRIC = "_metric"
