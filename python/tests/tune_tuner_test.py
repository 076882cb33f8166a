"""Tuner and its results."""

import datetime
import os
import subprocess
import sys
import unittest

from study_case import StudyCase, full_disk

import kolo
from kolo import tune
from kolo.air import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, session


def rising(config):
    for step in range(3):
        tune.report(score=config["x"] * (step + 1), step=step)


def saving(config):
    begin = session.get_checkpoint()
    first = begin.to_dict()["step"] + 1 if begin else 0
    for step in range(first, 4):
        if step == 2 and config["x"] == 2 and not os.path.exists(config["mended"]):
            raise RuntimeError("not yet")
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))


class Counter(tune.Trainable):
    def setup(self, config):
        self.count = 0

    def step(self):
        self.count += 1
        return {"count": self.count, "done": self.count == 4}

    def save_checkpoint(self, checkpoint_dir):
        return {"count": self.count}

    def load_checkpoint(self, checkpoint):
        self.count = checkpoint["count"]


class TunerTest(StudyCase):
    def tuner(self, trainable, space=None, run=None, **tune_config):
        run = {"name": "study", "local_dir": self._folder.name, "verbose": 0, **(run or {})}
        return tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(**tune_config),
            run_config=RunConfig(**run),
            _tuner_kwargs={"loggers": [], "total_resources": {"cpu": 4}},
        )

    def test_the_best_of_a_grid(self):
        space = {"x": tune.grid_search([1, 3, 2])}
        results = self.tuner(rising, space, metric="score", mode="max").fit()
        self.assertEqual((len(results), results.num_terminated, results.errors), (3, 3, []))
        best = results.get_best_result()
        self.assertEqual((best.config, best.metrics["score"], best.error), ({"x": 3}, 9, None))
        self.assertEqual(best.metrics["config"], {"x": 3})
        self.assertEqual(results.get_best_result("score", "min").config, {"x": 1})
        self.assertEqual(list(best.metrics_dataframe["score"]), [3, 6, 9])
        self.assertEqual(sorted(results.get_dataframe()["score"]), [3, 6, 9])
        self.assertEqual(sorted(results.get_dataframe("score", "min")["score"]), [1, 2, 3])
        self.assertEqual(best.path, str(best.log_dir))
        self.assertIn("'score': 9", repr(best))
        self.assertNotIn("training_iteration", repr(best))
        self.assertEqual(results.experiment_path, os.path.join(self._folder.name, "study"))

    def test_which_is_best_needs_a_metric_unless_there_is_one_trial(self):
        results = self.tuner(rising, {"x": 1}, num_samples=2).fit()
        for wrong in ({}, {"metric": "score"}, {"mode": "max"}):
            with self.assertRaisesRegex(ValueError, "needs a m"):
                results.get_best_result(**wrong)
        with self.assertWarns(UserWarning), self.assertRaisesRegex(RuntimeError, "No best trial"):
            results.get_best_result("scoer", "max")
        alone = self.tuner(rising, {"x": 1}, {"name": "alone"}).fit()
        self.assertEqual(alone.get_best_result().metrics["score"], 3)

    def test_failures_are_results_and_run_again(self):
        mended = os.path.join(self._folder.name, "mended")
        space = {"x": tune.grid_search([1, 2]), "mended": mended}
        tuner = self.tuner(saving, space, metric="step", mode="max")
        results = tuner.fit()
        self.assertEqual((results.num_errors, results.num_terminated), (1, 1))
        self.assertIn("not yet", str(results.errors[0]))
        path = results.experiment_path
        self.assertTrue(tune.Tuner.can_restore(path))
        self.assertFalse(tune.Tuner.can_restore(self._folder.name))
        self.assertEqual(tune.Tuner.restore(path).get_results().num_errors, 1)
        with open(mended, "w"):
            pass
        again = tune.Tuner.restore(path, resume_errored=True).fit()
        self.assertEqual((again.num_errors, len(again)), (0, 2))
        self.assertEqual([r.metrics["step"] for r in again], [3, 3])
        last = again[1]
        self.assertEqual(last.checkpoint.to_dict(), {"step": 3})
        self.assertEqual([m["step"] for _, m in last.best_checkpoints], [0, 1, 2, 3])
        with self.assertRaises(LookupError):
            tune.Tuner.restore(self._folder.name)

    def test_results_before_the_study_and_a_taken_name(self):
        tuner = self.tuner(rising, {"x": 1})
        with self.assertRaisesRegex(ValueError, "has not run"):
            tuner.get_results()
        first, second = tuner.fit(), self.tuner(rising, {"x": 2}).fit()
        self.assertNotEqual(first.experiment_path, second.experiment_path)
        self.assertEqual(tuner.get_results()[0].config, {"x": 1})

    def test_a_study_whose_state_was_not_written(self):
        tuner = self.tuner(rising, {"x": 1})
        with full_disk(100), self.assertRaises(OSError):
            tuner.fit()
        path = os.path.join(self._folder.name, "study")
        self.assertFalse(tune.Tuner.can_restore(path))
        for left in (b"", b"\x80\x04half"):
            with open(os.path.join(path, "tuner.pkl"), "wb") as file:
                file.write(left)
            with self.assertRaisesRegex(kolo.Error, "is damaged") as caught:
                tune.Tuner.restore(path)
            self.assertEqual(caught.exception.code, "corruption")

    def test_a_failure_that_is_raised(self):
        def failing(config):
            raise RuntimeError("broken")

        run = {"failure_config": FailureConfig(fail_fast="raise")}
        with self.assertRaisesRegex(RuntimeError, "broken"):
            self.tuner(failing, run=run).fit()

    def test_checkpoints_by_their_score(self):
        kept = CheckpointConfig(
            num_to_keep=2,
            checkpoint_score_attribute="count",
            checkpoint_score_order="min",
            checkpoint_frequency=1,
        )
        result = self.tuner(Counter, run={"checkpoint_config": kept}).fit()[0]
        self.assertIn(1, [metrics["count"] for _, metrics in result.best_checkpoints])
        self.assertLessEqual(len(result.best_checkpoints), 3)

    def test_settings_that_cannot_be_meant(self):
        for wrong in (
            lambda: tune.Tuner(),
            lambda: tune.Tuner(rising, param_space=[1]),
            lambda: CheckpointConfig(num_to_keep=0),
            lambda: CheckpointConfig(checkpoint_score_order="best"),
            lambda: CheckpointConfig(checkpoint_frequency=-1),
            lambda: FailureConfig(fail_fast="soon"),
            lambda: FailureConfig(fail_fast=True, max_failures=2),
        ):
            with self.assertRaises(ValueError):
                wrong()
        with self.assertRaises(NotImplementedError):
            tune.SyncConfig(upload_dir="s3://bucket")

    def test_a_time_budget_as_a_duration(self):
        def endless(config):
            while True:
                tune.report(x=1)

        budget = datetime.timedelta(seconds=0.5)
        self.assertEqual(len(self.tuner(endless, time_budget_s=budget).fit()), 1)


