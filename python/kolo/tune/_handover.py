"""The folder by which a study hands its trainable to its processes.

It goes with the study. That of a study which was killed is removed by the next one of this host
that has its own at the same place: the owner holds a lock on a file of it, which the system takes
away when the owner has ended. Other hosts may not see that lock, so they leave the folder alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import socket
import tempfile
from typing import Iterator, Optional

from kolo._own_files import temporary_folder

_PREFIX = ".kolo-trial-"
_OWNER = "owner"


@contextlib.contextmanager
def handover_folder(directory: Optional[str]) -> Iterator[str]:
    """A new folder in there, which the hosts of a cluster see, or where temporary files are."""
    _remove_abandoned(directory or tempfile.gettempdir())
    with temporary_folder(_PREFIX, directory) as folder:
        # The file has its name when it is locked: nobody finds it without its owner.
        part = os.path.join(folder, f"{_OWNER}.part")
        with open(part, "w") as file:
            file.write(socket.gethostname())
            file.flush()
            with contextlib.suppress(OSError):  # a file system without locks: nothing is removed
                fcntl.flock(file, fcntl.LOCK_EX)
                os.rename(part, os.path.join(folder, _OWNER))
            yield folder


def _remove_abandoned(parent: str) -> None:
    for folder in glob.glob(os.path.join(glob.escape(parent), f"{_PREFIX}*")):
        with contextlib.suppress(OSError):  # of somebody else, or just removed by another study
            if os.lstat(folder).st_uid == os.getuid() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: str) -> bool:
    """Raises if it has no owner's file. One of another host is never abandoned."""
    file = os.open(os.path.join(folder, _OWNER), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.read(file, 256) != socket.gethostname().encode():
            return False
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
