"""HyperOpt's search, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import HyperOptSearch

__all__ = ["HyperOptSearch"]
