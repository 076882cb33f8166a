"""The base of searches."""

from __future__ import annotations

import math
import pickle
from typing import Any, Dict, List, Optional, Sequence, Tuple

from kolo._errors import InvalidArgumentError, UnsupportedError
from kolo._run import pickler
from kolo.tune.trial import flatten


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
        # Pairs of configurations and values that are not of this study.
        self.known: List[Tuple[Dict[str, Any], List[float]]] = []
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
        if isinstance(config, dict):
            self._history.append(("ask", trial_id))
        return config

    def on_trial_result(self, trial_id: str, result: Dict[str, Any]) -> None:
        """A trial has reported."""

    def on_trial_complete(
        self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False
    ) -> None:
        """A trial has ended."""
        if type(self).suggest is Searcher.suggest and trial_id in self._numbers:
            values = None if error else self._values(result)
            self._tell(trial_id, values)
            self._history.append(("tell", trial_id, values))

    def add_evaluated_point(
        self,
        parameters: Dict[str, Any],
        value: Any,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Optional[Sequence[float]] = None,
    ) -> None:
        """A result from elsewhere, which the search takes into account: of an earlier study, for
        example. Points that failed or were ended early are left out."""
        if self.is_custom():
            raise UnsupportedError(f"{type(self).__name__} has no add_evaluated_point of its own")
        if error or pruned:
            return
        values = [float(one) for one in (value if isinstance(value, (list, tuple)) else [value])]
        self.known.append((dict(parameters), values))
        if self._sampler is not None:
            self._sampler.add(parameters, values)

    def add_evaluated_trials(self, trials_or_analysis: Any, metric: str) -> None:
        """The results of trials that have ended, or of all those of an analysis."""
        trials = getattr(trials_or_analysis, "trials", trials_or_analysis)
        for trial in trials if isinstance(trials, (list, tuple)) else [trials]:
            if trial.status == "TERMINATED" and metric in trial.last_result:
                self.add_evaluated_point(trial.config, trial.last_result[metric])

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

    def sampler_settings(self) -> Dict[str, Any]:
        """The settings; what is known already is in place of points that are drawn at random first."""
        if self.name != "tpe" or not self.known:
            return self.settings
        first = self.settings.get("n_startup", 10)
        return {**self.settings, "n_startup": max(1, first - len(self.known))}

    def _metrics(self) -> List[str]:
        return list(self.metric) if isinstance(self.metric, (list, tuple)) else [self.metric]

    def _values(self, result: Optional[Dict[str, Any]]) -> Optional[List[float]]:
        """Of all metrics; None if one is missing or is no finite number, which makes a failure."""
        flat = flatten(result or {})
        given = [flat.get(metric) for metric in self._metrics()]
        if not all(hasattr(type(value), "__float__") for value in given):
            return None
        values = [float(value) for value in given]  # type: ignore[arg-type]
        return values if all(map(math.isfinite, values)) else None

    def _ask(self, trial_id: str) -> Any:
        if self._sampler is None:
            self._sampler = self._make_sampler()
        asked = self._sampler.ask(1)
        if not asked:
            return Searcher.FINISHED if self._sampler.exhausted else None
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
        sampler = Sampler(
            self.space,
            self.name or "random",
            ["maximize" if mode == "max" else "minimize" for mode in modes],
            self.seed or 0,
            self.points_to_evaluate,
            **self.sampler_settings(),
        )
        for config, values in self.known:
            sampler.add(config, values)
        return sampler


def _seed(random_state: Any) -> Optional[int]:
    """A number, or what a generator of NumPy draws next."""
    if random_state is None or isinstance(random_state, int):
        return random_state
    draw = getattr(random_state, "integers", None) or random_state.randint
    return int(draw(2**31))
