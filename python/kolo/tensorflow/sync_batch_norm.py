"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kolo._errors import InvalidArgumentError, UnsupportedError
from kolo.process_sets import global_process_set
from kolo.tensorflow.mpi_ops import Average, allreduce


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """tf.keras.layers.BatchNormalization with mean and variance of the batches of all ranks, which
    have one size."""

    def __init__(self, fused: Any = False, **kwargs: Any) -> None:
        if fused in (True, None):
            raise InvalidArgumentError("SyncBatchNormalization does not support fused=True.")
        if not hasattr(tf.keras.layers.BatchNormalization, "_moments"):
            raise UnsupportedError("SyncBatchNormalization does not know this version of Keras")
        kwargs["name"] = kwargs.get("name") or "sync_batch_normalization"
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, *arguments: Any, **options: Any) -> Any:
        mean, variance = super()._moments(inputs, *arguments, **options)
        if global_process_set.size() == 1:
            return mean, variance
        moments = tf.stack([mean, variance + tf.square(mean)])
        mean, square = tf.unstack(allreduce(moments, op=Average))
        return mean, square - tf.square(mean)
