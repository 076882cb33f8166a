"""Optimizers of graphs of TensorFlow 1, and what those graphs need at their start."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kolo._errors import suggests
from kolo.process_sets import ProcessSet, global_process_set
from kolo.tensorflow.compression import Compression
from kolo.tensorflow.functions import broadcast_global_variables
from kolo.tensorflow.gradients import LocalVariables, Reduction
from kolo.tensorflow.mpi_ops import Average


class _GraphOptimizer:
    """What a wrapped tf.compat.v1.train.Optimizer has besides its own class."""

    def register_local_var(self, var: Any) -> None:
        """The gradient of this variable stays that of the rank."""
        self._kolo_local.add(var)  # type: ignore[attr-defined]

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """Pairs of gradients and variables, reduced over all ranks."""
        pairs = self._kolo_class.compute_gradients(self, *arguments, **options)  # type: ignore
        variables = [variable for _, variable in pairs]
        gradients = self._kolo_local.reduce(  # type: ignore[attr-defined]
            self._kolo_reduction,  # type: ignore[attr-defined]
            [gradient for gradient, _ in pairs],
            variables,
        )
        return list(zip(gradients, variables))


@suggests
def DistributedOptimizer(
    optimizer: Any,
    name: Any = None,
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
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer whose gradients are averaged over all ranks before they are applied: one of
    Keras, or one of tf.compat.v1.train."""
    if not isinstance(optimizer, tf.compat.v1.train.Optimizer):
        from kolo.keras._optimizer import DistributedOptimizer as of_keras

        return of_keras(
            optimizer,
            name,
            device_dense,
            device_sparse,
            compression,
            sparse_as_dense,
            gradient_predivide_factor,
            op,
            backward_passes_per_step,
            average_aggregated_gradients,
            num_groups,
            groups,
            process_set,
            scale_local_gradients,
        )
    if backward_passes_per_step != 1:
        raise NotImplementedError(
            "DistributedOptimizer: backward_passes_per_step works with optimizers of Keras only"
        )
    base = optimizer.__class__
    body = {k: v for k, v in _GraphOptimizer.__dict__.items() if not k.startswith("__")}
    cls = type(base.__name__, (base,), {**body, "_kolo_class": base})
    wrapped: Any = cls.__new__(cls)  # type: ignore[call-overload]
    wrapped.__dict__.update(optimizer.__dict__)
    wrapped._kolo_local = LocalVariables(scale_local_gradients)
    wrapped._kolo_reduction = Reduction(
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
    )
    return wrapped


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """For sessions of TensorFlow 1: all ranks begin with the variables of ``root_rank``."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.bcast_op: Any = None

    def begin(self) -> None:
        """Makes the operation, once for each graph."""
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it."""
        session.run(self.bcast_op)