class ImportTest(unittest.TestCase):
    def test_every_module_can_be_the_first(self):
        for first in ("kolo.air", "kolo.air.result", "kolo.tune.search", "kolo.tune.result_grid"):
            subprocess.run([sys.executable, "-c", f"import {first}"], check=True)


class ResourcesTest(StudyCase):
    def test_a_function_says_what_is_needed(self):
        def train(config):
            tune.report(**tune.get_trial_resources().required_resources)

        for executor in ("thread", "process"):
            [trial] = self.run_study(
                tune.with_resources(train, lambda config: {"cpu": config["n"]}),
                config={"n": 2},
                executor=executor,
            ).trials
            self.assertEqual(trial.last_result["CPU"], 2)
        self.assertIsNone(tune.get_trial_resources())

    def test_each_trial_gets_what_its_function_needs(self):
        running, most = set(), []

        def train(config):
            running.add(config["x"])
            most.append(len(running))
            tune.report(x=1)
            running.discard(config["x"])

        large = tune.with_resources(train, {"CPU": 3})
        self.run_study(large, config={"x": tune.grid_search([1, 2, 3])})
        self.assertEqual(max(most), 1)
        self.assertFalse(hasattr(train, "_kolo_resources"))
        self.assertTrue(issubclass(tune.with_resources(Counter, {"cpu": 2}), Counter))
        both = tune.with_parameters(tune.with_resources(train, {"cpu": 3}), data=1)
        self.assertEqual(both._kolo_resources, {"cpu": 3})
        with self.assertRaises(ValueError):
            tune.with_resources(train, 2)
        with self.assertRaises(ValueError):
            tune.with_resources("train", {"cpu": 2})


if __name__ == "__main__":
    unittest.main()
