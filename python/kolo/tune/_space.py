"""A configuration as users write it, as the compiled module takes it.

Constants that are neither numbers nor texts (classes, functions, tensors) cannot be written to a
database. The study sees a mark in their place, and trials see the constants.
"""

from __future__ import annotations

from typing import Any, Dict, List

from kolo._errors import InvalidArgumentError
from kolo.tune.sample import CHOICE, OPTIONS, Domain, chosen, sample_from

_MARK = "__kolo_constant__"
# A configuration of a search of somebody's own: the number of the trial, and what was suggested.
NUMBER = "__kolo_number__"
SUGGESTION = "__kolo_suggestion__"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


class Constants:
    """The constants that marks stand for."""

    def __init__(self) -> None:
        self.values: List[Any] = []

    def mark(self, value: Any) -> Dict[str, int]:
        """A mark for a constant."""
        self.values.append(value)
        return {_MARK: len(self.values) - 1}

    def restore(self, value: Any) -> Any:
        """A configuration with the constants in place of their marks, and of each choice what was
        chosen."""
        value = chosen(value)
        if isinstance(value, dict):
            if set(value) == {_MARK} and value[_MARK] < len(self.values):
                return self.values[value[_MARK]]
            if set(value) == {NUMBER, SUGGESTION}:
                return self.restore(value[SUGGESTION])
            return {key: self.restore(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.restore(item) for item in value]
        return value


def prepare(value: Any, constants: Constants) -> Any:
    """The tree that the compiled module takes."""
    try:
        return _prepared(value, constants)
    except RecursionError:
        raise InvalidArgumentError(
            "the search space: a value is nested too deeply, or contains itself"
        ) from None


def _prepared(value: Any, constants: Constants) -> Any:
    if isinstance(value, Domain):
        kind, arguments = value._kolo_domain
        if kind == "choice" and any(has_domains(item) for item in arguments[0]):
            places = Domain("choice", list(range(len(arguments[0]))))
            return {CHOICE: places, OPTIONS: [_prepared(item, constants) for item in arguments[0]]}
        if kind == "choice":
            return Domain(kind, [plain(item, constants) for item in arguments[0]])
        return value
    if isinstance(value, dict):
        if set(value) == {"grid_search"} and isinstance(value["grid_search"], (list, tuple)):
            entries = [
                _prepared(item, constants) if isinstance(item, Domain) else plain(item, constants)
                for item in value["grid_search"]
            ]
            return Domain("grid_search", entries)
        if set(value) == {"eval"} and isinstance(value["eval"], str):
            return evaluated(value["eval"])
        return {str(key): _prepared(item, constants) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_prepared(item, constants) for item in value]
    if _is_plain(value) or (hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0):
        return value
    if callable(value) and getattr(value, "__module__", None) == Domain.__module__:
        raise InvalidArgumentError(
            f"the search space has tune.{value.__name__} itself; write tune.{value.__name__}(...) "
            "with its arguments"
        )
    return constants.mark(value)


def has_domains(value: Any) -> bool:
    """Whether something in there is to be searched."""
    if isinstance(value, dict):
        return set(value) == {"grid_search"} or any(has_domains(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_domains(item) for item in value)
    return isinstance(value, Domain)


def plain(value: Any, constants: Constants) -> Any:
    """A value that is not searched in, such as one of a choice: plain data stays as it is."""
    if _is_plain(value):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item, constants) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item, constants) for key, item in value.items()}
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return constants.mark(value)


def evaluated(text: str) -> sample_from:
    """A value that is written as an expression."""

    def value(spec: Any) -> Any:
        import random

        return eval(text, {"_": spec, "spec": spec, "random": random})

    return sample_from(value)
