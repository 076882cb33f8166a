"""kolo for Keras, with the interface of horovod.keras and horovod.tensorflow.keras."""

from typing import Any, Optional

from kolo.keras import callbacks
from kolo.tensorflow import (
    Average,
    Compression,
    DistributedOptimizer,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    ProcessSet,
    Sum,
    add_process_set,
    allgather_object,
    broadcast_object,
    broadcast_variables,
    cross_rank,
    cross_size,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    run,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)


def allreduce(value: Any, name: Optional[str] = None, average: Any = None, op: Any = None) -> Any:
    """The average (or ``op``) of a value over all ranks, as an array."""
    from kolo import _numpy_ops
    from kolo.tensorflow._ops import _reduction

    return _numpy_ops.allreduce(value, name=name, op=_reduction(op, average))


def allgather(value: Any, name: Optional[str] = None) -> Any:
    """The values of all ranks, one below the other."""
    from kolo import _numpy_ops

    return _numpy_ops.allgather(value, name)


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    """The value of ``root_rank``."""
    from kolo import _numpy_ops

    return _numpy_ops.broadcast(value, root_rank, name)


def load_model(
    filepath: str, custom_objects: Any = None, compression: Any = Compression.none
) -> Any:
    """A saved model, with its optimizer wrapped again."""
    import keras

    model = keras.models.load_model(filepath, custom_objects=custom_objects)
    if getattr(model, "optimizer", None) is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
    return model


__all__ = [name for name in dir() if not name.startswith("_")]
