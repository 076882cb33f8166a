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
        masked = np.ma.masked_array([1.0, 2.0], mask=[0, 1])
        for call in (hvd.allreduce, hvd.allgather, lambda array: hvd.broadcast(array, 0)):
            with self.assertRaisesRegex(ValueError, "masked arrays"):
                call(masked)

    def test_collectives_are_ops_of_the_graph(self):
        @tf.function
        def exchange(x):
            twice = hvd.allreduce(2 * x, op=hvd.Sum, prescale_factor=1 / 3, name="twice")
            largest = hvd.grouped_allreduce([x, tf.cast(x, tf.int64)], op=hvd.Max)
            rows, counts = hvd.alltoall(tf.repeat(x[None], SIZE, 0), tf.ones([SIZE], tf.int32))
            gathered = hvd.allgather(tf.cast(tf.repeat(x[None, 1], RANK + 1), tf.uint16))
            part = hvd.reducescatter(tf.range(2 * SIZE + 1), op=hvd.Sum)
            return twice, largest, rows, counts, gathered, part, hvd.broadcast(x, SIZE - 1)

        given = tf.constant([1.0, float(RANK)], tf.float64)
        graph = exchange.get_concrete_function(given).graph
        kinds = [operation.type for operation in graph.get_operations()]
        self.assertEqual(kinds.count("KoloAllreduce"), 2)
        for kind in ("KoloAlltoall", "KoloAllgather", "KoloReducescatter", "KoloBroadcast"):
            self.assertEqual(kinds.count(kind), 1)
        self.assertNotIn("EagerPyFunc", kinds)
        for _ in range(10):
            twice, largest, rows, counts, gathered, part, last = exchange(given)
        total = SIZE * (SIZE - 1) / 2
        self.assertTrue(np.allclose(twice, [2 * SIZE / 3, 2 * total / 3], rtol=1e-12))
        self.assertEqual([x.numpy().tolist() for x in largest], [[1, SIZE - 1], [1, SIZE - 1]])
        self.assertEqual(rows.numpy().tolist(), [[1, rank] for rank in range(SIZE)])
        self.assertEqual(counts.numpy().tolist(), [1] * SIZE)
        expected = [rank for rank in range(SIZE) for _ in range(rank + 1)]
        self.assertEqual(gathered.numpy().tolist(), expected)
        begin = 2 * RANK + (RANK > 0)
        mine = range(begin, begin + 2 + (RANK == 0))
        self.assertEqual(part.numpy().tolist(), [SIZE * row for row in mine])
        self.assertEqual(last.numpy().tolist(), [1, SIZE - 1])

        @tf.function
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = hvd.allreduce(x * x, op=hvd.Sum)
            return tape.gradient(y, x)

        self.assertEqual(gradient(tf.constant(3.0)).numpy(), 6.0 * SIZE)

    def test_types_of_errors_in_graphs(self):
        for kind, call in {
            "alltoall": lambda x: hvd.alltoall(x, [3] * SIZE),
            "reducescatter": lambda x: hvd.reducescatter(x[0]),
        }.items():
            with self.subTest(kind), self.assertRaises(tf.errors.InvalidArgumentError):
                tf.function(call)(tf.ones([2]))
        if SIZE == 1:
            return
        for kind, call in {
            "allreduce": hvd.allreduce,
            "allgather": lambda x: hvd.allgather(x[None]),
            "broadcast": lambda x: hvd.broadcast(x, 0),
            "root": lambda x: hvd.broadcast(x[:2], RANK),
            "alltoall": lambda x: hvd.alltoall(tf.repeat(x[None], SIZE, 0)),
            "reducescatter": hvd.reducescatter,
        }.items():
            with self.subTest(kind), self.assertRaises(tf.errors.FailedPreconditionError):
                tf.function(call)(tf.ones([2 + RANK]))
        self.assertEqual(tf.function(hvd.allreduce)(tf.ones([1])).numpy(), [1.0])

    def test_many_at_once_in_a_graph_without_order(self):
        with tf.Graph().as_default():
            sums = [hvd.allreduce(tf.fill([4], float(i)), op=hvd.Sum) for i in range(16)]
            joined = tf.stack(sums)
            with tf.compat.v1.Session() as session:
                for _ in range(3):
                    self.assertEqual(
                        session.run(joined)[:, 0].tolist(), [i * SIZE for i in range(16)]
                    )

    def test_types_of_errors(self):
        if SIZE == 1:
            return
        for collective in (hvd.allreduce, hvd.allgather, lambda t: hvd.broadcast(t, 0)):
            with self.assertRaises(tf.errors.FailedPreconditionError) as raised:
                collective(tf.ones([2, 2 + RANK]))
            self.assertIsInstance(raised.exception, hvd.HorovodInternalError)
            self.assertIsInstance(raised.exception, hvd.Error)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            hvd.alltoall(tf.ones([SIZE + 1]))
        with self.assertRaises(NotImplementedError):
            hvd.allreduce(tf.IndexedSlices(tf.ones([1, 2]), [0], [3, 2]), op=hvd.Max)

    def test_groups(self):
        one, two = hvd.grouped_allgather([tf.fill([1], RANK), tf.ones([2, 2])])
        self.assertEqual(one.numpy().tolist(), list(range(SIZE)))
        self.assertEqual(two.shape, [2 * SIZE, 2])
        one, two = hvd.grouped_reducescatter([tf.ones([SIZE])] * 2, op=hvd.Sum)
        self.assertEqual(one.numpy().tolist(), [SIZE])
        dense, sparse = hvd.grouped_allreduce(
            [tf.ones([2]), tf.IndexedSlices(tf.ones([1, 2]), [RANK], [SIZE, 2])], op=hvd.Sum
        )
        self.assertEqual(dense.numpy().tolist(), [SIZE, SIZE])
        self.assertEqual(sparse.indices.numpy().tolist(), list(range(SIZE)))

    def test_gradients_of_moves(self):
        x = tf.Variable(tf.ones([SIZE, 2]))
        splits = tf.ones([SIZE], dtype=tf.int32)
        for move, expected in (
            (lambda: hvd.alltoall(x), 1),
            (lambda: hvd.alltoall(x, splits)[0], 1),
            (lambda: hvd.reducescatter(x, op=hvd.Sum), SIZE),
            (lambda: hvd.reducescatter(x), 1),
        ):
            for run in (move, tf.function(move)):
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(run())
                self.assertTrue(np.allclose(tape.gradient(y, x), expected))

    def test_places_as_tensors(self):
        def ask():
            return [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op()]

        for run in (ask, tf.function(ask)):
            self.assertEqual([int(v) for v in run()], [RANK, SIZE, RANK, SIZE])
        self.assertEqual(int(hvd.process_set_included_op(0)), 1)
        self.assertEqual([hvd.check_num_rank_power_of_2(n) for n in (0, 1, 3, 8)], [0, 1, 0, 1])
        self.assertEqual(hvd.handle_average_backwards_compatibility(None, False), hvd.Sum)
        with self.assertRaises(ValueError):
            hvd.handle_average_backwards_compatibility(hvd.Sum, False)

    def test_variables(self):
        variables = [tf.Variable([float(RANK)]), tf.Variable(RANK)]
        hvd.broadcast_variables(variables, root_rank=SIZE - 1)
        self.assertEqual([int(v.numpy().item()) for v in variables], [SIZE - 1] * 2)
        values = hvd.broadcast_([tf.Variable(RANK)], root_rank=0)
        self.assertEqual(int(values[0]), 0)
        with self.assertRaises(RuntimeError):
            hvd.broadcast_global_variables(0)
        self.assertEqual(hvd.broadcast_object_fn(root_rank=0)(RANK), 0)

    def test_local_sources_of_a_tape(self):
        shared, own = tf.Variable(1.0), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = (shared + own) * (RANK + 1.0)
        tape = hvd.DistributedGradientTape(tape, scale_local_gradients=False)
        self.assertIsInstance(tape, tf.GradientTape)
        tape.register_local_source(own)
        gradients = tape.gradient(y, [shared, own])
        self.assertTrue(np.allclose(gradients, [(SIZE + 1) / 2, RANK + 1]))
        layer = tf.keras.layers.Dense(1, use_bias=False)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(layer(tf.ones([1, 1]) * (RANK + 1.0)))
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=layer)
        gradient = tape.gradient(y, layer.trainable_weights)[0]
        self.assertTrue(np.allclose(gradient, (RANK + 1.0) / SIZE))

    def test_graphs_of_tensorflow_1(self):
        v1 = tf.compat.v1
        with tf.Graph().as_default():
            variable = v1.get_variable("x", initializer=float(RANK + 1), use_resource=True)
            optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0))
            step = optimizer.minimize(variable * (RANK + 1.0))
            hook = hvd.BroadcastGlobalVariablesHook(0)
            hook.begin()
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                hook.after_create_session(session, None)
                self.assertEqual(session.run(variable), 1.0)
                session.run(step)
                self.assertAlmostEqual(session.run(variable), 1.0 - (SIZE + 1) / 2)

    def test_batch_normalisation(self):
        inputs = tf.reshape(tf.range(4.0 * SIZE), [2 * SIZE, 2])
        mine = inputs[2 * RANK : 2 * RANK + 2]
        expected = tf.keras.layers.BatchNormalization()(inputs, training=True)
        found = hvd.SyncBatchNormalization()(mine, training=True)
        self.assertTrue(np.allclose(found, expected[2 * RANK : 2 * RANK + 2], atol=1e-5))
        with self.assertRaises(ValueError):
            hvd.SyncBatchNormalization(fused=True)

    def test_elastic_state(self):
        variable = tf.Variable(float(RANK))
        state = hvd.elastic.TensorFlowState([variable], batch=RANK)
        state.sync()
        self.assertEqual((float(variable), state.batch), (0.0, 0))
        variable.assign(3.0)
        state.batch = 4
        state.restore()
        self.assertEqual((float(variable), state.batch), (0.0, 0))
        with self.assertRaises(ValueError):
            hvd.elastic.TensorFlowKerasState(tf.keras.Sequential([tf.keras.layers.Dense(1)]))


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
