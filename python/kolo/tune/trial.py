"""A trial of a study, with everything it reported."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from kolo._errors import unknown_name
from kolo.tune.checkpoint import Checkpoint
from kolo.tune.result import DEBUG_METRICS


def flatten(value: Dict[str, Any], separator: str = "/", prefix: str = "") -> Dict[str, Any]:
    """Nested dictionaries as one, with joined keys."""
    flat: Dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat.update(flatten(item, separator, f"{prefix}{key}{separator}"))
        else:
            flat[f"{prefix}{key}"] = item
    return flat


SCOPES = ("last", "all", "avg", "last-5-avg", "last-10-avg")


def in_scope(values: List[float], mode: str, scope: str) -> Optional[float]:
    """One number of all that were reported; None if there are none."""
    if not values:
        return None
    if scope == "last":
        return values[-1]
    if scope == "all":
        return max(values) if mode == "max" else min(values)
    if scope == "avg":
        return sum(values) / len(values)
    if scope in ("last-5-avg", "last-10-avg"):
        last = values[-5:] if scope == "last-5-avg" else values[-10:]
        return sum(last) / len(last)
    raise unknown_name("scope", scope, SCOPES)


class Trial:
    """A trial with everything it reported."""

    PENDING, RUNNING, PAUSED, TERMINATED, ERROR = (
        "PENDING",
        "RUNNING",
        "PAUSED",
        "TERMINATED",
        "ERROR",
    )

    def __init__(self, row: Dict[str, Any], config: Dict[str, Any]) -> None:
        self.number: int = row["number"]
        self.trial_id: str = row["trial_id"]
        self.name: str = row["name"]
        self.status: str = row["status"]
        self.config = config
        self.last_result: Dict[str, Any] = row["last_result"] or {}
        self.logdir: str = row["logdir"]
        self.error: str = row["error"]
        self.why: str = row["why"]
        self.stopped: bool = row["stopped"]
        self.num_failures: int = row["num_failures"]
        self.results: List[Dict[str, Any]] = row.get("results", [])
        self.checkpoints: List[Tuple[str, int]] = [
            (Checkpoint(path), iteration) for path, iteration in row.get("checkpoints", [])
        ]

    @property
    def evaluated_params(self) -> Dict[str, Any]:
        """The configuration, flat."""
        return flatten(self.config)

    def metric(self, name: str) -> List[float]:
        """The values of a metric, where it was reported."""
        return [flat[name] for flat in map(flatten, self.results) if name in flat]

    @property
    def metric_analysis(self) -> Dict[str, Dict[str, float]]:
        """For each number that was reported: max, min, avg, last, last-5-avg and last-10-avg."""
        analysis: Dict[str, Dict[str, Any]] = {}
        for name, values in self._numbers().items():
            scopes = {one: in_scope(values, "max", one) for one in SCOPES if one != "all"}
            analysis[name] = {"max": max(values), "min": min(values), **scopes}
        return analysis

    @property
    def metric_n_steps(self) -> Dict[str, Dict[str, List[float]]]:
        """For each number that was reported: its last 5 and its last 10 values."""
        return {name: {"5": v[-5:], "10": v[-10:]} for name, v in self._numbers().items()}

    def _numbers(self) -> Dict[str, List[float]]:
        """What was reported, without what says only when and where that was."""
        names = {name for result in self.results for name in flatten(result)}
        shown = {
            name: self.metric(name)
            for name in sorted(names)
            if name not in DEBUG_METRICS and not name.startswith("config/")
        }
        return {
            name: values
            for name, values in shown.items()
            if all(isinstance(value, (int, float)) for value in values)
        }

    @property
    def checkpoint(self) -> Optional[Checkpoint]:
        """The folder of the last checkpoint."""
        return self.checkpoints[-1][0] if self.checkpoints else None  # type: ignore

    def __repr__(self) -> str:
        return f"Trial({self.name}, {self.status})"

    def __str__(self) -> str:
        return self.name
