"""horovod.tensorflow.keras: the same as kolo.keras."""

from kolo.keras import *  # noqa: F403
from kolo.keras import callbacks

__all__ = ["callbacks"]
