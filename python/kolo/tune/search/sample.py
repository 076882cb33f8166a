"""The words of a search space, at the place that Ray Tune 2 has for them."""

from kolo.tune.sample import *  # noqa: F403
