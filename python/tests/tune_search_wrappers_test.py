"""Searches around others, with batches and repetitions; and results from elsewhere."""

import unittest

import numpy as np
from study_case import StudyCase

from kolo import tune
from kolo.tune.search import ConcurrencyLimiter, Repeater, Searcher
from kolo.tune.suggest.bayesopt import BayesOptSearch


def rising(config):
    for step in range(3):
        tune.report(score=config["x"] * (step + 1), step=step)


class Listed(Searcher):
    """Suggests 0, 1, 2 and so on, and remembers what it is told."""

    def __init__(self):
        super().__init__("score", "max")
        self.next, self.told = 0, []

    def suggest(self, trial_id):
        self.next += 1
        return {"x": self.next - 1}

    def on_trial_complete(self, trial_id, result=None, error=False):
        self.told.append((trial_id, result and result["score"], error))


class PatienceTest(StudyCase):
    def trials_of(self, **options):
        search = BayesOptSearch({"x": tune.choice([1, 2, 3])}, "score", "max", **options)
        return self.run_study(rising, search_alg=search, num_samples=30).trials

    def test_a_search_that_repeats_itself_is_finished(self):
        tried = [trial.config["x"] for trial in self.trials_of(patience=2)]
        self.assertEqual(set(tried), {1, 2, 3})
        self.assertLessEqual(max(tried.count(x) for x in tried), 2)
        self.assertEqual(len(self.trials_of(patience=None)), 30)
        self.assertLess(len(self.trials_of()), 30)
        with self.assertRaises(ValueError):
            BayesOptSearch(patience=0)

    def test_trial_by_trial(self):
        search = BayesOptSearch({"x": tune.choice([1, 2])}, "score", "max", patience=1)
        for trial_id in ("a", "b"):
            search.on_trial_complete(trial_id, {"score": search.suggest(trial_id)["x"]})
        self.assertEqual(search.suggest("c"), Searcher.FINISHED)


class WrapperTest(StudyCase):
    def test_batches(self):
        inner = Listed()
        search = ConcurrencyLimiter(inner, max_concurrent=2, batch=True)
        self.assertEqual([search.suggest(t) for t in "abc"], [{"x": 0}, {"x": 1}, None])
        search.on_trial_complete("a", {"score": 1})
        self.assertEqual((inner.told, search.suggest("c")), ([], None))
        search.on_trial_complete("b", error=True)
        self.assertEqual(inner.told, [("a", 1, False), ("b", None, True)])
        self.assertEqual(search.suggest("c"), {"x": 2})
        search.on_trial_complete("unknown", {"score": 1})
        self.assertEqual(len(inner.told), 2)

    def test_a_batch_that_is_not_filled(self):
        inner = Listed()
        search = ConcurrencyLimiter(ConcurrencyLimiter(inner, 2), max_concurrent=3, batch=True)
        self.assertEqual([search.suggest(t) for t in "abc"], [{"x": 0}, {"x": 1}, None])
        search.on_trial_complete("a", {"score": 1})
        search.on_trial_complete("b", {"score": 2})
        self.assertEqual([search.suggest(t) for t in "cde"], [{"x": 2}, {"x": 3}, None])
        search.on_trial_complete("c", {"score": 3})
        search.on_trial_cleanup("d")
        self.assertEqual([told[0] for told in inner.told], ["a", "b", "c"])

    def test_batches_of_a_search_of_kolo(self):
        search = ConcurrencyLimiter(
            tune.search.OptunaSearch(metric="score", mode="max", seed=1), 2, batch=True
        )
        analysis = self.run_study(
            rising, config={"x": tune.uniform(0, 1)}, search_alg=search, num_samples=4
        )
        self.assertEqual(len(analysis.trials), 4)

    def test_repetitions(self):
        inner = Listed()
        search = Repeater(inner, repeat=2)
        drawn = [search.suggest(t) for t in "abcd"]
        self.assertEqual([one["x"] for one in drawn], [0, 0, 1, 1])
        self.assertEqual([one["__trial_index__"] for one in drawn], [0, 1, 0, 1])
        search.on_trial_complete("a", {"score": 1})
        search.on_trial_complete("c", error=True)
        self.assertEqual(inner.told, [])
        search.on_trial_complete("b", {"score": 2})
        search.on_trial_complete("d", error=True)
        self.assertEqual(inner.told, [("a", 1.5, False), ("c", None, True)])
        analysis = self.run_study(
            rising, search_alg=Repeater(Listed(), 2, set_index=False), num_samples=4
        )
        self.assertEqual(sorted(t.config["x"] for t in analysis.trials), [0, 0, 1, 1])
        with self.assertRaises(ValueError):
            Repeater(inner, 0)


    def test_repetitions_that_are_not_finite(self):
        nan, inf = float("nan"), float("inf")
        for scores, told in (
            ([1, nan, 3], ("0", 2.0, False)),
            ([inf, 3, 3], ("0", 3.0, False)),
            ([nan, -inf, nan], ("0", None, True)),
            ([4, None, "late"], ("0", 4.0, False)),
            ([np.float32(2), np.int64(4), np.float32(nan)], ("0", 3.0, False)),
        ):
            inner = Listed()
            search = Repeater(inner, repeat=3)
            for number, score in enumerate(scores):
                search.suggest(str(number))
                search.on_trial_complete(str(number), {} if score is None else {"score": score})
            self.assertEqual(inner.told, [told])

    def test_repetitions_of_several_objectives(self):
        inner = Listed()
        inner.metric, inner.mode = ["score", "more/cost"], ["max", "min"]
        search = Repeater(inner, repeat=2)
        for trial_id, score in (("a", 1), ("b", 3)):
            search.suggest(trial_id)
            search.on_trial_complete(trial_id, {"score": score, "more": {"cost": 2 * score}})
        self.assertEqual(inner.told, [("a", 2.0, False)])

    def test_a_result_without_the_metric_is_a_failure(self):
        search = tune.search.OptunaSearch({"x": tune.uniform(0, 1)}, "score", "max", seed=1)
        for trial_id, result in (("a", {"other": 1}), ("b", {"score": None}), ("c", {"score": 1})):
            search.suggest(trial_id)
            search.on_trial_complete(trial_id, result)
        self.assertEqual(len(search.suggest("d")), 1)


