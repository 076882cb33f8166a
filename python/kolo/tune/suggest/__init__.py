"""Searches: which configurations are tried. The names are Ray Tune's; the algorithms are kolo's."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from kolo import _core
from kolo._errors import InvalidArgumentError


class Searcher:
    """A search by its name in ``kolo list samplers``, with its settings."""

    name = ""

    def __init__(
        self,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        max_concurrent: int = 0,
        name: Optional[str] = None,
        random_state: Optional[int] = None,
        **settings: Any,
    ) -> None:
        if mode not in (None, "min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        self.metric = metric
        self.mode = mode
        self.points_to_evaluate: List[Dict[str, Any]] = list(points_to_evaluate or [])
        self.max_concurrent = max_concurrent or 0
        self.seed = random_state
        self.settings = settings
        if name is not None:
            self.name = name


class BasicVariantGenerator(Searcher):
    """Every grid combination num_samples times, everything else at random."""


class BayesOptSearch(Searcher):
    """Bayesian optimisation with a Gaussian process."""

    name = "gp"


class OptunaSearch(Searcher):
    """The tree-structured Parzen estimator, which Optuna's users know."""

    name = "tpe"


class HyperOptSearch(Searcher):
    """The tree-structured Parzen estimator."""

    name = "tpe"


class TuneBOHB(Searcher):
    """BOHB, together with the scheduler HyperBandForBOHB."""

    name = "bohb"


class ConcurrencyLimiter(Searcher):
    """A search with at most so many trials at once."""

    def __init__(self, searcher: Searcher, max_concurrent: int, batch: bool = False) -> None:
        if not isinstance(searcher, Searcher):
            raise InvalidArgumentError("ConcurrencyLimiter: the first argument must be a search")
        if batch:
            raise InvalidArgumentError("ConcurrencyLimiter: batch=True is not supported")
        if (
            isinstance(max_concurrent, bool)
            or not isinstance(max_concurrent, int)
            or max_concurrent < 1
        ):
            raise InvalidArgumentError(
                f"ConcurrencyLimiter: max_concurrent must be positive, not {max_concurrent!r}"
            )
        super().__init__(searcher.metric, searcher.mode, searcher.points_to_evaluate)
        self.name = searcher.name
        self.settings = searcher.settings
        self.seed = searcher.seed
        self.max_concurrent = max_concurrent


def create_searcher(search_alg: str, **kwargs: Any) -> Searcher:
    """A search by Tune's or kolo's name for it."""
    classes = {
        "variant_generator": BasicVariantGenerator,
        "random": BasicVariantGenerator,
        "bayesopt": BayesOptSearch,
        "optuna": OptunaSearch,
        "hyperopt": HyperOptSearch,
        "bohb": TuneBOHB,
    }
    if search_alg in classes:
        return classes[search_alg](**kwargs)
    known = [name for name, _ in _core.samplers()]
    if search_alg not in known:
        raise InvalidArgumentError(
            f"search {search_alg!r} is unknown; known: {', '.join(sorted({*classes, *known}))}"
        )
    return Searcher(name=search_alg, **kwargs)
