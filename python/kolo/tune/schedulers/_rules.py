"""The rules of kolo's own schedulers, asked from Python one result at a time."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from kolo import _core


class Rules:
    """One of kolo's schedulers. Its answers depend on what it was told alone, so what it was told is
    all that has to be kept to make the same one again."""

    def __init__(self, name: str, mode: str, settings: Dict[str, Any]) -> None:
        self._made_of = (name, mode, settings)
        self._told: List[Tuple[str, Tuple[Any, ...]]] = []
        self._numbers: Dict[str, int] = {}
        self._last: Dict[str, Tuple[float, float]] = {}
        self._scheduler: Any = None

    def decide(self, trial_id: str, time: float, value: float) -> str:
        """What becomes of a trial after a result: CONTINUE, PAUSE or STOP."""
        if trial_id not in self._numbers:
            self._numbers[trial_id] = len(self._numbers)
            self._tell("add", self._numbers[trial_id])
        self._last[trial_id] = (time, value)
        return self._tell("result", self._numbers[trial_id], time, value)

    def complete(self, trial_id: str, time: Any, value: Any) -> None:
        """A trial has ended with this result; others are compared with it, too."""
        last = self._last.pop(trial_id, None)
        if last is None:
            return
        if None not in (time, value) and last != (time, value):
            self._tell("last_result", self._numbers[trial_id], time, value)
        self._tell("complete", self._numbers[trial_id])

    def fail(self, trial_id: str) -> None:
        """A trial has broken down."""
        if self._last.pop(trial_id, None):
            self._tell("fail", self._numbers[trial_id])

    def _tell(self, what: str, *arguments: Any) -> Any:
        if self._scheduler is None:
            self._scheduler = _core.Scheduler(*self._made_of)
            for past, its in self._told:
                getattr(self._scheduler, past)(*its)
        answer = getattr(self._scheduler, what)(*arguments)
        self._told.append((what, arguments))
        return answer

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_scheduler": None}
