"""Searches: which configurations are tried. The names are Ray Tune's; the algorithms are kolo's."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from kolo import _core
from kolo._errors import InvalidArgumentError, known_arguments, unknown_name
from kolo.tune.error import SettingError
from kolo.tune.suggest._searcher import Searcher
from kolo.tune.suggest._variants import Variants
from kolo.tune.suggest._wrappers import ConcurrencyLimiter, Repeater


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
        self.constant_grid_search = constant_grid_search
        self._variants: Optional[Variants] = None
        self._ran = 0

    def note_trials(self, count: int) -> None:
        """Of the study that it was given to."""
        self._ran = count

    # --- trials one by one, without a study ---

    @property
    def total_samples(self) -> int:
        """How many trials the specifications that were added stand for; after a study, how many that
        had."""
        return self._variants.total if self._variants else self._ran

    def add_configurations(self, experiments: Any) -> None:
        """Takes specifications by name: {"name": {"run": ..., "config": ..., "num_samples": 2}}."""
        if self._variants is None:
            self._variants = Variants(self.points_to_evaluate, self.constant_grid_search, self.seed)
        self._variants.add(experiments)

    def next_trial(self) -> Any:
        """The next trial of what was added; None at the end."""
        return self._variants.next() if self._variants else None

    def is_finished(self) -> bool:
        """Whether next_trial() has given all."""
        return self._variants is None or self._variants.is_finished


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
        utility_kwargs: Optional[Dict[str, Any]] = None,
        verbose: int = 0,
        patience: Optional[int] = 5,
        skip_duplicate: bool = True,
        analysis: Any = None,
        **settings: Any,
    ) -> None:
        """``utility_kwargs``: {"kind": "ucb", "kappa": 2.5, "xi": 0.0}; the kind may be "ei" or "poi".
        ``analysis``: an earlier study to learn from. The search is finished when it suggests a point
        more than ``patience`` times, to five decimals; None: never. ``verbose`` and
        ``skip_duplicate`` change nothing: no point is tried twice while there are others."""
        if patience is not None:
            if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
                raise SettingError(
                    "BayesOptSearch: patience must be a whole number of 1 or more, or None, not "
                    f"{patience!r}"
                )
            settings["patience"] = patience
        settings.update(_utility(utility_kwargs or {}))
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
        if analysis is not None:
            self.add_evaluated_trials(analysis, metric or analysis.default_metric)


def _utility(given: Dict[str, Any]) -> Dict[str, Any]:
    """The acquisition function, as kolo calls it."""
    names = {"ucb": "UCB", "ei": "EI", "poi": "PI"}
    settings = {key: value for key, value in given.items() if key in ("kappa", "xi")}
    kind = given.get("kind")
    if kind is not None and kind not in names:
        raise unknown_name("BayesOptSearch: utility_kwargs['kind']", kind, names)
    return {**settings, **({} if kind is None else {"acq_func": names[kind]})}


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
        evaluated_rewards: Optional[Sequence[Any]] = None,
        **settings: Any,
    ) -> None:
        """``evaluated_rewards`` are the values of points_to_evaluate, which are not tried then."""
        if sampler is not None:
            raise InvalidArgumentError(
                "OptunaSearch: samplers of Optuna are not used here; kolo.optuna brings kolo's "
                "samplers to Optuna"
            )
        points = list(points_to_evaluate or [])
        rewards = list(evaluated_rewards or [])
        if rewards and len(rewards) != len(points):
            raise InvalidArgumentError(
                f"OptunaSearch: there are {len(points)} points_to_evaluate, but {len(rewards)} "
                "evaluated_rewards"
            )
        points_to_evaluate = [] if rewards else points
        super().__init__(
            metric, mode, points_to_evaluate, random_state=seed, space=space, **settings
        )
        for point, reward in zip(points, rewards):
            self.add_evaluated_point(point, reward)


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
        return classes[search_alg](**known_arguments(classes[search_alg], kwargs))
    known = [name for name, _ in _core.samplers()]
    if search_alg not in known:
        raise unknown_name("search", search_alg, {*classes, *known})
    return Searcher(name=search_alg, **kwargs)
