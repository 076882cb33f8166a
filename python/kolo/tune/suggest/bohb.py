"""Ray Tune's place for this search."""

from kolo.tune.suggest import TuneBOHB

__all__ = ["TuneBOHB"]
