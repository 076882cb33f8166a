"""Collectives on tensors of TensorFlow, in eager mode and in graphs.

In a graph each is an op; with a TensorFlow that does not take the ops, a call of Python from the
graph (tf.py_function). XLA can compile neither. TensorFlow may run them in any order, so each has a
name, which is the same on every rank because all ranks build the same graph.
"""

from __future__ import annotations

import itertools
from typing import Any, List, Optional, Sequence

import tensorflow as tf

from kolo import (
    _basics,  # noqa: F401
    _core,
    _numpy_ops,
)
from kolo._arrays import unmasked
from kolo._basics import *  # noqa: F403  (part of this module's interface)
from kolo._errors import HorovodInternalError, InvalidArgumentError, UnsupportedError  # noqa: F401
from kolo._numpy_ops import Adasum, Average, Max, Min, Product, Sum  # noqa: F401
from kolo.process_sets import (
    ProcessSet,
    add_process_set,  # noqa: F401
    global_process_set,
    id_of,
    remove_process_set,  # noqa: F401
)
from kolo.tensorflow import _graph_op
from kolo.tensorflow._errors import as_tensorflow_errors
from kolo.tensorflow.compression import Compression

_traced = itertools.count()


def handle_average_backwards_compatibility(op: Any, average: Any) -> int:
    """The operation that ``op`` and the old ``average`` mean together."""
    if op is not None and average is not None:
        raise InvalidArgumentError("the parameters 'average' and 'op' exclude each other; use 'op'")
    if average is not None:
        return Average if average else Sum
    return Average if op is None else op


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """Whether a number is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def _call(
    kind: str,
    function: Any,
    inputs: List[Any],
    types: List[Any],
    name: Optional[str],
    process_set: ProcessSet,
    **options: Any,
) -> List[Any]:
    """Runs function(name, arrays) now, or puts the operation into the graph that is being built."""
    if tf.executing_eagerly():
        with as_tensorflow_errors():
            return [tf.convert_to_tensor(a) for a in function(name, [t.numpy() for t in inputs])]
    label = name or f"graph.{next(_traced)}"
    if _graph_op.is_there():
        return _graph_op.add(kind, inputs, label, id_of(process_set), **options)

    def run(*tensors: Any) -> Any:
        with as_tensorflow_errors():
            return function(label, [t.numpy() for t in tensors])

    return tf.py_function(run, inputs, types)


def _tensor(value: Any) -> Any:
    return tf.convert_to_tensor(unmasked(value))


def _one_below_the_other(value: Any) -> Any:
    """The shape of a result whose number of rows is not known."""
    return [None, *value.shape[1:]] if value.shape.rank else None


# --- reductions -----------------------------------------------------------------------------------


def grouped_allreduce(
    tensors: Sequence[Any],
    average: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: Optional[str] = None,
) -> List[Any]:
    """The reductions of several tensors, negotiated together."""
    op = handle_average_backwards_compatibility(op, average)
    if any(isinstance(tensor, tf.IndexedSlices) for tensor in tensors):
        return [
            allreduce(
                tensor,
                compression=compression,
                op=op,
                prescale_factor=prescale_factor,
                postscale_factor=postscale_factor,
                process_set=process_set,
            )
            for tensor in tensors
        ]
    values = [_tensor(tensor) for tensor in tensors]
    if not values:
        return []

    @tf.custom_gradient
    def reduce(*inputs: Any) -> Any:
        packed = [compression.compress(value) for value in inputs]
        outputs = _call(
            "allreduce",
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
            process_set,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
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
    ignore_name_scope: bool = False,
) -> Any:
    """The average (or ``op``) over all ranks. IndexedSlices are gathered."""
    op = handle_average_backwards_compatibility(op, average)
    if not isinstance(tensor, tf.IndexedSlices):
        return grouped_allreduce(
            [tensor],
            compression=compression,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            process_set=process_set,
            name=name,
        )[0]
    if op not in (Average, Sum):
        raise UnsupportedError("allreduce: IndexedSlices can be summed and averaged only")
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        raise UnsupportedError("allreduce: IndexedSlices cannot be scaled")
    values = allgather(tensor.values, process_set=process_set)
    indices = allgather(tensor.indices, process_set=process_set)
    if op == Average:
        values = values / tf.cast(process_set.size(), values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)


def _allreduce(
    tensor: Any,
    name: Optional[str] = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """allreduce without compression, by default a sum."""
    return allreduce(
        tensor,
        op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        name=name,
        process_set=process_set,
    )


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduced over all ranks, and of that this rank's rows."""

    @tf.custom_gradient
    def scatter(given: Any) -> Any:
        value, context = compression.compress(given)
        result = _call(
            "reducescatter",
            lambda label, arrays: [
                _numpy_ops.reducescatter(
                    arrays[0], label, op, prescale_factor, postscale_factor, process_set
                )
            ],
            [value],
            [value.dtype],
            name,
            process_set,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )[0]
        result.set_shape(_one_below_the_other(value))

        def gradient(upstream: Any) -> Any:
            factor = prescale_factor * postscale_factor
            if op == Sum:
                factor *= process_set.size() or 1
            scaled = upstream if factor == 1.0 else upstream * tf.cast(factor, upstream.dtype)
            return allgather(scaled, process_set=process_set)

        return compression.decompress(result, context), gradient

    return scatter(_tensor(tensor))


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[Any]:
    """reducescatter of each tensor of a list."""
    return [
        reducescatter(
            tensor,
            compression=compression,
            op=op,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        for tensor in tensors
    ]


# --- moving ---------------------------------------------------------------------------------------


def allgather(
    tensor: Any,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The tensors of all ranks, one below the other."""

    @tf.custom_gradient
    def gather(given: Any) -> Any:
        result = _call(
            "allgather",
            lambda label, arrays: [_numpy_ops.allgather(arrays[0], label, process_set)],
            [given],
            [given.dtype],
            name,
            process_set,
        )[0]
        result.set_shape(_one_below_the_other(given))

        def gradient(upstream: Any) -> Any:
            averaged = allreduce(upstream, op=Average, process_set=process_set)
            rows = allgather(tf.reshape(tf.shape(given)[0], [1]), process_set=process_set)
            return tf.split(averaged, rows, num=process_set.size())[process_set.rank() or 0]

        return result, gradient

    return gather(_tensor(tensor))


def grouped_allgather(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """allgather of each tensor of a list."""
    return [
        allgather(tensor, f"{name}.{index}" if name else None, process_set=process_set)
        for index, tensor in enumerate(tensors)
    ]


def broadcast(
    tensor: Any,
    root_rank: int,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The tensor of ``root_rank``."""

    @tf.custom_gradient
    def send(given: Any) -> Any:
        result = _call(
            "broadcast",
            lambda label, arrays: [_numpy_ops.broadcast(arrays[0], root_rank, label, process_set)],
            [given],
            [given.dtype],
            name,
            process_set,
            root_rank=root_rank,
        )[0]
        result.set_shape(given.shape)

        def gradient(upstream: Any) -> Any:
            averaged = allreduce(upstream, op=Average, process_set=process_set)
            return averaged if _core.rank() == root_rank else averaged * 0

        return result, gradient

    return send(_tensor(tensor))


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """Overwrites variables by those of ``root_rank``, and returns their values."""
    label = name or "variable"
    return [
        variable.assign(
            broadcast(
                tf.convert_to_tensor(variable),
                root_rank,
                f"{label}.{index}",
                process_set=process_set,
            )
        )
        for index, variable in enumerate(variables)
    ]


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """What the ranks sent here; with ``splits`` also how many rows came from each."""
    rows = [] if splits is None else [tf.convert_to_tensor(splits)]
    if rows and not rows[0].dtype.is_integer:
        raise InvalidArgumentError("alltoall: splits must be integers")

    @tf.custom_gradient
    def exchange(given: Any) -> Any:
        output, received = _call(
            "alltoall",
            lambda label, arrays: list(
                _numpy_ops.alltoall(
                    arrays[0], arrays[1] if len(arrays) > 1 else None, label, process_set
                )
            ),
            [given, *rows],
            [given.dtype, tf.int32],
            name,
            process_set,
        )
        output.set_shape(_one_below_the_other(given))
        received.set_shape([process_set.size()])

        def gradient(upstream: Any, _: Any) -> Any:
            return alltoall(upstream, received, process_set=process_set)[0]

        return (output, received), gradient

    output, received = exchange(_tensor(tensor))
    return output if splits is None else (output, received)


# --- meeting --------------------------------------------------------------------------------------


def join() -> Any:
    """This rank has no more data. Returns the rank that joined last; in a graph, as a tensor."""
    return _core.join(0) if tf.executing_eagerly() else _number(lambda: _core.join(0))


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set are here."""
    _core.barrier_async(id_of(process_set)).wait()


# --- who this rank is, asked when a graph runs ----------------------------------------------------


def _number(ask: Any) -> Any:
    if tf.executing_eagerly():
        return tf.constant(ask(), dtype=tf.int32)
    number = tf.py_function(ask, [], tf.int32)
    number.set_shape([])
    return number


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """The number of ranks of a process set, as a tensor."""
    return _number(lambda: _core.process_set_size(process_set_id))


def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """1 if this rank belongs to a process set, else 0."""
    return _number(lambda: int(_core.process_set_rank(process_set_id) >= 0))


def local_size_op(name: Optional[str] = None) -> Any:
    """The number of ranks on this host, as a tensor."""
    return _number(_core.local_size)


def rank_op(name: Optional[str] = None) -> Any:
    """This rank's number, as a tensor."""
    return _number(_core.rank)


def local_rank_op(name: Optional[str] = None) -> Any:
    """This rank's number on its host, as a tensor."""
    return _number(_core.local_rank)
