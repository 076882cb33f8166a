"""Functions as trainables: with arguments that are given, and as classes that train step by step."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import queue
import shutil
import tempfile
import threading
import weakref
from typing import Any, Callable, Dict, Optional, Type

from kolo._errors import InvalidArgumentError
from kolo.tune import _session
from kolo.tune._prepared import call_function
from kolo.tune.resources import amounts_of
from kolo.tune.trainable import Trainable


def _own(values: Dict[str, Any]) -> Dict[str, Any]:
    """What a trial may change without others seeing it, where it can be copied."""
    own = {}
    for name, value in values.items():
        try:
            own[name] = copy.deepcopy(value)
        except Exception:  # a lock, a file, a connection: shared
            own[name] = value
    return own


def with_parameters(trainable: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """The trainable with some of its arguments given, which may be large. Each trial has its own
    copy of them."""
    if not callable(trainable):
        raise InvalidArgumentError(
            f"with_parameters: {trainable!r} is neither a function nor a class of Trainable"
        )
    if inspect.isclass(trainable):
        if not hasattr(trainable, "step"):
            raise InvalidArgumentError(
                f"with_parameters: the class {trainable.__name__} is not a Trainable"
            )

        class Inner(trainable):  # type: ignore[misc,valid-type]
            def setup(self, config: Dict[str, Any]) -> None:
                super().setup(config, **_own(kwargs))

        Inner.__name__ = trainable.__name__
        return Inner

    def inner(config: Dict[str, Any], **others: Any) -> Any:
        return trainable(config, **others, **_own(kwargs))

    inner.__name__ = getattr(trainable, "__name__", "trainable")
    parameters = inspect.signature(trainable).parameters
    shown = [p for name, p in parameters.items() if name not in kwargs]
    inner.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    if hasattr(trainable, "_kolo_resources"):  # with_resources(...) inside of with_parameters(...)
        inner._kolo_resources = trainable._kolo_resources  # type: ignore[attr-defined]
    return inner


def with_resources(trainable: Any, resources: Any) -> Any:
    """The trainable, whose trials need so much each: {"cpu": 2, "gpu": 1}, a
    PlacementGroupFactory, or a function of tune.run's ``config`` that returns one of them, which is
    called once for the study. It is used in place of resources_per_trial."""
    if not callable(resources):
        amounts_of(resources, "with_resources")
    if not callable(trainable):
        raise InvalidArgumentError(
            f"with_resources: {trainable!r} is neither a function nor a class of Trainable"
        )
    if inspect.isclass(trainable):
        return type(trainable.__name__, (trainable,), {"_kolo_resources": resources})

    # The function itself may be used with other resources elsewhere.
    @functools.wraps(trainable)
    def inner(*arguments: Any, **others: Any) -> Any:
        return trainable(*arguments, **others)

    inner._kolo_resources = resources  # type: ignore[attr-defined]
    return inner


class _LocalSession:
    """What a function reports to when there is no study: the object that runs it."""

    def __init__(self, folder: str, checkpoint: Optional[str]) -> None:
        self.folder = folder
        self.checkpoint = checkpoint
        self.results: queue.Queue[Any] = queue.Queue()
        self._go_on = threading.Semaphore(0)
        self.is_stopped = False

    def report(self, metrics: Dict[str, Any]) -> bool:
        """Waits until the next step is wanted. False: none is."""
        self.results.put(metrics)
        self._go_on.acquire()
        return not self.is_stopped

    def save(self, write: Callable[[str], None]) -> None:
        """Keeps a checkpoint instead of the one before."""
        folder = tempfile.mkdtemp(prefix="checkpoint-", dir=self.folder)
        write(folder)
        self.checkpoint = folder

    def release(self) -> None:
        """The function goes on."""
        self._go_on.release()


class _End:
    """The function has returned, or raised."""

    def __init__(self, error: Optional[BaseException] = None) -> None:
        self.error = error


class FunctionTrainable(Trainable):
    """A function that reports, as an object that is trained step by step. The function runs in a
    thread of its own, between one report and the next only."""

    _function: Callable[..., Any]

    def __init__(self, config: Optional[Dict[str, Any]] = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(config if config is not None else {}, *args, **kwargs)

    def setup(self, config: Dict[str, Any]) -> None:
        self._given = config
        self._folder = tempfile.mkdtemp(prefix="kolo-function-")
        # Programs forget stop(); the folder goes with the object then.
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._start: Optional[str] = None
        self._session: Optional[_LocalSession] = None
        self._thread: Optional[threading.Thread] = None
        self._last: Dict[str, Any] = {}

    def step(self) -> Dict[str, Any]:
        if self._session is None:
            self._begin()
        else:
            self._session.release()
        assert self._session is not None
        result = self._session.results.get()
        if not isinstance(result, _End):
            self._last = result
            return dict(result)
        self._end()
        if result.error is not None:
            raise result.error
        return {**self._last, "done": True}

    def save_checkpoint(self, checkpoint_dir: str) -> str:
        latest = self._session.checkpoint if self._session is not None else self._start
        if latest is not None:
            shutil.copytree(latest, os.path.join(checkpoint_dir, "checkpoint"), dirs_exist_ok=True)
        return checkpoint_dir

    def load_checkpoint(self, checkpoint: str) -> None:
        """The function begins anew, from the checkpoint; without one, from nothing."""
        self._end()
        given = os.path.join(checkpoint, "checkpoint")
        if not os.path.isdir(given):
            self._start = None
            self.iteration = 0
            return
        self._start = tempfile.mkdtemp(prefix="checkpoint-", dir=self._folder)
        shutil.copytree(given, self._start, dirs_exist_ok=True)

    def cleanup(self) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> None:
        session = self._session = _LocalSession(self._folder, self._start)

        def work() -> None:
            end = _End()
            with _session.local(session):
                try:
                    call_function(type(self)._function, self._given)
                except _session.TrialStopped:
                    pass
                except BaseException as error:
                    end = _End(error)
            session.results.put(end)

        self._thread = threading.Thread(target=work, name="kolo-function", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        """A function that waits in a report is unwound; one that computes is left to itself."""
        session, thread, self._session, self._thread = self._session, self._thread, None, None
        if session is None or thread is None:
            return
        self._start = session.checkpoint
        session.is_stopped = True
        session.release()
        thread.join(timeout=2)


def wrap_function(
    train_func: Callable[..., Any],
    durable: Optional[bool] = None,
    warn: bool = True,
    name: Optional[str] = None,
) -> Type[Trainable]:
    """A class of a function that reports, for use without a study: train(), save(), restore(),
    stop(). ``durable`` and ``warn`` have no meaning here."""
    if not callable(train_func):
        raise InvalidArgumentError(f"wrap_function: {train_func!r} is not a function")
    label = name or str(getattr(train_func, "__name__", "func"))
    return type(label, (FunctionTrainable,), {"_function": staticmethod(train_func)})
