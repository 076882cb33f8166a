"""kolo.keras on the back end that KERAS_BACKEND names: torch, tensorflow or jax."""

import os
import tempfile

import keras
import numpy as np
from ranks import RankTest, main

import kolo.keras as hvd
from kolo import tune
from kolo.tune.integration.keras import TuneReportCallback, TuneReportCheckpointCallback

BEST = {"metric": "loss", "mode": "min"}

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def compiled(optimizer):
    """A model with one weight, which is 0.5 everywhere."""
    model = keras.Sequential(
        [keras.Input([1]), keras.layers.Dense(1, use_bias=False, kernel_initializer=half)]
    )
    model.compile(optimizer=optimizer, loss="mse")
    return model


def half(shape, dtype=None):
    return keras.ops.full(shape, 0.5, dtype=dtype)


def weight(model):
    return float(keras.ops.convert_to_numpy(model.weights[0]).item())


# The loss of rank r is (r + 1 - w)^2, so its gradient at w is 2 (w - r - 1).
X, Y = np.ones([1, 1], "float32"), np.full([1, 1], RANK + 1.0, "float32")
MEAN = (SIZE + 1) / 2


class Optimizer(RankTest):
    def test_gradients_are_averaged(self):
        model = compiled(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)))
        model.fit(X, Y, verbose=0)
        self.assertAlmostEqual(weight(model), 0.5 - 0.1 * 2 * (0.5 - MEAN), places=5)

    def test_passes_are_summed_or_averaged(self):
        for averages, factor in ((False, 2), (True, 1)):
            optimizer = hvd.DistributedOptimizer(
                keras.optimizers.SGD(0.1),
                backward_passes_per_step=2,
                average_aggregated_gradients=averages,
            )
            model = compiled(optimizer)
            model.fit(X, Y, epochs=1, verbose=0)
            self.assertAlmostEqual(weight(model), 0.5)
            model.fit(X, Y, epochs=1, verbose=0)
            expected = 0.5 - factor * 0.1 * 2 * (0.5 - MEAN)
            self.assertAlmostEqual(weight(model), expected, places=5)

    def test_passes_are_counted(self):
        optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.1), backward_passes_per_step=2)
        model = compiled(optimizer)
        for number in range(1, 4):
            model.fit(X, Y, verbose=0)
            self.assertEqual(int(optimizer.iterations), number)
            self.assertEqual(int(optimizer._agg_helper.counter), number % 2)
        self.assertEqual(optimizer._agg_helper.backward_passes_per_step, 2)
        # The first step of Adam is as long as the rate. With a count of passes it would be shorter.
        self.assertAlmostEqual(weight(model), 0.6, places=4)
        self.assertIsNone(hvd.DistributedOptimizer(keras.optimizers.SGD())._agg_helper)

    def test_local_layers_keep_their_gradients(self):
        model = compiled(keras.optimizers.SGD(0.1))
        optimizer = hvd.PartialDistributedOptimizer(
            keras.optimizers.SGD(0.1), local_layers=model.layers[-1], scale_local_gradients=False
        )
        model.compile(optimizer=optimizer, loss="mse")
        model.fit(X, Y, verbose=0)
        self.assertAlmostEqual(weight(model), 0.5 - 0.1 * 2 * (0.5 - RANK - 1), places=5)

    def test_bad_options(self):
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(keras.optimizers.SGD(), op=hvd.Adasum)
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(
                keras.optimizers.SGD(), op=hvd.Sum, gradient_predivide_factor=2.0
            )

    def test_a_loaded_model_goes_on(self):
        model = compiled(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)))
        model.fit(X, Y, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = hvd.load_model(path, custom_objects={"half": half})
            plain = keras.models.load_model(path, custom_objects={"half": half})
        # A back end may have a class of its own for it, as that of torch has.
        self.assertIs(type(plain.optimizer), type(keras.optimizers.SGD()))
        self.assertEqual(type(loaded.optimizer).__name__, "SGD")
        self.assertEqual(type(loaded.optimizer).__module__, "kolo.keras")
        self.assertTrue(callable(loaded.optimizer.variables))
        for one in (model, loaded):
            one.fit(X, Y, verbose=0)
        self.assertAlmostEqual(weight(loaded), weight(model), places=5)

    def test_optimizers_of_ones_own_are_loaded(self):
        @keras.saving.register_keras_serializable("tests")
        class Registered(keras.optimizers.SGD):
            pass

        class Own(keras.optimizers.SGD):
            pass

        def make(**settings):
            return hvd.DistributedOptimizer(Own(**settings))

        for cls, options in (
            (Registered, {}),
            (Own, {"custom_optimizers": [Own]}),
            (Own, {"custom_objects": {"Own": make}}),
        ):
            model = compiled(hvd.DistributedOptimizer(cls(0.1)))
            model.fit(X, Y, verbose=0)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.keras")
                model.save(path)
                known = {"half": half, **options.pop("custom_objects", {})}
                loaded = hvd.load_model(path, custom_objects=known, **options)
            self.assertEqual(type(loaded.optimizer).__name__, cls.__name__)
            # Wrapped once, not twice.
            self.assertIs(type(loaded.optimizer)._kolo_class, cls)
            loaded.fit(X, Y, verbose=0)
            model.fit(X, Y, verbose=0)
            self.assertAlmostEqual(weight(loaded), weight(model), places=5)


class StoreRates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        rate = self.model.optimizer.learning_rate
        self.rates.append(float(keras.ops.convert_to_numpy(rate)))


class Values(RankTest):
    def test_collectives(self):
        self.assertEqual(float(hvd.allreduce(float(RANK), average=False)), SIZE * (SIZE - 1) / 2)
        self.assertEqual(float(hvd.allreduce(1.0, op=hvd.Sum, prescale_factor=2.0)), 2 * SIZE)
        self.assertEqual(hvd.allgather(np.array([RANK])).tolist(), list(range(SIZE)))
        self.assertEqual(float(hvd.broadcast(float(RANK), SIZE - 1)), SIZE - 1)
        self.assertEqual(hvd.reducescatter(np.ones(SIZE), op=hvd.Sum).tolist(), [SIZE])
        tensor = keras.ops.convert_to_tensor([float(RANK)] * SIZE)
        for result in (
            hvd.allreduce(tensor),
            hvd.allgather(tensor),
            hvd.broadcast(tensor, 0),
            hvd.reducescatter(tensor),
        ):
            self.assertTrue(keras.ops.is_tensor(result))
            self.assertEqual(result.dtype, tensor.dtype)
        with self.assertRaises(ValueError):
            hvd.allreduce(1.0, average=True, op=hvd.Sum)
        with self.assertRaisesRegex(ValueError, "masked arrays"):
            hvd.allreduce(np.ma.masked_array([1.0, 2.0], mask=[0, 1]))

    def test_rates_decay_by_steps_or_smoothly(self):
        for staircase, expected in ((True, [1.0, 1.0]), (False, [1.0, 0.5**0.5])):
            model = compiled(keras.optimizers.SGD(1.0))
            callback = hvd.callbacks.LearningRateScheduleCallback(1.0, 0.5, staircase=staircase)
            store = StoreRates()
            model.fit(
                np.zeros([2, 1]),
                np.zeros([2, 1]),
                batch_size=1,
                verbose=0,
                callbacks=[callback, store],
            )
            self.assertTrue(np.allclose(store.rates, expected), store.rates)
        with self.assertRaises(ValueError):
            hvd.callbacks.LearningRateScheduleCallback(None, 0.5)

    def test_callbacks_and_states(self):
        model = compiled(hvd.DistributedOptimizer(keras.optimizers.SGD(0.0)))
        model.weights[0].assign([[float(RANK)]])
        state = hvd.elastic.KerasState(model, epoch=0, batch=RANK)
        model.fit(
            X,
            Y,
            verbose=0,
            callbacks=[
                hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.UpdateBatchStateCallback(state),
                hvd.elastic.CommitStateCallback(state),
            ],
        )
        self.assertEqual((weight(model), state.epoch, state.batch), (0.0, 1, 0))
        model.weights[0].assign([[7.0]])
        state.epoch = 9
        state.restore()
        self.assertEqual((weight(model), state.epoch), (0.0, 1))


class Trials(RankTest):
    """Callbacks for trials; each rank has a study of its own here."""

    def run_study(self, callback):
        def train(config):
            model = compiled(keras.optimizers.SGD(config["lr"]))
            model.fit(X, Y, epochs=3, verbose=0, callbacks=[callback()])

        with tempfile.TemporaryDirectory() as folder:
            analysis = tune.run(
                train, config={"lr": 0.1}, local_dir=folder, verbose=0, loggers=[], **BEST
            )
            (trial,) = analysis.trials
            files = os.listdir(trial.checkpoint) if trial.checkpoint else []
        return trial.results, files

    def test_reports(self):
        for metrics in (None, "loss", ["loss"], {"loss": "loss"}):
            results, files = self.run_study(lambda m=metrics: TuneReportCallback(m))
            self.assertEqual((len(results), files), (3, []))
            self.assertLess(results[-1]["loss"], results[0]["loss"] + 1e-9)
        results, _ = self.run_study(lambda: TuneReportCallback({"loss": "loss"}, on=["train_end"]))
        self.assertEqual(len(results), 1)

    def test_checkpoints(self):
        results, files = self.run_study(lambda: TuneReportCheckpointCallback("loss", frequency=2))
        self.assertEqual((len(results), files), (3, ["checkpoint.keras"]))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "did you mean 'epoch_end'"):
            TuneReportCallback(on="epoch_ends")
        with self.assertRaisesRegex(TypeError, "did you mean 'metrics'"):
            TuneReportCallback(metric="loss")
        with self.assertRaises(ValueError):
            TuneReportCheckpointCallback(frequency=0)
        with self.assertRaisesRegex(tune.TuneError, "no 'los'; did you mean 'loss'"):
            self.run_study(lambda: TuneReportCallback("los"))


if __name__ == "__main__":
    main()
