"""What is written of trials by Python, besides what studies write themselves. The names are Ray
Tune's.

A study writes result.json, progress.csv and files for TensorBoard by itself. JsonLoggerCallback and
CSVLoggerCallback given to a study take the place of that; they also work without one.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import warnings
from typing import Any, Callable, Dict, Iterable, List, Optional, Type

from kolo._errors import FailedPreconditionError
from kolo._own_files import Lines, open_plain
from kolo.tune.callback import Callback
from kolo.tune.result import (
    EXPR_PARAM_FILE,
    EXPR_PARAM_PICKLE_FILE,
    EXPR_PROGRESS_FILE,
    EXPR_RESULT_FILE,
)
from kolo.tune.trial import Trial, flatten


class Logger:
    """Writes the results of one trial into its folder. Derive from it, and override on_result()."""

    def __init__(self, config: Dict[str, Any], logdir: str, trial: Optional[Trial] = None) -> None:
        self.config = config
        self.logdir = logdir
        self.trial = trial
        self._init()

    def _init(self) -> None:
        """Override it to open files."""

    def on_result(self, result: Dict[str, Any]) -> None:
        """The trial has reported."""
        raise NotImplementedError

    def update_config(self, config: Dict[str, Any]) -> None:
        """The trial goes on with another configuration."""

    def flush(self) -> None:
        """What was written must be in the files."""

    def close(self) -> None:
        """The trial has ended."""


class NoopLogger(Logger):
    """Writes nothing."""

    def on_result(self, result: Dict[str, Any]) -> None:
        """Nothing."""


class LoggerCallback(Callback):
    """Derive from it, and override what is of interest; each function is about one trial."""

    def log_trial_start(self, trial: Trial) -> None:
        """A trial begins."""

    def log_trial_restore(self, trial: Trial) -> None:
        """A trial begins from a checkpoint."""

    def log_trial_save(self, trial: Trial) -> None:
        """A trial has saved a checkpoint."""

    def log_trial_result(self, iteration: int, trial: Trial, result: Dict[str, Any]) -> None:
        """A trial has reported."""

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """A trial has ended."""

    def on_trial_start(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        self.log_trial_start(trial)

    def on_trial_restore(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        self.log_trial_restore(trial)

    def on_trial_save(self, iteration: int, trials: List[Trial], trial: Trial, **info: Any) -> None:
        self.log_trial_save(trial)

    def on_trial_result(
        self, iteration: int, trials: List[Trial], trial: Trial, result: Dict[str, Any], **info: Any
    ) -> None:
        self.log_trial_result(iteration, trial, result)

    def on_trial_complete(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        self.log_trial_end(trial, failed=False)

    def on_trial_error(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        self.log_trial_end(trial, failed=True)


class _JsonFile:
    """result.json, a line for each result, and params.json."""

    def __init__(self, logdir: str, config: Dict[str, Any]) -> None:
        os.makedirs(logdir, exist_ok=True)
        self._logdir = logdir
        self._lines = Lines(os.path.join(logdir, EXPR_RESULT_FILE))
        self.update_config(config)

    def update_config(self, config: Dict[str, Any]) -> None:
        text = json.dumps(config, indent=2, sort_keys=True, default=_as_plain)
        self._put(EXPR_PARAM_FILE, text.encode())
        self._put(EXPR_PARAM_PICKLE_FILE, pickle.dumps(_picklable(config)))

    def _put(self, name: str, content: bytes) -> None:
        path = os.path.join(self._logdir, name)
        with open(open_plain(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
            file.truncate()
            file.write(content)

    def write(self, result: Dict[str, Any]) -> None:
        self._lines.append(json.dumps(result, default=_as_plain) + "\n")

    def close(self) -> None:
        self._lines.close()


class _CsvFile:
    """progress.csv, whose columns are those of the first result."""

    def __init__(self, logdir: str, config: Dict[str, Any]) -> None:
        os.makedirs(logdir, exist_ok=True)
        path = os.path.join(logdir, EXPR_PROGRESS_FILE)
        self._lines = Lines(path)
        # Of a study that goes on, those of the file.
        known = csv.reader(io.StringIO(self._lines.beginning(), newline=""))
        self._columns: List[str] = next(known, [])

    def update_config(self, config: Dict[str, Any]) -> None:
        """Nothing: configurations are in the results."""

    def write(self, result: Dict[str, Any]) -> None:
        flat = flatten({key: value for key, value in result.items() if key != "config"})
        text = io.StringIO(newline="")
        is_first = not self._columns
        self._columns = self._columns or list(flat)
        writer = csv.DictWriter(text, self._columns, extrasaction="ignore")
        if is_first:
            writer.writeheader()
        writer.writerow(flat)
        self._lines.append(text.getvalue())

    def close(self) -> None:
        self._lines.close()


class _FileLogger(Logger):
    """Results are in the database of the study: a file that cannot be written ends nothing."""

    _kind: Any

    def _init(self) -> None:
        self._written: Any = None
        self._has_warned = False
        self._try(lambda: None)

    def on_result(self, result: Dict[str, Any]) -> None:
        self._try(lambda: self._written.write(result))

    def update_config(self, config: Dict[str, Any]) -> None:
        self._try(lambda: self._written.update_config(config))

    def close(self) -> None:
        if self._written is not None:
            self._try(self._written.close)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            if self._written is None:
                self._written = self._kind(self.logdir, self.config)
            action()
        except (OSError, FailedPreconditionError) as error:
            if not self._has_warned:
                warnings.warn(f"{type(self).__name__}: {error}; the study goes on", stacklevel=3)
            self._has_warned = True


class JsonLogger(_FileLogger):
    """Writes result.json and params.json."""

    _kind = _JsonFile


class CSVLogger(_FileLogger):
    """Writes progress.csv."""

    _kind = _CsvFile


class LegacyLoggerCallback(LoggerCallback):
    """Has loggers made for each trial."""

    def __init__(self, logger_classes: Iterable[Type[Logger]]) -> None:
        self.logger_classes = list(logger_classes)
        self._loggers: Dict[str, List[Logger]] = {}

    def log_trial_start(self, trial: Trial) -> None:
        if trial.trial_id not in self._loggers:
            os.makedirs(trial.logdir, exist_ok=True)
            self._loggers[trial.trial_id] = [
                make(trial.config, trial.logdir, trial) for make in self.logger_classes
            ]
        for logger in self._loggers[trial.trial_id]:
            logger.update_config(trial.config)

    def log_trial_result(self, iteration: int, trial: Trial, result: Dict[str, Any]) -> None:
        if trial.trial_id not in self._loggers:
            self.log_trial_start(trial)
        for logger in self._loggers[trial.trial_id]:
            logger.on_result(result)

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        for logger in self._loggers.pop(trial.trial_id, []):
            logger.close()


class JsonLoggerCallback(LegacyLoggerCallback):
    """Writes result.json and params.json of each trial."""

    replaces = "json"

    def __init__(self) -> None:
        super().__init__([JsonLogger])


class CSVLoggerCallback(LegacyLoggerCallback):
    """Writes progress.csv of each trial."""

    replaces = "csv"

    def __init__(self) -> None:
        super().__init__([CSVLogger])


class TBXLoggerCallback(LoggerCallback):
    """Programs for Tune may give it to a study, which writes files for TensorBoard itself."""


def loggers_beside(loggers: Optional[List[str]], callbacks: List[Any]) -> Optional[List[str]]:
    """What the study writes itself: not what a callback writes to the same file. Nothing by itself
    if Tune's variable says so."""
    if loggers is None and os.environ.get("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS") == "1":
        return []
    replaced = {getattr(one, "replaces", None) for one in callbacks} - {None}
    if not replaced:
        return loggers
    own = ["json", "csv", "tensorboard"] if loggers is None else loggers
    return [one for one in own if one not in replaced]


def _as_plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python, everything else as a text."""
    for name in ("tolist", "item"):
        if hasattr(value, name):
            return getattr(value, name)()
    return str(value)


def _picklable(config: Dict[str, Any]) -> Dict[str, Any]:
    """Functions and the like, which pickle does not take, as texts."""
    try:
        pickle.dumps(config)
    except Exception:
        return {key: value if _is_picklable(value) else str(value) for key, value in config.items()}
    return config


def _is_picklable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def pretty_print(result: Dict[str, Any]) -> str:
    """A result as lines of names and values."""
    shown = {key: value for key, value in result.items() if key != "config" and value is not None}
    return json.dumps(shown, indent=2, default=_as_plain)
