"""Experiments, callbacks and reporters."""

import contextlib
import io
import json
import os
import shutil
import sys
import unittest

from study_case import StudyCase, full_disk

from kolo import tune
from kolo._own_files import temporary_folder
from kolo.air import CheckpointConfig
from kolo.tune._handover import handover_folder
from kolo.tune.trial import ExportFormat


def rising(config):
    for step in range(3):
        tune.report(score=config["x"] * (step + 1), step=step)


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


class ExperimentTest(StudyCase):
    def run_all(self, experiments, **options):
        options = {"verbose": 0, "loggers": [], "local_dir": self._folder.name, **options}
        return tune.run_experiments(experiments, **options)

    def test_several_studies(self):
        tune.register_trainable("rising", rising)
        trials = self.run_all(
            {
                "a": {"run": "rising", "config": {"x": tune.grid_search([1, 2])}},
                "b": {"run": Counter, "stop": {"training_iteration": 2}},
            }
        )
        self.assertEqual([t.status for t in trials], ["TERMINATED"] * 3)
        self.assertEqual([t.trainable_name for t in trials], ["rising", "rising", "Counter"])
        self.assertEqual(trials[2].last_result["training_iteration"], 2)
        one = tune.Experiment("c", rising, config={"x": 4})
        self.assertEqual(self.run_all([one])[0].last_result["score"], 12)
        analysis = self.run_study(tune.Experiment("d", rising, config={"x": 5}))
        self.assertEqual((analysis.name, analysis.trials[0].config), ("d", {"x": 5}))

    def test_a_list_of_studies_is_one_result(self):
        both = [tune.Experiment(n, rising, config={"x": x}) for n, x in (("a", 2), ("b", 3))]
        analysis = self.run_study(both, metric="score", mode="max")
        self.assertEqual([t.config["x"] for t in analysis.trials], [2, 3])
        self.assertEqual(analysis.best_config, {"x": 3})
        with self.assertRaisesRegex(ValueError, "is not a list of Experiments"):
            self.run_study([rising])

    def test_models_are_exported_at_the_end(self):
        class Exporting(Counter):
            def _export_model(self, export_formats, export_dir):
                ExportFormat.validate(export_formats)
                path = os.path.join(export_dir, f"after_{self.count}")
                with open(path, "w"):
                    return {export_formats[0]: path}

        class Broken(Exporting):
            def step(self):
                raise ValueError("no step")

        for executor in ("thread", "process"):
            spec = {"run": Exporting, "export_formats": ["h5"], "executor": executor}
            [trial] = self.run_all({"a": spec}, name="a")
            self.assertTrue(os.path.exists(os.path.join(trial.logdir, "after_4")))
        [stopped] = self.run_all({"b": {**spec, "stop": {"count": 2}}})
        self.assertTrue(os.path.exists(os.path.join(stopped.logdir, "after_2")))
        with self.assertRaisesRegex(tune.TuneError, "the export format 'pdf' is unknown"):
            self.run_all({"c": {"run": Exporting, "export_formats": ["pdf"]}})
        [failed] = self.run_all({"d": {**spec, "run": Broken}}, raise_on_failed_trial=False)
        self.assertEqual(failed.status, "ERROR")
        self.assertFalse(os.path.exists(os.path.join(failed.logdir, "after_0")))

    def test_errors_are_in_a_file(self):
        def fail(config):
            if config["x"]:
                raise ValueError("of the third kind")
            tune.report(score=1)

        good, bad = self.run_study(
            fail,
            config={"x": tune.grid_search([0, 1])},
            raise_on_failed_trial=False,
            loggers=None,
        ).trials
        self.assertIsNone(good.error_file)
        with open(bad.error_file) as file:
            self.assertIn("of the third kind", file.read())

    def test_an_error_of_cleanup_does_not_hide_the_first(self):
        class Twice(tune.Trainable):
            def step(self):
                raise ValueError("the first")

            def cleanup(self):
                raise ValueError("the second")

        [trial] = self.run_study(Twice, raise_on_failed_trial=False).trials
        self.assertIn("the first", trial.error)

    def test_a_class_may_say_what_it_needs(self):
        class Needs(tune.Trainable):
            @classmethod
            def default_resource_request(cls, config):
                return tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": config["n"], "magic": 1}])

            def step(self):
                return {"done": True, "amounts": self.trial_resources.required_resources}

        [trial] = self.run_study(
            Needs, config={"n": 2}, total_resources={"cpu": 4, "magic": 1}
        ).trials
        self.assertEqual(trial.last_result["amounts"], {"CPU": 3, "magic": 1})
        with self.assertRaisesRegex(ValueError, "leave resources_per_trial out"):
            self.run_study(Needs, config={"n": 2}, resources_per_trial={"cpu": 1})

    def test_checkpoints_at_the_end(self):
        kept = CheckpointConfig(checkpoint_at_end=True)
        [trial] = self.run_all({"a": {"run": Counter, "checkpoint_config": kept}})
        self.assertTrue(trial.has_checkpoint())
        with self.assertRaisesRegex(ValueError, "is a function"):
            tune.Experiment("a", rising, checkpoint_config=kept)

    def test_what_is_no_experiment(self):
        for wrong in (
            "a",
            {"a": {"config": {}}},
            {"a": {"run": "nothing"}},
            {"a": {"run": 3}},
            {"a": {"run": rising, "what": 3}},
            {"a": {"run": rising, "resources_per_trial": {"what": 3}}},
        ):
            with self.assertRaises(tune.TuneError):
                self.run_all(wrong)

    def test_what_cannot_be_trained(self):
        class Other:
            pass

        for wrong in (3, Other, Counter({})):
            with self.assertRaises(TypeError):
                tune.register_trainable("wrong", wrong)
            with self.assertRaises(TypeError) as caught:
                tune.Experiment("wrong", wrong)
            self.assertIsInstance(caught.exception, tune.TuneError)

    def test_a_trial_that_reports_nothing_is_done(self):
        with self.assertWarns(UserWarning):
            [trial] = self.run_all({"a": {"run": lambda config: None, "config": {"x": 1}}})
        self.assertIs(trial.last_result["done"], True)
        self.assertEqual(trial.last_result["config"], {"x": 1})

    def test_names_of_trials(self):
        [trial] = self.run_all(
            {
                "a": {
                    "run": rising,
                    "config": {"x": 7},
                    "trial_name_creator": lambda trial: f"seven_{trial.config['x']}",
                    "trial_dirname_creator": lambda trial: f"folder_{trial.config['x']}",
                }
            }
        )
        self.assertEqual(str(trial), "seven_7")
        self.assertEqual(os.path.basename(trial.logdir), "folder_7")
        same = self.run_study(
            rising,
            config={"x": tune.grid_search([1, 2, 3])},
            trial_dirname_creator=lambda trial: "same",
        )
        folders = sorted(os.path.basename(trial.logdir) for trial in same.trials)
        self.assertEqual(folders, ["same", "same_00001", "same_00002"])


