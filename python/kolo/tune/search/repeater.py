"""The search that repeats, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import Repeater

__all__ = ["Repeater"]
