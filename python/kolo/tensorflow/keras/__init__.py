"""horovod.tensorflow.keras: the same as kolo.keras."""

from kolo.keras import *  # noqa: F403
from kolo.tensorflow.keras import callbacks, elastic

__all__ = ["callbacks", "elastic"]
