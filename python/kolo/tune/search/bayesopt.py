"""Bayesian optimisation, at the place that Ray Tune 2 has for it."""

from kolo.tune.suggest import BayesOptSearch

__all__ = ["BayesOptSearch"]
