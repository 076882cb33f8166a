"""The words of a search space. The names and rules are Ray Tune's."""

from __future__ import annotations

import inspect
import random
from typing import Any, Callable, Dict, List, Sequence

from kolo import _core
from kolo._errors import InvalidArgumentError


class Domain:
    """One leaf of a search space."""

    def __init__(self, kind: str, *arguments: Any) -> None:
        self._kolo_domain = (kind, arguments)

    def sample(self, spec: Any = None, size: int = 1, random_state: Any = None) -> Any:
        """Draws values at random; the same ones for the same ``random_state``."""
        source = _source(random_state)
        space = _core.Space({"x": self}, [], [], None, [])
        drawn = [space.sample(source.getrandbits(63))["x"] for _ in range(size)]
        return drawn[0] if size == 1 else drawn

    @property
    def domain_str(self) -> str:
        """The domain in a few characters."""
        return repr(self)

    def __repr__(self) -> str:
        kind, arguments = self._kolo_domain
        return f"{kind}({', '.join(map(repr, arguments))})"


# A choice some of whose values are to be searched, too: the place of the one that is chosen, and all.
CHOICE, OPTIONS = "__kolo_choice__", "__kolo_options__"


def chosen(value: Any) -> Any:
    """What was chosen, if the value is a choice among values that are searched, too."""
    while isinstance(value, dict) and set(value) == {CHOICE, OPTIONS}:
        value = value[OPTIONS][value[CHOICE]]
    return value


def _source(random_state: Any) -> random.Random:
    if random_state is None:
        return random  # type: ignore[return-value]
    # A generator of NumPy, old or new, goes on from where it is.
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    if draw is not None:
        return random.Random(int(draw(2**31)))
    return random.Random(random_state)


class _Numbers(Domain):
    """A range of numbers, with the way in which it is sampled."""

    plain, logarithmic = "", ""
    _is_chosen = False

    def __init__(self, lower: Any = None, upper: Any = None) -> None:
        self.lower = float("-inf") if lower is None else lower
        self.upper = float("inf") if upper is None else upper
        self._kolo_domain = (self.plain, (self.lower, self.upper))

    def _like(self, kind: str, *arguments: Any) -> Any:
        if not all(hasattr(type(one), "__float__") for one in arguments):
            shown = ", ".join(map(repr, arguments))
            raise InvalidArgumentError(f"{kind}({shown}): the arguments must be numbers")
        domain = type(self)(self.lower, self.upper)
        domain._kolo_domain = (kind, arguments)
        _core.Space({"x": domain}, [], [], None, [])  # raises, naming the rule
        return domain

    def _sampled(self, kind: str, *arguments: Any) -> Any:
        if self._is_chosen:
            raise InvalidArgumentError(
                f"{self!r} says already how it is sampled; begin with a range that does not"
            )
        domain = self._like(kind, *arguments)
        domain._is_chosen = True
        return domain

    def uniform(self) -> Any:
        """Every value is equally probable."""
        return self._sampled(self.plain, self.lower, self.upper)

    def loguniform(self, base: float = 10) -> Any:
        """Every magnitude is equally probable. ``base`` changes nothing."""
        return self._sampled(self.logarithmic, self.lower, self.upper)

    def quantized(self, q: Any) -> Any:
        """Multiples of q only."""
        kind, arguments = self._kolo_domain
        kind = kind if q == 1 and self.plain == "randint" else f"q{kind}"
        domain = self._like(kind, *arguments, q)
        domain._is_chosen = self._is_chosen
        return domain

    def is_valid(self, value: Any) -> bool:
        """Whether a value lies in the range."""
        return self.lower <= value <= self.upper

    @property
    def domain_str(self) -> str:
        """The range as (lower, upper)."""
        return f"({self.lower}, {self.upper})"


class Float(_Numbers):
    """Real numbers."""

    plain, logarithmic = "uniform", "loguniform"

    def normal(self, mean: float = 0.0, sd: float = 1.0) -> Float:
        """Normal numbers."""
        return self._sampled("randn", mean, sd)


class Integer(_Numbers):
    """Whole numbers."""

    plain, logarithmic = "randint", "lograndint"

    def is_valid(self, value: Any) -> bool:
        """Whether a whole number lies in the range."""
        return super().is_valid(value) and value == int(value)


