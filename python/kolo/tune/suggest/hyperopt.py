"""Ray Tune's place for this search."""

from kolo.tune.suggest import HyperOptSearch

__all__ = ["HyperOptSearch"]
