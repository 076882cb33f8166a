"""kolo.search, kolo.hps and kolo.optuna."""

import contextlib
import csv
import glob
import importlib
import io
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import BrokenExecutor
from unittest import mock

from study_case import full_disk

import kolo
from kolo import hps, tune
from kolo.hps import (
    CBO,
    Evaluator,
    HpProblem,
    RandomSearch,
    SerialEvaluator,
    ThreadPoolEvaluator,
    equals,
    greater,
    profile,
    queued,
)
from kolo.hps._files import check_object
from kolo.hps._results import write_rows
from kolo.search import Sampler, algorithms


def negative_square(config):
    return -((config["x"] - 2) ** 2)


def sometimes(config):
    return "F_odd" if config["n"] % 2 else float(config["n"])


def inverse(config):
    return 1 / config["x"]


def plus_or_die(config):
    if config["x"] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return config["x"] + 1


class AskAndTell(unittest.TestCase):
    def test_every_algorithm(self):
        space = {"x": tune.uniform(-2, 2), "n": tune.randint(0, 5), "c": tune.choice(["a", "b"])}
        for name in algorithms():
            if name in ("concurrency_limiter", "repeater", "grid"):
                continue
            sampler = Sampler(space, name, seed=3)
            for _ in range(15):
                trial = sampler.ask()
                self.assertTrue(-2 <= trial.config["x"] <= 2)
                sampler.tell(trial, trial.config["x"] ** 2)
            self.assertTrue(sampler.explain())

    def test_it_finds_the_optimum(self):
        sampler = Sampler({"x": tune.uniform(-5, 5)}, "gp", "maximize", seed=1)
        for _ in range(25):
            trial = sampler.ask()
            sampler.tell(trial, negative_square(trial.config))
        self.assertAlmostEqual(sampler.best.config["x"], 2, delta=0.2)

    def test_the_same_seed_gives_the_same_answers(self):
        def configs():
            sampler = Sampler({"x": tune.uniform(0, 1)}, "tpe", seed=5)
            out = []
            for _ in range(20):
                trial = sampler.ask()
                out.append(trial.config["x"])
                sampler.tell(trial, trial.config["x"])
            return out

        self.assertEqual(configs(), configs())

    def test_failures_and_results_from_elsewhere(self):
        sampler = Sampler({"x": tune.uniform(0, 1)}, "tpe", points_to_evaluate=[{"x": 0.25}])
        sampler.add({"x": 0.5}, 1.0)
        trials = sampler.ask(3)
        self.assertEqual(trials[0].config, {"x": 0.25})
        sampler.tell(trials[0], None)
        sampler.report(trials[1], 1, 0.5)
        sampler.tell(trials[1], 0.5, state="pruned")
        with self.assertRaises(kolo.Error):
            sampler.tell(trials[0], 1.0)
        with self.assertRaises(kolo.Error):
            sampler.tell(99, 1.0)

    def test_what_is_not_finite_is_never_best(self):
        for directions, worst in (("minimize", -math.inf), ("maximize", math.inf)):
            sampler = Sampler({"x": tune.uniform(0, 1)}, "random", directions)
            for value in (math.nan, worst):
                sampler.tell(sampler.ask(), value)
            with self.assertRaises(LookupError):
                sampler.best
            sampler.tell(sampler.ask(), 2.0)
            sampler.tell(sampler.ask(), math.nan)
            self.assertEqual(sampler.best.values, [2.0])

    def test_bad_calls(self):
        for wrong in (
            lambda: Sampler({"x": tune.uniform(0, 1)}, "nonsense"),
            lambda: Sampler({"x": tune.uniform(0, 1)}, directions="up"),
            lambda: Sampler({"x": tune.uniform(0, 1)}, "tpe", nonsense=1),
            lambda: Sampler({"x": tune.uniform(0, 1)}).ask(0),
            lambda: Sampler({"x": tune.uniform(0, 1)}).add({"y": 1}, 1.0),
        ):
            with self.assertRaises(kolo.Error):
                wrong()


