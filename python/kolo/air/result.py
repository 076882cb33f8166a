"""What came of one trial. The names are those of ray.air.result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from kolo.tune.checkpoint import Checkpoint
from kolo.tune.result import AUTO_RESULT_KEYS


@dataclass(repr=False)
class Result:
    """The last metrics of a trial, its last checkpoint, and the error if it failed."""

    metrics: Optional[Dict[str, Any]]
    checkpoint: Optional[Checkpoint]
    error: Optional[Exception]
    log_dir: Optional[Path]
    metrics_dataframe: Any
    best_checkpoints: Optional[List[Tuple[Checkpoint, Dict[str, Any]]]]

    @property
    def config(self) -> Optional[Dict[str, Any]]:
        """The configuration of the trial."""
        return (self.metrics or {}).get("config")

    @property
    def path(self) -> str:
        """The folder of the trial, as a text."""
        return str(self.log_dir or "")

    def __repr__(self) -> str:
        shown = {k: v for k, v in (self.metrics or {}).items() if k not in AUTO_RESULT_KEYS}
        return f"Result(metrics={shown!r}, error={self.error!r}, log_dir={self.log_dir!r})"
