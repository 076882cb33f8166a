"""What trials print, in files of their folders: log_to_file of tune.run.

Trials are threads of one process, which has one standard output. So a stream takes its place that
hands on what a thread writes to the files of the thread's trial, and everything else as before.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import Any, ContextManager, Iterator, Optional, TextIO, Tuple

from kolo._errors import InvalidArgumentError
from kolo._own_files import open_plain
from kolo.tune import _session

Names = Optional[Tuple[str, str]]

_thread = threading.local()
_lock = threading.Lock()


def file_names(log_to_file: Any) -> Names:
    """Those of standard output and standard error; None: they are not written."""
    if log_to_file is None or log_to_file is False:
        return None
    if log_to_file is True:
        return "stdout", "stderr"
    if isinstance(log_to_file, str):
        return log_to_file, log_to_file
    names = tuple(log_to_file) if isinstance(log_to_file, (list, tuple)) else ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(
            "tune.run: log_to_file must be True, the name of a file, or two names, for standard "
            f"output and standard error, not {log_to_file!r}"
        )
    return names[0], names[1]


class _Divided(io.TextIOBase):
    """Writes to the file of the calling thread; without one, where it was written before."""

    def __init__(self, before: Any, place: int) -> None:
        self._before = before
        self._place = place

    def _target(self) -> Any:
        files = getattr(_thread, "files", None)
        return self._before if files is None else files[self._place]

    def write(self, text: str) -> int:
        with self._disk():
            self._target().write(text)
        return len(text)

    def flush(self) -> None:
        with self._disk():
            self._target().flush()

    def _disk(self) -> ContextManager[None]:
        """A full disk takes what trials print, and no trial."""
        is_ours = getattr(_thread, "files", None) is not None
        return contextlib.suppress(OSError) if is_ours else contextlib.nullcontext()

    def __getattr__(self, name: str) -> Any:  # encoding, buffer, fileno and the like
        return getattr(self._before, name)


def _divide() -> None:
    """Once in a process: other threads may hold on to the streams, so they stay."""
    with _lock:
        if not isinstance(sys.stdout, _Divided):
            sys.stdout = _Divided(sys.stdout, 0)  # type: ignore[assignment]
        if not isinstance(sys.stderr, _Divided):
            sys.stderr = _Divided(sys.stderr, 1)  # type: ignore[assignment]


@contextlib.contextmanager
def _appended(folder: str, name: str) -> Iterator[TextIO]:
    # An absolute name, such as /dev/null, is the user's own.
    path, opener = os.path.join(folder, name), None if os.path.isabs(name) else open_plain
    text = open(path, "a", buffering=1, encoding="utf-8", errors="surrogateescape", opener=opener)
    try:
        yield text
    finally:
        with contextlib.suppress(OSError):
            text.close()


@contextlib.contextmanager
def into_files(names: Names) -> Iterator[None]:
    """Inside, what this thread prints is appended to files in the folder of its trial."""
    if names is None:
        yield
        return
    _divide()
    folder = _session.get_trial_dir()
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_appended(folder, names[0]))
        err = out
        if names[1] != names[0]:
            err = stack.enter_context(_appended(folder, names[1]))
        _thread.files = (out, err)
        try:
            yield
        finally:
            _thread.files = None