class Problems(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def problem(self):
        problem = HpProblem()
        problem.add_hyperparameter((-10.0, 10.0), "x", 1.0)
        problem.add_hyperparameter((1, 9), "n")
        problem.add_hyperparameter(["sgd", "adam"], "optimizer")
        problem.add_hyperparameter((0.0, 1.0), "momentum")
        problem.add_condition("momentum", equals("optimizer", "sgd"))
        return problem

    def test_rules(self):
        problem = self.problem()
        self.assertEqual(problem.hyperparameter_names, ["momentum", "n", "optimizer", "x"])
        self.assertEqual(problem.default_configuration["x"], 1.0)
        self.assertEqual(problem.default_configuration["n"], 5)
        with self.assertRaises(ValueError):
            problem.add_hyperparameter((0, 1), "x")
        with self.assertRaises(ValueError):
            problem.add_hyperparameter((3, 1), "y")
        with self.assertRaises(ValueError):
            problem.add_hyperparameter((0.0, 1.0, "log-uniform"), "y")
        with self.assertRaises(ValueError):
            problem.add_starting_point(x=100.0)
        with self.assertRaises(ValueError):
            problem.check_configuration({"x": 99.0})
        problem.add_starting_point(x=2.0)
        problem.add_forbidden_clause(greater("n", 8))
        self.assertIn("kolo_problem", problem.to_json())

    def test_a_search(self):
        evaluator = Evaluator.create(
            negative_square, method="thread", method_kwargs={"num_workers": 2}
        )
        search = CBO(self.problem(), evaluator, random_state=1, log_dir=self._folder.name)
        search.search(max_evals=40)
        self.assertEqual(len(search.rows), 40)
        self.assertGreater(max(row["objective"] for row in search.rows), -1)
        for row in search.rows:
            self.assertEqual("momentum" in row, row["optimizer"] == "sgd")
        with open(os.path.join(self._folder.name, "results.csv")) as file:
            self.assertEqual(len(list(csv.DictReader(file))), 40)

    def test_failures_are_recorded(self):
        problem = HpProblem()
        problem.add_hyperparameter((1, 9), "n")
        search = RandomSearch(problem, sometimes, random_state=2, log_dir=self._folder.name)
        search.search(max_evals=20)
        for row in search.rows:
            self.assertEqual(row["objective"], "F_odd" if row["n"] % 2 else row["n"])

    def test_processes(self):
        evaluator = Evaluator.create(negative_square, "process", {"num_workers": 2})
        search = RandomSearch(
            self.problem(), evaluator, log_dir=self._folder.name, columns="prefixed"
        )
        search.search(max_evals=2)
        self.assertTrue(all("p:x" in row and "m:timestamp_gather" in row for row in search.rows))
        self.assertEqual([row["job_status"] for row in search.rows], ["DONE", "DONE"])

    def test_evaluations_that_take_items_from_a_queue(self):
        evaluator = queued(SerialEvaluator)(
            lambda config, dequed: config["x"] + dequed[0], queue=[1, 2, 3], queue_pop_per_task=1
        )
        results = []
        for _ in range(4):
            evaluator.submit([{"x": 10}])
            results.append(evaluator.gather("ALL")[0].result)
        self.assertEqual(results, [11, 12, 13, 11])
        several = queued(ThreadPoolEvaluator)(
            lambda config, dequed: float(len(dequed)),
            num_workers=3,
            queue=range(4),
            queue_pop_per_task=2,
        )
        search = RandomSearch(self.problem(), several, log_dir=self._folder.name)
        search.search(max_evals=8)
        self.assertEqual({row["objective"] for row in search.rows}, {2.0})
        self.assertEqual(sorted(several.queue), [0, 1, 2, 3])
        with self.assertRaises(ValueError):
            queued(SerialEvaluator)(negative_square, queue=[1], queue_pop_per_task=2)

    def test_columns_and_profile(self):
        evaluator = SerialEvaluator(profile(lambda config: {"objective": 1.0, "epochs": 5}))
        evaluator.submit([{"x": 3}])
        evaluator.gather("ALL")
        evaluator.dump_evals(self._folder.name)
        with open(os.path.join(self._folder.name, "results.csv")) as file:
            self.assertEqual(
                file.readline().strip(),
                "x,job_id,objective,epochs,timestamp_submit,timestamp_gather,timestamp_start,"
                "timestamp_end",
            )
        search = RandomSearch(self.problem(), negative_square, log_dir=self._folder.name)
        search.search(max_evals=1)
        self.assertEqual(
            list(search.rows[0])[-4:],
            ["job_id", "objective", "timestamp_submit", "timestamp_gather"],
        )

    def test_spaces_of_configspace(self):
        """By classes that look like those of ConfigSpace, which is not here."""

        def kind(word, **members):
            members.setdefault("default_value", None)
            made = type(word, (), {"__module__": "ConfigSpace.hyperparameters"})()
            made.__dict__.update(members)
            return made

        rate = kind("UniformFloatHyperparameter", name="rate", lower=1e-3, upper=1.0, log=True)
        units = kind("UniformIntegerHyperparameter", name="units", lower=1, upper=8, log=False)
        optimizer = kind("CategoricalHyperparameter", name="optimizer", choices=("sgd", "adam"))
        condition = kind("EqualsCondition", child=rate, parent=optimizer, value="sgd")
        problem = HpProblem()
        problem.add_hyperparameters([rate, units])
        problem.add_hyperparameter(optimizer)
        problem.add_condition(condition)
        self.assertEqual(problem.hyperparameter_names, ["optimizer", "rate", "units"])
        search = RandomSearch(problem, lambda config: 0.0, log_dir=self._folder.name)
        search.search(max_evals=10)
        for row in search.rows:
            self.assertEqual("rate" in row, row["optimizer"] == "sgd")
        with self.assertRaises(NotImplementedError):
            problem.add_hyperparameter(kind("BetaFloatHyperparameter", name="beta"))

    def test_bad_calls(self):
        for wrong in (
            lambda: RandomSearch(self.problem(), negative_square, columns="what"),
            lambda: Evaluator.create(3),
            lambda: Evaluator.create(negative_square, "nonsense"),
            lambda: CBO(3, negative_square),
            lambda: CBO(self.problem(), negative_square).search(),
            lambda: CBO(HpProblem(), negative_square).search(max_evals=1),
        ):
            with self.assertRaises(ValueError):
                wrong()


class Optuna(unittest.TestCase):
    def test_a_study(self):
        try:
            import optuna
        except ImportError:
            self.skipTest("optuna is not installed (python3-optuna)")
        from kolo.optuna import KoloSampler

        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def objective(trial):
            x = trial.suggest_float("x", -5, 5)
            y = trial.suggest_int("y", 0, 20, step=5)
            z = trial.suggest_categorical("z", ["a", "b"])
            return (x - 1) ** 2 + abs(y - 10) + (z == "a")

        study = optuna.create_study(sampler=KoloSampler("gp", seed=1))
        study.optimize(objective, n_trials=40)
        self.assertLess(study.best_value, 1.0)
        with self.assertRaisesRegex(ValueError, "did you mean 'tpe'"):
            KoloSampler("tpee")


class OptunaThreads(unittest.TestCase):
    """What of Optuna the sampler is made of is played, since it may not be installed."""

    def setUp(self):
        class Float:
            low, high, log, step = 0.0, 1.0, False, None

        played = {"optuna": mock.MagicMock()}
        for name in ("distributions", "samplers", "trial"):
            played[f"optuna.{name}"] = mock.MagicMock()
        played["optuna.distributions"].CategoricalDistribution = type("Categorical", (), {})
        played["optuna.distributions"].IntDistribution = type("Int", (), {})
        played["optuna.distributions"].FloatDistribution = Float
        played["optuna.samplers"].BaseSampler = object
        modules = mock.patch.dict(sys.modules, played)
        modules.start()
        self.addCleanup(modules.stop)
        sys.modules.pop("kolo.optuna", None)
        self.module = importlib.import_module("kolo.optuna")
        self.addCleanup(vars(kolo).pop, "optuna", None)
        self.Float = Float

    def test_a_space_that_changes_while_another_trial_asks(self):
        study, first, second = mock.Mock(), mock.Mock(number=1), mock.Mock(number=2)
        study.directions = [mock.Mock()]
        study.directions[0].name = "MINIMIZE"
        study.get_trials.return_value = []
        sampler = self.module.KoloSampler("random")
        told = []
        ask, is_asking = Sampler.ask, threading.Event()

        def slow_ask(self):
            asked = ask(self)
            if not is_asking.is_set():
                is_asking.set()
                time.sleep(0.3)
            return asked

        def tell(self, number, values, **more):
            told.append((self, number))

        x, y = self.Float(), self.Float()
        with mock.patch.object(Sampler, "ask", slow_ask), mock.patch.object(Sampler, "tell", tell):
            thread = threading.Thread(
                target=sampler.sample_relative, args=(study, first, {"x": x, "y": y})
            )
            thread.start()
            is_asking.wait(10)
            sampler.sample_relative(study, second, {"x": x})
            thread.join()
            complete = self.module.TrialState.COMPLETE
            sampler.after_trial(study, second, complete, [1.0])
            sampler.after_trial(study, first, complete, [2.0])
        self.assertEqual(told, [(sampler._sampler, 0)])  # the first was of another space


def plus(config, y=0):
    return config["x"] + y


class NamesInFiles(unittest.TestCase):
    def check(self, text, name="run"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my.py")
            pathlib.Path(path).write_text(text)
            check_object(f"{path}:{name}")

    def test_a_name_is_found_without_running_the_file(self):
        for text in (
            "import not_installed\ndef run(config):\n    return 1\n",
            "run = lambda config: 1\n",
            "from other import evaluate as run\n",
            "from other import *\n",
            "if True:\n    try:\n        from other import run\n    except ImportError:\n        pass\n",
            "def __getattr__(name):\n    return len\n",
            "globals().update(run=len)\n",
            "class run:\n    pass\n",
            "def make():\n    global run\n    run = len\nmake()\n",
            "import sys\nsetattr(sys.modules[__name__], 'run', len)\n",
        ):
            self.check(text)

    def test_what_a_file_has_not_is_refused(self):
        for text in (
            "def runn(config):\n    run = 1\n",
            "class Model:\n    def run(self):\n        pass\n",
            "import run_everything\n",
            "",
        ):
            with self.assertRaisesRegex(AttributeError, "has no 'run'"):
                self.check(text)
        with self.assertRaises(SyntaxError):
            self.check("def run(:\n")


class Callbacks(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def search(self, run, max_evals, callbacks=(), problem=None, **options):
        if problem is None:
            problem = hps.HpProblem()
            problem.add_hyperparameter((0.0, 10.0), "x")
        evaluator = hps.Evaluator.create(
            run, method="serial", method_kwargs={"callbacks": list(callbacks)}
        )
        self.last = hps.CBO(
            problem, evaluator, random_state=3, log_dir=self._folder.name, **options
        )
        return self.last.search(max_evals)

    def test_a_search_tells_of_its_evaluations(self):
        seen = []

        class Own(hps.callback.Callback):
            def on_launch(self, job):
                seen.append(("launch", job.id))

            def on_done(self, job):
                seen.append(("done", job.objective == job.config["x"], job.metadata.get("more")))

        profiler = hps.callback.ProfilingCallback()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.search(
                hps.profile(lambda config: {"objective": config["x"], "metadata": {"more": 7}}),
                3,
                [Own(), profiler, hps.callback.LoggerCallback()],
                surrogate_model="DUMMY",
            )
        self.assertEqual(seen.count(("done", True, 7)), 3)
        launched = [number for event, number, *_ in seen if event == "launch"]
        self.assertEqual(launched, [0, 1, 2])
        self.assertEqual(out.getvalue().count("best objective"), 3)
        self.assertEqual(list(profiler.profile["n_jobs_running"]), [1, 0] * 3)

    def test_a_search_that_does_not_improve_ends(self):
        stop = hps.callback.SearchEarlyStopping(patience=4)
        results = self.search(lambda config: 1.0, 200, [stop], surrogate_model="DUMMY")
        self.assertLess(len(results), 20)
        self.assertGreaterEqual(len(results), 5)

    def test_by_hand(self):
        stop = hps.callback.SearchEarlyStopping(patience=2)
        launched = []
        stop.on_launch = launched.append
        evaluator = hps.SerialEvaluator(lambda config: config["x"], callbacks=[stop])
        evaluator.submit([{"x": 3}, {"x": 2}, {"x": 1}])
        self.assertEqual([job["x"] for job in launched], [3, 2, 1])
        with self.assertRaises(hps.callback.SearchTerminationError):
            evaluator.gather("ALL")

    def test_metadata_does_not_replace_objectives(self):
        seen = []

        class Own(hps.callback.Callback):
            def on_done(self, job):
                seen.append((job.objective, job.metadata))

        def run(config):
            more = {"objective": 99, "objective_0": 98, "objective_name": "loss"}
            return {"objective": 1.0, "metadata": more}

        self.search(run, 2, [Own()], surrogate_model="DUMMY")
        self.assertEqual([row["objective"] for row in self.last.rows], [1.0] * 2)
        expected = {"objective_": 99, "objective_0_": 98, "objective_name": "loss"}
        for objective, metadata in seen:
            self.assertEqual(objective, 1.0)
            self.assertEqual({name: metadata.get(name) for name in expected}, expected)

    def rows_of_file(self, pattern="results.csv"):
        (path,) = glob.glob(os.path.join(self._folder.name, pattern))
        with open(path) as file:
            return list(csv.DictReader(file))

    def test_what_was_evaluated_is_kept_when_a_search_is_ended(self):
        class Broken(hps.callback.Callback):
            def __init__(self, error):
                self.left, self.error = 3, error

            def on_done(self, job):
                self.left -= 1
                if self.left == 0:
                    raise self.error

        class Interrupts(Broken):
            def on_done(self, job):
                self.left -= 1
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGINT)

        def run(config):
            time.sleep(0.01)
            return config["x"]

        for callback, error in (
            (Broken(ZeroDivisionError("broken")), ZeroDivisionError),
            (Interrupts(None), KeyboardInterrupt),
        ):
            with self.assertRaises(error):
                self.search(run, 1000, [callback], surrogate_model="DUMMY")
            rows = self.rows_of_file()
            self.assertGreaterEqual(len(rows), 3)
            self.assertEqual(len(rows), len(self.last.rows))
            self.assertEqual([row["objective"] for row in rows], [row["x"] for row in rows])
        # The second search has left what the first has written.
        self.assertEqual(len(self.rows_of_file("earlier-*/results.csv")), 3)

    def test_a_second_search_keeps_the_results_of_the_first(self):
        self.search(lambda config: 1.0, 3, surrogate_model="DUMMY")
        self.search(lambda config: 2.0, 2, surrogate_model="DUMMY")
        self.assertEqual([row["objective"] for row in self.rows_of_file()], ["2.0"] * 2)
        earlier = self.rows_of_file("earlier-*/results.csv")
        self.assertEqual([row["objective"] for row in earlier], ["1.0"] * 3)

    def test_what_is_not_finite_does_not_improve(self):
        stop = hps.callback.SearchEarlyStopping(patience=3)
        log = hps.callback.LoggerCallback()
        job = hps.Evaluator(lambda config: 0.0)  # any object
        with contextlib.redirect_stdout(io.StringIO()) as out:
            with self.assertRaises(hps.callback.SearchTerminationError):
                for job.objective in (math.nan, math.inf, 1.0, math.nan, "F_nan", -math.inf, 0.5):
                    log.on_done(job)
                    stop.on_done(job)
        self.assertEqual(job.objective, 0.5)
        self.assertNotIn("inf -- this", out.getvalue())
        self.assertEqual(stop._best, 1.0)

    def test_objectives_that_were_not_declared(self):
        results = self.search(lambda config: (config["x"], 2.0), 3, surrogate_model="DUMMY")
        self.assertEqual(list(results["objective_0"]), list(results["x"]))
        self.assertEqual(list(results["objective_1"]), [2.0] * 3)
        self.assertNotIn("objective", results)

    def test_points_first_and_results_of_an_earlier_search(self):
        problem = hps.HpProblem()
        problem.add_hyperparameter((0.0, 10.0), "x")
        problem.add_hyperparameter((1, 5), "n")
        problem.add_hyperparameter(["a", "b"], "kind")

        def run(config):
            return -((config["x"] - 9) ** 2)

        points = [{"x": 1.0, "n": 2, "kind": "b"}]
        first = self.search(run, 30, problem=problem, initial_points=points)
        self.assertEqual(first.loc[0, ["x", "n", "kind"]].to_dict(), points[0])
        for known in (first, os.path.join(self._folder.name, "results.csv")):
            evaluator = hps.Evaluator.create(run)
            with tempfile.TemporaryDirectory() as folder:
                search = hps.CBO(
                    problem, evaluator, random_state=5, log_dir=folder, n_initial_points=1
                )
                search.fit_surrogate(known)
                self.assertEqual(len(search._known), 30)
                self.assertIsInstance(search._known[0][0]["n"], int)
                self.assertGreater(search.search(8)["x"].median(), 5)

    def test_initial_points_are_drawn_from_the_best_of_an_earlier_search(self):
        problem = hps.HpProblem()
        problem.add_hyperparameter((0.0, 10.0), "x")
        problem.add_hyperparameter(["a", "b"], "kind")
        problem.add_hyperparameter((1, 100), "n")
        earlier = [
            {"p:x": i / 10, "p:kind": "ab"[i % 2], "p:n": i % 100 + 1, "objective": i * (i % 2)}
            for i in range(100)
        ]
        earlier.append({**earlier[0], "objective": "F_error"})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "earlier.csv")
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, list(earlier[0]))
                writer.writeheader()
                writer.writerows(earlier)
            for known in (earlier, path, pathlib.Path(path)):
                search = hps.CBO(
                    problem,
                    lambda config: config["x"],
                    random_state=5,
                    log_dir=folder,
                    n_initial_points=12,
                    initial_points=[{"x": 1.0, "kind": "a", "n": 1}],
                )
                model = search.fit_generative_model(known)
                # The best tenth has x from 8.1 on, and kind "b".
                self.assertEqual(len(search._points), 13)
                drawn = search._points[1:]
                self.assertGreater(statistics.median(one["x"] for one in drawn), 7)
                self.assertGreater([one["kind"] for one in drawn].count("b"), 8)
                self.assertIn(model.ask().config["kind"], ("a", "b"))
            found = search.search(13)
            found = found if isinstance(found, list) else found.to_dict("records")
            self.assertEqual({row["x"] for row in found}, {one["x"] for one in search._points})
            for wrong, text in (
                (lambda: search.fit_generative_model(earlier[:9]), "10 are needed"),
                (lambda: search.fit_generative_model(earlier, q=1), "between 0 and 1"),
                (lambda: search.fit_generative_model([{"x": 1}]), "no column 'objective'"),
                (lambda: search.fit_surrogate([{"objective": 1, "x": 1}]), "no column 'kind'"),
                (lambda: search.fit_surrogate(3), "neither a frame nor the path"),
            ):
                with self.assertRaisesRegex(ValueError, text):
                    wrong()
            with self.assertRaisesRegex(NotImplementedError, "fit_generative_model"):
                search.fit_search_space(earlier)
            # One that was inactive in all rows has no column.
            problem.add_hyperparameter((0.0, 1.0), "momentum")
            problem.add_condition("momentum", greater("x", 9.95))
            hps.CBO(problem, lambda config: 1).fit_surrogate(earlier)

    def test_options_of_deephyper(self):
        with self.assertWarns(UserWarning):
            self.search(
                lambda config: 1,
                2,
                acq_func="gp_hedge",
                n_jobs=2,
                acq_optimizer="sampling",
                multi_point_strategy="cl_max",
                filter_failures="mean",
                n_points=100,
            )


