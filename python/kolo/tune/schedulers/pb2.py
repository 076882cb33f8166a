"""Population based bandits, at Ray Tune's place for it."""

from kolo.tune.schedulers import PB2

__all__ = ["PB2"]
