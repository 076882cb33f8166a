"""Rules that end a trial. The names are Ray Tune's."""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from typing import Any, Callable, Deque, Dict, Optional


class Stopper:
    """Derive from it and override __call__."""

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        """Whether the trial shall stop after this result."""
        raise NotImplementedError

    def stop_all(self) -> bool:
        """Whether the whole study shall stop."""
        return False


class NoopStopper(Stopper):
    """Never stops."""

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return False


class FunctionStopper(Stopper):
    """Stops when the function says so."""

    def __init__(self, function: Callable[[str, Dict[str, Any]], bool]) -> None:
        self._function = function

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return bool(self._function(trial_id, result))


class MaximumIterationStopper(Stopper):
    """Stops a trial after so many results."""

    def __init__(self, max_iter: int) -> None:
        self._max_iter = max_iter
        self._results: Dict[str, int] = defaultdict(int)

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        self._results[trial_id] += 1
        return self._results[trial_id] >= self._max_iter


class TrialPlateauStopper(Stopper):
    """Stops a trial whose metric does not move any more."""

    def __init__(
        self,
        metric: str,
        std: float = 0.01,
        num_results: int = 4,
        grace_period: int = 4,
        metric_threshold: Optional[float] = None,
        mode: Optional[str] = None,
    ) -> None:
        self._metric = metric
        self._std = std
        self._grace = grace_period
        self._threshold = metric_threshold
        self._mode = mode
        self._seen: Dict[str, int] = defaultdict(int)
        self._values: Dict[str, Deque[float]] = defaultdict(lambda: deque(maxlen=num_results))
        self._wanted = num_results

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        value = result[self._metric]
        values = self._values[trial_id]
        values.append(value)
        self._seen[trial_id] += 1
        if self._seen[trial_id] < self._grace or len(values) < self._wanted:
            return False
        if self._threshold is not None:
            if self._mode == "min" and value > self._threshold:
                return False
            if self._mode == "max" and value < self._threshold:
                return False
        return statistics.pstdev(values) <= self._std


class CombinedStopper(Stopper):
    """Stops when any of several rules says so; all see every result."""

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return any([stopper(trial_id, result) for stopper in self._stoppers])

    def stop_all(self) -> bool:
        return any(stopper.stop_all() for stopper in self._stoppers)
