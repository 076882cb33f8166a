"""Files and folders in places where other programs write as well, or the disk may be full."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from typing import Iterator, Optional

from kolo._errors import FailedPreconditionError

# What could not be written yet; more than that is given up.
_MOST_PENDING = 1 << 20


def open_plain(path: str, flags: int) -> int:
    """A descriptor. Raises if something else has the name: a pipe would hold up who opens it, and a
    link may lead to a file that nobody meant."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o666)
    except OSError:
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise _no_plain_file(path) from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _no_plain_file(path)
    return file


def _no_plain_file(path: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"{path} is no plain file; remove what is there")


class Lines:
    """A file to which whole lines are appended. The half of a line that a crash has left is ended."""

    def __init__(self, path: str) -> None:
        self._file = open_plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        size = os.fstat(self._file).st_size
        is_half = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        self._pending = b"\n" if is_half else b""

    def beginning(self) -> str:
        """The first of what is in there."""
        return os.pread(self._file, _MOST_PENDING, 0).decode("utf-8", "surrogateescape")

    def append(self, text: str) -> None:
        """What a full disk does not take comes with the next line; none is there in part."""
        self._pending += text.encode("utf-8", "surrogateescape")
        size = os.fstat(self._file).st_size
        left = self._pending
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            if len(self._pending) > _MOST_PENDING:
                self._pending = b""
            raise
        self._pending = b""

    def close(self) -> None:
        """Nothing comes any more."""
        os.close(self._file)


@contextlib.contextmanager
def temporary_folder(prefix: str, directory: Optional[str] = None) -> Iterator[str]:
    """As tempfile.TemporaryDirectory; one that cannot be removed costs no results."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=directory)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
