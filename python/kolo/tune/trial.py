"""A trial of a study, with everything it reported."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from kolo._errors import unknown_name
from kolo.tune.checkpoint import Checkpoint
from kolo.tune.error import TuneError
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


def is_finite(value: Any) -> bool:
    """Whether it is a number that may be the best of several."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def _best_of(values: List[float], mode: str) -> float:
    """The best of the finite ones; of others if there are none."""
    finite = [value for value in values if is_finite(value)]
    if not finite:
        return values[-1]
    return max(finite) if mode == "max" else min(finite)


def in_scope(values: List[float], mode: str, scope: str) -> Optional[float]:
    """One number of all that were reported; None if there are none."""
    if not values:
        return None
    if scope == "last":
        return values[-1]
    if scope == "all":
        return _best_of(values, mode)
    if scope == "avg":
        return sum(values) / len(values)
    if scope in ("last-5-avg", "last-10-avg"):
        last = values[-5:] if scope == "last-5-avg" else values[-10:]
        return sum(last) / len(last)
    raise unknown_name("scope", scope, SCOPES)


class ExportFormat:
    """The names of formats that Trainable.export_model is asked for."""

    CHECKPOINT, MODEL, ONNX, H5 = "checkpoint", "model", "onnx", "h5"

    @staticmethod
    def validate(formats: Sequence[str]) -> None:
        """Raises for what is none of them."""
        known = (
            ExportFormat.CHECKPOINT,
            ExportFormat.MODEL,
            ExportFormat.ONNX,
            ExportFormat.H5,
        )
        for name in formats:
            if name.strip().lower() not in known:
                raise TuneError(f"the export format {name!r} is unknown; use {', '.join(known)}")


_numbers = itertools.count()


def new_row(number: int, config: Any) -> Dict[str, Any]:
    """What the compiled module would say of a trial that has not begun."""
    return {
        "number": number,
        "trial_id": f"{number:05d}",
        "name": "",
        "status": Trial.PENDING,
        "config": config,
        "last_result": {},
        "logdir": "",
        "error": "",
        "why": "",
        "stopped": False,
        "num_failures": 0,
        "results": [],
    }


def trial_of(row: Dict[str, Any], config: Dict[str, Any], trainable_name: str = "") -> Trial:
    """The trial of a study, with its configuration as users know it."""
    given = {key: value for key, value in row.items() if key != "config"}
    result = given["last_result"]
    if not result and given["status"] == Trial.TERMINATED:  # it has not reported anything
        result = {"done": True, "trial_id": given["trial_id"]}
    if result:
        given["last_result"] = {**result, "config": config}
    name = row["name"]
    known = f"_{row['trial_id']}"
    return Trial(trainable_name or name[: name.rfind(known)], config, **given)


class Trial:
    """A trial with everything it reported."""

    PENDING, RUNNING, PAUSED, TERMINATED, ERROR = (
        "PENDING",
        "RUNNING",
        "PAUSED",
        "TERMINATED",
        "ERROR",
    )

    def __init__(
        self,
        trainable_name: Any = "",
        config: Optional[Dict[str, Any]] = None,
        trial_id: Optional[str] = None,
        experiment_tag: str = "",
        **row: Any,
    ) -> None:
        """A trial that has not begun, of a trainable by its name; trial_of() makes those of studies."""
        row = {**new_row(next(_numbers), config), **row}
        self.trainable_name = str(trainable_name)
        self.experiment_tag = experiment_tag
        self.number: int = row["number"]
        self.trial_id: str = row["trial_id"] if trial_id is None else trial_id
        self.name: str = row["name"] or f"{self.trainable_name}_{self.trial_id}"
        self.status: str = row["status"]
        self.config: Dict[str, Any] = {} if config is None else config
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
        self._latest: Optional[str] = row.get("checkpoint")

    @property
    def local_path(self) -> str:
        """The folder of the trial."""
        return self.logdir

    @property
    def error_file(self) -> Optional[str]:
        """The file of its folder that has its errors, if there were any."""
        path = os.path.join(self.logdir, "error.txt")
        return path if self.logdir and os.path.exists(path) else None

    def is_finished(self) -> bool:
        """Whether it has come to an end."""
        return self.status in (Trial.TERMINATED, Trial.ERROR)

    def has_checkpoint(self) -> bool:
        """Whether there is one to go on from."""
        return self.checkpoint is not None

    def set_status(self, status: str) -> None:
        """For programs that drive a scheduler themselves."""
        self.status = status

    def get_runner_ip(self) -> Optional[str]:
        """The address of the host that the last result is from."""
        return self.last_result.get("node_ip")

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
            analysis[name] = {
                "max": _best_of(values, "max"),
                "min": _best_of(values, "min"),
                **scopes,
            }
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
        if self.checkpoints:
            return self.checkpoints[-1][0]  # type: ignore[return-value]
        return None if self._latest is None else Checkpoint(self._latest)

    def __repr__(self) -> str:
        return f"Trial({self.name}, {self.status})"

    def __str__(self) -> str:
        return self.name
