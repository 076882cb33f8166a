"""Gradients that are reduced over all ranks: the tape, and what optimizers use."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence

import tensorflow as tf

from kolo._errors import InvalidArgumentError, suggests
from kolo.process_sets import ProcessSet, global_process_set
from kolo.tensorflow.compression import Compression
from kolo.tensorflow.mpi_ops import Adasum, Average, allreduce, grouped_allreduce


class Reduction:
    """How gradients are reduced. The words are those of DistributedOptimizer."""

    def __init__(
        self,
        compression: Any,
        sparse_as_dense: bool,
        op: int,
        gradient_predivide_factor: float,
        num_groups: int,
        groups: Any,
        process_set: ProcessSet,
    ) -> None:
        if gradient_predivide_factor != 1.0 and op != Average:
            raise InvalidArgumentError("gradient_predivide_factor not supported with op != Average")
        if num_groups:
            warnings.warn(
                "Parameter `num_groups` has been replaced by `groups`",
                DeprecationWarning,
                stacklevel=4,
            )
            groups = num_groups if groups is None else groups
        if groups is not None and not isinstance(groups, list) and not groups > 0:
            raise InvalidArgumentError(
                "groups should be a non-negative integer or a list of lists of variables"
            )
        if op == Adasum and process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        self.compression = compression
        self.sparse_as_dense = sparse_as_dense
        self.op = op
        self.factor = gradient_predivide_factor
        self.process_set = process_set

    def __call__(self, gradients: Sequence[Any]) -> List[Any]:
        """All dense gradients as one group, the others one by one; None stays None."""
        if not self.process_set.included() or self.process_set.size() == 1:
            return list(gradients)
        reduced = list(gradients)
        dense = []
        for place, gradient in enumerate(reduced):
            if gradient is None:
                continue
            if isinstance(gradient, tf.IndexedSlices):
                if not self.sparse_as_dense:
                    reduced[place] = allreduce(gradient, op=self.op, process_set=self.process_set)
                    continue
                reduced[place] = tf.convert_to_tensor(gradient)
            dense.append(place)
        results = grouped_allreduce(
            [reduced[place] for place in dense],
            compression=self.compression,
            op=self.op,
            prescale_factor=1.0 / self.factor,
            postscale_factor=self.factor,
            process_set=self.process_set,
        )
        for place, result in zip(dense, results):
            reduced[place] = result
        return reduced


def scaled(gradient: Any, factor: float) -> Any:
    """A gradient, dense or sparse, times a number."""
    if gradient is None or factor == 1.0:
        return gradient
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * factor


def plain_variable(variable: Any) -> Any:
    """The variable of TensorFlow inside one of Keras 3; any other variable itself."""
    inner = getattr(variable, "value", None)
    return variable if inner is None or callable(inner) else inner


class LocalVariables:
    """Variables whose gradients stay those of the rank."""

    def __init__(self, scales: bool) -> None:
        self._variables: Dict[int, Any] = {}
        self._scales = scales

    def add(self, variable: Any) -> None:
        """One more of them."""
        inner = plain_variable(variable)
        self._variables[id(inner)] = inner

    def __contains__(self, variable: Any) -> bool:
        return id(plain_variable(variable)) in self._variables

    def reduce(self, reduction: Reduction, gradients: Sequence[Any], variables: Any) -> List[Any]:
        """All other gradients are reduced. Those of the rank are divided by the number of ranks if
        the others will be the mean over more samples."""
        local = [variable in self for variable in variables]
        shared = iter(reduction([g for g, is_own in zip(gradients, local) if not is_own]))
        factor = 1.0 / (reduction.process_set.size() or 1) if self._scales else 1.0
        return [scaled(g, factor) if own else next(shared) for g, own in zip(gradients, local)]


class _DistributedGradientTape(tf.GradientTape):
    """A tape whose gradients are reduced over all ranks."""

    def _kolo_init(self, tape: Any, reduction: Reduction, scale_local_gradients: bool) -> None:
        self.__dict__.update(tape.__dict__)
        self._kolo_reduction = reduction
        self._kolo_local = LocalVariables(scale_local_gradients)

    def register_local_source(self, source: Any) -> None:
        """The gradient of this variable stays that of the rank."""
        self._kolo_local.add(source)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
        **options: Any,
    ) -> Any:
        """The gradients, reduced over all ranks."""
        found = super().gradient(target, sources, output_gradients, **options)
        reduced = self._kolo_local.reduce(
            self._kolo_reduction, tf.nest.flatten(found), tf.nest.flatten(sources)
        )
        return tf.nest.pack_sequence_as(sources, reduced)

    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> Any:
        """Pairs of variables and gradients: those of the rank, and those that were reduced."""
        gradients = self.gradient(target, sources, output_gradients)
        pairs = list(zip(sources, gradients))
        return (
            [pair for pair in pairs if pair[0] in self._kolo_local],
            [pair for pair in pairs if pair[0] not in self._kolo_local],
        )


@suggests
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
    wrapped = _DistributedGradientTape.__new__(_DistributedGradientTape)
    wrapped._kolo_init(
        gradtape,
        Reduction(
            compression,
            sparse_as_dense,
            op,
            gradient_predivide_factor,
            num_groups,
            groups,
            process_set,
        ),
        scale_local_gradients,
    )
    return wrapped


def PartialDistributedGradientTape(
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
    local_layers: Optional[Any] = None,
    scale_local_gradients: bool = True,
) -> Any:
    """DistributedGradientTape, but gradients of ``local_layers`` stay those of the rank."""
    tape = DistributedGradientTape(
        gradtape,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    for variable in variables_of(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of(layers: Any) -> List[Any]:
    """The variables of a layer, or of a list of layers, that are trained."""
    if layers is None:
        return []
    if isinstance(layers, tf.keras.layers.Layer):
        layers = [layers]
    if not all(isinstance(layer, tf.keras.layers.Layer) for layer in layers):
        raise InvalidArgumentError("All local layers must be of tf.keras.layers.Layer type.")
    return [weight for layer in layers for weight in layer.trainable_weights]
