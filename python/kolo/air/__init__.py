"""Sessions and checkpoints of trials, with the interface of Ray AIR."""

from kolo.air import session
from kolo.tune.checkpoint import Checkpoint

__all__ = ["Checkpoint", "session"]
