"""The base of schedulers, at Ray Tune's place for it."""

from kolo.tune.schedulers import FIFOScheduler, TrialScheduler

__all__ = ["FIFOScheduler", "TrialScheduler"]
