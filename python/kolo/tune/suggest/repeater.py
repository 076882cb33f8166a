"""A search whose suggestions are tried several times, at the place that Ray Tune 1 has for it."""

from kolo.tune.suggest import Repeater

__all__ = ["Repeater"]
