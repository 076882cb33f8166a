"""kolo.tune without a study: variants one by one, functions as classes, stoppers."""

import contextlib
import datetime
import io
import math
import os
import pickle
import threading
import unittest

from study_case import StudyCase

from kolo import tune
from kolo.tune.stopper import (
    CombinedStopper,
    ExperimentPlateauStopper,
    TimeoutStopper,
    TrialPlateauStopper,
)
from kolo.tune.suggest import BasicVariantGenerator
from kolo.tune.variant_generator import RecursiveDependencyError, generate_variants


def trials_of(spec, **options):
    generator = BasicVariantGenerator(**options)
    generator.add_configurations({"variants": spec})
    trials = []
    while not generator.is_finished():
        trials.append(generator.next_trial())
    return trials


def counting(config, checkpoint_dir=None):
    count = 0
    if checkpoint_dir:
        with open(os.path.join(checkpoint_dir, "count")) as file:
            count = int(file.read())
    while count < config.get("end", 100):
        count += 1
        with tune.checkpoint_dir(step=count) as folder:
            with open(os.path.join(folder, "count"), "w") as file:
                file.write(str(count))
        tune.report(count=count)


class Variants(unittest.TestCase):
    def test_grids_and_functions_of_other_values(self):
        config = {
            "b": tune.grid_search([True, False]),
            "c": {"d": {"grid_search": [1, 2]}},
            "e": tune.sample_from(lambda spec: spec.config.f + spec.config.c.d),
            "f": {"eval": "2 + 3"},
        }
        trials = trials_of({"run": "train", "config": config, "num_samples": 2})
        self.assertEqual(len(trials), 8)
        first, second = trials[0], trials[1]
        self.assertEqual(first.config, {"b": True, "c": {"d": 1}, "e": 6, "f": 5})
        self.assertEqual(first.evaluated_params, {"b": True, "c/d": 1, "e": 6, "f": 5})
        self.assertEqual(first.experiment_tag, "0_b=True,d=1,e=6,f=5")
        self.assertEqual((second.config["b"], second.config["c"]["d"]), (False, 1))
        self.assertEqual(trials[7].experiment_tag[:2], "7_")
        self.assertEqual(config["c"], {"d": {"grid_search": [1, 2]}})

    def test_points_within_dictionaries_and_grids(self):
        config = {
            "grid": tune.grid_search([1, 2, 3]),
            "deep": {"x": tune.uniform(0, 1), "y": 5},
        }
        search = tune.search.BasicVariantGenerator(
            points_to_evaluate=[{"grid": 2}, {"deep": {"x": 8.0}}]
        )
        search.add_configurations(
            tune.Experiment("points", lambda config: 1, config=config, num_samples=3)
        )
        self.assertEqual(search.total_samples, 1 + 3 + 3)
        trials = list(iter(search.next_trial, None))
        self.assertEqual(trials[0].config["grid"], 2)
        self.assertEqual([t.config["deep"] for t in trials[1:4]], [{"x": 8.0, "y": 5}] * 3)

    def test_generators_of_numpy(self):
        import numpy

        domain = tune.uniform(0, 1)
        for make in (numpy.random.RandomState, numpy.random.default_rng):
            drawn = [domain.sample(random_state=make(3)) for _ in "ab"]
            self.assertEqual(drawn[0], drawn[1])
            seeds = [tune.search.BasicVariantGenerator(random_state=make(3)).seed for _ in "ab"]
            self.assertEqual(seeds[0], seeds[1])

    def test_points_come_first(self):
        config = {"x": tune.uniform(0, 1), "y": tune.grid_search([1, 2])}
        spec = {"run": "train", "config": config, "num_samples": 2}
        trials = trials_of(spec, points_to_evaluate=[{"x": 0.5}], random_state=3)
        self.assertEqual([t.config["x"] for t in trials[:2]], [0.5, 0.5])
        self.assertEqual([t.config["y"] for t in trials], [1, 2, 1, 2])
        again = trials_of(spec, points_to_evaluate=[{"x": 0.5}], random_state=3)
        self.assertEqual([t.config for t in trials], [t.config for t in again])
        same = trials_of(spec, constant_grid_search=True)
        self.assertEqual(same[0].config["x"], same[1].config["x"])
        self.assertNotEqual(same[0].config["x"], same[2].config["x"])

    def test_choices_among_domains(self):
        config = {"a": tune.choice([{"b": tune.uniform(0, 1)}, tune.randint(5, 7)])}
        found = [
            spec["config"]["a"]
            for _ in range(20)
            for _, spec in generate_variants({"config": config})
        ]
        self.assertLessEqual({a for a in found if not isinstance(a, dict)}, {5, 6})
        self.assertTrue(all(0 <= a["b"] < 1 for a in found if isinstance(a, dict)))
        self.assertEqual(len({isinstance(a, dict) for a in found}), 2)

    def test_a_value_that_depends_on_itself(self):
        config = {"foo": tune.sample_from(lambda spec: spec.config.foo)}
        with self.assertRaises(RecursiveDependencyError) as raised:
            list(generate_variants({"config": config}))
        self.assertIn("`foo` recursively depends on", str(raised.exception))


