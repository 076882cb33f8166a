"""kolo's search for loops of one's own: ask for a configuration, evaluate it, tell the result.

from kolo import tune
from kolo.search import Sampler

sampler = Sampler({"x": tune.uniform(-1, 1)}, algorithm="tpe")
for _ in range(100):
    trial = sampler.ask()
    sampler.tell(trial, trial.config["x"] ** 2)
print(sampler.best.config)
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Union

from kolo import _core
from kolo._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    did_you_mean,
)
from kolo.tune._space import Constants, has_domains, prepare


class Asked:
    """A configuration to evaluate, with the number to tell the result under."""

    def __init__(self, number: int, config: Dict[str, Any]) -> None:
        self.number = number
        self.config = config
        self.values: Optional[List[float]] = None

    def __repr__(self) -> str:
        return f"Asked(number={self.number}, config={self.config}, values={self.values})"


def _numbers(values: Any) -> List[float]:
    listed = values if isinstance(values, (list, tuple)) else [values]
    for one in listed:
        if not hasattr(type(one), "__float__"):
            raise InvalidArgumentError(
                f"a result must be a number, or a list with one for each objective, not {one!r}; "
                "tell None for a trial that failed"
            )
    return [float(one) for one in listed]


def algorithms() -> Dict[str, str]:
    """The names of all algorithms, with what each does."""
    return dict(_core.samplers())


class Sampler:
    """An algorithm that proposes what to try next. The same calls give the same answers.

    ``space``: a dictionary with the words of kolo.tune (uniform, choice ...), or an HpProblem.
    ``directions``: "minimize" or "maximize", or a list of them for several objectives.
    ``settings``: of the algorithm; docs/search.md lists them.
    """

    def __init__(
        self,
        space: Any,
        algorithm: str = "auto",
        directions: Union[str, Sequence[str]] = "minimize",
        seed: int = 0,
        points_to_evaluate: Sequence[Dict[str, Any]] = (),
        **settings: Any,
    ) -> None:
        self._constants = Constants()
        compiled = getattr(space, "_kolo_space", None)
        if compiled is not None:
            self._space = compiled()
        else:
            prepared = prepare(space, self._constants)
            if not has_domains(prepared):
                raise InvalidArgumentError(
                    "Sampler: no value of the space is a domain, such as tune.uniform(0, 1) or "
                    "tune.choice([...]), so all configurations would be the same"
                )
            self._space = _core.Space(prepared, [], [], None, [])
        self._directions = [directions] if isinstance(directions, str) else list(directions)
        for direction in self._directions:
            if direction not in ("minimize", "maximize"):
                raise InvalidArgumentError(
                    f"a direction must be 'minimize' or 'maximize', not {direction!r}"
                )
        try:
            self._sampler = _core.Sampler(
                self._space, algorithm, self._directions, seed, settings, list(points_to_evaluate)
            )
        except InvalidArgumentError as error:
            own = ("algorithm", "directions", "seed", "points_to_evaluate")
            hint = next(filter(None, (did_you_mean(name, own) for name in settings)), "")
            raise InvalidArgumentError(f"{error}{hint}") from None
        self._asked: Dict[int, Asked] = {}

    def ask(self, count: Optional[int] = None) -> Any:
        """A configuration to try, or a list of ``count``. Raises when there is none now: tell
        results first, or look whether the sampler is exhausted."""
        if count is not None and (
            isinstance(count, bool) or not isinstance(count, int) or count < 1
        ):
            raise InvalidArgumentError(f"ask: count must be a positive number, not {count!r}")
        asked = [
            Asked(number, self._constants.restore(config))
            for number, config in self._sampler.ask(count or 1)
        ]
        self._asked.update({one.number: one for one in asked})
        if count is not None:
            return asked
        if not asked:
            state = "is exhausted" if self.exhausted else "waits for results"
            raise FailedPreconditionError(f"ask: the sampler {self._sampler.name} {state}")
        return asked[0]

    def _number(self, trial: Union[int, Asked]) -> int:
        return trial.number if isinstance(trial, Asked) else trial

    def tell(
        self,
        trial: Union[int, Asked],
        values: Union[None, float, Sequence[float]],
        state: str = "complete",
        constraints: Sequence[float] = (),
    ) -> None:
        """The result of a trial; None: it failed. ``state`` "pruned": it was ended early."""
        if state not in ("complete", "pruned", "failed"):
            raise InvalidArgumentError(f"state must be complete, pruned or failed, not {state!r}")
        number = self._number(trial)
        if values is None:
            numbers: List[float] = []
            if state == "complete":
                state = "failed"
        else:
            numbers = _numbers(values)
        self._sampler.tell(number, numbers, state, [float(c) for c in constraints])
        if number in self._asked and state == "complete":
            self._asked[number].values = numbers

    def report(
        self, trial: Union[int, Asked], budget: float, values: Union[float, Sequence[float]]
    ) -> None:
        """An intermediate result after so much of the budget."""
        numbers = _numbers(values)
        self._sampler.report(self._number(trial), float(budget), numbers)

    def add(self, config: Dict[str, Any], values: Union[None, float, Sequence[float]]) -> None:
        """A result from elsewhere, for example of an earlier search."""
        if values is None:
            numbers: List[float] = []
        else:
            numbers = _numbers(values)
        self._sampler.add(config, numbers)

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to ask for."""
        return self._sampler.exhausted

    @property
    def best(self) -> Asked:
        """The best trial so far, by the first objective. What is not finite is never the best."""
        told = [one for one in self._asked.values() if one.values and math.isfinite(one.values[0])]
        if not told:
            raise NotFoundError("best: no result that is a finite number was told yet")
        sign = -1.0 if self._directions[0] == "maximize" else 1.0
        return min(told, key=lambda one: sign * one.values[0])  # type: ignore[index]

    def explain(self) -> str:
        """What the algorithm does and why."""
        return self._sampler.explain()


__all__ = ["Asked", "Sampler", "algorithms"]
