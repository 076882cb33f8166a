"""Keras with model.fit: the "simple example" of the Horovod tutorial.

Run:     kolo run -np 2 python examples/python/keras_fit.py
Expect:  "accuracy 0.8…" on the test images.
"""

import fashion
import tensorflow as tf

import kolo.tensorflow.keras as hvd  # was: import horovod.tensorflow.keras as hvd

hvd.init()

images, labels = fashion.arrays("train", 20000)
ds_train = tf.data.Dataset.from_tensor_slices((images, labels))
ds_train = ds_train.shard(hvd.size(), hvd.rank()).shuffle(10000, seed=1).batch(128)
ds_test = tf.data.Dataset.from_tensor_slices(fashion.arrays("t10k", 2000)).batch(128)

model = tf.keras.models.Sequential(
    [
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
opt = tf.optimizers.Adam(0.001 * hvd.size())
opt = hvd.DistributedOptimizer(opt)
model.compile(
    optimizer=opt,
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.keras"))
history = model.fit(
    ds_train, callbacks=callbacks, epochs=2, validation_data=ds_test, verbose=0
)
if hvd.rank() == 0:
    print(f"accuracy {history.history['val_accuracy'][-1]:.4f}")
