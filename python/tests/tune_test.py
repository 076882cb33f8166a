"""kolo.tune: spaces, trials of all kinds, schedulers, analysis."""

import math
import os
import signal
import threading
import time
import unittest

from study_case import StudyCase

import kolo
from kolo import tune
from kolo.tune.integration.horovod import DistributedTrainableCreator, distributed_checkpoint_dir
from kolo.tune.schedulers import ASHAScheduler, PopulationBasedTraining
from kolo.tune.stopper import MaximumIterationStopper
from kolo.tune.suggest import ConcurrencyLimiter
from kolo.tune.suggest.bayesopt import BayesOptSearch


def quadratic(config):
    tune.report(loss=(config["x"] - 1) ** 2)


def epochs(config):
    for epoch in range(8):
        tune.report(score=config["x"] * (epoch + 1), epoch=epoch)


class Net(tune.Trainable):
    def setup(self, config):
        self.rate = config["rate"]
        self.total = 0.0

    def step(self):
        self.total += self.rate
        return {"total": self.total, "done": self.total >= 3}

    def save_checkpoint(self, checkpoint_dir):
        return {"total": self.total}

    def load_checkpoint(self, checkpoint):
        self.total = checkpoint["total"]


class Constant:
    value = 7


class TuneTest(StudyCase):
    # --- spaces ---

    def test_domains_as_objects(self):
        domain = tune.uniform(1.0, 3.0)
        self.assertIsInstance(domain, tune.Float)
        self.assertEqual((domain.lower, domain.upper, domain.domain_str), (1.0, 3.0, "(1.0, 3.0)"))
        self.assertTrue(domain.is_valid(2.0) and not domain.is_valid(4.0))
        drawn = tune.Float(0, 10).uniform().quantized(2.5).sample(size=50)
        self.assertTrue(set(drawn) <= {0.0, 2.5, 5.0, 7.5, 10.0})
        self.assertEqual(domain.sample(random_state=3), domain.sample(random_state=3))
        whole = tune.Integer(1, 1000).loguniform()
        self.assertTrue(all(whole.is_valid(value) for value in whole.sample(size=20)))
        self.assertFalse(whole.is_valid(1.5))
        pets = tune.choice(["cat", "dog"])
        self.assertEqual((len(pets), pets[1], pets.categories), (2, "dog", ["cat", "dog"]))
        self.assertEqual(pets.grid(), {"grid_search": ["cat", "dog"]})
        self.assertIsInstance(tune.sample_from(lambda: 1), tune.Function)
        for wrong in (
            lambda: tune.Float(0).uniform(),
            lambda: tune.loguniform(0, 1),
            lambda: tune.Float(0, 1).normal().uniform(),
        ):
            with self.assertRaises(ValueError):
                wrong()

    def test_searches_take_spaces_and_seeds(self):
        space = {"x": tune.uniform(0, 2)}
        for make in (
            lambda: tune.suggest.HyperOptSearch(space, "loss", "min", random_state_seed=3),
            lambda: tune.suggest.OptunaSearch(space, "loss", "min", seed=3),
            lambda: tune.suggest.BayesOptSearch(space, "loss", "min", random_search_steps=2),
            lambda: tune.suggest.TuneBOHB(space, metric="loss", mode="min", seed=3),
        ):
            studies = [
                self.run_study(quadratic, search_alg=make(), num_samples=3, max_concurrent_trials=1)
                for _ in "ab"
            ]
            configs = [[trial.config for trial in study.trials] for study in studies]
            self.assertEqual(configs[0], configs[1])
        with self.assertRaises(ValueError):
            tune.suggest.OptunaSearch(mode="best")
        with self.assertRaises(ValueError):
            tune.suggest.OptunaSearch([1, 2])

    def test_registered_names(self):
        tune.register_trainable("by name", quadratic)
        self.assertEqual(len(self.run_study("by name", config={"x": 1}).trials), 1)
        with self.assertRaises(TypeError):
            tune.register_trainable("nothing", 3)
        with self.assertRaises(kolo.Error):
            self.run_study("nobody")

    def test_a_name_that_is_taken_is_numbered(self):
        self.run_study(quadratic, name="twice", config={"x": 1})
        for number in (2, 3):
            with self.assertWarnsRegex(UserWarning, "resume=True"):
                analysis = self.run_study(quadratic, name="twice", config={"x": 1})
            self.assertEqual((analysis.name, len(analysis.trials)), (f"twice_{number}", 1))

    def test_trials_without_numbers_and_their_checkpoints(self):
        analysis = self.run_study(
            Net,
            config={"rate": tune.grid_search([1.0, 1.5])},
            metric="total",
            mode="max",
            checkpoint_freq=1,
        )
        with self.assertWarns(UserWarning):
            self.assertIsNone(analysis.get_best_config("nothing", "max"))
        trial = analysis.best_trial
        self.assertEqual(trial.status, tune.Trial.TERMINATED)
        self.assertEqual(trial.metric_analysis["total"]["last"], 3.0)
        self.assertEqual(trial.metric_analysis["total"]["min"], trial.config["rate"])
        best = analysis.get_best_checkpoint(trial)
        self.assertEqual(analysis.get_best_checkpoint(trial.logdir), best)
        self.assertEqual(trial.checkpoint, trial.checkpoints[-1][0])
        with self.assertRaises(ValueError):
            analysis.get_best_checkpoint("/nowhere")

    def test_a_class_without_a_study(self):
        net = Net(config={"rate": 1.0})
        result = net.train()
        self.assertEqual((result["total"], result["training_iteration"]), (1.0, 1))
        self.assertFalse(result["done"])
        folder = net.save(os.path.join(self._folder.name, "checkpoint"))
        other = Net(config={"rate": 1.0})
        other.restore(folder)
        self.assertEqual(other.train()[tune.result.TRAINING_ITERATION], 2)
        self.assertEqual(
            (other.total, other.trial_id, other.get_config()["rate"]), (2.0, "default", 1.0)
        )
        other.stop()

    def test_grid_times_samples(self):
        analysis = self.run_study(
            quadratic,
            config={"x": tune.grid_search([1, 2, 3]), "y": tune.uniform(0, 1)},
            num_samples=2,
        )
        self.assertEqual(sorted(t.config["x"] for t in analysis.trials), [1, 1, 2, 2, 3, 3])
        self.assertEqual(len({t.config["y"] for t in analysis.trials}), 6)

    def test_the_seed_of_horovod_and_tune(self):
        analysis = self.run_study(
            lambda config: tune.report(test=1),
            num_samples=2,
            config={
                "epochs": tune.grid_search([1, 2, 3]),
                "lr": tune.grid_search([0.1, 0.2, 0.3]),
            },
        )
        self.assertEqual(len(analysis.trials), 18)
        with self.assertRaises(ValueError) as caught:
            analysis.best_config
        self.assertIn("test", str(caught.exception))

    def test_functions_of_other_values(self):
        analysis = self.run_study(
            lambda config: tune.report(loss=config["c"]),
            config={
                "a": tune.randint(1, 5),
                "b": tune.sample_from(lambda spec: spec.config.a * 10),
                "c": tune.sample_from(lambda spec: spec.config["b"] + 1),
                "d": tune.sample_from(lambda _: 5),
                "n": {
                    "inner": tune.choice(["u", "v"]),
                    "beside": tune.sample_from(lambda spec: spec.config.n.inner + spec["n"]["up"]),
                    "up": tune.sample_from(lambda spec: str(spec.config.a)),
                },
                "e": {"eval": "2 + 2"},
            },
            num_samples=3,
        )
        for trial in analysis.trials:
            config = trial.config
            self.assertEqual(config["c"], config["a"] * 10 + 1)
            self.assertEqual((config["d"], config["e"]), (5, 4))
            self.assertIn(config["n"]["inner"], "uv")
            self.assertEqual(config["n"]["beside"], config["n"]["inner"] + str(config["a"]))

    def test_constants_of_any_type(self):
        seen = []
        self.run_study(
            lambda config: (seen.append(config["what"]), tune.report(x=1))[1],
            config={"what": Constant, "one": tune.choice([Constant, 3])},
        )
        self.assertEqual(seen, [Constant])

    def test_steps_are_counted(self):
        def train(config):
            for _ in range(9):
                tune.report(timesteps_this_iter=10, loss=1)

        analysis = self.run_study(train, stop={"timesteps_total": 40}, num_samples=3)
        for trial in analysis.trials:
            self.assertEqual(trial.last_result["timesteps_total"], 40)

    def test_a_metric_without_a_mode_decides_nothing(self):
        with self.assertWarnsRegex(UserWarning, "the metric 'loss' has no mode"):
            analysis = self.run_study(lambda config: tune.report(loss=1), metric="loss")
        with self.assertRaisesRegex(ValueError, "no metric and mode"):
            analysis.best_config

    def test_choices_among_domains(self):
        for search in (None, "bayesopt", "hyperopt"):
            analysis = self.run_study(
                lambda config: tune.report(loss=config["copy"] if config["one"] else 9),
                config={
                    "one": tune.choice([0, tune.uniform(1, 2)]),
                    "model": tune.choice([Constant, {"depth": tune.randint(1, 4), "kind": "deep"}]),
                    "copy": tune.sample_from(lambda spec: spec.config.one),
                },
                num_samples=30,
                search_alg=search,
                metric="loss",
                mode="min",
                seed=3,
            )
            ones = [trial.config["one"] for trial in analysis.trials]
            self.assertTrue(all(one == 0 or 1 <= one < 2 for one in ones))
            self.assertTrue(any(ones))
            self.assertEqual(ones, [trial.config["copy"] for trial in analysis.trials])
            models = [trial.config["model"] for trial in analysis.trials]
            self.assertIn(Constant, models)
            deep = [model for model in models if model is not Constant]
            self.assertTrue(deep)
            for model in deep:
                self.assertIn(model["depth"], (1, 2, 3))
                self.assertEqual(model["kind"], "deep")

    def test_rules_of_spaces(self):
        for wrong in (
            lambda: tune.loguniform(-1, 1),
            lambda: tune.quniform(0, 1, 0.3),
            lambda: tune.uniform(2, 1),
            lambda: tune.choice([]),
            lambda: tune.sample_from(3),
        ):
            with self.assertRaises(ValueError):
                wrong()
        self.assertTrue(0 <= tune.uniform(0, 1).sample() < 1)

    # --- trainables ---

    def test_numbers_of_other_libraries(self):
        import numpy

        numbers = [numpy.float32(0.5), numpy.array(0.5), numpy.int64(2), numpy.array(2)]
        try:
            import torch

            numbers += [torch.tensor(0.5), torch.tensor(2), torch.tensor([0.5])]
        except ImportError:
            pass  # then those of numpy have to do
        for number in numbers:
            analysis = self.run_study(lambda config, it=number: tune.report(loss=it))
            self.assertEqual(analysis.trials[0].last_result["loss"], float(number), repr(number))

    def test_what_functions_may_return(self):
        def returns(config):
            return {"loss": 3.0}

        def yields(config):
            for value in range(3):
                yield {"loss": value}

        def number(config):
            return 4.0

        self.assertEqual(self.run_study(returns).trials[0].last_result["loss"], 3.0)
        self.assertEqual(self.run_study(yields).trials[0].metric("loss"), [0, 1, 2])
        self.assertEqual(self.run_study(number).trials[0].last_result["_metric"], 4.0)

    def test_classes(self):
        analysis = self.run_study(
            Net,
            config={"rate": tune.grid_search([1, 3])},
            metric="total",
            mode="max",
            checkpoint_at_end=True,
        )
        self.assertEqual([len(t.results) for t in analysis.trials], [3, 1])
        self.assertTrue(os.path.isdir(analysis.best_checkpoint))

    def test_processes(self):
        def train(config):
            with tune.checkpoint_dir(step=1) as folder:
                with open(os.path.join(folder, "file"), "w") as file:
                    file.write(str(os.getpid()))
            tune.report(pid=os.getpid(), x=config["x"], what=config["what"].value)

        analysis = self.run_study(
            train,
            config={"x": tune.grid_search([1, 2]), "what": Constant},
            executor="process",
            metric="x",
            mode="max",
        )
        pids = {t.last_result["pid"] for t in analysis.trials}
        self.assertEqual(len(pids - {os.getpid()}), 2)
        self.assertEqual(analysis.trials[0].last_result["what"], 7)
        with open(os.path.join(analysis.best_checkpoint, "file")) as file:
            self.assertIn(int(file.read()), pids)

    def test_rings_of_ranks(self):
        def train(config):
            kolo.init()
            import array

            numbers = array.array("d", [float(kolo.rank() + 1)])
            kolo.allreduce(numbers, op=kolo.Sum)
            tune.report(total=numbers[0] * config["x"], size=kolo.size())

        trainable = tune.DistributedTrainableCreator(train, num_slots=2, use_gpu=False)
        analysis = self.run_study(
            trainable, config={"x": tune.grid_search([1, 2])}, metric="total", mode="max"
        )
        self.assertEqual(analysis.best_config, {"x": 2})
        self.assertEqual(analysis.best_result["total"], 6)
        self.assertEqual(analysis.best_result["size"], 2)

    def test_checkpoints_of_rings(self):
        def train(config):
            kolo.init()
            for step in range(2):
                for disable in (False, True):
                    with distributed_checkpoint_dir(step=step, disable=disable) as folder:
                        with open(os.path.join(folder, "file"), "w") as file:
                            file.write(f"{kolo.rank()} {step} {disable}")
                tune.report(step=step, timesteps_this_iter=5)

        analysis = self.run_study(DistributedTrainableCreator(train, num_slots=2))
        (trial,) = analysis.trials
        self.assertEqual(trial.last_result["timesteps_total"], 10)
        with open(os.path.join(trial.checkpoint, "file")) as file:
            self.assertEqual(file.read(), "0 1 False")

    def test_places_of_tune(self):
        from kolo.air.checkpoint import Checkpoint
        from kolo.tune.suggest.basic_variant import BasicVariantGenerator
        from kolo.tune.suggest.repeater import Repeater
        from kolo.tune.suggest.suggestion import Searcher
        from kolo.tune.suggest.variant_generator import generate_variants

        self.assertIs(Checkpoint, tune.Checkpoint)
        for one in (BasicVariantGenerator, Repeater, Searcher):
            self.assertIs(one, getattr(tune.suggest, one.__name__))
        self.assertEqual(len(list(generate_variants({"x": tune.grid_search([1, 2])}))), 2)

    # --- failures ---

    def test_a_failure_names_trial_and_error(self):
        def fail(config):
            if config["x"] == 2:
                raise KeyError("missing")
            tune.report(loss=1)

        with self.assertRaises(tune.TuneError) as caught:
            self.run_study(fail, config={"x": tune.grid_search([1, 2])})
        self.assertIn("KeyError", str(caught.exception))
        self.assertIn("1 of 2 trials failed", str(caught.exception))
        analysis = self.run_study(
            fail, config={"x": tune.grid_search([1, 2])}, raise_on_failed_trial=False
        )
        stats = analysis.stats()
        self.assertEqual((stats["TERMINATED"], stats["ERROR"]), (1, 1))
        self.assertLessEqual(stats["start_time"], stats["timestamp"])

    def test_a_process_that_is_killed(self):
        def die(config):
            os.kill(os.getpid(), signal.SIGKILL)

        with self.assertRaises(tune.TuneError):
            self.run_study(die, executor="process")

    def test_bad_calls(self):
        for wrong in (
            lambda: tune.run(3),
            lambda: tune.run(quadratic, config=3),
            lambda: tune.run(quadratic, mode="least"),
            lambda: tune.run(quadratic, scheduler="nonsense"),
            lambda: tune.run(quadratic, search_alg="nonsense"),
            lambda: tune.run(quadratic, nonsense=1),
            lambda: tune.run(quadratic, executor="ranks"),
            lambda: tune.run(quadratic, stop=3),
            lambda: tune.run(quadratic, resources_per_trial={"ranks": 4}),
            lambda: tune.report(loss=1),
            lambda: tune.DistributedTrainableCreator(quadratic, num_slots=0),
        ):
            with self.assertRaises(ValueError):
                wrong()
        with self.assertRaises(tune.TuneError):
            self.run_study(lambda config: tune.report(what=object()))

    def test_ctrl_c_stops_the_study_which_can_go_on(self):
        def slow(config):
            for step in range(3 if config["x"] < 2 else 1000):
                if tune.should_stop():
                    return
                time.sleep(0.02)
                tune.report(step=step)

        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        options = dict(config={"x": tune.grid_search([1, 2])}, name="stopped")
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.run_study(slow, **options)
        self.assertLess(time.monotonic() - begin, 15)
        analysis = self.run_study(lambda config: tune.report(step=1), resume=True, **options)
        self.assertEqual(analysis.stats()["TERMINATED"], 2)

    # --- searches, schedulers, stoppers ---

    def test_searches(self):
        algorithm = ConcurrencyLimiter(BayesOptSearch(), max_concurrent=2)
        analysis = self.run_study(
            quadratic,
            config={"x": tune.uniform(-3, 3)},
            metric="loss",
            mode="min",
            search_alg=algorithm,
            num_samples=25,
        )
        self.assertLess(analysis.best_result["loss"], 0.1)

    def test_asha_stops_trials(self):
        analysis = self.run_study(
            epochs,
            config={"x": tune.uniform(0, 1)},
            num_samples=12,
            metric="score",
            mode="max",
            scheduler=ASHAScheduler(max_t=8, grace_period=1, reduction_factor=2),
        )
        lengths = [len(trial.results) for trial in analysis.trials]
        self.assertLess(min(lengths), 8)
        self.assertEqual(max(lengths), 8)

    def test_population_based_training(self):
        def train(config, checkpoint_dir=None):
            step = 0
            if checkpoint_dir:
                with open(os.path.join(checkpoint_dir, "step")) as file:
                    step = int(file.read())
            while step < 12:
                step += 1
                with tune.checkpoint_dir(step=step) as folder:
                    with open(os.path.join(folder, "step"), "w") as file:
                        file.write(str(step))
                tune.report(score=config["lr"] * step)

        scheduler = PopulationBasedTraining(
            time_attr="training_iteration",
            perturbation_interval=3,
            hyperparam_mutations={"lr": tune.uniform(0, 1)},
        )
        analysis = self.run_study(
            train,
            config={"lr": tune.uniform(0, 1)},
            num_samples=4,
            metric="score",
            mode="max",
            scheduler=scheduler,
        )
        self.assertEqual(len(analysis.trials), 4)

    def test_stoppers(self):
        for stop in (
            {"training_iteration": 3},
            lambda trial_id, result: result["epoch"] >= 2,
            MaximumIterationStopper(3),
        ):
            analysis = self.run_study(epochs, config={"x": 1.0}, stop=stop)
            self.assertEqual(len(analysis.trials[0].results), 3)

    # --- results ---

    def test_analysis(self):
        analysis = self.run_study(
            epochs, config={"x": tune.grid_search([1.0, 3.0, 2.0])}, metric="score", mode="max"
        )
        self.assertEqual(analysis.best_config, {"x": 3.0})
        self.assertEqual(analysis.get_best_config("score", "min"), {"x": 1.0})
        self.assertEqual(analysis.get_best_trial("score", "max", "avg").config, {"x": 3.0})
        self.assertEqual(len(analysis.results), 3)
        try:
            import pandas  # noqa: F401
        except ImportError:
            return
        self.assertEqual(len(analysis.dataframe()), 3)
        self.assertIn("config/x", analysis.dataframe().columns)
        best = analysis.best_trial
        last = best.last_result["score"]
        self.assertTrue(all(analysis.best_dataframe["trial_id"] == best.trial_id))
        self.assertEqual(analysis.results_df.loc[best.trial_id, "score"], last)
        self.assertEqual(analysis.best_result_df.loc[best.trial_id, "score"], last)
        lowest = [min(trial.metric("score")) for trial in analysis.trials]
        self.assertEqual(analysis.dataframe("score", "min")["score"].tolist(), lowest)
        frames = analysis.trial_dataframes
        self.assertEqual(len(frames[best.logdir]), len(best.results))
        self.assertEqual(set(frames), {trial.logdir for trial in analysis.trials})

    def test_what_is_not_finite_is_never_best(self):
        rows = [[math.nan, 2.0], [math.nan, -math.inf, 1.0], [math.nan], [0.5, math.inf]]

        def report(config):
            for step, value in enumerate(rows[config["row"]]):
                with tune.checkpoint_dir(step):
                    pass
                tune.report(loss=value)

        analysis = self.run_study(
            report,
            config={"row": tune.grid_search(list(range(len(rows))))},
            metric="loss",
            mode="min",
        )
        trials = sorted(analysis.trials, key=lambda trial: trial.config["row"])
        self.assertEqual(analysis.best_config, {"row": 1})
        self.assertEqual(analysis.get_best_config(scope="all"), {"row": 3})
        self.assertEqual(analysis.get_best_config("loss", "max", "all"), {"row": 0})
        self.assertEqual(trials[1].metric_analysis["loss"]["min"], 1.0)
        best = [analysis.get_best_checkpoint(trials[row], "loss", "min") for row in (0, 1, 3)]
        expected = [trials[row].checkpoints[-1][0] for row in (0, 1)] + [trials[3].checkpoints[0][0]]
        self.assertEqual(best, expected)
        reporter = tune.CLIReporter(metric="loss", mode="min", sort_by_metric=True)
        self.assertIn("loss=1.0", "".join(reporter._best(trials)))
        try:
            import pandas  # noqa: F401
        except ImportError:
            return
        frame = analysis.dataframe("loss", "min").set_index("config/row")["loss"]
        self.assertEqual([frame[0], frame[1], frame[3]], [2.0, 1.0, 0.5])

    def test_misspelt_names_are_corrected(self):
        for options, meant in (
            ({"search_alg": "bayesop"}, "'bayesopt'"),
            ({"scheduler": "ashaa"}, "'asha'"),
            ({"num_sample": 3}, "'num_samples'"),
        ):
            with self.assertRaises(ValueError) as caught:
                self.run_study(quadratic, config={"x": 1.0}, metric="loss", mode="min", **options)
            self.assertIn(f"did you mean {meant}?", str(caught.exception))

    def test_callbacks(self):
        class Count(tune.Callback):
            results = 0

            def on_trial_result(self, iteration, trials, trial, result, **info):
                self.results += 1

        count = Count()
        self.run_study(epochs, config={"x": 1.0}, callbacks=[count])
        self.assertEqual(count.results, 8)

    def test_ten_thousand_trials(self):
        begin = time.monotonic()
        analysis = self.run_study(
            quadratic,
            config={"x": tune.uniform(0, 1)},
            num_samples=10000,
            metric="loss",
            mode="min",
        )
        self.assertEqual(len(analysis.trials), 10000)
        print(f"10000 trials in {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    unittest.main(verbosity=0)
