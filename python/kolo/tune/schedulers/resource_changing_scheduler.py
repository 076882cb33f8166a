"""Ranks that move between trials, at Ray Tune's place for it."""

from kolo.tune.schedulers import (
    DistributeResources,
    DistributeResourcesToTopJob,
    ResourceChangingScheduler,
    ReuseWorkers,
)

__all__ = [
    "DistributeResources",
    "DistributeResourcesToTopJob",
    "ResourceChangingScheduler",
    "ReuseWorkers",
]
