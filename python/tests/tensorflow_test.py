"""kolo.tensorflow and kolo.keras."""

import numpy as np
import tensorflow as tf
from ranks import RankTest, main

import kolo.keras
import kolo.tensorflow as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


class Collectives(RankTest):
    def test_eager(self):
        mine = tf.constant([1.0, 2.0]) * (RANK + 1)
        mean = (SIZE + 1) / 2
        self.assertTrue(np.allclose(hvd.allreduce(mine), [mean, 2 * mean]))
        self.assertTrue(np.allclose(hvd.allreduce(mine, op=hvd.Max), [SIZE, 2 * SIZE]))
        self.assertEqual(
            hvd.allgather(tf.fill([RANK + 1, 2], RANK)).shape[0], SIZE * (SIZE + 1) // 2
        )
        self.assertEqual(hvd.broadcast(tf.constant(RANK), SIZE - 1).numpy(), SIZE - 1)
        self.assertTrue(np.array_equal(hvd.alltoall(tf.range(SIZE)), [RANK] * SIZE))
        self.assertEqual(hvd.reducescatter(tf.ones([SIZE, 2]), op=hvd.Sum).numpy()[0][0], SIZE)
        half = hvd.allreduce(mine, compression=hvd.Compression.fp16)
        self.assertEqual(half.dtype, tf.float32)
        self.assertEqual(hvd.broadcast_object({"a": RANK}, 0), {"a": 0})
        self.assertEqual(hvd.allgather_object(RANK), list(range(SIZE)))

    def test_inside_functions(self):
        @tf.function
        def both(x):
            return hvd.allreduce(x, op=hvd.Sum), hvd.allgather(tf.reshape(x, [1]))

        for _ in range(3):
            total, everybody = both(tf.constant(1.0))
            self.assertEqual(total.numpy(), SIZE)
            self.assertEqual(everybody.shape[0], SIZE)

    def test_gradients(self):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(hvd.allreduce(x, op=hvd.Sum))
        self.assertTrue(np.allclose(tape.gradient(y, x), [SIZE, SIZE]))
        with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
            y = tf.reduce_sum(x * (RANK + 1.0))
        self.assertTrue(np.allclose(tape.gradient(y, x), [(SIZE + 1) / 2] * 2))

    def test_bad_calls(self):
        with self.assertRaises(ValueError):
            hvd.allgather(tf.constant(1.0))
        with self.assertRaises(ValueError):
            hvd.broadcast(tf.constant(1.0), SIZE)
        with self.assertRaises(ValueError):
            hvd.allreduce(tf.constant(["text"]))


class Keras(RankTest):
    def test_fit(self):
        tf.keras.utils.set_random_seed(RANK)
        model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
        optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01, momentum=0.9))
        model.compile(optimizer=optimizer, loss="mse")
        callbacks = [
            kolo.keras.callbacks.BroadcastGlobalVariablesCallback(0),
            kolo.keras.callbacks.MetricAverageCallback(),
            kolo.keras.callbacks.LearningRateWarmupCallback(0.02, warmup_epochs=2),
        ]
        x = np.random.default_rng(RANK).normal(size=(32, 3)).astype("float32")
        history = model.fit(x, x.sum(1), epochs=2, batch_size=8, callbacks=callbacks, verbose=0)
        losses = hvd.allgather_object(history.history["loss"])
        self.assertTrue(all(loss == losses[0] for loss in losses))
        self.assertAlmostEqual(history.history["lr"][-1], 0.02, places=3)
        weights = hvd.allgather(tf.reshape(model.weights[0], [1, -1])).numpy()
        self.assertTrue((weights == weights[0]).all(), weights)


if __name__ == "__main__":
    main()
