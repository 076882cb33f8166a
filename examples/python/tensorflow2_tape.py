"""TensorFlow 2 with a gradient tape: the listing of the Horovod tutorial.

Run:     kolo run -np 2 python examples/python/tensorflow2_tape.py
Expect:  losses that fall, and "accuracy 0.8…" on the test images.
"""

import fashion
import tensorflow as tf

import kolo.tensorflow as hvd  # was: import horovod.tensorflow as hvd

hvd.init()

gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

images, labels = fashion.arrays("train", 20000)
dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shard(num_shards=hvd.size(), index=hvd.rank())
dataset = dataset.repeat().shuffle(10000, seed=1).batch(64)

mnist_model = tf.keras.Sequential(
    [
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
loss = tf.losses.SparseCategoricalCrossentropy()
opt = tf.optimizers.Adam(0.001 * hvd.size())
checkpoint = tf.train.Checkpoint(model=mnist_model, optimizer=opt)


@tf.function
def training_step(images, labels):
    with tf.GradientTape() as tape:
        probs = mnist_model(images, training=True)
        loss_value = loss(labels, probs)
    # Horovod: add Horovod Distributed GradientTape.
    tape = hvd.DistributedGradientTape(tape)
    grads = tape.gradient(loss_value, mnist_model.trainable_variables)
    opt.apply_gradients(zip(grads, mnist_model.trainable_variables))
    return loss_value


for batch, (x, y) in enumerate(dataset.take(600 // hvd.size())):
    loss_value = training_step(x, y)
    # Broadcast after the first step, when the optimizer has its variables.
    if batch == 0:
        hvd.broadcast_variables(mnist_model.variables, root_rank=0)
        hvd.broadcast_variables(opt.variables, root_rank=0)
    if batch % 100 == 0 and hvd.local_rank() == 0:
        print(f"Step #{batch}\tLoss: {loss_value:.6f}")

if hvd.rank() == 0:
    checkpoint.save("./checkpoints/model")

images, labels = fashion.arrays("t10k")
right = tf.reduce_mean(tf.cast(tf.argmax(mnist_model(images), 1) == labels, tf.float32))
accuracy = hvd.allreduce(right, op=hvd.Average)
if hvd.rank() == 0:
    print(f"accuracy {accuracy:.4f}")
