"""What programs import from horovod.tensorflow.util."""

import tensorflow as tf


def _executing_eagerly() -> bool:
    return tf.executing_eagerly()
