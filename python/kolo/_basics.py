"""Joining and leaving the job, and who this rank is. The names are Horovod's."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any

from kolo import _core
from kolo._errors import (
    CancelledError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    UnsupportedError,
)
from kolo._files import command_path, plugin_directory
from kolo.process_sets import (
    ProcessSet,
    _after_init,
    _after_shutdown,
)
from kolo.process_sets import (
    get_process_set_ids_and_ranks as _get_process_set_ids_and_ranks,  # noqa: F401
)

# What belongs to the ranks of now, such as shared memory of an optimizer, and is told when they
# change: leave_group() before shutdown(), enter_group() after init().
group_users: weakref.WeakSet[Any] = weakref.WeakSet()

_PLACES = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")


def _tell_place_to_horovod_programs() -> None:
    """Programs written for horovodrun read their place from HOROVOD_RANK and its siblings. Ranks of
    an elastic job know theirs after init()."""
    for name in (*_PLACES, "HOSTNAME"):
        value = os.environ.get(f"KOLO_{name}")
        if value is not None:
            os.environ[f"HOROVOD_{name}"] = value
    if _core.is_initialized():
        for name in _PLACES:
            os.environ[f"HOROVOD_{name}"] = str(getattr(_core, name.lower())())


_tell_place_to_horovod_programs()


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. Does nothing if that was done already.

    ``process_sets``: a list of ProcessSet (or of lists of ranks) that are made at once, or
    "dynamic", which Horovod needs before add_process_set and kolo does not.
    ``comm``: nothing but None; ranks are those that the launcher started.
    """
    if comm is not None and comm != []:
        raise UnsupportedError(
            "init(comm=...) is not supported: the ranks are those that the launcher started. "
            "For a part of them, use a ProcessSet"
        )
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise InvalidArgumentError(
                f"process_sets is {process_sets!r}; use a list of ProcessSet, or 'dynamic'"
            )
        process_sets = None
    while not _core.is_initialized():
        try:
            join_group(process_sets or [])
        except Error as error:
            # Ranks of an elastic job whose first meeting has failed have another one.
            if not _core.meets_again(error.code, -1 if error.rank is None else error.rank):
                raise


def join_group(process_sets: Any = ()) -> None:
    """What init() does, once."""
    if _core.is_initialized():
        return
    os.environ.setdefault("KOLO_PLUGIN_DIR", str(plugin_directory()))
    program = command_path()
    if program is not None:
        _core.set_custodian_program(str(program))
    if _core.is_elastic_worker():
        # Programs of Horovod join before elastic.run, which other languages must not do in a trial.
        # Whoever never comes there is refused at its first report.
        os.environ["KOLO_ELASTIC_ONLY"] = "0"
    try:
        _core.init()
    except CancelledError:  # asked to leave before a group has taken it in
        if _core.is_to_leave():
            sys.exit(0)
        raise
    _tell_place_to_horovod_programs()
    atexit.register(shutdown)
    try:
        _after_init(process_sets)
    except BaseException:
        shutdown()
        raise
    for user in list(group_users):
        user.enter_group()


def shutdown() -> None:
    """Leaves the job. Operations under way end with an error; init() may be called again."""
    _core.check_shutdown()
    for user in list(group_users):
        user.leave_group()
    _core.shutdown()
    atexit.unregister(shutdown)
    _after_shutdown()


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() was not called since."""
    return _core.is_initialized()


def rank() -> int:
    """This rank's number, from 0."""
    return _core.rank()


def size() -> int:
    """The number of ranks."""
    return _core.size()


def local_rank() -> int:
    """This rank's number among those of its host."""
    return _core.local_rank()


def local_size() -> int:
    """The number of ranks on this host."""
    return _core.local_size()


def cross_rank() -> int:
    """The number of this host among those that have a rank with this local rank."""
    return _core.cross_rank()


def cross_size() -> int:
    """The number of hosts that have a rank with this local rank."""
    return _core.cross_size()


def is_homogeneous() -> bool:
    """Whether every host has the same number of ranks."""
    return _core.is_homogeneous()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Records what all ranks do in a file that chrome://tracing shows. Collective.

    Its words are Horovod's (docs/engine.md). ``mark_cycles`` marks when operations begin. Unlike
    Horovod, no variable has to be set before.
    """
    _core.start_timeline(os.fspath(file_path), bool(mark_cycles))


def stop_timeline() -> None:
    """Ends the recording. Collective."""
    _core.stop_timeline()


def mpi_threads_supported() -> bool:
    """Whether MPI may be called by several threads."""
    if not mpi_enabled():
        raise FailedPreconditionError("MPI is not enabled: the ranks do not talk over MPI")
    return True


def mpi_enabled() -> bool:
    """Whether the ranks talk over MPI."""
    return _core.is_initialized() and "mpi" in _core.transport()


def _has_plugin(*names: str) -> bool:
    directory = plugin_directory()
    return any((directory / f"kolo_wire_{name}.so").exists() for name in names)


def mpi_built() -> bool:
    """Whether the plug-in for an MPI is there."""
    return _has_plugin("openmpi", "mpich")


def gloo_enabled() -> bool:
    """Whether ranks meet without MPI, as those of ``kolo run`` do."""
    return _core.is_initialized() and not mpi_enabled()


def gloo_built() -> bool:
    """Whether ranks can meet without MPI. They always can."""
    return True


def nccl_built() -> int:
    """0: kolo does not use NCCL; tensors of GPUs are staged through main memory."""
    return 0


def ddl_built() -> bool:
    """False."""
    return False


def ccl_built() -> bool:
    """False."""
    return False


def cuda_built() -> bool:
    """False: the compiled module links no framework and no CUDA."""
    return False


def rocm_built() -> bool:
    """False."""
    return False


__all__ = [
    "ProcessSet",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]
