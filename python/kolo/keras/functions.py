"""Values and models, for programs around model.fit."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

import keras

from kolo import _numpy_ops
from kolo._arrays import unmasked
from kolo._errors import InvalidArgumentError
from kolo._numpy_ops import Average, Sum
from kolo.keras._optimizer import is_distributed, wrap_in_place


def allreduce(
    value: Any,
    name: Optional[str] = None,
    average: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: Any = None,
    compression: Any = None,
) -> Any:
    """The average (or ``op``) of a value over all ranks: a tensor of a tensor, else an array.
    ``compression`` changes nothing."""
    if op is not None and average is not None:
        raise InvalidArgumentError("the parameters 'average' and 'op' exclude each other; use 'op'")
    if average is not None:
        op = Average if average else Sum
    reduced = _numpy_ops.allreduce(
        _array(value),
        name=name,
        op=Average if op is None else op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
    )
    return _like(value, reduced)


def allgather(value: Any, name: Optional[str] = None) -> Any:
    """The values of all ranks, one below the other."""
    return _like(value, _numpy_ops.allgather(_array(value), name))


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    """The value of ``root_rank``."""
    return _like(value, _numpy_ops.broadcast(_array(value), root_rank, name))


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> Any:
    """Reduced over all ranks, and of that this rank's rows."""
    return _like(value, _numpy_ops.reducescatter(_array(value), name, op))


def _array(value: Any) -> Any:
    return keras.ops.convert_to_numpy(unmasked(value))


def _like(value: Any, array: Any) -> Any:
    """What was given as a tensor comes back as one."""
    if not keras.ops.is_tensor(value):
        return array
    dtype = keras.backend.standardize_dtype(value.dtype)
    return keras.ops.convert_to_tensor(array, dtype=dtype)


def load_model(
    filepath: Any,
    custom_optimizers: Any = None,
    custom_objects: Any = None,
    compression: Any = None,
    legacy_opts: bool = False,
) -> Any:
    """A saved model, with its optimizer, its state included, wrapped again.

    ``custom_objects`` may have functions that make an optimizer of its settings:
    ``lambda **settings: DistributedOptimizer(MyOptimizer(**settings))``.
    """
    known = {cls.__name__: cls for cls in custom_optimizers or []}
    for name, given in (custom_objects or {}).items():
        known[name] = _Maker(given) if _makes_of_settings(given) else given
    model = keras.models.load_model(filepath, custom_objects=known)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not is_distributed(optimizer):
        wrap_in_place(optimizer, compression)
    return model


class _Maker:
    """A function in the place of a class: Keras makes objects of a class by its from_config."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def from_config(self, config: Any) -> Any:
        """An object with these settings."""
        return self._make(**config)


def _makes_of_settings(given: Any) -> bool:
    """Whether it is a function of settings alone. Initializers and losses have other arguments."""
    if not inspect.isfunction(given):
        return False
    kinds = {parameter.kind for parameter in inspect.signature(given).parameters.values()}
    return kinds == {inspect.Parameter.VAR_KEYWORD}
