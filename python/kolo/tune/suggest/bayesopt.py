"""Ray Tune's place for this search."""

from kolo.tune.suggest import BayesOptSearch

__all__ = ["BayesOptSearch"]
