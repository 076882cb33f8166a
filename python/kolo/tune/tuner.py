"""Tuner: a study as an object. The names are Ray Tune's."""

from __future__ import annotations

import os
import pickle
from typing import Any, Callable, Dict, Optional

from kolo import _core
from kolo._errors import (
    FailedPreconditionError,
    FailureError,
    InvalidArgumentError,
    NotFoundError,
    constructor_suggests,
)
from kolo._run import pickler
from kolo.air.config import RunConfig
from kolo.tune._prepared import Prepared
from kolo.tune._run import new_name, run
from kolo.tune._space import Constants
from kolo.tune.analysis import ExperimentAnalysis
from kolo.tune.result import results_dir
from kolo.tune.result_grid import ResultGrid
from kolo.tune.tune_config import TuneConfig

# Of the folder of a study: all that restore() needs.
_STATE = "tuner.pkl"


@constructor_suggests
class Tuner:
    """A study of a function or class: fit() runs it, and restore() goes on with one that ended early.

    ``param_space`` is the search space, as ``config`` of tune.run is. ``_tuner_kwargs`` are further
    parameters of tune.run.
    """

    def __init__(
        self,
        trainable: Any = None,
        *,
        param_space: Optional[Dict[str, Any]] = None,
        tune_config: Optional[TuneConfig] = None,
        run_config: Optional[RunConfig] = None,
        _tuner_kwargs: Optional[Dict[str, Any]] = None,
    ) -> None:
        if trainable is None:
            raise InvalidArgumentError(
                "Tuner: what shall be trained is not given: Tuner(train, param_space={...})"
            )
        if param_space is not None and not isinstance(param_space, dict):
            raise InvalidArgumentError(
                f"Tuner: param_space must be a dictionary, not {param_space!r}"
            )
        for name, given, kind in (
            ("tune_config", tune_config, TuneConfig),
            ("run_config", run_config, RunConfig),
        ):
            if given is not None and not isinstance(given, kind):
                raise InvalidArgumentError(
                    f"Tuner: {name} must be a {kind.__name__}, such as "
                    f"tune.{kind.__name__}(...), not {given!r}"
                )
        self._trainable = trainable
        self._param_space = param_space
        self._tune_config = tune_config or TuneConfig()
        self._run_config = run_config or RunConfig()
        self._further = dict(_tuner_kwargs or {})
        self._path: Optional[str] = None
        self._resume: Any = False

    def fit(self) -> ResultGrid:
        """Runs the study to its end. Trials that fail have an error in their results."""
        options = self._options()
        if self._path is None:
            self._begin(options)
        analysis = run(self._trainable, **options)
        return ResultGrid(analysis)

    def get_results(self) -> ResultGrid:
        """The results so far, without running anything."""
        if self._path is None:
            raise FailedPreconditionError(
                "Tuner.get_results: the study has not run; call fit(), or Tuner.restore(path)"
            )
        tune = self._tune_config
        return ResultGrid(ExperimentAnalysis(self._path, None, tune.metric, tune.mode))

    @classmethod
    def restore(
        cls,
        path: str,
        trainable: Any = None,
        resume_unfinished: bool = True,
        resume_errored: bool = False,
        restart_errored: bool = False,
        overwrite_trainable: Any = None,
    ) -> Tuner:
        """The study of a folder, of which fit() runs what has not ended. Trials that failed run again
        if ``resume_errored`` or ``restart_errored``, from their last checkpoint. ``trainable`` takes
        the place of the one that was kept with the study."""
        path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        try:
            with open(os.path.join(path, _STATE), "rb") as file:
                state = pickle.load(file)
        except FileNotFoundError:
            raise NotFoundError(
                f"Tuner.restore: {path!r} is not the folder of a study that a Tuner has begun"
            ) from None
        except (EOFError, pickle.UnpicklingError) as error:
            raise FailureError(
                f"Tuner.restore: {_STATE} in {path!r} is damaged: {error}; tune.run(..., "
                "resume=True) goes on with the study",
                "corruption",
            ) from None
        trainable = trainable or overwrite_trainable or _loaded(state["trainable"])
        if trainable is None:
            raise InvalidArgumentError(
                "Tuner.restore: the trainable could not be kept with the study; give it: "
                "Tuner.restore(path, trainable=...)"
            )
        rest = pickle.loads(state["rest"])
        tuner = cls(trainable, **rest)
        tuner._path = path
        tuner._run_config.local_dir, tuner._run_config.name = os.path.split(path)
        tuner._resume = "ERRORED_ONLY" if resume_errored or restart_errored else True
        return tuner

    @classmethod
    def can_restore(cls, path: str) -> bool:
        """Whether restore() finds a study there."""
        return os.path.exists(os.path.join(os.path.expanduser(os.fspath(path)), _STATE))

    # --- what tune.run is told ---

    def _options(self) -> Dict[str, Any]:
        how, what = self._run_config, self._tune_config
        kept = how.checkpoint_config
        return {
            "config": self._param_space,
            "name": how.name,
            "local_dir": None if how.local_dir is None else os.fspath(how.local_dir),
            "callbacks": how.callbacks,
            "stop": how.stop,
            "max_failures": how.failure_config.max_failures,
            "fail_fast": how.failure_config.fail_fast,
            "keep_checkpoints_num": kept.num_to_keep,
            "checkpoint_score_attr": kept.score_attr,
            "checkpoint_freq": kept.checkpoint_frequency or 0,
            "checkpoint_at_end": bool(kept.checkpoint_at_end),
            "progress_reporter": how.progress_reporter,
            "verbose": how.verbose,
            "log_to_file": how.log_to_file,
            "metric": what.metric,
            "mode": what.mode,
            "search_alg": what.search_alg,
            "scheduler": what.scheduler,
            "num_samples": what.num_samples,
            "max_concurrent_trials": what.max_concurrent_trials,
            "time_budget_s": what.time_budget_s,
            "reuse_actors": bool(what.reuse_actors),
            "trial_name_creator": what.trial_name_creator,
            "trial_dirname_creator": what.trial_dirname_creator,
            "raise_on_failed_trial": how.failure_config.fail_fast == "raise",
            "resume": self._resume,
            **self._further,
        }

    def _begin(self, options: Dict[str, Any]) -> None:
        """Chooses a name that is free, and keeps beside the results what restore() needs."""
        folder = results_dir(options["local_dir"])
        wanted = options["name"] or new_name(Prepared(self._trainable, Constants()).name)
        name, number = wanted, 1
        while _exists(options.get("storage") or os.path.join(folder, "kolo.db"), name):
            number += 1
            name = f"{wanted}_{number}"
        options["name"] = name
        self._path = os.path.join(folder, name)
        os.makedirs(self._path, exist_ok=True)
        rest = {
            "param_space": self._param_space,
            "tune_config": self._tune_config,
            "run_config": self._run_config,
            "_tuner_kwargs": self._further,
        }
        state = {"trainable": _dumped(lambda: self._trainable), "rest": _dumped(lambda: rest)}
        if state["rest"] is None:
            return
        kept = os.path.join(self._path, _STATE)
        with open(f"{kept}.part", "wb") as file:
            pickle.dump(state, file)
        os.replace(f"{kept}.part", kept)


def _exists(storage: str, name: str) -> bool:
    try:
        _core.read_study(storage, name)
    except NotFoundError:
        return False
    return True


def _dumped(value: Callable[[], Any]) -> Optional[bytes]:
    """None: it cannot be kept, such as a function with a lock in it, which threads may share."""
    try:
        return pickler.dumps(value())
    except Exception:
        return None


def _loaded(dumped: Optional[bytes]) -> Any:
    return None if dumped is None else pickle.loads(dumped)