class LoggerTest(StudyCase):
    def lines(self, trial, name):
        with open(os.path.join(trial.logdir, name)) as file:
            return file.read().splitlines()

    def test_loggers_of_ones_own(self):
        class Own(tune.logger.Logger):
            def on_result(self, result):
                with open(os.path.join(self.logdir, "own.txt"), "a") as file:
                    file.write(f"{result['score']}\n")

        callback = tune.logger.LegacyLoggerCallback([Own])
        analysis = self.run_study(rising, config={"x": 2}, callbacks=[callback])
        self.assertEqual(self.lines(analysis.trials[0], "own.txt"), ["2", "4", "6"])

    def test_a_callback_by_trials(self):
        seen = []

        class Own(tune.logger.LoggerCallback):
            def log_trial_start(self, trial):
                seen.append("start")

            def log_trial_result(self, iteration, trial, result):
                seen.append(result["score"])

            def log_trial_end(self, trial, failed=False):
                seen.append(failed)

        self.run_study(rising, config={"x": 1}, callbacks=[Own()])
        self.assertEqual(seen, ["start", 1, 2, 3, False])

    def test_files_are_written_once(self):
        both = [tune.logger.JsonLoggerCallback(), tune.logger.CSVLoggerCallback()]
        analysis = self.run_study(rising, config={"x": 1}, callbacks=both, loggers=None)
        [trial] = analysis.trials
        self.assertEqual(len(self.lines(trial, "result.json")), 3)
        self.assertEqual(len(self.lines(trial, "progress.csv")), 4)
        self.assertEqual(json.loads("".join(self.lines(trial, "params.json"))), {"x": 1})

    def test_files_without_a_study(self):
        trial = tune.Trial("rising", {"x": 1, "f": max}, logdir=self._folder.name)
        for make in (tune.logger.JsonLoggerCallback, tune.logger.CSVLoggerCallback):
            for _ in "ab":  # a trial that starts again goes on with its files
                callback = make()
                callback.on_trial_start(0, [], trial)
                callback.on_trial_result(1, [], trial, {"score": 1, "deep": {"a": [2]}})
                callback.on_trial_result(2, [], trial, {"score": 2, "later": 3})
                callback.on_trial_complete(3, [], trial)
        table = self.lines(trial, "progress.csv")
        self.assertEqual(table[:3], ["score,deep/a", "1,[2]", "2,"])
        self.assertEqual(len(table), 5)
        results = [json.loads(line) for line in self.lines(trial, "result.json")]
        self.assertEqual(results[1], {"score": 2, "later": 3})
        quiet = tune.logger.NoopLogger({}, self._folder.name)
        quiet.on_result({"score": 1})
        quiet.close()


