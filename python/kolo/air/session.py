"""What a trial says to its study, and asks of it. The names are those of ray.air.session."""

from __future__ import annotations

from typing import Any, Dict, Optional

from kolo import _basics
from kolo._errors import InvalidArgumentError
from kolo.tune import _session
from kolo.tune._session import get_checkpoint, get_trial_dir, get_trial_id, get_trial_name
from kolo.tune.checkpoint import Checkpoint


def report(metrics: Dict[str, Any], *, checkpoint: Optional[Checkpoint] = None) -> None:
    """Reports a result, with a checkpoint that belongs to it. Returns when the study has stored both
    and decided that the trial goes on."""
    if not isinstance(metrics, dict):
        raise InvalidArgumentError(
            f"session.report takes a dictionary of metrics, not {type(metrics).__name__}"
        )
    _session.report(metrics, checkpoint=checkpoint)


def get_world_size() -> int:
    """Ranks of this trial."""
    return _basics.size() if _basics.is_initialized() else 1


def get_world_rank() -> int:
    """Which of them this is."""
    return _basics.rank() if _basics.is_initialized() else 0


def get_local_rank() -> int:
    """Which of those on this host it is."""
    return _basics.local_rank() if _basics.is_initialized() else 0


__all__ = [
    "get_checkpoint",
    "get_local_rank",
    "get_trial_dir",
    "get_trial_id",
    "get_trial_name",
    "get_world_rank",
    "get_world_size",
    "report",
]
