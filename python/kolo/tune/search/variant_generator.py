"""Configurations one by one, at the place that Ray Tune 2 has for them."""

from kolo.tune.variant_generator import *  # noqa: F403
