"""The base of searches, at the place that Ray Tune 1 has for it."""

from kolo.tune.suggest import ConcurrencyLimiter, Searcher

__all__ = ["ConcurrencyLimiter", "Searcher"]
