"""The results of a study, trial by trial. The names are Ray Tune's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from kolo._errors import FailureError, InvalidArgumentError
from kolo.air.result import Result
from kolo.tune.analysis import Analysis
from kolo.tune.trial import Trial, flatten


class NoBestTrialError(FailureError):
    """No trial has reported a number of the metric."""


class ResultGrid:
    """What Tuner.fit() returns: a list of results, of which the best can be asked for."""

    def __init__(self, experiment_analysis: Analysis) -> None:
        self._experiment_analysis = experiment_analysis

    def get_best_result(
        self,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Result:
        """The result of the best trial. A study of one trial needs no metric."""
        analysis = self._experiment_analysis
        if len(self) == 1:
            return self[0]
        for name, given in (
            ("metric", metric or analysis.default_metric),
            ("mode", mode or analysis.default_mode),
        ):
            if not given:
                raise InvalidArgumentError(
                    f"get_best_result: which result is the best needs a {name}: give it here, or to "
                    f"TuneConfig({name}=...)"
                )
        trial = analysis.get_best_trial(metric, mode, scope, filter_nan_and_inf)
        if trial is None:
            raise NoBestTrialError(
                f"No best trial found: none has reported a number {metric or analysis.default_metric!r}"
            )
        return _result_of(trial)

    def get_dataframe(
        self, filter_metric: Optional[str] = None, filter_mode: Optional[str] = None
    ) -> Any:
        """A row per trial: its last result, or its best one by a metric."""
        return self._experiment_analysis.dataframe(filter_metric, filter_mode)

    @property
    def experiment_path(self) -> str:
        """The folder of the study."""
        return self._experiment_analysis.directory

    @property
    def errors(self) -> List[Exception]:
        """Those of the trials that failed."""
        return [result.error for result in self if result.error is not None]

    @property
    def num_errors(self) -> int:
        """Trials that failed."""
        return self._with_status(Trial.ERROR)

    @property
    def num_terminated(self) -> int:
        """Trials that came to their end."""
        return self._with_status(Trial.TERMINATED)

    def _with_status(self, status: str) -> int:
        return sum(trial.status == status for trial in self._experiment_analysis.trials)

    def __len__(self) -> int:
        return len(self._experiment_analysis.trials)

    def __getitem__(self, place: int) -> Result:
        return _result_of(self._experiment_analysis.trials[place])

    def __iter__(self) -> Iterator[Result]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"ResultGrid({list(self)!r})"


def _frame_of(trial: Trial) -> Any:
    """All results of a trial; None without pandas, which the rest does not need."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas.DataFrame([flatten(result) for result in trial.results])


def _result_of(trial: Trial) -> Result:
    by_iteration: Dict[Any, Dict[str, Any]] = {
        result.get("training_iteration"): result for result in trial.results
    }
    checkpoints: List[Any] = [
        (checkpoint, by_iteration.get(iteration, {})) for checkpoint, iteration in trial.checkpoints
    ]
    error = FailureError(f"{trial.name}: {trial.error}") if trial.status == Trial.ERROR else None
    return Result(
        metrics={**trial.last_result, "config": trial.config},
        checkpoint=trial.checkpoint,
        error=error,
        log_dir=Path(trial.logdir),
        metrics_dataframe=_frame_of(trial),
        best_checkpoints=checkpoints,
    )
