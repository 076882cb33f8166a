"""Trials that are rings of ranks, at Ray Tune's place for them."""

from __future__ import annotations

import tempfile
from typing import Any, ContextManager

from kolo.tune._session import checkpoint_dir
from kolo.tune.trainable import DistributedTrainableCreator


def distributed_checkpoint_dir(step: Any, disable: bool = False) -> ContextManager[str]:
    """A folder for a checkpoint, which every rank enters. That of rank 0 counts, and the others are
    thrown away; with ``disable``, all of them are."""
    if disable:
        return tempfile.TemporaryDirectory(prefix=".checkpoint-")
    return checkpoint_dir(step)


__all__ = ["DistributedTrainableCreator", "distributed_checkpoint_dir"]
