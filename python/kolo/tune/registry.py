"""Trainables by names, as Ray Tune has them."""

from __future__ import annotations

import inspect
from typing import Any, Dict

from kolo._errors import InvalidArgumentError
from kolo.tune.error import UnknownTrainableError, UntrainableError

_trainables: Dict[str, Any] = {}


def register_trainable(name: str, trainable: Any, warn: bool = True) -> None:
    """tune.run(name) runs this function or class from now on."""
    is_class = inspect.isclass(trainable)
    if not callable(trainable) or (is_class and not hasattr(trainable, "step")):
        raise UntrainableError(
            f"register_trainable: {trainable!r} is neither a function nor a class of Trainable"
        )
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"register_trainable: {name!r} is not a name")
    _trainables[name] = trainable


def registered(name: str) -> Any:
    """What was registered under a name."""
    try:
        return _trainables[name]
    except KeyError:
        raise UnknownTrainableError(
            f"there is no trainable {name!r}; register it by tune.register_trainable, or give the "
            "function itself"
        ) from None
