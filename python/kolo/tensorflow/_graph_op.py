"""Collectives as ops of TensorFlow, for graphs."""

from __future__ import annotations

import functools
import os
import struct
from typing import Any, List, Sequence

import tensorflow as tf

from kolo import _core
from kolo._errors import Error

# A kernel waits for the other ranks on a thread. The parts of a graph of TensorFlow 1 have no order:
# on a machine with few cores every thread of one rank could wait for what no thread of another
# begins. TensorFlow makes its threads when it runs something for the first time.
_THREADS = 24
os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(_THREADS, os.cpu_count() or 1)))


@functools.cache
def is_there() -> bool:
    """Whether this TensorFlow takes the ops."""
    folder = tf.sysconfig.get_lib()
    names = [name for name in os.listdir(folder) if name.startswith("libtensorflow_framework.so")]
    for name in sorted(names):
        try:
            _core.register_tensorflow_ops(os.path.join(folder, name))
        except Error:
            continue
        return True
    return False


def _bits(number: float) -> int:
    """Attributes have 32 bits for a number with a fraction, which are too few."""
    return struct.unpack("q", struct.pack("d", number))[0]


def add(
    kind: str,
    inputs: Sequence[Any],
    name: str,
    process_set: int,
    op: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    root_rank: int = 0,
) -> List[Any]:
    """Adds an op to the graph that is being built; returns its outputs."""
    from tensorflow.python.framework import op_def_library

    if kind == "allreduce":
        given = {"tensors": list(inputs)}
    elif kind == "alltoall":
        splits = inputs[1] if len(inputs) > 1 else tf.zeros([0], tf.int32)
        given = {"tensor": inputs[0], "splits": tf.cast(splits, tf.int32)}
    else:
        given = {"tensor": inputs[0]}
    outputs = op_def_library.apply_op(
        f"Kolo{kind.capitalize()}",
        tensor_name=f"{kind}.{name}",
        reduce_op=op,
        process_set=process_set,
        prescale_bits=_bits(prescale_factor),
        postscale_bits=_bits(postscale_factor),
        root_rank=root_rank,
        **given,
    )
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
