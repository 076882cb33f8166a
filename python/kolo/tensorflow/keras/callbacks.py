"""horovod.tensorflow.keras.callbacks: the same as kolo.keras.callbacks."""

from kolo.keras.callbacks import *  # noqa: F403
