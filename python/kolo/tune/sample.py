"""The words of a search space. The names and rules are Ray Tune's."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Sequence

from kolo import _core
from kolo._errors import InvalidArgumentError


class Domain:
    """One leaf of a search space."""

    def __init__(self, kind: str, *arguments: Any) -> None:
        self._kolo_domain = (kind, arguments)

    def sample(self, spec: Any = None, size: int = 1) -> Any:
        """Draws values at random."""
        import random

        space = _core.Space({"x": self}, [], [], None, [])
        drawn = [space.sample(random.getrandbits(63))["x"] for _ in range(size)]
        return drawn[0] if size == 1 else drawn

    def __repr__(self) -> str:
        kind, arguments = self._kolo_domain
        return f"{kind}({', '.join(map(repr, arguments))})"


def _checked(kind: str, *arguments: Any) -> Domain:
    domain = Domain(kind, *arguments)
    _core.Space({"x": domain}, [], [], None, [])  # raises, naming the rule
    return domain


def uniform(lower: float, upper: float) -> Domain:
    """A float in [lower, upper)."""
    return _checked("uniform", lower, upper)


def quniform(lower: float, upper: float, q: float) -> Domain:
    """Multiples of q in [lower, upper]."""
    return _checked("quniform", lower, upper, q)


def loguniform(lower: float, upper: float, base: float = 10) -> Domain:
    """A float in [lower, upper), uniform in its logarithm. ``base`` changes nothing."""
    return _checked("loguniform", lower, upper)


def qloguniform(lower: float, upper: float, q: float, base: float = 10) -> Domain:
    """Multiples of q, uniform in the logarithm."""
    return _checked("qloguniform", lower, upper, q)


def randn(mean: float = 0.0, sd: float = 1.0) -> Domain:
    """A normal number."""
    return _checked("randn", mean, sd)


def qrandn(mean: float, sd: float, q: float) -> Domain:
    """Multiples of q, normally distributed."""
    return _checked("qrandn", mean, sd, q)


def randint(lower: int, upper: int) -> Domain:
    """An integer in [lower, upper)."""
    return _checked("randint", lower, upper)


def qrandint(lower: int, upper: int, q: int = 1) -> Domain:
    """Multiples of q in [lower, upper]; with q = 1 the same as randint."""
    return _checked("qrandint", lower, upper, q)


def lograndint(lower: int, upper: int, base: float = 10) -> Domain:
    """An integer in [lower, upper), uniform in its logarithm."""
    return _checked("lograndint", lower, upper)


def qlograndint(lower: int, upper: int, q: int, base: float = 10) -> Domain:
    """Multiples of q, uniform in the logarithm."""
    return _checked("qlograndint", lower, upper, q)


def choice(categories: Sequence[Any]) -> Domain:
    """One of the values."""
    values = list(categories)
    if not values:
        raise InvalidArgumentError("choice: the list is empty")
    return Domain("choice", values)


def grid_search(values: Sequence[Any]) -> Dict[str, List[Any]]:
    """Every one of the values, together with every other grid."""
    return {"grid_search": list(values)}


class _Spec:
    """What a function of sample_from sees: values by spec.config.x, spec.config["x"] or spec["x"]."""

    def __init__(self, read: Callable[[str], Any], path: str = "") -> None:
        self.__dict__.update(_read=read, _path=path)

    def _at(self, name: Any) -> Any:
        path = f"{self._path}/{name}" if self._path else str(name)
        value = self._read(path)
        return _Spec(self._read, path) if isinstance(value, dict) else value

    def __getattr__(self, name: str) -> Any:
        if name == "config" and not self._path:
            return self
        return self._at(name)

    def __getitem__(self, name: Any) -> Any:
        return self if name == "config" and not self._path else self._at(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, or the default."""
        try:
            return self._at(name)
        except KeyError:
            return default


class sample_from(Domain):
    """The value of a function of other values: sample_from(lambda spec: spec.config.x ** 2)."""

    def __init__(self, func: Callable[..., Any]) -> None:
        if not callable(func):
            raise InvalidArgumentError(f"sample_from: {func!r} is not a function")
        try:
            needs = len(inspect.signature(func).parameters)
        except (TypeError, ValueError):
            needs = 1
        self.func = func

        def call(read: Callable[[str], Any]) -> Any:
            return func(_Spec(read)) if needs else func()

        super().__init__("sample_from", call)
