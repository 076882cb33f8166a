"""Checkpoints as values, sessions in the words of Ray AIR, classes without a study, and studies that
are read again."""

import gc
import json
import os
import pickle
import shutil
import tempfile
import types
import unittest

from study_case import StudyCase

from kolo import tune
from kolo.air import Checkpoint, session
from kolo.tune._session import Totals, with_totals
from kolo.tune.result import DEBUG_METRICS


def write(folder, name, value):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        json.dump(value, file)
    return path


def read(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def with_dictionaries(config):
    """Counts to its end, and goes on from where its checkpoint is."""
    given = session.get_checkpoint()
    count = given.to_dict()["count"] if given else 0
    while count < config.get("end", 3):
        count += 1
        if count == config.get("fails_at") and not given:
            raise RuntimeError("once")
        session.report({"count": count}, checkpoint=Checkpoint.from_dict({"count": count}))


def counting(config):
    """Steps of ten, and a failure in the first run, in each of the ways to store a checkpoint."""
    given = session.get_checkpoint()
    for count in range(given.to_dict()["count"] if given else 0, 5):
        if count == 3 and not given:
            raise RuntimeError("once")
        checkpoint = Checkpoint.from_dict({"count": count + 1})
        result = {"timesteps_this_iter": 10, "count": count + 1}
        if config["way"] == "folder":
            with tune.checkpoint_dir(step=count) as folder:
                checkpoint.to_directory(folder)
            tune.report(**result)
        elif count != 1:
            session.report(result, checkpoint=checkpoint)
        else:
            session.report(result)  # what has no checkpoint is done, and counted, again


class Saving(tune.Trainable):
    """Writes its checkpoint in one of the ways that Tune permits."""

    def __init__(self, way, *arguments, **options):
        self.way = way
        self.loaded = None
        super().__init__(*arguments, **options)

    def setup(self, config):
        self.total = 0
        self.step_size = config.get("step_size", 1)

    def step(self):
        self.total += self.step_size
        return {"total": self.total}

    def save_checkpoint(self, checkpoint_dir):
        if self.way == "dictionary":
            return {"total": self.total}
        inner = os.path.join(checkpoint_dir, "inner")
        path = write(inner, "total.json", {"total": self.total})
        return {"root": checkpoint_dir, "inner": inner, "file": path}[self.way]

    def load_checkpoint(self, checkpoint):
        if self.way == "dictionary":
            self.total = checkpoint["total"]
            return
        below = {"root": ["inner", "total.json"], "inner": ["total.json"], "file": []}[self.way]
        self.total = read(checkpoint, *below)["total"]

    def reset_config(self, new_config):
        self.setup(new_config)
        return True


class Values(StudyCase):
    def test_a_dictionary_and_back(self):
        checkpoint = Checkpoint.from_dict({"weights": [1, 2]})
        folder = checkpoint.to_directory(os.path.join(self._folder.name, "copy"))
        others = [
            checkpoint,
            Checkpoint.from_directory(folder),
            Checkpoint.from_bytes(checkpoint.to_bytes()),
            pickle.loads(pickle.dumps(checkpoint)),
        ]
        for one in others:
            self.assertEqual(one.to_dict(), {"weights": [1, 2]})
        with checkpoint.as_directory() as path:
            self.assertTrue(os.listdir(path))
        path = str(checkpoint)
        del others, one, checkpoint
        gc.collect()
        self.assertFalse(os.path.exists(path))

    def test_a_folder_and_back(self):
        folder = os.path.join(self._folder.name, "given")
        write(os.path.join(folder, "inner"), "a.json", 7)
        as_dictionary = Checkpoint.from_directory(folder).to_dict()
        shutil.rmtree(folder)
        again = Checkpoint.from_dict(as_dictionary)
        self.assertEqual(read(again.to_directory(folder), "inner", "a.json"), 7)

    def test_totals_go_on_after_a_failure(self):
        ways = tune.grid_search(["folder", "session"])
        for executor in ("thread", "process"):
            analysis = self.run_study(
                counting, config={"way": ways}, max_failures=1, executor=executor
            )
            for trial in analysis.trials:
                totals = {row["count"]: row["timesteps_total"] for row in trial.results}
                self.assertEqual(totals, {count: 10 * count for count in range(1, 6)})
                self.assertEqual(Checkpoint(trial.checkpoint).to_dict(), {"count": 5})

    def test_what_is_no_checkpoint(self):
        with self.assertRaisesRegex(ValueError, "takes a dictionary, not list"):
            Checkpoint.from_dict([1])
        with self.assertRaisesRegex(LookupError, "there is no folder '/nowhere'"):
            Checkpoint.from_directory("/nowhere")

    def test_totals_that_are_no_numbers_count_for_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for kept in ("[1, 2]", '{"timesteps": "many", "_folder": 3}', "{", "7"):
                with open(os.path.join(folder, ".kolo-totals.json"), "w") as file:
                    file.write(kept)
                totals = Totals(folder)
                self.assertEqual(
                    with_totals(totals, {"timesteps_this_iter": 10})["timesteps_total"], 10
                )


class Sessions(StudyCase):
    def test_a_trial_goes_on_from_its_dictionary(self):
        analysis = self.run_study(
            with_dictionaries, config={"fails_at": 2}, max_failures=1, metric="count", mode="max"
        )
        trial = analysis.trials[0]
        self.assertEqual([result["count"] for result in trial.results], [1, 2, 3])
        self.assertEqual(trial.num_failures, 1)
        self.assertEqual(trial.checkpoint.to_dict(), {"count": 3})
        self.assertEqual(analysis.best_checkpoint.to_dict(), {"count": 3})

    def test_trials_that_are_processes(self):
        analysis = self.run_study(with_dictionaries, config={"end": 2}, executor="process")
        self.assertEqual(analysis.trials[0].checkpoint.to_dict(), {"count": 2})

    def test_a_folder_of_the_trial(self):
        folder = os.path.join(self._folder.name, "given")

        def train(config):
            write(folder, "a.json", 5)
            tune.report({"loss": 1.0}, checkpoint=Checkpoint.from_directory(folder))
            self.assertEqual(session.get_world_size(), 1)
            self.assertEqual((session.get_world_rank(), session.get_local_rank()), (0, 0))
            self.assertIn(session.get_trial_id(), session.get_trial_dir())

        trial = self.run_study(train).trials[0]
        self.assertEqual(read(trial.checkpoint.value, "a.json"), 5)
        self.assertEqual(trial.last_result["loss"], 1.0)

    def test_without_a_study(self):
        counter = tune.wrap_function(with_dictionaries)
        one = counter(config={"end": 5})
        one.train()
        packed, folder = one.save_to_object(), one.save()
        one.stop()
        for restore, given in (("restore", folder), ("restore_from_object", packed)):
            other = counter(config={"end": 5})
            getattr(other, restore)(given)
            self.assertEqual(other.train()["count"], 2)
            other.stop()

    def test_what_cannot_be_reported(self):
        def wrong(config):
            session.report({"loss": 1.0}, checkpoint={"count": 1})

        with self.assertRaisesRegex(tune.TuneError, "Checkpoint.from_dict"):
            self.run_study(wrong)
        with self.assertRaisesRegex(tune.TuneError, "takes a dictionary of metrics, not float"):
            self.run_study(lambda config: session.report(1.0))


class Classes(StudyCase):
    def test_checkpoints_of_every_kind(self):
        for way in ("dictionary", "root", "inner", "file"):
            one = Saving(way, config={"step_size": 2})
            one.train()
            total_time = one.train()["time_total_s"]
            folder, packed = one.save(), one.save_to_object()
            for restore, given in (("restore", folder), ("restore_from_object", packed)):
                other = Saving(way, config={"step_size": 2})
                getattr(other, restore)(given)
                result = other.train()
                self.assertEqual((result["total"], result["training_iteration"]), (6, 3))
                self.assertEqual(result["iterations_since_restore"], 1)
                self.assertGreaterEqual(result["time_total_s"], total_time)
                self.assertLessEqual(result["time_since_restore"], result["time_total_s"])
            one.delete_checkpoint(folder)
            self.assertFalse(os.path.exists(folder))

    def test_an_object_without_a_configuration(self):
        one = Saving("dictionary")
        result = one.train()
        self.assertEqual(
            (result["total"], result["config"], result["trial_id"]), (1, {}, "default")
        )
        self.assertEqual(result["pid"], os.getpid())
        for name in ("date", "timestamp", "hostname"):
            self.assertIn(name, result)

    def test_the_newest_checkpoint_stands_in_for_one_that_is_gone(self):
        def logger(config):
            return types.SimpleNamespace(logdir=self._folder.name)

        one = Saving("dictionary", logger_creator=logger)
        self.assertIsNone(one._get_latest_available_checkpoint())
        for number in range(3):
            folder = os.path.join(self._folder.name, f"checkpoint_{number:06d}")
            self.assertEqual(one.save(), folder)
            self.assertEqual(one._get_latest_available_checkpoint(), folder)
            one.train()
        other = Saving("dictionary", logger_creator=logger)
        with self.assertWarnsRegex(UserWarning, "checkpoint_000002"):
            other.restore(os.path.join(self._folder.name, "gone"))
        self.assertEqual(other.training_iteration, 2)
        with self.assertRaisesRegex(LookupError, "no checkpoint of a Trainable"):
            other.restore(os.path.join(self._folder.name, "gone"), fallback_to_latest=False)

    def test_another_configuration(self):
        one = Saving("dictionary", config={"step_size": 1})
        one.train()
        self.assertTrue(one.reset({"step_size": 5}))
        result = one.train()
        self.assertEqual((result["total"], result["training_iteration"]), (5, 1))
        self.assertEqual(one.get_config(), {"step_size": 5})
        self.assertFalse(tune.Trainable(config={}).reset({"step_size": 5}))

    def test_a_step_that_returns_nothing(self):
        class Silent(tune.Trainable):
            def step(self):
                pass

        message = r"Silent.step\(\) must return a dictionary of metrics"
        with self.assertRaisesRegex(ValueError, message):
            Silent().train()
        with self.assertRaisesRegex(tune.TuneError, message):
            self.run_study(Silent, stop={"training_iteration": 1})


class Analyses(StudyCase):
    def two_studies(self):
        for name, base in (("first", 0), ("second", 10)):
            self.run_study(
                lambda config: tune.report(score=config["x"]),
                config={"x": tune.grid_search([base + 1, base + 2])},
                name=name,
                loggers=None,  # so that each has a folder
            )

    def test_all_studies_of_a_folder(self):
        self.two_studies()
        analysis = tune.ExperimentAnalysis(self._folder.name)
        self.assertEqual(len(analysis.trials), 4)
        self.assertEqual(analysis.get_best_config("score", "max"), {"x": 12})
        folder = analysis.get_best_logdir("score", "min")
        self.assertEqual(analysis.get_all_configs()[folder], {"x": 1})
        self.assertEqual(len(analysis.results), 4)
        one = tune.ExperimentAnalysis(os.path.join(self._folder.name, "second"))
        self.assertEqual(len(one.trials), 2)
        self.assertEqual(one.runner_data()["_local_checkpoint_dir"], one.directory)
        self.assertLessEqual(one.stats()["start_time"], one.stats()["timestamp"])
        with self.assertRaisesRegex(ValueError, "is no study"):
            tune.ExperimentAnalysis(os.path.join(self._folder.name, "third"))

    def test_properties_of_the_best(self):
        def train(config):
            for step in range(12):
                checkpoint = Checkpoint.from_dict({"s": step})
                session.report({"res": config["x"] + step}, checkpoint=checkpoint)

        analysis = self.run_study(
            train, config={"x": tune.grid_search([100, 300])}, metric="res", mode="max"
        )
        best = analysis.trials[1]
        self.assertIs(analysis.best_trial, best)
        self.assertEqual(analysis.best_logdir, best.logdir)
        self.assertEqual(analysis.best_checkpoint, best.checkpoint.value)
        self.assertEqual(analysis.get_last_checkpoint(best).to_dict(), {"s": 11})
        self.assertEqual(analysis.get_best_checkpoint(best, "res", "min").to_dict(), {"s": 0})
        self.assertEqual(best.metric_n_steps["res"]["5"], [307, 308, 309, 310, 311])
        for name in DEBUG_METRICS:
            self.assertNotIn(name, best.metric_analysis)
            self.assertNotIn(name, best.metric_n_steps)


if __name__ == "__main__":
    unittest.main(verbosity=0)
