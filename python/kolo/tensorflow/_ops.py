"""Collectives on tensors of TensorFlow, in eager mode and inside tf.function.

Inside tf.function each is a call of Python from the graph (tf.py_function): the graph is not
serialisable then, and XLA cannot compile it. TensorFlow may run such calls in any order, so each has
a name, which is the same on every rank because all ranks trace the same function.
"""

from __future__ import annotations

import itertools
from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from kolo import _core, _numpy_ops
from kolo._errors import InvalidArgumentError
from kolo._numpy_ops import Adasum, Average, Max, Min, Product, Sum
from kolo.process_sets import ProcessSet, global_process_set
from kolo.tensorflow.compression import Compression

_traced = itertools.count()


def _reduction(op: Any, average: Any) -> int:
    if op is not None and average is not None:
        raise InvalidArgumentError("the parameters 'average' and 'op' exclude each other; use 'op'")
    if average is not None:
        return Average if average else Sum
    return Average if op is None else op


def _call(function: Any, inputs: List[Any], types: List[Any], name: Optional[str]) -> List[Any]:
    """Runs function(name, arrays) now, or puts it into the graph that is being traced."""
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(a) for a in function(name, [t.numpy() for t in inputs])]
    label = name or f"graph.{next(_traced)}"
    return tf.py_function(
        lambda *tensors: function(label, [t.numpy() for t in tensors]), inputs, types
    )


def grouped_allreduce(
    tensors: Sequence[Any],
    average: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """The reductions of several tensors, negotiated together."""
    op = _reduction(op, average)
    values = [tf.convert_to_tensor(tensor) for tensor in tensors]
    if not values:
        return []

    @tf.custom_gradient
    def reduce(*inputs: Any) -> Any:
        packed = [compression.compress(value) for value in inputs]
        outputs = _call(
            lambda label, arrays: _numpy_ops.grouped_allreduce(
                arrays,
                name=label,
                op=op,
                prescale_factor=prescale_factor,
                postscale_factor=postscale_factor,
                process_set=process_set,
            ),
            [value for value, _ in packed],
            [value.dtype for value, _ in packed],
            name,
        )
        for output, value in zip(outputs, inputs):
            output.set_shape(value.shape)
        results = [compression.decompress(o, ctx) for o, (_, ctx) in zip(outputs, packed)]

        def gradient(*upstream: Any) -> Any:
            return grouped_allreduce(
                list(upstream),
                op=op,
                prescale_factor=prescale_factor,
                postscale_factor=postscale_factor,
                process_set=process_set,
            )

        return tuple(results), gradient

    results = reduce(*values)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def allreduce(
    tensor: Any,
    average: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The average (or ``op``) over all ranks. IndexedSlices are gathered."""
    if isinstance(tensor, tf.IndexedSlices):
        op = _reduction(op, average)
        values = allgather(tensor.values, process_set=process_set)
        indices = allgather(tensor.indices, process_set=process_set)
        if op == Average:
            values = values / tf.cast(process_set.size(), values.dtype)
        return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)
    return grouped_allreduce(
        [tensor],
        average,
        device_dense,
        device_sparse,
        compression,
        op,
        prescale_factor,
        postscale_factor,
        name,
        process_set,
    )[0]


def allgather(
    tensor: Any,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The tensors of all ranks, one below the other."""
    value = tf.convert_to_tensor(tensor)

    @tf.custom_gradient
    def gather(given: Any) -> Any:
        result = _call(
            lambda label, arrays: [_numpy_ops.allgather(arrays[0], label, process_set)],
            [given],
            [given.dtype],
            name,
        )[0]
        result.set_shape([None, *given.shape[1:]])

        def gradient(upstream: Any) -> Any:
            averaged = allreduce(upstream, op=Average, process_set=process_set)
            rows = allgather(tf.reshape(tf.shape(given)[0], [1]), process_set=process_set)
            return tf.split(averaged, rows, num=process_set.size())[process_set.rank() or 0]

        return result, gradient

    return gather(value)


def broadcast(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The tensor of ``root_rank``."""
    value = tf.convert_to_tensor(tensor)

    @tf.custom_gradient
    def send(given: Any) -> Any:
        result = _call(
            lambda label, arrays: [_numpy_ops.broadcast(arrays[0], root_rank, label, process_set)],
            [given],
            [given.dtype],
            name,
        )[0]
        result.set_shape(given.shape)

        def gradient(upstream: Any) -> Any:
            averaged = allreduce(upstream, op=Average, process_set=process_set)
            return averaged if _core.rank() == root_rank else averaged * 0

        return result, gradient

    return send(value)


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """What the ranks sent here; with ``splits`` also how many rows came from each."""
    value = tf.convert_to_tensor(tensor)
    given = [] if splits is None else [int(s) for s in np.asarray(splits)]
    output, rows = _call(
        lambda label, arrays: list(_numpy_ops.alltoall(arrays[0], given, label, process_set)),
        [value],
        [value.dtype, tf.int32],
        name,
    )
    return output if splits is None else (output, rows)


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduced over all ranks, and of that this rank's rows."""
    value, context = compression.compress(tf.convert_to_tensor(tensor))
    result = _call(
        lambda label, arrays: [
            _numpy_ops.reducescatter(
                arrays[0], label, op, prescale_factor, postscale_factor, process_set
            )
        ],
        [value],
        [value.dtype],
        name,
    )[0]
    result.set_shape([None, *value.shape[1:]])
    return compression.decompress(result, context)


def broadcast_variables(
    variables: Sequence[Any], root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Overwrites variables by those of ``root_rank``."""
    for index, variable in enumerate(variables):
        variable.assign(
            broadcast(
                tf.convert_to_tensor(variable),
                root_rank,
                f"variable.{index}",
                process_set=process_set,
            )
        )


__all__ = [
    "Adasum",
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "broadcast_variables",
    "grouped_allreduce",
    "reducescatter",
]
