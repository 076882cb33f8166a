"""What users may have called when evaluations begin and end. The names are DeepHyper's."""

from __future__ import annotations

import math
from typing import Any, Callable, List, Optional, Tuple


class SearchTerminationError(RuntimeError):
    """Raised by a callback, it ends the search; what was evaluated is kept."""


class Callback:
    """Derive from it, and override what is of interest."""

    def on_launch(self, job: Any) -> None:
        """An evaluation was submitted: job.id, job.config."""

    def on_done(self, job: Any) -> None:
        """An evaluation has ended: job.objective, job.result, job.timestamp_gather."""

    def on_done_other(self, job: Any) -> None:
        """An evaluation of another search has ended. There are none of those here."""


def _objective(job: Any) -> Optional[float]:
    """The objective, or the first of several; None if the evaluation failed."""
    value = job.objective[0] if isinstance(job.objective, (list, tuple)) else job.objective
    return float(value) if hasattr(type(value), "__float__") else None


def _number(job: Any) -> Optional[float]:
    """The objective if it is finite: others are never the best."""
    value = _objective(job)
    return value if value is not None and math.isfinite(value) else None


class _Best(Callback):
    """Counts evaluations, and knows the best objective."""

    def __init__(self) -> None:
        self._best_objective: Optional[float] = None
        self._n_done = 0

    def on_done(self, job: Any) -> None:
        self._n_done += 1
        value = _number(job)
        if value is not None and (self._best_objective is None or value > self._best_objective):
            self._best_objective = value


class LoggerCallback(_Best):
    """Prints a line for each evaluation."""

    def on_done(self, job: Any) -> None:
        super().on_done(job)
        value = _number(job)
        if value is None:
            print(f"[{self._n_done:05d}] -- failed: {job.objective}")
        else:
            print(
                f"[{self._n_done:05d}] -- best objective: {self._best_objective:.5f} -- "
                f"this objective: {value:.5f}"
            )


class TqdmCallback(_Best):
    """A bar of progress, by the package tqdm."""

    def __init__(self) -> None:
        super().__init__()
        self._max_evals: Optional[int] = None
        self._bar: Any = None

    def set_max_evals(self, max_evals: int) -> None:
        """How long the bar is. Searches call it."""
        self._max_evals = max_evals if max_evals > 0 else None
        self._bar = None

    def on_done(self, job: Any) -> None:
        from tqdm.auto import tqdm

        super().on_done(job)
        if self._bar is None:
            self._bar = tqdm(total=self._max_evals)
        self._bar.update(1)
        self._bar.set_postfix(objective=self._best_objective)


class ProfilingCallback(Callback):
    """How many evaluations ran at any time: ``profile`` is a frame of pandas with the columns
    timestamp and n_jobs_running."""

    def __init__(self) -> None:
        self.history: List[Tuple[float, int]] = []

    def on_done(self, job: Any) -> None:
        begin, end = job.timestamp_submit, job.timestamp_gather
        if job.timestamp_start is not None and job.timestamp_end is not None:
            begin, end = job.timestamp_start, job.timestamp_end
        self.history += [(begin, 1), (end, -1)]

    @property
    def profile(self) -> Any:
        """The frame."""
        import pandas

        running, rows = 0, []
        for time, change in sorted(self.history):
            running += change
            rows.append((time, running))
        return pandas.DataFrame(rows, columns=["timestamp", "n_jobs_running"])


class SearchEarlyStopping(Callback):
    """Ends the search when the objective has not improved for ``patience`` evaluations.
    ``objective_func(job)`` is what has to improve. Failures do not count; a number that is not
    finite is no improvement."""

    def __init__(
        self, patience: int = 10, objective_func: Optional[Callable[[Any], float]] = None
    ) -> None:
        self._patience = patience
        self._objective: Callable[[Any], Optional[float]] = objective_func or _objective
        self._best: Optional[float] = None
        self._without = 0

    def on_done(self, job: Any) -> None:
        value = self._objective(job)
        if value is None or isinstance(value, str):
            return
        if math.isfinite(value) and (self._best is None or value > self._best):
            self._best, self._without = value, 0
            return
        self._without += 1
        if self._without >= self._patience:
            raise SearchTerminationError(
                f"the objective has not improved for {self._patience} evaluations"
            )


__all__ = [
    "Callback",
    "LoggerCallback",
    "ProfilingCallback",
    "SearchEarlyStopping",
    "SearchTerminationError",
    "TqdmCallback",
]
