"""HyperBand, at Ray Tune's place for it."""

from kolo.tune.schedulers import HyperBandScheduler

__all__ = ["HyperBandScheduler"]
