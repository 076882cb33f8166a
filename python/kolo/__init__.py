"""kolo: distributed deep learning and its search, in one native platform.

    import kolo.torch as hvd          # the interface of horovod.torch
    from kolo import tune             # the interface of Ray Tune
    from kolo.hps import HpProblem    # the interface of DeepHyper

Run a program on several ranks with ``kolo run -np 4 python train.py``, or a function with
``kolo.run(function, np=4)``. docs/python.md is the guide.
"""

from kolo._arrays import Average, Max, Min, Product, Sum, allreduce, barrier
from kolo._basics import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from kolo._core import __version__
from kolo._errors import (
    AlreadyExistsError,
    CancelledError,
    CollectiveError,
    Error,
    FailedPreconditionError,
    FailureError,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InvalidArgumentError,
    NotFoundError,
    PeerLostError,
    UnsupportedError,
    WaitTimeoutError,
)
from kolo._run import run
from kolo.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)

__all__ = [
    "AlreadyExistsError",
    "Average",
    "CancelledError",
    "CollectiveError",
    "Error",
    "FailedPreconditionError",
    "FailureError",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "InvalidArgumentError",
    "Max",
    "Min",
    "NotFoundError",
    "PeerLostError",
    "ProcessSet",
    "Product",
    "Sum",
    "UnsupportedError",
    "WaitTimeoutError",
    "__version__",
    "add_process_set",
    "allreduce",
    "barrier",
    "cross_rank",
    "cross_size",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "remove_process_set",
    "run",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]
