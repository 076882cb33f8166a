"""horovod.tensorflow.keras.elastic: the same as kolo.keras.elastic."""

from kolo.keras.elastic import *  # noqa: F403
