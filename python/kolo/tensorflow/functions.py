"""Variables and objects, from one rank to all."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import tensorflow as tf

from kolo import _numpy_ops
from kolo.process_sets import ProcessSet, global_process_set
from kolo.tensorflow.mpi_ops import broadcast_


def broadcast_variables(
    variables: Sequence[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """Overwrites variables by those of ``root_rank``. ``inplace`` changes nothing."""
    return tf.group(*broadcast_(variables, root_rank, process_set=process_set))


def broadcast_global_variables(root_rank: int) -> Any:
    """For graphs of TensorFlow 1: overwrites all global variables by those of ``root_rank``."""
    if tf.executing_eagerly():
        raise RuntimeError(
            "broadcast_global_variables() does not support eager execution; use "
            "broadcast_variables(<variables of the model and the optimizer>) instead"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The object of ``root_rank``, on every rank. No session is needed."""
    return _numpy_ops.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """A function that broadcasts the object which it is given."""
    label = name or "broadcast_object_fn"
    return lambda obj: _numpy_ops.broadcast_object(obj, root_rank, label, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    """The objects of all ranks, in their order. No session is needed."""
    return _numpy_ops.allgather_object(obj, name, process_set)
