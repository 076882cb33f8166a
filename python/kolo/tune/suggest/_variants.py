"""Trials of specifications, one by one: what BasicVariantGenerator gives without a study."""

from __future__ import annotations

import copy
import itertools
import os
import random
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from kolo.tune.result import DEFAULT_RESULTS_DIR
from kolo.tune.variant_generator import flattened, format_vars, generate_variants


class Variant:
    """One trial that has not begun."""

    def __init__(self, name: str, number: int, spec: Mapping[str, Any], drawn: Any) -> None:
        tag = format_vars(drawn)
        run = spec.get("run", name)
        self.trainable_name = run if isinstance(run, str) else getattr(run, "__name__", str(run))
        self.config: Dict[str, Any] = spec.get("config", {})
        self.evaluated_params = flattened(drawn)
        self.experiment_tag = f"{number}_{tag}" if tag else str(number)
        self.trial_id = f"{number:05d}"
        self.max_failures = spec.get("max_failures", 0)
        self.stopping_criterion = spec.get("stop", {})
        parent = spec.get("local_dir") or DEFAULT_RESULTS_DIR
        self.local_dir = os.path.join(os.path.expanduser(parent), name)

    def __str__(self) -> str:
        environment = self.config.get("env")
        parts = [self.trainable_name, *([str(environment)] if environment else []), self.trial_id]
        return "_".join(parts)


def _with_point(spec: Dict[str, Any], point: Mapping[str, Any]) -> Dict[str, Any]:
    """The specification with some values given, by names with slashes."""
    given = copy.deepcopy(spec)
    for name, value in point.items():
        place = given["config"]
        *parents, last = str(name).split("/")
        for parent in parents:
            place = place[parent]
        _put(place, last, value)
    return given


def _put(place: Any, name: Any, value: Any) -> None:
    """A dictionary gives some of the values of the one that is there; a domain is replaced."""
    below = place.get(name) if isinstance(place, dict) else None
    is_grid = isinstance(below, dict) and set(below) == {"grid_search"}
    if isinstance(value, Mapping) and isinstance(below, dict) and not is_grid:
        for key, item in value.items():
            _put(below, key, item)
    else:
        place[name] = value


class Variants:
    """Points that were given come first, and count as samples."""

    def __init__(
        self, points: Sequence[Mapping[str, Any]], constant_grid_search: bool, seed: Optional[int]
    ) -> None:
        self._points = list(points)
        self._constant = constant_grid_search
        self._random = None if seed is None else random.Random(seed)
        self._numbers = itertools.count()
        self._waiting: List[Iterator[Variant]] = []
        self._ahead: Optional[Variant] = None
        self.total = 0

    @property
    def is_finished(self) -> bool:
        """Whether there is no further trial."""
        if self._ahead is None:
            self._ahead = self._draw()
        return self._ahead is None

    def add(self, experiments: Any) -> None:
        """Specifications by name, experiments, or a list of such."""
        for one in experiments if isinstance(experiments, (list, tuple)) else [experiments]:
            named = one if isinstance(one, Mapping) else {one.name: one.spec}
            for name, spec in named.items():
                spec = dict(spec)
                points, self._points = self._points, []
                samples = max(int(spec.pop("num_samples", 1)), len(points))
                specs = [_with_point(spec, point) for point in points]
                specs += [spec] * (samples - len(points))
                self.total += sum(_grid_size(one) for one in specs)
                self._waiting.append(self._trials_of(name, specs))

    def next(self) -> Optional[Variant]:
        """The next one; None: there is none."""
        if self.is_finished:
            return None
        trial, self._ahead = self._ahead, None
        return trial

    def _draw(self) -> Optional[Variant]:
        while self._waiting:
            for trial in self._waiting[0]:
                return trial
            del self._waiting[0]
        return None

    def _trials_of(self, name: str, specs: List[Dict[str, Any]]) -> Iterator[Variant]:
        for spec in specs:
            for drawn, resolved in generate_variants(spec, self._constant, self._state()):
                yield Variant(name, next(self._numbers), resolved, drawn)

    def _state(self) -> Any:
        return None if self._random is None else _Numbers(self._random)


class _Numbers:
    """Domains draw their seeds from it, so that every value has its own."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def randint(self, limit: int) -> int:
        """A number below the limit."""
        return self._source.randrange(limit)


def _grid_size(value: Any) -> int:
    """The number of combinations of all grids."""
    if isinstance(value, dict):
        if set(value) == {"grid_search"}:
            return max(1, len(value["grid_search"]))
        value = list(value.values())
    size = 1
    if isinstance(value, (list, tuple)):
        for item in value:
            size *= _grid_size(item)
    return size
