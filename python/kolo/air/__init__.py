"""Sessions, checkpoints and results of trials, with the interface of Ray AIR."""

import kolo.tune  # first: it needs parts of this package, which need parts of it
from kolo.air import config, result, session
from kolo.air.config import CheckpointConfig, FailureConfig, RunConfig
from kolo.air.result import Result
from kolo.tune.checkpoint import Checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointConfig",
    "FailureConfig",
    "Result",
    "RunConfig",
    "config",
    "result",
    "session",
]
