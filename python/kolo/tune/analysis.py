"""The results of a study. The names are Ray Tune's; frames need pandas."""

from __future__ import annotations

import math
import os
import shutil
import warnings
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from kolo import _core
from kolo._errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, unknown_name
from kolo.tune._space import Constants


def flatten(value: Dict[str, Any], separator: str = "/", prefix: str = "") -> Dict[str, Any]:
    """Nested dictionaries as one, with joined keys."""
    flat: Dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat.update(flatten(item, separator, f"{prefix}{key}{separator}"))
        else:
            flat[f"{prefix}{key}"] = item
    return flat


class Checkpoint(str):
    """The path of a checkpoint's folder, with the members that Tune's checkpoints have."""

    @property
    def dir_or_data(self) -> str:
        """The folder."""
        return str(self)

    _local_path = dir_or_data
    local_path = dir_or_data
    path = dir_or_data

    @classmethod
    def from_directory(cls, path: str) -> Checkpoint:
        """Of a folder that is there."""
        return cls(path)

    def to_directory(self, path: Optional[str] = None) -> str:
        """The folder, or a copy of it at ``path``."""
        if path is None:
            return str(self)
        shutil.copytree(self, path, dirs_exist_ok=True)
        return path

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """The folder, for a while."""
        yield str(self)


class Trial:
    """A trial with everything it reported."""

    PENDING, RUNNING, PAUSED, TERMINATED, ERROR = (
        "PENDING",
        "RUNNING",
        "PAUSED",
        "TERMINATED",
        "ERROR",
    )

    def __init__(self, row: Dict[str, Any], config: Dict[str, Any]) -> None:
        self.number: int = row["number"]
        self.trial_id: str = row["trial_id"]
        self.name: str = row["name"]
        self.status: str = row["status"]
        self.config = config
        self.last_result: Dict[str, Any] = row["last_result"] or {}
        self.logdir: str = row["logdir"]
        self.error: str = row["error"]
        self.why: str = row["why"]
        self.stopped: bool = row["stopped"]
        self.num_failures: int = row["num_failures"]
        self.results: List[Dict[str, Any]] = row.get("results", [])
        self.checkpoints: List[Tuple[str, int]] = [
            (Checkpoint(path), iteration) for path, iteration in row.get("checkpoints", [])
        ]

    @property
    def evaluated_params(self) -> Dict[str, Any]:
        """The configuration, flat."""
        return flatten(self.config)

    def metric(self, name: str) -> List[float]:
        """The values of a metric, where it was reported."""
        return [flat[name] for flat in map(flatten, self.results) if name in flat]

    @property
    def metric_analysis(self) -> Dict[str, Dict[str, float]]:
        """For each number that was reported: max, min, avg, last, last-5-avg and last-10-avg."""
        names = {name for result in self.results for name in flatten(result)}
        analysis = {}
        for name in sorted(names):
            values = self.metric(name)
            if all(isinstance(value, (int, float)) for value in values):
                scopes = {one: _in_scope(values, "max", one) for one in _SCOPES if one != "all"}
                analysis[name] = {"max": max(values), "min": min(values), **scopes}
        return analysis  # type: ignore[return-value]

    @property
    def checkpoint(self) -> Optional[Checkpoint]:
        """The folder of the last checkpoint."""
        return self.checkpoints[-1][0] if self.checkpoints else None  # type: ignore

    def __repr__(self) -> str:
        return f"Trial({self.name}, {self.status})"

    def __str__(self) -> str:
        return self.name


