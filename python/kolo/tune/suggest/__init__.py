"""Searches: which configurations are tried. The names are Ray Tune's; the algorithms are kolo's."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from kolo import _core
from kolo._errors import InvalidArgumentError, unknown_name


class Searcher:
    """A search by its name in ``kolo list samplers``, with its settings.

    ``space`` is a search space in the words of tune; what the config of tune.run names comes on top.
    """

    name = ""

    def __init__(
        self,
        metric: Any = None,
        mode: Any = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        max_concurrent: Optional[int] = None,
        name: Optional[str] = None,
        random_state: Any = None,
        space: Optional[Dict[str, Any]] = None,
        **settings: Any,
    ) -> None:
        for one in mode if isinstance(mode, (list, tuple)) else [mode]:
            if one not in (None, "min", "max"):
                raise InvalidArgumentError(f"mode must be 'min' or 'max', not {one!r}")
        if space is not None and not isinstance(space, dict):
            raise InvalidArgumentError(
                f"space is {type(space).__name__}; use a dictionary in the words of tune: "
                '{"lr": tune.loguniform(1e-4, 1e-1)}'
            )
        self.metric = metric
        self.mode = mode
        self.space = dict(space or {})
        self.points_to_evaluate: List[Dict[str, Any]] = list(points_to_evaluate or [])
        self.max_concurrent = max_concurrent or 0
        self.seed = _seed(random_state)
        self.settings = settings
        if name is not None:
            self.name = name


def _seed(random_state: Any) -> Optional[int]:
    """A number, or what a generator of NumPy draws next."""
    if random_state is None or isinstance(random_state, int):
        return random_state
    return int(random_state.randint(2**31))


class BasicVariantGenerator(Searcher):
    """Every grid combination num_samples times, everything else at random."""

    def __init__(
        self,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        max_concurrent: int = 0,
        constant_grid_search: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            points_to_evaluate=points_to_evaluate,
            max_concurrent=max_concurrent,
            random_state=random_state,
        )


class BayesOptSearch(Searcher):
    """Bayesian optimisation with a Gaussian process."""

    name = "gp"

    def __init__(
        self,
        space: Optional[Dict[str, Any]] = None,
        metric: Any = None,
        mode: Any = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        random_state: Any = 42,
        random_search_steps: Optional[int] = None,
        max_concurrent: Optional[int] = None,
        **settings: Any,
    ) -> None:
        if random_search_steps is not None:
            settings["n_initial_points"] = random_search_steps
        super().__init__(
            metric,
            mode,
            points_to_evaluate,
            max_concurrent,
            random_state=random_state,
            space=space,
            **settings,
        )


class OptunaSearch(Searcher):
    """The tree-structured Parzen estimator, which Optuna's users know."""

    name = "tpe"

    def __init__(
        self,
        space: Optional[Dict[str, Any]] = None,
        metric: Any = None,
        mode: Any = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        sampler: Any = None,
        seed: Optional[int] = None,
        **settings: Any,
    ) -> None:
        if sampler is not None:
            raise InvalidArgumentError(
                "OptunaSearch: samplers of Optuna are not used here; kolo.optuna brings kolo's "
                "samplers to Optuna"
            )
        super().__init__(
            metric, mode, points_to_evaluate, random_state=seed, space=space, **settings
        )


class HyperOptSearch(Searcher):
    """The tree-structured Parzen estimator."""

    name = "tpe"

    def __init__(
        self,
        space: Optional[Dict[str, Any]] = None,
        metric: Any = None,
        mode: Any = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        n_initial_points: int = 20,
        random_state_seed: Optional[int] = None,
        gamma: float = 0.25,
        max_concurrent: Optional[int] = None,
    ) -> None:
        super().__init__(
            metric,
            mode,
            points_to_evaluate,
            max_concurrent,
            random_state=random_state_seed,
            space=space,
            n_startup=n_initial_points,
            gamma=gamma,
        )


class TuneBOHB(Searcher):
    """BOHB, together with the scheduler HyperBandForBOHB."""

    name = "bohb"

    def __init__(
        self,
        space: Optional[Dict[str, Any]] = None,
        bohb_config: Optional[Dict[str, Any]] = None,
        metric: Any = None,
        mode: Any = None,
        points_to_evaluate: Optional[Sequence[Dict[str, Any]]] = None,
        seed: Optional[int] = None,
        max_concurrent: Optional[int] = None,
    ) -> None:
        super().__init__(
            metric,
            mode,
            points_to_evaluate,
            max_concurrent,
            random_state=seed,
            space=space,
            **(bohb_config or {}),
        )


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
        self.space = searcher.space
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
        raise unknown_name("search", search_alg, {*classes, *known})
    return Searcher(name=search_alg, **kwargs)
