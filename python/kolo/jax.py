"""kolo for JAX: collectives on arrays and trees, also inside jit.

    import kolo.jax as hvd

    hvd.init()
    gradients = hvd.average_gradients(jax.grad(loss)(parameters, batch))

Inside jit, on processors without accelerators, each is a foreign function of XLA, which does not
touch Python: XLA's threads wait for nothing. Each has a name, the same on every rank, because all
ranks trace the same function. Elsewhere it is an ordered callback to Python.
"""

from __future__ import annotations

import itertools
from typing import Any, Optional

import jax
import numpy as np
from jax.experimental import io_callback

from kolo import _core, _numpy_ops
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
)
from kolo._numpy_ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather_object,
    broadcast_object,
)
from kolo.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    id_of,
    remove_process_set,
)

try:
    import jax.ffi as _ffi

    for _name, _function in _core.xla_functions().items():
        _ffi.register_ffi_target(_name, _function, platform="cpu")
except (ImportError, AttributeError):  # before JAX 0.5
    _ffi = None  # type: ignore[assignment]

_traced = itertools.count()


def _call(
    target: str, attributes: Any, name: Optional[str], function: Any, shapes: Any, *arrays: Any
) -> Any:
    """Inside jit a foreign function of XLA if it is on the CPU, else a callback."""
    is_traced = any(isinstance(array, jax.core.Tracer) for array in arrays)
    if is_traced and _ffi is not None and jax.default_backend() == "cpu":
        return _ffi.ffi_call(target, shapes, has_side_effect=True)(
            *arrays,
            name=name or f"jax.{next(_traced)}",
            **{key: np.int32(value) for key, value in attributes.items()},
        )
    return io_callback(
        lambda *given: function([np.asarray(a) for a in given]), shapes, *arrays, ordered=True
    )


def _shape(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def allreduce(
    tree: Any,
    op: int = Average,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The average (or ``op``) over all ranks of an array, or of every array of a tree."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    arrays = [jax.numpy.asarray(leaf) for leaf in leaves]
    if not arrays:
        return tree
    reduced = _call(
        "kolo_allreduce",
        {"op": op, "set": id_of(process_set)},
        name,
        lambda given: _numpy_ops.grouped_allreduce(
            given, name=name, op=op, process_set=process_set
        ),
        [_shape(array) for array in arrays],
        *arrays,
    )
    return jax.tree_util.tree_unflatten(structure, reduced)


def average_gradients(tree: Any, process_set: ProcessSet = global_process_set) -> Any:
    """Gradients, averaged over all ranks."""
    return allreduce(tree, Average, process_set=process_set)


def allgather(
    array: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The arrays of all ranks, one below the other; inside jit they have one shape."""
    array = jax.numpy.asarray(array)
    if isinstance(array, jax.core.Tracer):
        shape = (array.shape[0] * (process_set.size() or 1), *array.shape[1:])
        return _call(
            "kolo_allgather",
            {"set": id_of(process_set)},
            name,
            lambda given: _numpy_ops.allgather(given[0], name, process_set),
            jax.ShapeDtypeStruct(shape, array.dtype),
            array,
        )
    return jax.numpy.asarray(_numpy_ops.allgather(np.asarray(array), name, process_set))


def broadcast(
    tree: Any,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The array or tree of ``root_rank``."""

    def one(path: Any, leaf: Any) -> Any:
        path = jax.tree_util.keystr(path)
        array = jax.numpy.asarray(leaf)
        return _call(
            "kolo_broadcast",
            {"root": root_rank, "set": id_of(process_set)},
            name and f"{name}{path}",
            lambda given: _numpy_ops.broadcast(
                given[0], root_rank, name and f"{name}{path}", process_set
            ),
            _shape(array),
            array,
        )

    return jax.tree_util.tree_map_with_path(one, tree)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set are here."""
    _core.barrier_async(id_of(process_set)).wait()


def DistributedOptimizer(optimizer: Any, process_set: ProcessSet = global_process_set) -> Any:
    """An optimizer of optax whose gradients are averaged over all ranks first."""
    import optax

    def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        return optimizer.update(average_gradients(gradients, process_set), state, params, **extra)

    return optax.GradientTransformationExtraArgs(optimizer.init, update)


__all__ = [
    "Adasum",
    "Average",
    "DistributedOptimizer",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "average_gradients",
    "barrier",
    "broadcast",
    "broadcast_object",
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
    "shutdown",
    "size",
]
