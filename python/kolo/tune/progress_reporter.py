"""Tables of a study while it runs. The names are Ray Tune's."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, Optional, Sequence, Union

from kolo._errors import InvalidArgumentError
from kolo.tune.callback import Callback
from kolo.tune.result import AUTO_RESULT_KEYS, TIME_TOTAL_S, TIMESTEPS_TOTAL, TRAINING_ITERATION
from kolo.tune.trial import Trial, flatten, is_finite

Columns = Union[None, Sequence[str], Dict[str, str]]


class ProgressReporter:
    """Derive from it, and override should_report() and report()."""

    def setup(
        self,
        start_time: Optional[float] = None,
        total_samples: Optional[int] = None,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        """Called once, before the study begins."""

    def should_report(self, trials: List[Trial], done: bool = False) -> bool:
        """Whether report() shall be called now. ``done``: the study has ended."""
        raise NotImplementedError

    def report(self, trials: List[Trial], done: bool, *sys_info: Any) -> None:
        """Shows how the study is."""
        raise NotImplementedError


class TuneReporterBase(ProgressReporter):
    """A table with a row for each trial."""

    DEFAULT_COLUMNS = {
        TRAINING_ITERATION: "iter",
        TIME_TOTAL_S: "total time (s)",
        TIMESTEPS_TOTAL: "ts",
    }

    def __init__(
        self,
        *,
        metric_columns: Columns = None,
        parameter_columns: Columns = None,
        total_samples: Optional[int] = None,
        max_progress_rows: int = 20,
        max_error_rows: int = 20,
        max_column_length: int = 20,
        max_report_frequency: float = 5,
        infer_limit: int = 3,
        print_intermediate_tables: Optional[bool] = None,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        sort_by_metric: bool = False,
    ) -> None:
        """Columns are names, or names with their headings. Without columns, those of kolo and
        ``infer_limit`` metrics of the trials are shown. ``max_report_frequency`` is in seconds."""
        self._metric_columns: Any = (
            dict(self.DEFAULT_COLUMNS) if metric_columns is None else _copied(metric_columns)
        )
        self._infers = metric_columns is None
        self._parameter_columns: Any = _copied(parameter_columns)
        self._total_samples = total_samples
        self._rows = max_progress_rows
        self._error_rows = max_error_rows
        self._width = max_column_length
        self._seconds = max_report_frequency
        self._infer_limit = infer_limit
        self._between = print_intermediate_tables is not False
        self._metric, self._mode = metric, mode
        self._sorts = sort_by_metric
        self._begin = time.time()
        self._last = -math.inf

    def setup(
        self,
        start_time: Optional[float] = None,
        total_samples: Optional[int] = None,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        self._begin = time.time() if start_time is None else start_time
        self._total_samples = self._total_samples or total_samples
        self._metric = self._metric or metric
        self._mode = self._mode or mode

    def add_metric_column(self, metric: str, representation: Optional[str] = None) -> None:
        """Shows a metric, too, with a heading of its own where the others have one."""
        self._metric_columns = _with_column(
            self._metric_columns, metric, representation, "add_metric_column"
        )

    def add_parameter_column(self, parameter: str, representation: Optional[str] = None) -> None:
        """Shows a hyperparameter, too."""
        self._parameter_columns = _with_column(
            self._parameter_columns, parameter, representation, "add_parameter_column"
        )

    def should_report(self, trials: List[Trial], done: bool = False) -> bool:
        now = time.monotonic()
        if not done and (not self._between or now - self._last < self._seconds):
            return False
        self._last = now
        return True

    def _progress_str(self, trials: List[Trial], done: bool, *sys_info: Any) -> str:
        """The whole text."""
        counts: Dict[str, int] = {}
        for trial in trials:
            counts[trial.status] = counts.get(trial.status, 0) + 1
        total = max(self._total_samples or 0, len(trials))
        states = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        lines = [
            "== Status ==",
            f"After {time.time() - self._begin:.1f} s: {len(trials)} of {total} trials ({states})",
            *map(str, sys_info),
            *self._best(trials),
            *self._table(trials if done else trials[: self._rows], trials),
        ]
        if not done and len(trials) > self._rows:
            lines.append(f"... {len(trials) - self._rows} more trials are not shown")
        failed = [trial for trial in trials if trial.status == Trial.ERROR]
        lines += [
            f"{t.name} failed: {t.error}" for t in failed[: None if done else self._error_rows]
        ]
        return "\n".join(lines)

    def _best(self, trials: List[Trial]) -> List[str]:
        scored = [(self._score(trial), trial) for trial in trials]
        known = [(score, trial) for score, trial in scored if score is not None]
        if not known:
            return []
        score, trial = (min if self._mode == "min" else max)(known, key=lambda pair: pair[0])
        return [f"Best so far: {trial.name}, {self._metric}={score}, config {trial.config}"]

    def _score(self, trial: Trial) -> Optional[float]:
        value = flatten(trial.last_result).get(self._metric or "")
        return value if is_finite(value) else None

    def _table(self, shown: List[Trial], trials: List[Trial]) -> List[str]:
        if self._sorts and self._metric:
            worst = math.inf if self._mode == "min" else -math.inf

            def key(trial: Trial) -> float:
                score = self._score(trial)
                return worst if score is None else score

            shown = sorted(shown, key=key, reverse=self._mode != "min")
        results = [flatten(trial.last_result) for trial in trials]
        metrics = dict(_headed(self._metric_columns))
        if self._infers:
            metrics.update((name, name) for name in self._inferred(results) if name not in metrics)
        metrics = {name: head for name, head in metrics.items() if any(name in r for r in results)}
        parameters = dict(_headed(self._parameter_columns)) or {
            name: name for trial in trials for name in flatten(trial.config)
        }
        rows = [["Trial name", "status", *parameters.values(), *metrics.values()]]
        for trial in shown:
            config, result = flatten(trial.config), flatten(trial.last_result)
            rows.append(
                [
                    trial.name,
                    trial.status,
                    *(self._cell(config.get(name)) for name in parameters),
                    *(self._cell(result.get(name)) for name in metrics),
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows)]
        return [
            "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in map(list, rows)
        ]

    def _inferred(self, results: List[Dict[str, Any]]) -> List[str]:
        names: Dict[str, None] = {}
        if self._metric:
            names[self._metric] = None
        for result in results:
            for name, value in result.items():
                is_own = name not in AUTO_RESULT_KEYS and not name.startswith("config/")
                if is_own and isinstance(value, (int, float)) and len(names) < self._infer_limit:
                    names[name] = None
        return list(names)

    def _cell(self, value: Any) -> str:
        text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
        return text if len(text) <= self._width else "..." + text[3 - self._width :]


class CLIReporter(TuneReporterBase):
    """Prints the table."""

    def report(self, trials: List[Trial], done: bool, *sys_info: Any) -> None:
        print(self._progress_str(trials, done, *sys_info), flush=True)


class JupyterNotebookReporter(TuneReporterBase):
    """Shows the table in a notebook, in place of the one before if ``overwrite``."""

    def __init__(self, *, overwrite: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self._overwrite = overwrite

    def report(self, trials: List[Trial], done: bool, *sys_info: Any) -> None:
        from IPython.display import clear_output, display

        if self._overwrite:
            clear_output(wait=True)
        display({"text/plain": self._progress_str(trials, done, *sys_info)}, raw=True)


class _Reporting(Callback):
    """Has a reporter called at the events of a study."""

    def __init__(self, reporter: ProgressReporter, metric: Any, mode: Any) -> None:
        self._reporter = reporter
        self._metric, self._mode = metric, mode

    def setup(self, *args: Any, **info: Any) -> None:
        self._reporter.setup(
            start_time=time.time(),
            total_samples=info.get("num_samples"),
            metric=self._metric,
            mode=self._mode,
        )

    def on_step_end(self, iteration: int, trials: List[Trial], **info: Any) -> None:
        if self._reporter.should_report(trials, done=False):
            self._reporter.report(trials, False)

    def on_experiment_end(self, trials: List[Trial], **info: Any) -> None:
        if self._reporter.should_report(trials, done=True):
            self._reporter.report(trials, True)


def reporters_of(reporter: Any, metric: Any, mode: Any) -> List[Callback]:
    """The callbacks for a reporter; none without one: the study itself says how it is."""
    if reporter is None:
        return []
    if not hasattr(reporter, "should_report") or not hasattr(reporter, "report"):
        raise InvalidArgumentError(
            f"tune.run: progress_reporter is {reporter!r}; use a ProgressReporter, such as "
            "CLIReporter()"
        )
    return [_Reporting(reporter, metric, mode)]


def _copied(columns: Columns) -> Any:
    return dict(columns) if isinstance(columns, dict) else list(columns or [])


def _headed(columns: Any) -> Any:
    return columns.items() if isinstance(columns, dict) else ((name, name) for name in columns)


def _with_column(columns: Any, name: str, heading: Optional[str], called: str) -> Any:
    if name in columns:
        raise InvalidArgumentError(f"{called}: the column {name!r} is there already")
    if isinstance(columns, dict):
        return {**columns, name: heading or name}
    if heading is not None and heading != name and columns:
        raise InvalidArgumentError(
            f"{called}: the columns are a list, which has no headings; give them as a dictionary"
        )
    if heading is not None and not columns:
        return {name: heading}
    return [*columns, name]
