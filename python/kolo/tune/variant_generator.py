"""The configurations that a specification with grids and random values stands for, one by one."""

from __future__ import annotations

import copy
import itertools
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from kolo.tune._space import evaluated
from kolo.tune.error import TuneError
from kolo.tune.sample import Domain, sample_from, spec_of

Path = Tuple[Any, ...]


class RecursiveDependencyError(Exception):
    """A value depends on itself."""


class _Unresolved(Exception):
    """A value was asked for that is not known yet."""


def _is_grid(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"grid_search"}


def _is_open(value: Any) -> bool:
    """Whether a value has still to be drawn, or is one of several."""
    if isinstance(value, dict) and set(value) == {"eval"} and isinstance(value["eval"], str):
        return True
    return isinstance(value, Domain) or _is_grid(value)


def _leaves(value: Any, path: Path = ()) -> Iterator[Tuple[Path, Any]]:
    """All values that are open, with their places."""
    if _is_open(value):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))


def _get(spec: Any, path: Path) -> Any:
    for key in path:
        spec = spec[key]
    return spec


def _set(spec: Any, path: Path, value: Any) -> None:
    _get(spec, path[:-1])[path[-1]] = value


def _editable(value: Any) -> Any:
    """A copy whose containers may be changed; what they hold is shared."""
    if _is_open(value):
        return value
    if isinstance(value, dict):
        return {key: _editable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_editable(item) for item in value]
    return value


def _resolve_nested_dict(nested_dict: Mapping[str, Any]) -> Dict[Path, Any]:
    """A dictionary of dictionaries as one, by paths."""
    flat: Dict[Path, Any] = {}
    for key, value in nested_dict.items():
        if isinstance(value, Mapping):
            for path, inner in _resolve_nested_dict(value).items():
                flat[(key, *path)] = inner
        else:
            flat[(key,)] = value
    return flat


def _draw(domain: Any, spec: Dict[str, Any], random_state: Any) -> Any:
    """One value. Functions see the specification as far as it is known."""
    if isinstance(domain, dict):
        domain = evaluated(domain["eval"])
    if not isinstance(domain, sample_from):
        return domain.sample(random_state=random_state)

    def read(path: str) -> Any:
        value: Any = spec.get("config", spec)
        for key in path.split("/"):
            value = value[key]
        if _is_open(value):
            raise _Unresolved(path)
        return value

    return domain.call(spec_of(read))


def _resolve(spec: Dict[str, Any], resolved: Dict[Path, Any], random_state: Any) -> None:
    """Draws all that is open, those that depend on others after them."""
    waiting = dict(_leaves(spec))
    while waiting:
        asked_for = ""
        drawn = []
        inner: Dict[Path, Any] = {}
        for path, domain in sorted(waiting.items(), key=lambda item: str(item[0])):
            try:
                value = _draw(domain, spec, random_state)
            except _Unresolved as open_value:
                asked_for = str(open_value)
                continue
            value = _editable(value)
            _set(spec, path, value)
            resolved[path] = value
            drawn.append(path)
            inner.update(_leaves(value, path))  # of a choice among domains
        if not drawn:
            names = ", ".join(str(path[-1]) for path in waiting)
            raise RecursiveDependencyError(f"`{names}` recursively depends on `{asked_for}`")
        for path in drawn:
            del waiting[path]
        waiting.update(inner)


def _grids(spec: Dict[str, Any]) -> Iterator[Tuple[Dict[Path, Any], Dict[str, Any]]]:
    """One specification for each combination; the first grid, by name, varies fastest."""
    found = sorted((path, leaf["grid_search"]) for path, leaf in _leaves(spec) if _is_grid(leaf))
    for path, values in found:
        if not isinstance(values, list):
            raise TuneError(f"grid_search of {path[-1]!r} is not a list: {values!r}")
    for values in itertools.product(*[values for _, values in reversed(found)]):
        one = _editable(spec)
        chosen: Dict[Path, Any] = {}
        for (path, _), value in zip(found, reversed(values)):
            _set(one, path, value)
            if not _is_open(value):
                chosen[path] = value
        yield chosen, one


def generate_variants(
    unresolved_spec: Mapping[str, Any],
    constant_grid_search: bool = False,
    random_state: Any = None,
) -> Iterator[Tuple[Dict[Path, Any], Dict[str, Any]]]:
    """Pairs of what was drawn, by path, and the specification without open values.

    ``constant_grid_search``: random values are the same for all combinations of a grid.
    """
    spec = _editable(dict(unresolved_spec))
    shared: Dict[Path, Any] = {}
    if constant_grid_search:
        apart = {path: leaf for path, leaf in _leaves(spec) if not _is_grid(leaf)}
        for path, domain in apart.items():
            if not isinstance(domain, (sample_from, dict)):
                shared[path] = domain.sample(random_state=random_state)
                _set(spec, path, shared[path])
    for chosen, one in _grids(spec):
        resolved = {**shared, **chosen}
        _resolve(one, resolved, random_state)
        yield resolved, copy.copy(one)


def format_vars(resolved_vars: Mapping[Path, Any]) -> str:
    """What was drawn, as a part of a name: "lr=0.1,width=3"."""
    parts: List[str] = []
    for path, value in sorted(resolved_vars.items(), key=lambda item: str(item[0])):
        if path[0] in ("run", "env", "resources_per_trial"):
            continue
        numbers = list(itertools.takewhile(lambda key: isinstance(key, int), reversed(path)))
        last = next((key for key in reversed(path) if not isinstance(key, int)), "")
        name = "_".join(str(key) for key in [last, *reversed(numbers)])
        text = str(value) if not isinstance(value, float) else f"{value:.4f}"
        parts.append(f"{_cleaned(name)}={_cleaned(text)}")
    return ",".join(parts)


def _cleaned(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-+" else "_" for c in text)


def flattened(resolved_vars: Mapping[Path, Any], drop: Optional[str] = "config") -> Dict[str, Any]:
    """By names with slashes, without the first part of the path."""
    return {
        "/".join(str(key) for key in (path[1:] if path[0] == drop else path)): value
        for path, value in resolved_vars.items()
    }
