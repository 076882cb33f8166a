"""kolo for TensorFlow 2, with the interface of horovod.tensorflow.

import kolo.tensorflow as hvd

hvd.init()
tape = hvd.DistributedGradientTape(tape)
hvd.broadcast_variables(model.variables, root_rank=0)
"""

from typing import Any, Optional

import tensorflow as tf

from kolo import run
from kolo._basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
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
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from kolo._errors import HorovodInternalError, HostsUpdatedInterrupt
from kolo._numpy_ops import allgather_object, broadcast_object
from kolo.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from kolo.tensorflow._ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allreduce,
    alltoall,
    broadcast,
    broadcast_variables,
    grouped_allreduce,
    reducescatter,
)
from kolo.tensorflow.compression import Compression


def join() -> int:
    """This rank has no more data. Returns the rank that joined last."""
    from kolo import _core

    return _core.join(0)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set are here."""
    from kolo import _core
    from kolo.process_sets import id_of

    _core.barrier_async(id_of(process_set)).wait()


def _reduce_gradients(gradients: Any, options: dict) -> list:
    """All dense gradients as one group, the others one by one; None stays None."""
    reduced = list(gradients)
    op = options["op"]
    factor = options["gradient_predivide_factor"]
    dense = []
    for place, gradient in enumerate(reduced):
        if gradient is None:
            continue
        if isinstance(gradient, tf.IndexedSlices):
            if options["sparse_as_dense"]:
                reduced[place] = tf.convert_to_tensor(gradient)
                dense.append(place)
            else:
                reduced[place] = allreduce(gradient, op=op, process_set=options["process_set"])
        else:
            dense.append(place)
    results = grouped_allreduce(
        [reduced[place] for place in dense],
        compression=options["compression"],
        op=op,
        prescale_factor=1.0 / factor,
        postscale_factor=factor,
        process_set=options["process_set"],
    )
    for place, result in zip(dense, results):
        reduced[place] = result
    return reduced


class _DistributedGradientTape:
    """A tape whose gradients are reduced over all ranks."""

    def __init__(self, tape: Any, options: dict) -> None:
        self._tape = tape
        self._options = options

    def __enter__(self) -> Any:
        self._tape.__enter__()
        return self

    def __exit__(self, *arguments: Any) -> Any:
        return self._tape.__exit__(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, **options: Any
    ) -> Any:
        """The gradients, reduced over all ranks."""
        gradients = self._tape.gradient(target, sources, output_gradients, **options)
        if size() == 1:
            return gradients
        if not isinstance(gradients, (list, tuple)):
            return _reduce_gradients([gradients], self._options)[0]
        return _reduce_gradients(gradients, self._options)


def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """A tf.GradientTape whose gradients are averaged over all ranks."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    return _DistributedGradientTape(
        gradtape,
        {
            "compression": compression,
            "sparse_as_dense": sparse_as_dense,
            "op": op,
            "gradient_predivide_factor": gradient_predivide_factor,
            "process_set": process_set,
        },
    )


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """An optimizer of Keras whose gradients are averaged over all ranks before they are applied."""
    if op not in (Average, Sum):
        raise ValueError("DistributedOptimizer: op must be Average or Sum")
    if backward_passes_per_step != 1:
        raise NotImplementedError(
            "DistributedOptimizer: backward_passes_per_step is not supported with TensorFlow; use "
            "the optimizer's own gradient_accumulation_steps"
        )
    base = optimizer.__class__
    options = {
        "compression": compression,
        "sparse_as_dense": sparse_as_dense,
        "op": op,
        "gradient_predivide_factor": gradient_predivide_factor,
        "process_set": process_set,
    }

    def apply_gradients(self: Any, grads_and_vars: Any, *arguments: Any, **keywords: Any) -> Any:
        pairs = list(grads_and_vars)
        if size() > 1:
            gradients = _reduce_gradients([gradient for gradient, _ in pairs], options)
            pairs = list(zip(gradients, [variable for _, variable in pairs]))
        return base.apply_gradients(self, pairs, *arguments, **keywords)

    cls = type(base.__name__, (base,), {"apply_gradients": apply_gradients, "_kolo_class": base})
    return cls.from_config(optimizer.get_config())


__all__ = [name for name in dir() if not name.startswith("_")]
