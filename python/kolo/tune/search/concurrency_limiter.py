"""The limit of concurrent trials, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import ConcurrencyLimiter

__all__ = ["ConcurrencyLimiter"]
