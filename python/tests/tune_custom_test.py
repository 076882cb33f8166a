"""Searches and schedulers that are written in Python, and studies that are read again."""

import json
import os
import unittest

from study_case import StudyCase

import kolo
from kolo import tune
from kolo.tune.schedulers import (
    ASHAScheduler,
    FIFOScheduler,
    HyperBandScheduler,
    TrialScheduler,
)
from kolo.tune.suggest import ConcurrencyLimiter, Searcher
from kolo.tune.suggest.bayesopt import BayesOptSearch


def square(config):
    tune.report(loss=config["x"] ** 2, seen=config["more"]["note"])


def epochs(config):
    for epoch in range(6):
        tune.report(score=config["x"] * (epoch + 1))


class Halving(Searcher):
    """Halves the best so far. It knows what it was told, and nothing of kolo."""

    def __init__(self, count):
        super().__init__(metric="loss", mode="min")
        self.left = count
        self.best = 64.0
        self.live = {}
        self.told = []

    def suggest(self, trial_id):
        if self.left == 0:
            return Searcher.FINISHED
        self.left -= 1
        self.live[trial_id] = self.best / 2
        return {"x": self.live[trial_id], "more": {"note": trial_id}}

    def on_trial_complete(self, trial_id, result=None, error=False):
        x = self.live.pop(trial_id)
        self.told.append((trial_id, error, None if error else result["loss"]))
        if not error and result["loss"] == x**2:
            self.best = min(self.best, x)


class Impatient(FIFOScheduler):
    """Stops whoever has reported a third time and has less than 10, and pauses once."""

    def __init__(self):
        super().__init__()
        self.added, self.ended, self.paused = [], [], set()

    def on_trial_add(self, trial_runner, trial):
        self.added.append(trial.config["x"])

    def on_trial_result(self, trial_runner, trial, result):
        assert trial in trial_runner.get_trials()
        assert result is trial.last_result
        if result["training_iteration"] == 3 and result["score"] < 10:
            return TrialScheduler.STOP
        if result["training_iteration"] == 4 and trial.trial_id not in self.paused:
            self.paused.add(trial.trial_id)
            return TrialScheduler.PAUSE
        return TrialScheduler.CONTINUE

    def on_trial_complete(self, trial_runner, trial, result):
        self.ended.append((trial.config["x"], result["training_iteration"]))


class Known:
    """As much of a trial as a scheduler needs."""

    def __init__(self, trial_id):
        self.trial_id = trial_id