class Evaluators(unittest.TestCase):
    def test_by_hand(self):
        configs = [{"x": i} for i in range(6)]
        for method in ("serial", "thread", "process"):
            evaluator = Evaluator.create(
                plus, method, {"num_workers": 2, "run_function_kwargs": {"y": 1}}
            )
            evaluator.submit(configs)
            first = evaluator.gather("BATCH", size=2)
            self.assertGreaterEqual(len(first), 2)
            jobs = first + evaluator.gather("ALL")
            self.assertEqual(
                sorted((job.config["x"], job.result) for job in jobs),
                [(i, i + 1) for i in range(6)],
            )
        with self.assertRaises(ValueError):
            evaluator.gather("SOME")

    def test_an_evaluation_that_raises_loses_no_other(self):
        for method in ("serial", "thread", "process"):
            evaluator = Evaluator.create(inverse, method)
            evaluator.submit([{"x": x} for x in (1, 0, 2, 0)])
            for _ in range(2):
                with self.assertRaises(ZeroDivisionError):
                    evaluator.gather("ALL")
            self.assertEqual([job.result for job in evaluator.gather("ALL")], [1.0, 0.5])
            self.assertEqual(len(evaluator.jobs_done), 2)
            self.assertEqual(evaluator.gather("ALL"), [])

    def test_a_process_that_is_killed_takes_no_later_evaluation(self):
        evaluator = Evaluator.create(plus_or_die, "process", {"num_workers": 1})
        for x, is_killed in ((1, False), (0, True), (2, False)):
            evaluator.submit([{"x": x}])
            if is_killed:
                with self.assertRaises(BrokenExecutor):
                    evaluator.gather("ALL")
            else:
                self.assertEqual([job.result for job in evaluator.gather("ALL")], [x + 1])

    def test_other_metrics_get_columns_of_their_own(self):
        metadata = [{"a": 1, "x": 5}, {"b": 2}, {"b": 3}, {"c": 4, "job_id": 6}]
        evaluator = Evaluator(lambda c: {"objective": 1, "metadata": metadata[c["x"]]}, "serial")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.csv")
            with open(path, "w") as file:
                file.write("of somebody else")
            for places in ([0, 1], [2], [3]):
                evaluator.submit([{"x": x} for x in places])
                evaluator.gather("ALL")
                evaluator.dump_evals(folder)
            with open(path) as file:
                rows = list(csv.DictReader(file))
            (earlier,) = glob.glob(os.path.join(folder, "earlier-*", "results.csv"))
            with open(earlier) as file:
                self.assertEqual(file.read(), "of somebody else")
        names = ("x", "job_id", "a", "b", "c", "x_", "job_id_")
        self.assertEqual(
            [tuple(row[name] for name in names) for row in rows],
            [
                ("0", "0", "1", "", "", "5", ""),
                ("1", "1", "", "2", "", "", ""),
                ("2", "2", "", "3", "", "", ""),
                ("3", "3", "", "", "4", "", "6"),
            ],
        )
        self.assertTrue(all(row["timestamp_gather"] for row in rows))

    def test_a_full_disk_takes_no_half_of_a_result(self):
        evaluator = Evaluator(lambda config: {"objective": 1, "text": config["x"]}, "serial")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.csv")
            for text in ("a", "b" * 5000):
                evaluator.submit([{"x": text}])
                evaluator.gather("ALL")
                if text == "a":
                    evaluator.dump_evals(folder)
            before = pathlib.Path(path).read_bytes()
            with full_disk(2000), self.assertRaises(OSError):
                evaluator.dump_evals(folder)
            self.assertEqual(pathlib.Path(path).read_bytes(), before)
            evaluator.dump_evals(folder)
            with open(path) as file:
                self.assertEqual([row["x"][0] for row in csv.DictReader(file)], ["a", "b"])
            with full_disk(2000), self.assertRaises(OSError):
                write_rows(path, [{"x": "c" * 5000}], ["x"])
            self.assertEqual(os.listdir(folder), ["results.csv"])

    def test_a_search_on_a_full_disk_has_its_results(self):
        problem = hps.HpProblem()
        problem.add_hyperparameter(["a" * 3000, "b" * 3000], "x")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "results.csv.part"))  # in the way
            search = hps.RandomSearch(problem, Evaluator(lambda c: 1.0, "serial"), log_dir=folder)
            with self.assertWarnsRegex(UserWarning, "results.csv cannot be written"):
                self.assertEqual(len(search.search(2)), 2)

    def test_results_in_any_language(self):
        program = (
            "from kolo.hps._results import append_rows, read_rows, write_rows\n"
            "rows = [{'x': 'm\\u00fcde \\udc80'}]\n"
            "write_rows('results.csv', rows, ['x'])\n"
            "append_rows('results.csv', rows, ['x'])\n"
            "assert read_rows('results.csv') == rows * 2\n"
        )
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", program]
            subprocess.run(command, cwd=folder, env={**os.environ, **plain}, check=True)

    def test_results_are_written(self):
        @hps.profile
        def run(config):
            return {"objective": (1.0, config["x"]), "epochs": 3}

        with tempfile.TemporaryDirectory() as folder:
            evaluator = Evaluator(run, "serial")
            for _ in range(2):
                evaluator.submit([{"x": 4}])
                evaluator.gather("ALL")
                evaluator.dump_evals(log_dir=folder)
            with open(os.path.join(folder, "results.csv")) as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row["objective_1"] for row in rows], ["4", "4"])
        self.assertEqual([row["job_id"] for row in rows], ["0", "1"])
        self.assertEqual(rows[0]["epochs"], "3")
        self.assertLessEqual(float(rows[0]["timestamp_start"]), float(rows[0]["timestamp_end"]))

    def test_surrogate_models(self):
        problem = hps.HpProblem()
        problem.add_hyperparameter((0.0, 10.0), "x")
        with self.assertRaises(hps.SpaceDimNameOfWrongType):
            problem.add_hyperparameter((0, 1), 0)
        with tempfile.TemporaryDirectory() as folder:
            for model in ("DUMMY", "GP", "RF", "ET"):
                found = [
                    hps.CBO(
                        problem,
                        Evaluator(plus, "serial"),
                        random_state=42,
                        log_dir=folder,
                        surrogate_model=model,
                    ).search(4)
                    for _ in range(2)
                ]
                self.assertEqual(list(found[0]["x"]), list(found[1]["x"]), model)


if __name__ == "__main__":
    unittest.main(verbosity=0)
