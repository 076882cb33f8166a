"""BOHB, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import TuneBOHB

__all__ = ["TuneBOHB"]
