"""kolo's search inside Optuna: ``optuna.create_study(sampler=KoloSampler())``.

The first trial learns the space (Optuna's spaces are defined by running); from the second on kolo
proposes whole configurations.
"""

from __future__ import annotations

import threading
from typing import Any, Dict, Optional, Sequence

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from kolo._errors import Error, unknown_name
from kolo.search import Sampler, algorithms
from kolo.tune.sample import Domain


# Trials of one study may be threads. Of the module, because samplers are pickled.
_lock = threading.Lock()


def _domain(distribution: BaseDistribution) -> Domain:
    if isinstance(distribution, CategoricalDistribution):
        return Domain("choice", list(range(len(distribution.choices))))
    if isinstance(distribution, IntDistribution):
        if distribution.step != 1:
            steps = (distribution.high - distribution.low) // distribution.step
            return Domain("integer", 0, steps, "uniform")
        prior = "log-uniform" if distribution.log else "uniform"
        return Domain("integer", distribution.low, distribution.high, prior)
    if isinstance(distribution, FloatDistribution):
        if distribution.step is not None:
            steps = int(round((distribution.high - distribution.low) / distribution.step))
            return Domain("integer", 0, steps, "uniform")
        prior = "log-uniform" if distribution.log else "uniform"
        return Domain("real", distribution.low, distribution.high, prior)
    raise NotImplementedError(f"KoloSampler: {distribution} is not supported")


def _to_optuna(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    step = getattr(distribution, "step", None)
    if step is not None and step != 1:
        value = distribution.low + value * step  # type: ignore[attr-defined]
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


def _from_optuna(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices.index(value)
    step = getattr(distribution, "step", None)
    if step is not None and step != 1:
        return int(round((value - distribution.low) / step))  # type: ignore[attr-defined]
    return value


class KoloSampler(BaseSampler):
    """One of kolo's algorithms as a sampler of Optuna."""

    def __init__(
        self, algorithm: str = "auto", seed: Optional[int] = None, **settings: Any
    ) -> None:
        # Now, and not when the second trial begins.
        if algorithm not in algorithms():
            raise unknown_name("sampler", algorithm, algorithms())
        self._algorithm = algorithm
        self._seed = seed or 0
        self._settings = settings
        self._random = RandomSampler(seed=seed)
        self._sampler: Optional[Sampler] = None
        self._space: Dict[str, BaseDistribution] = {}
        self._numbers: Dict[int, int] = {}

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> Dict[str, BaseDistribution]:
        """What every trial so far has asked for."""
        finished = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
        if not finished:
            return {}
        space = dict(finished[0].distributions)
        for other in finished[1:]:
            space = {n: d for n, d in space.items() if other.distributions.get(n) == d}
        return {
            name: distribution
            for name, distribution in sorted(space.items())
            if not distribution.single()
        }

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: Dict[str, BaseDistribution],
    ) -> Dict[str, Any]:
        """A configuration from kolo."""
        if not search_space:
            return {}
        with _lock:
            if self._sampler is None or search_space != self._space:
                self._begin(study, search_space)
            assert self._sampler is not None
            asked = self._sampler.ask()
            self._numbers[trial.number] = asked.number
        return {
            name: _to_optuna(distribution, asked.config[name])
            for name, distribution in search_space.items()
        }

    def _begin(self, study: optuna.Study, space: Dict[str, BaseDistribution]) -> None:
        """A new search, told what is known."""
        directions = [direction.name.lower() for direction in study.directions]
        self._space = dict(space)
        self._numbers = {}
        self._sampler = Sampler(
            {name: _domain(distribution) for name, distribution in space.items()},
            self._algorithm,
            directions,
            self._seed,
            **self._settings,
        )
        for known in study.get_trials(deepcopy=False):
            if known.state == TrialState.COMPLETE and all(name in known.params for name in space):
                config = {n: _from_optuna(d, known.params[n]) for n, d in space.items()}
                self._sampler.add(config, list(known.values))

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """At random: the space is not known yet, or the parameter is not always there."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Optional[Sequence[float]],
    ) -> None:
        """Tells kolo the result."""
        with _lock:
            number = self._numbers.pop(trial.number, None)
            if number is None or self._sampler is None:
                return
            try:
                if state == TrialState.COMPLETE and values is not None:
                    self._sampler.tell(number, list(values))
                elif state == TrialState.PRUNED and trial.intermediate_values:
                    last = max(trial.intermediate_values)
                    self._sampler.tell(number, trial.intermediate_values[last], state="pruned")
                else:
                    self._sampler.tell(number, None)
            except Error as error:
                raise RuntimeError(f"KoloSampler: {error}") from error

    def reseed_rng(self) -> None:
        """Nothing: what kolo proposes depends on the seed and the history alone."""
        self._random.reseed_rng()