class Custom(StudyCase):
    cpus = 2

    def test_a_search_of_ones_own(self):
        search = Halving(5)
        analysis = self.run_study(
            square,
            config={"fixed": 3, "more": {"other": 1}},
            num_samples=-1,
            search_alg=search,
            max_concurrent_trials=1,
        )
        self.assertEqual([t.config["x"] for t in analysis.trials], [32, 16, 8, 4, 2])
        self.assertEqual(analysis.trials[4].config["more"], {"note": "00004", "other": 1})
        self.assertEqual(analysis.best_config["fixed"], 3)
        self.assertEqual([told[0] for told in search.told], [f"{n:05d}" for n in range(5)])
        self.assertEqual(analysis.trials[3].last_result["seen"], "00003")

    def test_files_have_what_was_suggested_or_chosen_and_nothing_of_how(self):
        self.run_study(square, num_samples=2, search_alg=Halving(2), loggers=None, name="own")
        self.run_study(
            lambda config: tune.report(loss=1),
            config={"o": tune.choice([tune.uniform(0, 1), tune.uniform(2, 3)])},
            num_samples=2,
            loggers=None,
            name="nested",
        )
        written = []
        for study, names in (("own", {"x", "more"}), ("nested", {"o"})):
            for folder, _, files in os.walk(os.path.join(self._folder.name, study)):
                self.assertNotIn("__kolo", folder)
                for file in files:
                    with open(os.path.join(folder, file), "rb") as content:
                        self.assertNotIn(b"__kolo", content.read(), file)
                if "params.json" in files:
                    with open(os.path.join(folder, "params.json")) as content:
                        self.assertEqual(set(json.load(content)), names)
                    written.append(folder)
        self.assertEqual(len(written), 4)

    def test_trials_of_such_a_search_in_processes(self):
        analysis = self.run_study(square, num_samples=2, search_alg=Halving(9), executor="process")
        self.assertEqual(sorted(t.last_result["seen"] for t in analysis.trials), ["00000", "00001"])

    def test_a_search_that_is_limited_and_fails(self):
        class Odd(Halving):
            def suggest(self, trial_id):
                assert len(self.live) == 0, "limited to one at a time"
                return super().suggest(trial_id)

        def fails(config):
            if config["more"]["note"] == "00001":
                raise KeyError("no")
            square(config)

        search = Odd(3)
        analysis = self.run_study(
            fails,
            num_samples=3,
            search_alg=ConcurrencyLimiter(search, max_concurrent=1),
            raise_on_failed_trial=False,
        )
        self.assertEqual([told[1] for told in search.told], [False, True, False])
        self.assertEqual(len(analysis.trials), 3)

        class Broken(Searcher):
            def suggest(self, trial_id):
                raise KeyError("inside of suggest")

        with self.assertRaisesRegex(kolo.Error, "inside of suggest"):
            self.run_study(square, num_samples=1, search_alg=Broken())
        with self.assertRaisesRegex(ValueError, "search space"):
            self.run_study(square, config={"x": tune.uniform(0, 1)}, search_alg=Halving(1))

    def test_searches_of_kolo_trial_by_trial(self):
        search = BayesOptSearch(metric="loss", mode="min", random_search_steps=3)
        space = {"x": tune.uniform(0, 1)}
        self.assertTrue(search.set_search_properties(None, None, space))
        for number in range(6):
            config = search.suggest(str(number))
            search.on_trial_complete(str(number), {"loss": config["x"]})
        path = os.path.join(self._folder.name, "state")
        search.save(path)
        other = BayesOptSearch(metric="loss", mode="min", random_search_steps=3)
        other.restore(path)
        self.assertEqual(other.suggest("6"), search.suggest("6"))
        with self.assertRaisesRegex(ValueError, "needs a space"):
            BayesOptSearch().suggest("1")

    def test_a_scheduler_of_ones_own(self):
        scheduler = Impatient()
        analysis = self.run_study(
            epochs, config={"x": tune.grid_search([1, 3, 5])}, scheduler=scheduler
        )
        self.assertEqual(sorted(scheduler.added), [1, 3, 5])
        self.assertEqual(sorted(scheduler.ended), [(1, 3), (3, 3), (5, 6)])
        counts = {t.config["x"]: t.last_result["training_iteration"] for t in analysis.trials}
        self.assertEqual(counts, {1: 3, 3: 3, 5: 6})
        self.assertEqual(len(scheduler.paused), 1)

    def test_a_scheduler_that_answers_nonsense(self):
        class Nonsense(FIFOScheduler):
            def on_trial_result(self, trial_runner, trial, result):
                return "MAYBE"

        with self.assertRaisesRegex(kolo.Error, "MAYBE"):
            self.run_study(epochs, config={"x": 1}, scheduler=Nonsense())
        with self.assertRaisesRegex(NotImplementedError, "derive"):
            HyperBandScheduler().on_trial_result(None, None, {})
        with self.assertRaisesRegex(ValueError, "metric and mode"):
            ASHAScheduler().on_trial_result(None, None, {})
        with self.assertRaisesRegex(ValueError, "the result has no 'score'"):
            ASHAScheduler(metric="score", mode="max").on_trial_result(None, None, {"los": 1})

    def test_a_scheduler_that_listens_to_asha(self):
        class Listening(ASHAScheduler):
            def __init__(self, **settings):
                super().__init__(metric="score", mode="max", max_t=6, **settings)
                self.answers = []

            def on_trial_result(self, trial_runner, trial, result):
                answer = super().on_trial_result(trial_runner, trial, result)
                self.answers.append(answer)
                return answer

        self.cpus = 1
        settings = {"grace_period": 1, "reduction_factor": 2}
        grid = {"x": tune.grid_search([3, 1, 5, 2, 4])}
        own = Listening(**settings)
        kolos = ASHAScheduler(metric="score", mode="max", max_t=6, **settings)
        counts = [
            [t.last_result["training_iteration"] for t in analysis.trials]
            for analysis in (
                self.run_study(epochs, config=grid, scheduler=scheduler)
                for scheduler in (own, kolos)
            )
        ]
        self.assertEqual(counts[0], counts[1])
        self.assertIn(1, counts[0])
        self.assertIn("STOP", own.answers)

    def test_a_scheduler_without_a_study(self):
        def decide(one, name, loss):
            result = {"training_iteration": 1, "loss": loss}
            return one.on_trial_result(None, Known(name), result)

        path = os.path.join(self._folder.name, "asha")
        scheduler = ASHAScheduler(metric="loss", mode="min", max_t=9, reduction_factor=3)
        self.assertEqual(decide(scheduler, "a", 1.0), "CONTINUE")
        self.assertEqual(decide(scheduler, "b", 2.0), "STOP")
        scheduler.on_trial_complete(None, Known("b"), {"training_iteration": 1, "loss": 2.0})
        scheduler.on_trial_error(None, Known("a"))
        scheduler.on_trial_complete(None, Known("unknown"), {})
        scheduler.save(path)
        again = ASHAScheduler(metric="loss", mode="min", max_t=9, reduction_factor=3)
        again.restore(path)
        for one in (scheduler, again):
            self.assertEqual(decide(one, "best", 0.5), "CONTINUE")
            self.assertEqual(decide(one, "worst", 4.0), "STOP")

    def test_a_study_is_read_again(self):
        analysis = self.run_study(epochs, config={"x": tune.grid_search([1, 2])}, name="again")
        read = tune.ExperimentAnalysis(os.path.join(self._folder.name, "again"))
        self.assertEqual(read.results, analysis.results)
        self.assertEqual(read.get_best_config("score", "max"), {"x": 2})
        with self.assertRaises(ValueError):
            tune.ExperimentAnalysis(os.path.join(self._folder.name, "nothing"))

    def test_grids_of_lists(self):
        analysis = self.run_study(
            lambda config: {"n": len(config["layers"])},
            config={"layers": tune.grid_search([[1, 2], [3]])},
        )
        self.assertEqual([t.config["layers"] for t in analysis.trials], [[1, 2], [3]])


if __name__ == "__main__":
    unittest.main(verbosity=0)
