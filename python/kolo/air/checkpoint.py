"""Checkpoints, at Ray AIR's place for them."""

from kolo.tune.checkpoint import Checkpoint

__all__ = ["Checkpoint"]