class EvaluatedTest(StudyCase):
    space = {"x": tune.uniform(0, 10)}

    def suggested(self, search, known):
        """The mean of what is suggested after results with the best at 9."""
        for x in known:
            search.add_evaluated_point({"x": x}, -((x - 9) ** 2))
        return sum(search.suggest(f"{n}")["x"] for n in range(8)) / 8

    def test_a_search_learns_from_points_of_others(self):
        known = [one / 2 for one in range(20)]
        for make in (
            lambda: tune.search.OptunaSearch(self.space, "score", "max", seed=3),
            lambda: tune.search.BayesOptSearch(
                self.space, "score", "max", utility_kwargs={"kind": "ucb", "kappa": 0.1}
            ),
        ):
            self.assertGreater(self.suggested(make(), known), 6.5)

    def test_of_studies(self):
        first = self.run_study(
            rising, config={"x": tune.grid_search([0, 2, 4, 6, 8, 10])}, metric="score", mode="max"
        )
        search = tune.search.BayesOptSearch(metric="score", mode="max", analysis=first)
        self.assertEqual(len(search.known), 6)
        second = self.run_study(rising, config=self.space, search_alg=search, num_samples=2)
        self.assertGreater(max(t.config["x"] for t in second.trials), 5)

    def test_rewards_of_points(self):
        points = [{"x": 1.0}, {"x": 2.0}]
        search = tune.search.OptunaSearch(
            self.space, "score", "max", points, seed=1, evaluated_rewards=[3.0, 4.0]
        )
        self.assertNotIn(search.suggest("a"), points)
        search.add_evaluated_point({"x": 1.0}, 0, error=True)
        self.assertEqual(len(search.known), 2)
        with self.assertRaisesRegex(ValueError, "evaluated_rewards"):
            tune.search.OptunaSearch(self.space, "score", "max", points, evaluated_rewards=[1])
        with self.assertRaises(NotImplementedError):
            Listed().add_evaluated_point({"x": 1}, 1)
        with self.assertRaisesRegex(ValueError, "kind"):
            tune.search.BayesOptSearch(utility_kwargs={"kind": "best"})


if __name__ == "__main__":
    unittest.main()
