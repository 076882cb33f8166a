"""Rules that end a trial. The names are Ray Tune's. What is not finite has never settled."""

from __future__ import annotations

import datetime
import math
import statistics
import time
from collections import defaultdict, deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Union

from kolo._errors import InvalidArgumentError


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


def _spread(values: Iterable[float]) -> float:
    """The standard deviation."""
    listed = list(values)
    return statistics.pstdev(listed) if all(map(math.isfinite, listed)) else math.inf


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
        return _spread(values) <= self._std


class ExperimentPlateauStopper(Stopper):
    """Stops the whole study when its best results are alike."""

    def __init__(
        self, metric: str, std: float = 0.001, top: int = 10, mode: str = "min", patience: int = 0
    ) -> None:
        if mode not in ("min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        if patience < 0:
            raise InvalidArgumentError(f"patience must be a positive number, not {patience!r}")
        if not isinstance(top, int) or top <= 1:
            raise InvalidArgumentError(f"top must be a whole number above 1, not {top!r}")
        if not isinstance(std, float) or std <= 0:
            raise InvalidArgumentError(f"std must be a positive number, not {std!r}")
        self._metric = metric
        self._std = std
        self._top = top
        self._mode = mode
        self._patience = patience
        self._iterations = 0
        self._best: List[float] = []

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        if math.isfinite(result[self._metric]):  # else it is no improvement
            self._best.append(result[self._metric])
        self._best = sorted(self._best, reverse=self._mode == "max")[: self._top]
        self._iterations = self._iterations + 1 if self._is_flat() else 0
        return self.stop_all()

    def _is_flat(self) -> bool:
        return len(self._best) == self._top and _spread(self._best) <= self._std

    def stop_all(self) -> bool:
        return self._is_flat() and self._iterations >= self._patience


class TimeoutStopper(Stopper):
    """Stops the whole study after a time, which a study that is resumed goes on with."""

    def __init__(self, timeout: Union[int, float, datetime.timedelta]) -> None:
        if isinstance(timeout, datetime.timedelta):
            timeout = timeout.total_seconds()
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise InvalidArgumentError(
                f"TimeoutStopper: timeout must be seconds or a timedelta, not {timeout!r}"
            )
        self._left = float(timeout)
        self._seen: Optional[float] = None

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        now = time.monotonic()
        if self._seen is not None:
            self._left -= now - self._seen
        self._seen = now
        return self._left <= 0

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_seen": None}  # the clock of another process is another one


class CombinedStopper(Stopper):
    """Stops when any of several rules says so; all see every result."""

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return any([stopper(trial_id, result) for stopper in self._stoppers])

    def stop_all(self) -> bool:
        return any(stopper.stop_all() for stopper in self._stoppers)