class FilesTest(StudyCase):
    """Files in the folder of a trial, into which the trial writes as well, on a disk that is full."""

    KINDS = (
        (tune.logger.JsonLoggerCallback, "result.json"),
        (tune.logger.CSVLoggerCallback, "progress.csv"),
    )

    def setUp(self):
        super().setUp()
        self.trial = tune.Trial("rising", {"x": 1}, logdir=self._folder.name)

    def log(self, make, *results):
        callback = make()
        callback.on_trial_start(0, [], self.trial)
        for place, result in enumerate(results):
            callback.on_trial_result(place, [], self.trial, result)
        callback.on_trial_complete(9, [], self.trial)

    def path(self, name):
        return os.path.join(self._folder.name, name)

    def content(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def test_pipes_and_links_are_left_alone(self):
        with open(self.path("target"), "w") as file:
            file.write("own")
        for make, name in self.KINDS:
            for spoil in (os.mkfifo, lambda path: os.symlink(self.path("target"), path)):
                spoil(self.path(name))
                with self.assertWarnsRegex(UserWarning, "no plain file"):
                    self.log(make, {"score": 1}, {"score": 2})
                os.remove(self.path(name))
        os.symlink(self.path("target"), self.path("params.json"))
        with self.assertWarnsRegex(UserWarning, "no plain file"):
            self.log(tune.logger.JsonLoggerCallback, {"score": 1})
        self.assertEqual(self.content("target"), "own")

    def test_half_lines_are_ended(self):
        halves = ('{"score": 1}\n{"sco', "score\r\n1\r\n2")
        for (make, name), half in zip(self.KINDS, halves):
            with open(self.path(name), "w", newline="") as file:
                file.write(half)
            self.log(make, {"score": 5})
            self.assertIn("5", self.content(name).splitlines()[-1])
            self.assertEqual(len(self.content(name).splitlines()), half.count("\n") + 2)

    def test_columns_are_those_of_the_file(self):
        self.log(tune.logger.CSVLoggerCallback, {"a": 1, "b": 2})
        self.log(tune.logger.CSVLoggerCallback, {"b": 4, "c": 5, "a": 3})
        self.assertEqual(self.content("progress.csv").split(), ["a,b", "1,2", "3,4"])

    def test_a_folder_that_cannot_be_removed_costs_nothing(self):
        for make in (handover_folder, lambda parent: temporary_folder("some-", parent)):
            with make(self._folder.name) as folder:
                shutil.rmtree(folder)
                with open(folder, "w") as file:  # in its place
                    file.write("own")

    def test_a_full_disk(self):
        for make, name in self.KINDS:
            callback = make()
            with self.assertWarnsRegex(UserWarning, "the study goes on"), full_disk(100):
                callback.on_trial_start(0, [], self.trial)
                for score in (1, 2):
                    result = {"score": score, "text": "x" * 80}
                    callback.on_trial_result(score, [], self.trial, result)
            self.assertNotIn("\n\n", self.content(name))
            callback.on_trial_result(3, [], self.trial, {"score": 3, "text": "y"})
            callback.on_trial_complete(9, [], self.trial)
            written = self.content(name)
            self.assertEqual(written.count("x" * 80), 2, written)
            self.assertEqual(written.count("y"), 1)


class Big(tune.Trainable):
    def step(self):
        print("x" * 5000, flush=True)
        return {"score": 1, "done": True}


def printing(config):
    print("out", config["x"])
    print("err", config["x"], file=sys.stderr)
    tune.report(score=1)


class Printing(tune.Trainable):
    def step(self):
        print("step")
        return {"score": 1, "done": True}


class OutputTest(StudyCase):
    def printed(self, trial, name):
        with open(os.path.join(trial.logdir, name)) as file:
            return file.read().splitlines()

    def test_each_trial_prints_to_its_own_files(self):
        for executor in ("thread", "process"):
            analysis = self.run_study(
                printing,
                config={"x": tune.grid_search([1, 2])},
                log_to_file=True,
                executor=executor,
            )
            for trial in analysis.trials:
                x = trial.config["x"]
                self.assertEqual(self.printed(trial, "stdout"), [f"out {x}"])
                self.assertEqual(self.printed(trial, "stderr"), [f"err {x}"])

    def test_names_of_files(self):
        [trial] = self.run_study(printing, config={"x": 1}, log_to_file="both").trials
        self.assertEqual(self.printed(trial, "both"), ["out 1", "err 1"])
        [trial] = self.run_study(printing, config={"x": 1}, log_to_file=("a", "b")).trials
        self.assertEqual(self.printed(trial, "b"), ["err 1"])
        [trial] = self.run_study(Printing, log_to_file=True).trials
        self.assertEqual(self.printed(trial, "stdout"), ["step"])
        with self.assertRaisesRegex(ValueError, "log_to_file"):
            self.run_study(printing, config={"x": 1}, log_to_file=("a", "b", "c"))
        self.run_study(printing, config={"x": 1}, log_to_file="/dev/null")

    def test_files_that_cannot_be_written(self):
        [trial] = self.run_study(
            Big, log_to_file="/dev/full", loggers=["json"], raise_on_failed_trial=False
        ).trials
        self.assertEqual((trial.status, trial.error), ("TERMINATED", ""))

        class Pipe(tune.Trainable):
            def setup(self, config):
                folder = tune.get_trial_dir()
                os.remove(os.path.join(folder, "out"))
                os.mkfifo(os.path.join(folder, "out"))

            def step(self):
                return {"score": 1, "done": True}

        [trial] = self.run_study(Pipe, log_to_file="out", raise_on_failed_trial=False).trials
        self.assertIn("no plain file", trial.error)


class Listener(tune.Callback):
    def __init__(self):
        self.events = []
        self.most = 0

    def setup(self, **info):
        self.events.append("setup")

    def on_trial_start(self, iteration, trials, trial, **info):
        self.events.append("start")

    def on_checkpoint(self, iteration, trials, trial, checkpoint, **info):
        self.events.append(f"checkpoint {os.path.isdir(checkpoint)}")

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.most = max(self.most, len(trials))

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.events.append("complete")

    def on_experiment_end(self, trials, **info):
        self.events.append(f"end {len(trials)}")


class CallbackTest(StudyCase):
    def test_the_whole_of_a_study(self):
        one = Listener()
        self.run_study(Counter, callbacks=[one], checkpoint_freq=4)
        self.assertEqual(one.events, ["setup", "start", "checkpoint True", "complete", "end 1"])
        self.run_study(rising, config={"x": tune.grid_search([1, 2, 3])}, callbacks=[one])
        self.assertEqual(one.most, 3)

    def test_what_a_callback_raises(self):
        class Broken(Exception):
            pass

        class Own(tune.Callback):
            def on_trial_result(self, **info):
                raise Broken("here")

        with self.assertRaisesRegex(Broken, "here"):
            self.run_study(rising, config={"x": 1}, callbacks=[Own()])

    def test_a_reporter_of_ones_own(self):
        seen = []

        class Own(tune.ProgressReporter):
            def setup(self, metric=None, mode=None, **info):
                seen.append((metric, mode))

            def should_report(self, trials, done=False):
                return done

            def report(self, trials, done, *sys_info):
                seen.append((len(trials), done))

        self.run_study(rising, config={"x": 1}, metric="score", mode="max", progress_reporter=Own())
        self.assertEqual(seen, [("score", "max"), (1, True)])

    def test_a_table(self):
        reporter = tune.CLIReporter(
            metric_columns={"score": "points"}, sort_by_metric=True, max_report_frequency=1000
        )
        reporter.add_parameter_column("x")
        with self.assertRaises(ValueError):
            reporter.add_metric_column("score")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.run_study(
                rising,
                config={"x": tune.grid_search([1, 3, 2])},
                metric="score",
                mode="max",
                progress_reporter=reporter,
            )
        table = out.getvalue().split("== Status ==")[-1]
        self.assertIn("points", table)
        rows = [line.split()[-2:] for line in table.splitlines() if "TERMINATED " in line]
        self.assertEqual(rows[-3:], [["3", "9"], ["2", "6"], ["1", "3"]])
        with self.assertRaisesRegex(ValueError, "progress_reporter"):
            self.run_study(rising, config={"x": 1}, progress_reporter="often")


if __name__ == "__main__":
    unittest.main()
