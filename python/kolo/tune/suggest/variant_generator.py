"""Configurations one by one, at the place that Ray Tune 1 has for it."""

from kolo.tune.sample import grid_search
from kolo.tune.variant_generator import generate_variants

__all__ = ["generate_variants", "grid_search"]
