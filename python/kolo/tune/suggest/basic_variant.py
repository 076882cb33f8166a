"""Grids and random values, at the place that Ray Tune 1 has for it."""

from kolo.tune.suggest import BasicVariantGenerator

__all__ = ["BasicVariantGenerator"]
