"""Optimizers of Keras 3 whose gradients are reduced over all ranks, for each of its back ends."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional, Sequence

import keras

from kolo._errors import InvalidArgumentError, suggests
from kolo.process_sets import ProcessSet, global_process_set

Average, Sum, Adasum = range(3)


class _CallableList(list):
    """A list that programs for Keras 2 may also call."""

    def __call__(self) -> List[Any]:
        return self


class _OneByOne:
    """Reduces gradients of the back ends torch and JAX."""

    def __init__(self, compression: Any, op: int, factor: float, process_set: ProcessSet) -> None:
        self.process_set = process_set
        self._op = op
        self._factor = factor
        self._compression = compression

    def __call__(self, gradients: Sequence[Any]) -> List[Any]:
        present = [gradient for gradient in gradients if gradient is not None]
        if not present or not self.process_set.included() or self.process_set.size() == 1:
            return list(gradients)
        reduced = iter(self._reduce(present))
        return [None if gradient is None else next(reduced) for gradient in gradients]

    def _reduce(self, gradients: List[Any]) -> List[Any]:
        if keras.backend.backend() == "torch":
            import kolo.torch

            return kolo.torch.grouped_allreduce(
                [gradient.detach() for gradient in gradients],
                compression=self._compression or kolo.torch.Compression.none,
                op=self._op,
                prescale_factor=1.0 / self._factor,
                postscale_factor=self._factor,
                process_set=self.process_set,
            )
        import kolo.jax

        return kolo.jax.allreduce(gradients, op=self._op, process_set=self.process_set)


def _reduction(
    compression: Any,
    sparse_as_dense: bool,
    op: int,
    factor: float,
    num_groups: int,
    groups: Any,
    process_set: ProcessSet,
) -> Callable[[Sequence[Any]], List[Any]]:
    if factor != 1.0 and op != Average:
        raise InvalidArgumentError("gradient_predivide_factor not supported with op != Average")
    if keras.backend.backend() != "tensorflow":
        return _OneByOne(compression, op, factor, process_set)
    from kolo.tensorflow.compression import Compression
    from kolo.tensorflow.gradients import Reduction

    return Reduction(
        compression or Compression.none,
        sparse_as_dense,
        op,
        factor,
        num_groups,
        groups,
        process_set,
    )


def _scaled(gradient: Any, factor: float) -> Any:
    if keras.backend.backend() == "tensorflow":
        from kolo.tensorflow.gradients import scaled

        return scaled(gradient, factor)
    return gradient if gradient is None or factor == 1.0 else gradient * factor


class LocalGradientAggregation:
    """How far the gradients of several backward passes are added up, in Horovod's words."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.backward_passes_per_step: int = optimizer.gradient_accumulation_steps

    @property
    def counter(self) -> Any:
        """Passes since the weights were changed the last time."""
        return keras.ops.mod(self._optimizer._iterations, self.backward_passes_per_step)

    @property
    def locally_aggregated_grads(self) -> List[Any]:
        """The sums so far, by variable; none before the first pass."""
        return list(getattr(self._optimizer, "_accumulated_gradients", []))


def _is_saved_as(cls: Any, base: Any) -> bool:
    """Has Keras write the name of ``base`` where it would write that of ``cls``, so that saved models
    load without kolo. False if this Keras keeps its names elsewhere."""
    try:
        from keras.src import api_export
        from keras.src.saving import object_registration

        tables = (api_export.REGISTERED_OBJS_TO_NAMES, object_registration.GLOBAL_CUSTOM_NAMES)
    except (ImportError, AttributeError):
        return False
    if base.__module__.startswith("keras.src.backend."):
        # What the back end has in its place, as that of torch does; the name is that of the original.
        base = next((one for one in base.__mro__[1:] if one.__name__ == base.__name__), base)
    known = [table for table in tables if base in table]
    for table in known:
        table[cls] = table[base]
    return bool(known)


def is_distributed(optimizer: Any) -> bool:
    """Whether it was wrapped already."""
    return hasattr(optimizer, "_kolo_class")


