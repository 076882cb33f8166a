"""The results of a study. The names are Ray Tune's; frames need pandas."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from kolo import _core
from kolo._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    did_you_mean,
)
from kolo.tune._space import Constants
from kolo.tune.checkpoint import Checkpoint
from kolo.tune.trial import Trial, flatten, in_scope, is_finite, trial_of


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
    def best_checkpoint(self) -> Optional[Checkpoint]:
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
            raise FailedPreconditionError(
                "the study has no metric and mode: give them to tune.run(metric=..., mode=...), or "
                f"ask get_best_config(metric, mode). Reported were: {', '.join(self._reported())}"
            )
        if mode not in ("min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        return metric, mode

    def _reported(self) -> List[str]:
        return sorted(
            {key for t in self.trials for result in t.results[-1:] for key in flatten(result)}
        )

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
            value = in_scope(trial.metric(metric), mode, scope)
            if not isinstance(value, (int, float)) or math.isnan(value):
                continue
            if filter_nan_and_inf and math.isinf(value):
                continue
            if best is None or sign * value < best[0]:
                best = (sign * value, trial)
        if best is None:
            reported = self._reported()
            hint = did_you_mean(metric, reported)
            warnings.warn(
                f"no trial has reported a number {metric!r}{hint}{'' if hint else ';'} reported "
                f"were: {', '.join(reported) or 'nothing'}",
                stacklevel=2,
            )
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
        return_path: bool = False,
    ) -> Optional[Checkpoint]:
        """The checkpoint of a trial, or of its folder, at which the metric was best, or None. It is
        also the path of its folder, so ``return_path`` changes nothing."""
        metric, mode = self._objective(metric, mode)
        scored = [
            (p, v)
            for p, v in self.get_trial_checkpoints_paths(trial, metric)
            if is_finite(v)
        ]
        if not scored:
            warnings.warn(f"{trial} has no checkpoint with a value of {metric!r}", stacklevel=2)
            return None
        choose = max if mode == "max" else min
        return Checkpoint(choose(scored, key=lambda pair: pair[1])[0])

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
                known = [r for r in trial.results if is_finite(flatten(r).get(metric))]
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

    def set_filetype(self, file_type: Optional[str] = None) -> None:
        """Which files results are read of, in Tune: "json" or "csv". They are in a database here, so
        that it changes nothing."""
        if file_type not in (None, "json", "csv"):
            raise InvalidArgumentError(f"file_type must be 'json' or 'csv', not {file_type!r}")

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
        """How many trials there are, by status; when the study began and when it was told the last
        result, in seconds since 1970, unless there is none."""
        stats: Dict[str, Any] = {}
        for trial in self.trials:
            stats[trial.status] = stats.get(trial.status, 0) + 1
        times = [
            (result["timestamp"] - result["time_total_s"], result["timestamp"])
            for trial in self.trials
            for result in trial.results
            if "timestamp" in result and "time_total_s" in result
        ]
        if times:
            stats["start_time"] = min(begin for begin, _ in times)
            stats["timestamp"] = max(end for _, end in times)
        return stats

    def runner_data(self) -> Dict[str, Any]:
        """What is known of the study as a whole."""
        return {
            "name": self.name,
            "was_interrupted": self.was_interrupted,
            "_local_checkpoint_dir": self.directory,
        }


class ExperimentAnalysis(Analysis):
    """A study that has run, from its folder: what tune.run has returned then.

    ``experiment_checkpoint_path`` is local_dir/name, or local_dir for all that have a folder in there.
    The database is kolo.db of local_dir, or that of ``storage`` or KOLO_STORAGE.
    """

    def __init__(
        self,
        experiment_checkpoint_path: str,
        trials: Optional[List[Trial]] = None,
        default_metric: Optional[str] = None,
        default_mode: Optional[str] = None,
        storage: Optional[str] = None,
    ) -> None:
        path = os.path.abspath(os.path.expanduser(os.fspath(experiment_checkpoint_path)))
        storage = storage or os.environ.get("KOLO_STORAGE")
        raw = _read(path, storage)
        if default_metric and default_mode:
            raw["objectives"] = [(default_metric, default_mode)]
        if trials is None:
            trials = [trial_of(row, Constants().restore(row["config"])) for row in raw["trials"]]
        super().__init__(raw, trials)


def _read(path: str, storage: Optional[str]) -> Dict[str, Any]:
    """A study by its folder, or all those of a folder as one."""
    folder, name = os.path.split(path)
    database = storage or os.path.join(folder, "kolo.db")
    try:
        return _core.read_study(database, name)
    except NotFoundError as error:
        reason = error
    database = storage or os.path.join(path, "kolo.db")
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    studies = []
    for name in names:
        try:
            studies.append(_core.read_study(database, name))
        except NotFoundError:  # a file, or a folder of something else
            continue
    if not studies:
        raise InvalidArgumentError(f"ExperimentAnalysis: {path!r} is no study: {reason}")
    return together(path, studies)


def together(directory: str, studies: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Several studies as one, with the trials of all."""
    objectives = studies[0]["objectives"]
    return {
        "name": os.path.basename(directory),
        "directory": directory,
        "was_interrupted": any(study["was_interrupted"] for study in studies),
        "objectives": objectives if all(s["objectives"] == objectives for s in studies) else [],
        "trials": [trial for study in studies for trial in study["trials"]],
    }


def results_of(raw: Dict[str, Any], trials: List[Trial]) -> ExperimentAnalysis:
    """Of a study that has just run."""
    analysis = ExperimentAnalysis.__new__(ExperimentAnalysis)
    Analysis.__init__(analysis, raw, trials)
    return analysis
