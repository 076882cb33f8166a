"""Prints the seconds that a step of a convolutional network takes with kolo.tensorflow."""

import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import kolo.tensorflow as hvd
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
hvd.init()
model = tf.keras.Sequential(
    [tf.keras.layers.Input((32, 32, 3))]
    + [tf.keras.layers.Conv2D(64, 3, activation="relu") for _ in range(4)]
    + [tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)]
)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(1e-3)
images = tf.random.stateless_normal((32, 32, 32, 3), (1, hvd.rank()))
labels = tf.zeros(32, tf.int32)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


for _ in range(3):
    step()
begin = time.perf_counter()
for _ in range(10):
    step()
print("STEP", (time.perf_counter() - begin) / 10)
