"""Searches: which configurations are tried. The names are Ray Tune's; the algorithms are kolo's."""

from __future__ import annotations

import pickle
from typing import Any, Dict, List, Optional, Sequence, Set

from kolo import _core
from kolo._errors import InvalidArgumentError, unknown_name
from kolo._run import pickler
from kolo.tune.suggest._variants import Variants


class Searcher:
    """A search by its name in ``kolo list samplers``, with its settings; or, for a class of one's
    own that overrides suggest() and on_trial_complete(), one in Python.

    ``space`` is a search space in the words of tune; what the config of tune.run names comes on top.
    """

    FINISHED = "FINISHED"
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
        self._sampler: Any = None
        self._numbers: Dict[str, int] = {}
        self._history: List[Any] = []

    # --- trial by trial: for loops of one's own, and for classes of one's own to override ---

    def set_search_properties(
        self, metric: Any, mode: Any, config: Dict[str, Any], **spec: Any
    ) -> bool:
        """Takes what tune.run was given. False: this search has other properties already."""
        if type(self).suggest is not Searcher.suggest or self.space:
            return False
        self.space = dict(config or {})
        self.metric = metric or self.metric
        self.mode = mode or self.mode
        return True

    def suggest(self, trial_id: str) -> Any:
        """A configuration for a trial; None: not now; Searcher.FINISHED: never again."""
        config = self._ask(trial_id)
        if config is not None:
            self._history.append(("ask", trial_id))
        return config

    def on_trial_result(self, trial_id: str, result: Dict[str, Any]) -> None:
        """A trial has reported."""

    def on_trial_complete(
        self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False
    ) -> None:
        """A trial has ended."""
        if type(self).suggest is Searcher.suggest and trial_id in self._numbers:
            values = None if error or result is None else [result[m] for m in self._metrics()]
            self._tell(trial_id, values)
            self._history.append(("tell", trial_id, values))

    def save(self, checkpoint_path: str) -> None:
        """Writes what the search knows to a file."""
        with open(checkpoint_path, "wb") as file:
            file.write(pickler.dumps(self.get_state()))

    def restore(self, checkpoint_path: str) -> None:
        """Takes what save() has written."""
        with open(checkpoint_path, "rb") as file:
            self.set_state(pickle.load(file))

    def get_state(self) -> Dict[str, Any]:
        """All that set_state() needs."""
        return {key: value for key, value in self.__dict__.items() if key != "_sampler"}

    def set_state(self, state: Dict[str, Any]) -> None:
        """Goes on from where get_state() was called: the same calls give the same answers."""
        self.__dict__.update(state)
        self._sampler, self._numbers = None, {}
        for what, trial_id, *values in self._history:
            if what == "ask":
                self._ask(trial_id)
            else:
                self._tell(trial_id, values[0])

    def is_custom(self) -> bool:
        """Whether its rules are in Python."""
        return type(self).suggest is not Searcher.suggest

    def _metrics(self) -> List[str]:
        return list(self.metric) if isinstance(self.metric, (list, tuple)) else [self.metric]

    def _ask(self, trial_id: str) -> Optional[Dict[str, Any]]:
        if self._sampler is None:
            self._sampler = self._make_sampler()
        asked = self._sampler.ask(1)
        if not asked:
            return None
        self._numbers[trial_id] = asked[0].number
        return asked[0].config

    def _tell(self, trial_id: str, values: Optional[List[float]]) -> None:
        self._sampler.tell(self._numbers.pop(trial_id), values)

    def _make_sampler(self) -> Any:
        from kolo.search import Sampler

        modes = self.mode if isinstance(self.mode, (list, tuple)) else [self.mode or "max"]
        if not self.space or (not self.metric and self.name):
            raise InvalidArgumentError(
                f"{type(self).__name__}.suggest: the search needs a space and a metric; give them "
                "at construction or by set_search_properties(metric, mode, config)"
            )
        return Sampler(
            self.space,
            self.name or "random",
            ["maximize" if mode == "max" else "minimize" for mode in modes],
            self.seed or 0,
            self.points_to_evaluate,
            **self.settings,
        )


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
        self.constant_grid_search = constant_grid_search
        self._variants: Optional[Variants] = None

    # --- trials one by one, without a study ---

    @property
    def total_samples(self) -> int:
        """How many trials the specifications that were added stand for."""
        return self._variants.total if self._variants else 0

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
        self.searcher = searcher
        self.name = searcher.name
        self.settings = searcher.settings
        self.seed = searcher.seed
        self.space = searcher.space
        self.max_concurrent = max_concurrent
        self._live: Set[str] = set()

    def is_custom(self) -> bool:
        return self.searcher.is_custom()

    def set_search_properties(
        self, metric: Any, mode: Any, config: Dict[str, Any], **spec: Any
    ) -> bool:
        return self.searcher.set_search_properties(metric, mode, config, **spec)

    def suggest(self, trial_id: str) -> Any:
        if len(self._live) >= self.max_concurrent:
            return None
        suggestion = self.searcher.suggest(trial_id)
        if suggestion not in (None, Searcher.FINISHED):
            self._live.add(trial_id)
        return suggestion

    def on_trial_result(self, trial_id: str, result: Dict[str, Any]) -> None:
        self.searcher.on_trial_result(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False
    ) -> None:
        self._live.discard(trial_id)
        self.searcher.on_trial_complete(trial_id, result=result, error=error)

    def get_state(self) -> Dict[str, Any]:
        return {"searcher": self.searcher.get_state(), "live": self._live}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.searcher.set_state(state["searcher"])
        self._live = state["live"]


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
