"""Studies: many trials of one function or class, with the interface of Ray Tune.

from kolo import tune

def train(config):
    for epoch in range(10):
        tune.report(loss=...)

analysis = tune.run(train, config={"lr": tune.loguniform(1e-4, 1e-1)}, num_samples=20,
                    metric="loss", mode="min")
print(analysis.best_config)
"""

from kolo.air.config import CheckpointConfig, FailureConfig, RunConfig, SyncConfig
from kolo.tune import (
    checkpoint,
    error,
    experiment,
    logger,
    progress_reporter,
    result,
    schedulers,
    search,
    stopper,
    suggest,
    trial,
    utils,
    variant_generator,
)
from kolo.tune._functions import with_parameters, with_resources, wrap_function
from kolo.tune._run import run
from kolo.tune._session import (
    TrialStopped,
    checkpoint_dir,
    get_checkpoint,
    get_trial_dir,
    get_trial_id,
    get_trial_name,
    get_trial_resources,
    is_session_enabled,
    report,
    should_stop,
)
from kolo.tune.analysis import Analysis, ExperimentAnalysis
from kolo.tune.callback import Callback
from kolo.tune.checkpoint import Checkpoint
from kolo.tune.error import TuneError
from kolo.tune.experiment import Experiment, run_experiments
from kolo.tune.progress_reporter import CLIReporter, JupyterNotebookReporter, ProgressReporter
from kolo.tune.registry import register_trainable
from kolo.tune.resources import PlacementGroupFactory
from kolo.tune.result_grid import ResultGrid
from kolo.tune.sample import (
    Categorical,
    Domain,
    Float,
    Function,
    Integer,
    choice,
    grid_search,
    lograndint,
    loguniform,
    qlograndint,
    qloguniform,
    qrandint,
    qrandn,
    quniform,
    randint,
    randn,
    sample_from,
    uniform,
)
from kolo.tune.schedulers import create_scheduler
from kolo.tune.stopper import Stopper
from kolo.tune.suggest import create_searcher
from kolo.tune.trainable import DistributedTrainableCreator, Trainable
from kolo.tune.trial import Trial
from kolo.tune.tune_config import TuneConfig
from kolo.tune.tuner import Tuner

__all__ = [name for name in dir() if not name.startswith("_")]