class Functions(unittest.TestCase):
    def test_a_function_that_is_not_stopped_leaves_nothing(self):
        one = tune.wrap_function(counting)(config={"end": 7})
        folder = one._folder
        self.assertTrue(os.path.isdir(folder))
        del one
        self.assertFalse(os.path.exists(folder))

    def test_a_function_as_a_class(self):
        counter = tune.wrap_function(counting)
        checkpoint = packed = None
        for expected in (2, 4, 6):
            one = counter()
            if checkpoint:
                one.restore(checkpoint)
            one.train()
            result = one.train()
            self.assertEqual((result["count"], result["training_iteration"]), (expected, expected))
            checkpoint = one.save()
            packed = one.save_to_object()
            one.stop()
        other = counter(config={"end": 7})
        other.restore_from_object(packed)
        self.assertEqual(other.train()["count"], 7)
        self.assertTrue(other.train()["done"])
        other.stop()

    def test_a_function_without_checkpoints_begins_anew(self):
        def plain(config):
            for step in range(10):
                tune.report(step=step)

        one = tune.wrap_function(plain)()
        one.train()
        checkpoint = one.save()
        one.restore(checkpoint)
        self.assertEqual(one.train()["training_iteration"], 1)
        one.stop()

    def test_a_function_that_fails(self):
        def broken(config):
            raise KeyError("lr")

        with self.assertRaises(KeyError):
            tune.wrap_function(broken)(config={}).train()
        with self.assertRaises(ValueError):
            tune.wrap_function(3)


