"""Searches, at the place that Ray Tune 2 has for them. They are those of kolo.tune.suggest."""

from kolo.tune.sample import grid_search, sample_from
from kolo.tune.suggest import (
    BasicVariantGenerator,
    BayesOptSearch,
    ConcurrencyLimiter,
    HyperOptSearch,
    OptunaSearch,
    Repeater,
    Searcher,
    TuneBOHB,
    create_searcher,
)

__all__ = [
    "BasicVariantGenerator",
    "BayesOptSearch",
    "ConcurrencyLimiter",
    "HyperOptSearch",
    "OptunaSearch",
    "Repeater",
    "Searcher",
    "TuneBOHB",
    "create_searcher",
    "grid_search",
    "sample_from",
]
