"""Helpers that programs for Ray Tune call."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional, Set, Union

from kolo._errors import FailureError, InvalidArgumentError
from kolo._run import pickler
from kolo.tune.result import TRAINING_ITERATION
from kolo.tune.trial import flatten


def flatten_dict(
    dt: Dict[str, Any],
    delimiter: str = "/",
    prevent_delimiter: bool = False,
    flatten_list: bool = False,
) -> Dict[str, Any]:
    """Nested dictionaries as one, with joined keys. With ``flatten_list`` lists are opened, too.
    ``prevent_delimiter`` refuses keys in which the delimiter would be taken for one."""
    if prevent_delimiter and any(delimiter in str(key) for key in _keys(dt)):
        raise InvalidArgumentError(f"flatten_dict: a key has the delimiter {delimiter!r} in it")
    return flatten(_opened(dt) if flatten_list else dt, delimiter)


def unflatten_dict(dt: Dict[str, Any], delimiter: str = "/") -> Dict[str, Any]:
    """The nested dictionaries that flatten_dict() was given."""
    out: Dict[str, Any] = {}
    for path, value in dt.items():
        *parents, last = path.split(delimiter)
        place = out
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return out


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)


def _opened(value: Any) -> Any:
    """Lists as dictionaries by place."""
    if isinstance(value, list):
        value = {str(place): item for place, item in enumerate(value)}
    if isinstance(value, dict):
        return {key: _opened(item) for key, item in value.items()}
    return value


def diagnose_serialization(trainable: Callable[..., Any]) -> Union[bool, Set[str]]:
    """True if the trainable can be sent to another process. Otherwise the names of what it uses from
    outside that cannot be, which are printed, too: make those inside of the function."""
    if _can_be_sent(trainable):
        return True
    used = inspect.getclosurevars(trainable) if inspect.isfunction(trainable) else None
    found = {**used.nonlocals, **used.globals} if used else {}
    bad = {name for name, value in found.items() if not _can_be_sent(value)}
    for name in sorted(bad):
        print(f"{name!r} cannot be sent to another process: {found[name]!r}")
    return bad


def _can_be_sent(value: Any) -> bool:
    try:
        pickler.dumps(value)
    except Exception:
        return False
    return True


def validate_save_restore(
    trainable_cls: Any,
    config: Optional[Dict[str, Any]] = None,
    num_gpus: int = 0,
    use_object_store: bool = False,
) -> bool:
    """Trains objects of a class a few steps, and raises unless one goes on from the checkpoint of
    another as it should. ``num_gpus`` and ``use_object_store`` change nothing."""
    if isinstance(trainable_cls, str):
        from kolo.tune.registry import registered

        trainable_cls = registered(trainable_cls)
    first, second = trainable_cls(config or {}), trainable_cls(config or {})
    try:
        for _ in range(3):
            reached = first.train()[TRAINING_ITERATION]
        second.restore(first.save())
        went_on = second.train()[TRAINING_ITERATION]
        if went_on != reached + 1:
            raise FailureError(
                f"validate_save_restore: after a checkpoint of iteration {reached} the next one is "
                f"{went_on}"
            )
        second.restore_from_object(first.save_to_object())
        second.train()
    finally:
        first.stop()
        second.stop()
    return True


__all__ = ["diagnose_serialization", "flatten_dict", "unflatten_dict", "validate_save_restore"]