class Studies(StudyCase):
    def test_parameters_belong_to_one_trial(self):
        data = {"list": [1], "lock": threading.Lock()}

        def train(config, checkpoint_dir="none", data=None):
            data.append(2)
            tune.report(length=len(data), checkpoint=checkpoint_dir)

        prepared = tune.with_parameters(train, data=data["list"])
        analysis = self.run_study(prepared, num_samples=2)
        for trial in analysis.trials:
            self.assertEqual(trial.last_result["length"], 2)
            self.assertEqual(trial.last_result["checkpoint"], "none")
            self.assertTrue(str(trial).startswith("train_"))
        self.assertEqual(data["list"], [1])

        def locked(config, lock=None):
            tune.report(is_free=int(not lock.locked()))

        shared = self.run_study(tune.with_parameters(locked, lock=data["lock"]))
        self.assertEqual(shared.trials[0].last_result["is_free"], 1)
        with self.assertRaises(ValueError):
            tune.with_parameters("train", data=1)

    def test_functions_that_save_by_themselves(self):
        for options in ({"checkpoint_freq": 1}, {"checkpoint_at_end": True}):
            with self.assertRaises(ValueError):
                self.run_study(counting, **options)

    def test_a_stopper_ends_the_study(self):
        class AfterThree(tune.Stopper):
            def __init__(self):
                self.results = 0

            def __call__(self, trial_id, result):
                self.results += 1
                return False

            def stop_all(self):
                return self.results >= 3

        def one(config):
            tune.report(x=1.0)

        for stop in (AfterThree(), CombinedStopper(AfterThree()), [AfterThree()]):
            analysis = self.run_study(one, num_samples=50, stop=stop, max_concurrent_trials=1)
            self.assertLess(len(analysis.trials), 50)
        plateau = ExperimentPlateauStopper("x", top=4)
        analysis = self.run_study(one, num_samples=50, stop=plateau, max_concurrent_trials=1)
        self.assertLess(len(analysis.trials), 50)
        at_once = TimeoutStopper(datetime.timedelta(seconds=0))
        analysis = self.run_study(one, num_samples=50, stop=at_once, max_concurrent_trials=1)
        self.assertLess(len(analysis.trials), 50)

    def test_what_is_not_finite_has_not_settled(self):
        odd = (math.nan, math.inf, -math.inf)
        for value in odd:
            trial = TrialPlateauStopper("x", num_results=2, grace_period=2)
            answers = [trial("0", {"x": x}) for x in (value, 1.0, 1.0)]
            self.assertEqual(answers, [False, False, True])
            self.assertFalse(any(trial("1", {"x": value}) for _ in range(4)))
            for mode in ("min", "max"):
                study = ExperimentPlateauStopper("x", top=2, mode=mode)
                answers = [study("0", {"x": x}) for x in (value, value, 1.0, 1.0)]
                self.assertEqual(answers, [False, False, False, True])
        patient = ExperimentPlateauStopper("x", top=2, patience=3)
        answers = [patient("0", {"x": x}) for x in (1.0, 1.0, *odd)]
        self.assertEqual(answers, [False, False, False, True, True])

    def test_a_time_that_goes_on(self):
        stopper = TimeoutStopper(1000)
        self.assertFalse(stopper.stop_all())
        self.assertFalse(pickle.loads(pickle.dumps(stopper)).stop_all())
        self.assertTrue(TimeoutStopper(0).stop_all())
        for wrong in ("1", None, True):
            with self.assertRaises(ValueError):
                TimeoutStopper(wrong)


class Helpers(unittest.TestCase):
    def test_dictionaries(self):
        nested = {"a": {"b": 1, "c": {"d": 2}}, "e": [3, {"f": 4}]}
        flat = tune.utils.flatten_dict(nested)
        self.assertEqual(flat, {"a/b": 1, "a/c/d": 2, "e": [3, {"f": 4}]})
        self.assertEqual(tune.utils.unflatten_dict(flat), nested)
        opened = tune.utils.flatten_dict({"e": [3, {"f": 4}]}, ".", flatten_list=True)
        self.assertEqual(opened, {"e.0": 3, "e.1.f": 4})
        with self.assertRaises(ValueError):
            tune.utils.flatten_dict({"a/b": 1}, prevent_delimiter=True)

    def test_what_cannot_be_sent(self):
        lock = threading.Lock()

        def wrong(config):
            return lock

        def right(config):
            return threading.Lock()

        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(tune.utils.diagnose_serialization(wrong), {"lock"})
        self.assertIn("lock", out.getvalue())
        self.assertIs(tune.utils.diagnose_serialization(right), True)

    def test_checkpoints_of_a_class(self):
        class Steps(tune.Trainable):
            def step(self):
                return {"timesteps_this_iter": 10}

            def save_checkpoint(self, checkpoint_dir):
                path = os.path.join(checkpoint_dir, f"checkpoint-{self._iteration}")
                open(path, "w").close()
                return path

            def load_checkpoint(self, checkpoint):
                assert os.path.exists(checkpoint)

        self.assertTrue(tune.utils.validate_save_restore(Steps))
        first, second = Steps({}), Steps({})
        first.train()
        self.assertEqual(first.train()["timesteps_total"], 20)
        second.restore(first.save())
        self.assertEqual(second.train()["timesteps_total"], 30)

        class Forgetful(Steps):
            def load_checkpoint(self, checkpoint):
                self.iteration = 0

        with self.assertRaisesRegex(RuntimeError, "next one is 1"):
            tune.utils.validate_save_restore(Forgetful)


if __name__ == "__main__":
    unittest.main(verbosity=0)