def _distributed_class(
    base: Any, reduction: Any, scale_local_gradients: bool, sum_of_passes: int
) -> Any:
    """A class with the name of ``base``."""

    def register_local_var(self: Any, var: Any) -> None:
        """The gradient of this variable stays that of the rank."""
        # Not by the attribute: what is assigned to one becomes a part of saved models.
        self.__dict__.setdefault("_kolo_local", []).append(var)

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        """Reduces the gradients and applies them."""
        gradients = list(grads)
        variables = list(trainable_variables or self._trainable_variables)
        own = {id(variable) for variable in self.__dict__.get("_kolo_local", [])}
        is_own = [id(variable) in own for variable in variables] + [False] * len(gradients)
        shared = iter(reduction([g for g, mine in zip(gradients, is_own) if not mine]))
        factor = 1.0 / (reduction.process_set.size() or 1) if scale_local_gradients else 1.0
        gradients = [
            _scaled(gradient, factor) if mine else next(shared)
            for gradient, mine in zip(gradients, is_own)
        ]
        # Keras itself takes the mean over the passes.
        gradients = [_scaled(gradient, float(sum_of_passes)) for gradient in gradients]
        self._kolo_updates = True
        try:
            return base.apply(self, gradients, trainable_variables)
        finally:
            self._kolo_updates = False

    def iterations(self: Any) -> Any:
        """Backward passes so far, as Horovod counts. The formulas of an optimizer see the updates
        so far, as those of Keras mean it."""
        return base.iterations.fget(self) if self._kolo_updates else self._iterations

    def agg_helper(self: Any) -> Optional[LocalGradientAggregation]:
        """With several backward passes per step: how far they are."""
        return LocalGradientAggregation(self) if self.gradient_accumulation_steps else None

    body = {
        "apply": apply,
        "register_local_var": register_local_var,
        "iterations": property(iterations),
        "variables": property(lambda self: _CallableList(base.variables.fget(self))),
        "_agg_helper": property(agg_helper),
        "_kolo_class": base,
        "_kolo_updates": False,
        "__module__": "horovod._keras" if "horovod" in sys.modules else "kolo.keras",
    }
    cls = type(base.__name__, (base,), body)
    if not _is_saved_as(cls, base):
        cls.__module__ = base.__module__
    return cls


@suggests
def DistributedOptimizer(
    optimizer: Any,
    name: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer of Keras whose gradients are averaged over all ranks before they are applied.

    With ``backward_passes_per_step`` the gradients of so many steps are added up, or averaged with
    ``average_aggregated_gradients``, before they are applied; they are reduced at every step.
    """
    if op == Adasum:
        raise InvalidArgumentError("op == Adasum is not supported yet with Keras")
    if backward_passes_per_step < 1:
        raise InvalidArgumentError("backward_passes_per_step must be > 0")
    reduction = _reduction(
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
    )
    passes = backward_passes_per_step
    cls = _distributed_class(
        optimizer.__class__,
        reduction,
        scale_local_gradients,
        1 if average_aggregated_gradients else passes,
    )
    config = optimizer.get_config()
    if passes > 1:
        config["gradient_accumulation_steps"] = passes
    return cls.from_config(config)


def PartialDistributedOptimizer(
    optimizer: Any,
    name: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """DistributedOptimizer, but gradients of ``local_layers`` stay those of the rank."""
    layers = [local_layers] if isinstance(local_layers, keras.layers.Layer) else local_layers or []
    if not all(isinstance(layer, keras.layers.Layer) for layer in layers):
        raise InvalidArgumentError("All local layers must be of keras.layers.Layer type.")
    wrapped = DistributedOptimizer(
        optimizer,
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        groups=groups,
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )
    for layer in layers:
        for variable in layer.trainable_weights:
            wrapped.register_local_var(variable)
    return wrapped


def wrap_in_place(optimizer: Any, compression: Any = None) -> None:
    """Makes an optimizer a distributed one and keeps its state."""
    reduction = _reduction(compression, False, Average, 1.0, 0, None, global_process_set)
    optimizer.__class__ = _distributed_class(optimizer.__class__, reduction, True, 1)
