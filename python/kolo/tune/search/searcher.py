"""The base of searches, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import Searcher

__all__ = ["Searcher"]