def _listed(word: str, values: Any) -> List[Any]:
    """The values that a word of the space was given. A text would be taken as its letters."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidArgumentError(
            f"{word}: {values!r} is not a list of values; write tune.{word}([{values!r}, ...])"
        )
    return list(values)


class Categorical(Domain):
    """One of several values."""

    def __init__(self, categories: Sequence[Any]) -> None:
        self.categories = _listed("choice", categories)
        if not self.categories:
            raise InvalidArgumentError("choice: the list is empty")
        super().__init__("choice", self.categories)

    def uniform(self) -> Categorical:
        """Every value is equally probable."""
        return Categorical(self.categories)

    def grid(self) -> Dict[str, List[Any]]:
        """Every value, as grid_search has it."""
        return grid_search(self.categories)

    def sample(self, spec: Any = None, size: int = 1, random_state: Any = None) -> Any:
        """Draws values, which may be anything."""
        places = Domain("choice", list(range(len(self))))
        drawn = places.sample(spec, size, random_state)
        return self[drawn] if size == 1 else [self[place] for place in drawn]

    def is_valid(self, value: Any) -> bool:
        """Whether it is one of the values."""
        return value in self.categories

    def __len__(self) -> int:
        return len(self.categories)

    def __getitem__(self, place: int) -> Any:
        return self.categories[place]

    @property
    def domain_str(self) -> str:
        """The values."""
        return f"{self.categories}"


def uniform(lower: float, upper: float) -> Float:
    """A float in [lower, upper)."""
    return Float(lower, upper).uniform()


def quniform(lower: float, upper: float, q: float) -> Float:
    """Multiples of q in [lower, upper]."""
    return Float(lower, upper).uniform().quantized(q)


def loguniform(lower: float, upper: float, base: float = 10) -> Float:
    """A float in [lower, upper), uniform in its logarithm. ``base`` changes nothing."""
    return Float(lower, upper).loguniform()


def qloguniform(lower: float, upper: float, q: float, base: float = 10) -> Float:
    """Multiples of q, uniform in the logarithm."""
    return Float(lower, upper).loguniform().quantized(q)


def randn(mean: float = 0.0, sd: float = 1.0) -> Float:
    """A normal number."""
    return Float().normal(mean, sd)


def qrandn(mean: float, sd: float, q: float) -> Float:
    """Multiples of q, normally distributed."""
    return Float().normal(mean, sd).quantized(q)


def randint(lower: int, upper: int) -> Integer:
    """An integer in [lower, upper)."""
    return Integer(lower, upper).uniform()


def qrandint(lower: int, upper: int, q: int = 1) -> Integer:
    """Multiples of q in [lower, upper]; with q = 1 the same as randint."""
    return Integer(lower, upper).uniform().quantized(q)


def lograndint(lower: int, upper: int, base: float = 10) -> Integer:
    """An integer in [lower, upper), uniform in its logarithm."""
    return Integer(lower, upper).loguniform()


def qlograndint(lower: int, upper: int, q: int, base: float = 10) -> Integer:
    """Multiples of q, uniform in the logarithm."""
    return Integer(lower, upper).loguniform().quantized(q)


def choice(categories: Sequence[Any]) -> Categorical:
    """One of the values."""
    return Categorical(categories)


def grid_search(values: Sequence[Any]) -> Dict[str, List[Any]]:
    """Every one of the values, together with every other grid."""
    return {"grid_search": _listed("grid_search", values)}


def spec_of(read: Callable[[str], Any]) -> Any:
    """What a function of sample_from sees, of values that read(path) gives."""
    return _Spec(read)


class _Spec:
    """What a function of sample_from sees: values by spec.config.x, spec.config["x"] or spec["x"]."""

    def __init__(self, read: Callable[[str], Any], path: str = "") -> None:
        self.__dict__.update(_read=read, _path=path)

    def _at(self, name: Any) -> Any:
        path = f"{self._path}/{name}" if self._path else str(name)
        value = self._read(path)
        if not isinstance(value, dict):
            return value
        inner = _Spec(self._read, path)  # which reads what is asked for: not all may be known yet
        if set(value) == {CHOICE, OPTIONS}:
            return _Spec(self._read, f"{path}/{OPTIONS}")._at(inner._at(CHOICE))
        return inner

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
        self.call: Callable[[Any], Any] = func if needs else lambda spec: func()
        super().__init__("sample_from", lambda read: self.call(_Spec(read)))


Function = sample_from