class Analysis:
    """The results of a study; tune.run returns one."""

    def __init__(self, raw: Dict[str, Any], trials: List[Trial]) -> None:
        self.name: str = raw["name"]
        self.directory: str = raw["directory"]
        self.was_interrupted: bool = raw["was_interrupted"]
        self.objectives: List[Tuple[str, str]] = raw["objectives"]
        self.trials = trials

    # --- by the metric and mode of the study ---

    @property
    def default_metric(self) -> Optional[str]:
        """The metric of the study."""
        return self.objectives[0][0] if self.objectives else None

    @property
    def default_mode(self) -> Optional[str]:
        """The mode of the study."""
        return self.objectives[0][1] if self.objectives else None

    @property
    def best_trial(self) -> Trial:
        """The best trial. Raises if no trial has reported a number; get_best_trial() returns None."""
        trial = self.get_best_trial()
        if trial is None:
            raise NotFoundError(f"no trial has reported a value of {self.default_metric!r}")
        return trial

    @property
    def best_config(self) -> Optional[Dict[str, Any]]:
        """Its configuration."""
        return self.get_best_config()

    @property
    def best_logdir(self) -> Optional[str]:
        """Its folder."""
        return self.get_best_logdir()

    @property
    def best_result(self) -> Dict[str, Any]:
        """Its last result."""
        return self.best_trial.last_result

    @property
    def best_checkpoint(self) -> Optional[str]:
        """Its best checkpoint."""
        return self.get_best_checkpoint(self.best_trial)

    @property
    def best_result_df(self) -> Any:
        """Its last result as a frame of one row."""
        import pandas

        trial = self.best_trial
        row = flatten(trial.last_result, ".")
        row.update(flatten(trial.config, ".", "config."))
        frame = pandas.DataFrame([row])
        return frame.set_index("trial_id") if "trial_id" in frame else frame

    @property
    def best_dataframe(self) -> Any:
        """All its results as a frame."""
        import pandas

        return pandas.DataFrame([flatten(result) for result in self.best_trial.results])

    # --- by any metric ---

    def _objective(self, metric: Optional[str], mode: Optional[str]) -> Tuple[str, str]:
        metric = metric or self.default_metric
        mode = mode or self.default_mode
        if metric is None or mode is None:
            reported = sorted({key for trial in self.trials for key in flatten(trial.last_result)})
            raise FailedPreconditionError(
                "the study has no metric and mode: give them to tune.run(metric=..., mode=...), or "
                f"ask get_best_config(metric, mode). Reported were: {', '.join(reported)}"
            )
        if mode not in ("min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        return metric, mode

    def get_best_trial(
        self,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        scope: str = "last",
        filter_nan_and_inf: bool = True,
    ) -> Optional[Trial]:
        """The best trial by a metric: by its last result, or by its best ("all"), or by the mean of
        all ("avg"), the last five or the last ten. None if no trial has reported a number."""
        metric, mode = self._objective(metric, mode)
        sign = -1.0 if mode == "max" else 1.0
        best: Optional[Tuple[float, Trial]] = None
        for trial in self.trials:
            value = _in_scope(trial.metric(metric), mode, scope)
            if value is None or math.isnan(value):
                continue
            if filter_nan_and_inf and math.isinf(value):
                continue
            if best is None or sign * value < best[0]:
                best = (sign * value, trial)
        if best is None:
            warnings.warn(f"no trial has reported a value of {metric!r}", stacklevel=2)
            return None
        return best[1]

    def get_best_config(
        self, metric: Optional[str] = None, mode: Optional[str] = None, scope: str = "last"
    ) -> Optional[Dict[str, Any]]:
        """The configuration of the best trial, or None."""
        trial = self.get_best_trial(metric, mode, scope)
        return None if trial is None else trial.config

    def get_best_logdir(
        self, metric: Optional[str] = None, mode: Optional[str] = None, scope: str = "last"
    ) -> Optional[str]:
        """The folder of the best trial, or None."""
        trial = self.get_best_trial(metric, mode, scope)
        return None if trial is None else trial.logdir

    def _trial(self, trial: Union[Trial, str]) -> Trial:
        """A trial, also by its folder."""
        if isinstance(trial, Trial):
            return trial
        for one in self.trials:
            if isinstance(trial, str) and os.path.normpath(one.logdir) == os.path.normpath(trial):
                return one
        raise InvalidArgumentError(f"{trial!r} is neither a trial of this study nor its folder")

    def get_trial_checkpoints_paths(
        self, trial: Union[Trial, str], metric: Optional[str] = None
    ) -> List[Tuple[str, Optional[float]]]:
        """The checkpoints of a trial, or of its folder, with the value of the metric at each; without
        a metric, the training iteration."""
        trial = self._trial(trial)
        metric = metric or self.default_metric or "training_iteration"
        by_iteration = {
            result.get("training_iteration"): flatten(result).get(metric)
            for result in trial.results
        }
        return [(path, by_iteration.get(iteration)) for path, iteration in trial.checkpoints]

    def get_best_checkpoint(
        self,
        trial: Union[Trial, str],
        metric: Optional[str] = None,
        mode: Optional[str] = None,
    ) -> Optional[str]:
        """The checkpoint of a trial, or of its folder, at which the metric was best, or None."""
        metric, mode = self._objective(metric, mode)
        scored = [
            (p, v)
            for p, v in self.get_trial_checkpoints_paths(trial, metric)
            if v is not None and not math.isnan(v)
        ]
        if not scored:
            warnings.warn(f"{trial} has no checkpoint with a value of {metric!r}", stacklevel=2)
            return None
        choose = max if mode == "max" else min
        return choose(scored, key=lambda pair: pair[1])[0]

    def get_last_checkpoint(
        self,
        trial: Optional[Trial] = None,
        metric: str = "training_iteration",
        mode: str = "max",
    ) -> Optional[Checkpoint]:
        """The last checkpoint of a trial; without one, of that which came furthest."""
        trial = trial or self.get_best_trial(metric, mode)
        return None if trial is None else trial.checkpoint

    def dataframe(self, metric: Optional[str] = None, mode: Optional[str] = None) -> Any:
        """A row per trial: its last result, or with metric and mode its best one."""
        import pandas

        if mode is not None and mode not in ("min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        if mode is not None and metric is None:
            raise InvalidArgumentError("dataframe: a mode needs a metric")
        rows = []
        for trial in self.trials:
            result = trial.last_result
            if metric is not None and mode is not None and trial.results:
                known = [r for r in trial.results if metric in flatten(r)]
                if known:
                    choose = max if mode == "max" else min
                    result = choose(known, key=lambda r: flatten(r)[metric])
            row = flatten(result)
            row.update(flatten(trial.config, "/", "config/"))
            row["logdir"] = trial.logdir
            rows.append(row)
        return pandas.DataFrame(rows)

    @property
    def results(self) -> Dict[str, Dict[str, Any]]:
        """Last results by trial id."""
        return {trial.trial_id: trial.last_result for trial in self.trials}

    @property
    def results_df(self) -> Any:
        """A row per trial, by its id."""
        frame = self.dataframe()
        return frame.set_index("trial_id") if "trial_id" in frame else frame

    @property
    def trial_dataframes(self) -> Dict[str, Any]:
        """Every result of every trial, by its folder."""
        import pandas

        return {
            trial.logdir: pandas.DataFrame([flatten(result) for result in trial.results])
            for trial in self.trials
        }

    def fetch_trial_dataframes(self) -> Dict[str, Any]:
        """The same as trial_dataframes."""
        return self.trial_dataframes

    def get_all_configs(self, prefix: bool = False) -> Dict[str, Dict[str, Any]]:
        """Configurations by folder; with ``prefix`` their keys begin with "config/"."""
        return {
            trial.logdir: {f"config/{key}": value for key, value in trial.config.items()}
            if prefix
            else trial.config
            for trial in self.trials
        }

    def stats(self) -> Dict[str, Any]:
        """How many trials there are, by status."""
        counts: Dict[str, Any] = {}
        for trial in self.trials:
            counts[trial.status] = counts.get(trial.status, 0) + 1
        return counts


class ExperimentAnalysis(Analysis):
    """A study that has run, from its folder: what tune.run has returned then.

    ``experiment_checkpoint_path`` is local_dir/name. The database is kolo.db beside that folder, or
    that of ``storage`` or KOLO_STORAGE.
    """

    def __init__(
        self,
        experiment_checkpoint_path: str,
        trials: Optional[List[Trial]] = None,
        default_metric: Optional[str] = None,
        default_mode: Optional[str] = None,
        storage: Optional[str] = None,
    ) -> None:
        path = os.path.normpath(os.path.expanduser(os.fspath(experiment_checkpoint_path)))
        folder, name = os.path.split(os.path.abspath(path))
        storage = storage or os.environ.get("KOLO_STORAGE") or os.path.join(folder, "kolo.db")
        try:
            raw = _core.read_study(storage, name)
        except NotFoundError as error:
            raise InvalidArgumentError(
                f"ExperimentAnalysis: {experiment_checkpoint_path!r} is no study: {error}"
            ) from None
        if default_metric and default_mode:
            raw["objectives"] = [(default_metric, default_mode)]
        if trials is None:
            trials = [Trial(row, Constants().restore(row["config"])) for row in raw["trials"]]
        super().__init__(raw, trials)


def results_of(raw: Dict[str, Any], trials: List[Trial]) -> ExperimentAnalysis:
    """Of a study that has just run."""
    analysis = ExperimentAnalysis.__new__(ExperimentAnalysis)
    Analysis.__init__(analysis, raw, trials)
    return analysis


_SCOPES = ("last", "all", "avg", "last-5-avg", "last-10-avg")


def _in_scope(values: List[float], mode: str, scope: str) -> Optional[float]:
    if not values:
        return None
    if scope == "last":
        return values[-1]
    if scope == "all":
        return max(values) if mode == "max" else min(values)
    if scope == "avg":
        return sum(values) / len(values)
    if scope in ("last-5-avg", "last-10-avg"):
        last = values[-5:] if scope == "last-5-avg" else values[-10:]
        return sum(last) / len(last)
    raise unknown_name("scope", scope, _SCOPES)
