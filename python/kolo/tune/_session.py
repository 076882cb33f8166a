"""What a trial says to its study. The names are Ray Tune's."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import traceback
import types
from typing import Any, Dict, Iterator, Optional

from kolo import _core
from kolo._elastic_run import is_in_group
from kolo._errors import InvalidArgumentError
from kolo.tune.checkpoint import Checkpoint
from kolo.tune.resources import PlacementGroupFactory


class TrialStopped(BaseException):
    """Unwinds a trial that has to stop. Do not catch it."""

    ends_trial = True


class EvaluationFailed(Exception):
    """A trial says itself that it failed: there is no place in a program to be shown."""


def describe_exception(error: BaseException, trace: Optional[types.TracebackType] = None) -> str:
    """An exception in a line, with the whole of it on standard error."""
    if isinstance(error, EvaluationFailed):
        return str(error)
    traceback.print_exception(type(error), error, trace)
    sys.stderr.flush()
    place = traceback.extract_tb(trace)
    where = f" ({place[-1].filename}:{place[-1].lineno})" if place else ""
    return f"{type(error).__name__}: {error}{where}"


def leave_fork(error: Optional[BaseException]) -> None:
    """Ends a process that a trial has forked, as if its program had ended by this."""
    code: Any = 0
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF)


_thread = threading.local()


# Beside a checkpoint: what was counted until the report that it belongs to.
_TOTALS = ".kolo-totals.json"
_COUNTED = ("timesteps", "episodes")


def with_totals(owner: Any, result: Dict[str, Any]) -> Dict[str, Any]:
    """What is counted by the step, such as timesteps_this_iter, as a total, too. ``owner`` keeps it."""
    for name in _COUNTED:
        if result.get(f"{name}_this_iter") is not None:
            total = getattr(owner, f"_{name}_total", 0) + result[f"{name}_this_iter"]
            setattr(owner, f"_{name}_total", total)
            result = {f"{name}_total": total, **result}
    return result


class Totals:
    """What the function of a trial has counted, by with_totals(), in this run and in those before."""

    def __init__(self, checkpoint: Optional[str]) -> None:
        self._folder: Optional[int] = None
        if checkpoint is None:
            return
        try:
            with open(os.path.join(checkpoint, _TOTALS)) as file:
                kept: Any = json.load(file)
        except (OSError, ValueError):  # nothing was counted
            return
        for name in _COUNTED if isinstance(kept, dict) else ():
            if isinstance(kept.get(name), (int, float)):
                setattr(self, f"_{name}_total", kept[name])

    def saves(self, folder: str) -> None:
        """A checkpoint is written there, for the next report. It gets another path before that."""
        self.close()
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def keep(self) -> None:
        """The report that the checkpoint belongs to is counted."""
        totals = {name: getattr(self, f"_{name}_total", None) for name in _COUNTED}
        counted = {name: total for name, total in totals.items() if total is not None}
        if self._folder is not None and counted:
            with contextlib.suppress(OSError):  # all ranks write one, and that of one rank is kept
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                file = os.open(_TOTALS, flags, 0o666, dir_fd=self._folder)
                with open(file, "w") as text:
                    json.dump(counted, text, default=lambda number: number.item())
                    text.flush()
                    os.fsync(file)
        self.close()

    def close(self) -> None:
        """No checkpoint is written any more."""
        if self._folder is not None:
            os.close(self._folder)
        self._folder = None


@contextlib.contextmanager
def of_function(resources: Any) -> Iterator[None]:
    """Inside, this thread runs the function of a trial, for which a study has reserved so much."""
    _thread.totals = Totals(_core.trial_checkpoint())
    _thread.resources = resources
    try:
        yield
    finally:
        _thread.totals.close()
        del _thread.totals, _thread.resources


def get_trial_resources() -> Any:
    """What the study has reserved for this trial: a PlacementGroupFactory. None without a study. Of a
    trial that changes its number of ranks, it has a bundle for each rank of now."""
    reserved = getattr(_thread, "resources", None)
    if reserved is None or not _core.is_elastic_worker() or not _core.is_initialized():
        return reserved
    return PlacementGroupFactory(reserved.bundles * _core.size(), reserved.strategy)


def _check_place_of_report() -> None:
    """Ranks that come and go hear of a report at the same step, or never."""
    if _core.is_elastic_worker() and not is_in_group():
        raise InvalidArgumentError(
            "report: the number of ranks of this trial may change, so it reports inside of the "
            "function that elastic.run wraps (kolo.torch.elastic.run, for example), before "
            "state.commit(); or give a fixed number of ranks"
        )


@contextlib.contextmanager
def local(session: Any) -> Iterator[None]:
    """Inside, this thread runs a function without a study: ``session`` takes what it says."""
    _thread.session = session
    try:
        yield
    finally:
        _thread.session = None


def _local() -> Any:
    return getattr(_thread, "session", None)


def report(_metric: Any = None, **kwargs: Any) -> None:
    """Reports a result: tune.report(loss=0.3), or tune.report({"loss": 0.3}), which may have a
    checkpoint=Checkpoint.from_dict(...) that belongs to it. Returns when the study has stored it and
    decided that the trial goes on."""
    metrics: Dict[str, Any] = {}
    if isinstance(_metric, dict):
        metrics.update(_metric)
        checkpoint = kwargs.pop("checkpoint", None)
        if checkpoint is not None:
            save_folder(checkpoint)
    elif _metric is not None:
        metrics["_metric"] = _metric
    metrics.update(kwargs)
    totals = getattr(_thread, "totals", None)
    if totals is not None:
        metrics = with_totals(totals, metrics)
        totals.keep()
    session = _local()
    if session is None:
        _check_place_of_report()
    if not (session.report(metrics) if session else _core.trial_report(metrics)):
        raise TrialStopped


@contextlib.contextmanager
def checkpoint_dir(step: int) -> Iterator[str]:
    """A folder for a checkpoint, which counts together with the next report."""
    folder = tempfile.mkdtemp(prefix=".checkpoint-")
    try:
        yield folder
        save_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save_folder(folder: str) -> None:
    """A copy of the folder is the checkpoint of the next report."""
    if not isinstance(folder, str) or not os.path.isdir(folder):
        raise InvalidArgumentError(
            f"report: checkpoint is {folder!r}, which is no folder; make one by "
            "Checkpoint.from_dict or Checkpoint.from_directory"
        )

    totals = getattr(_thread, "totals", None)

    def write(directory: str) -> None:
        shutil.copytree(folder, directory, dirs_exist_ok=True)
        if totals is not None:
            totals.saves(directory)

    session = _local()
    (session.save if session else _core.trial_save)(write)


def get_checkpoint() -> Optional[Checkpoint]:
    """The checkpoint to start from, which is also the path of its folder, if there is one."""
    session = _local()
    found = session.checkpoint if session else _core.trial_checkpoint()
    return None if found is None else Checkpoint(found)


def should_stop() -> bool:
    """Whether the trial has to stop."""
    session = _local()
    return session.is_stopped if session else _core.trial_should_stop()


def get_trial_dir() -> str:
    """The folder of this trial."""
    session = _local()
    return session.folder if session else _core.trial_dir()


def get_trial_name() -> str:
    """The name of this trial."""
    return "default" if _local() else _core.trial_name()


def get_trial_id() -> str:
    """The number of this trial, as text."""
    return "default" if _local() else _core.trial_id()


def is_session_enabled() -> bool:
    """Whether the calling thread runs a trial."""
    if _local():
        return True
    try:
        _core.trial_id()
    except ValueError:
        return False
    return True


def in_trial_process() -> bool:
    """Whether this process was started as a trial."""
    return "KOLO_TRIAL_PROTOCOL" in os.environ
