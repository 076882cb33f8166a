"""Studies whose trials change their number of ranks while they run."""

import os
import signal
import time
import unittest

from study_case import StudyCase

import kolo
from kolo import tune
from kolo.air import Checkpoint, session
from kolo.tune.schedulers import (
    ASHAScheduler,
    PopulationBasedTraining,
    ResourceChangingScheduler,
)
from kolo.tune.schedulers.resource_changing_scheduler import (
    DistributeResources,
    DistributeResourcesToTopJob,
    ReuseWorkers,
)

PARTS = 8
STEPS_OF_A_REPORT = 4


def trial(config):
    """Each step has eight parts, which the ranks share out, so that what is reported depends on the
    configuration alone."""
    import numpy

    import kolo.torch as hvd

    hvd.init()
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0, total=0.0, sizes=[])

    @hvd.elastic.run
    def work(state):
        while state.step < STEPS_OF_A_REPORT * config.get("reports", 8):
            mine = [part for part in range(PARTS) if part % hvd.size() == hvd.rank()]
            time.sleep(config.get("pause", 0.005) * len(mine))
            done = kolo.allreduce(numpy.array([float(len(mine))]), op=kolo.Sum)
            state.total += config["x"] * float(done[0])
            state.step += 1
            if hvd.size() not in state.sizes:
                state.sizes.append(hvd.size())
            if state.step % STEPS_OF_A_REPORT == 0:
                bundles = len(tune.get_trial_resources().bundles)
                assert bundles == hvd.size(), (bundles, hvd.size())
                tune.report(total=state.total, steps=state.step, sizes=list(state.sizes))
            if config.get("kill") == state.step and hvd.rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            kolo.barrier()  # fails then, and the others take this step again
            state.commit()

    work(state)


def saving(config):
    """Goes on from its checkpoint."""
    import kolo.torch as hvd

    hvd.init()
    given = session.get_checkpoint()
    kept = given.to_dict() if given else {"step": 0, "total": 0.0}
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, **kept)

    @hvd.elastic.run
    def work(state):
        while state.step < 8:
            time.sleep(0.05)
            state.step += 1
            state.total += config["x"]
            result = {"total": state.total, "step": state.step}
            session.report(result, checkpoint=Checkpoint.from_dict(result))
            state.commit()

    work(state)


def reports_outside(config):
    import kolo.torch as hvd

    hvd.init()
    tune.report(total=1)


class Steps(tune.Trainable):
    def step(self):
        return {"total": 1}


def never_elastic(config):
    return {"total": 1}


class Elastic(StudyCase):
    cpus = 3

    def run_elastic(self, allocation=None, base=None, trainable=trial, **options):
        options.setdefault("metric", "total")
        options.setdefault("mode", "max")
        options.setdefault("resources_per_trial", {"cpu": 1, "ranks": (1, 3)})
        return self.run_study(
            trainable, scheduler=ResourceChangingScheduler(base, allocation), **options
        )

    def check(self, one, reports=8):
        """A trial that came to its end: each step counts once, and each report."""
        result = one.last_result
        self.assertEqual(result["training_iteration"], reports)
        self.assertEqual(result["steps"], reports * STEPS_OF_A_REPORT)
        self.assertEqual(
            [row["steps"] for row in one.results],
            [STEPS_OF_A_REPORT * (i + 1) for i in range(reports)],
        )
        self.assertAlmostEqual(result["total"], one.config["x"] * PARTS * result["steps"])

    def test_a_trial_gets_what_is_free(self):
        for allocation in (DistributeResources(), DistributeResourcesToTopJob(), ReuseWorkers()):
            pause = 0.005
            while True:  # on a slow machine the trial may be over before another rank has come
                analysis = self.run_elastic(
                    allocation, config={"x": 1, "pause": pause}, metric="total", mode="max"
                )
                self.check(analysis.trials[0])
                sizes = analysis.trials[0].last_result["sizes"]
                if sizes[-1] == 3 or pause > 1:
                    break
                pause *= 4
            self.assertEqual(sizes[-1], 3)

    def test_the_range_follows_from_the_allocation(self):
        analysis = self.run_elastic(
            DistributeResources(increase_by={"CPU": 1}, increase_by_times=1),
            config={"x": 1, "pause": 0.02},
            resources_per_trial={"cpu": 1},
        )
        self.check(analysis.trials[0])
        self.assertLessEqual(set(analysis.trials[0].last_result["sizes"]), {1, 2})

    def test_a_function_of_the_shares(self):
        seen = []

        def newest(shares):
            seen.append(shares)
            ranks = [shares.least] * len(shares.trials)
            ranks[-1] = shares.most
            return ranks

        analysis = self.run_elastic(
            newest, config={"x": tune.grid_search([1, 2]), "pause": 0.01}, mode="max"
        )
        for one in analysis.trials:
            self.check(one)
        self.assertTrue(all((s.least, s.most, s.mode) == (1, 3, "max") for s in seen))
        self.assertEqual({share.number for s in seen for share in s.trials}, {0, 1})
        self.assertTrue(any(share.value is not None for s in seen for share in s.trials))

    def test_with_another_scheduler_trials_are_stopped_early(self):
        analysis = self.run_elastic(
            DistributeResourcesToTopJob(metric="total", mode="max"),
            ASHAScheduler(max_t=8, grace_period=1, reduction_factor=2),
            config={"x": tune.grid_search([4, 3, 2, 1])},
        )
        self.assertEqual(len(analysis.trials), 4)
        self.assertTrue(all(one.status == "TERMINATED" for one in analysis.trials))
        iterations = [one.last_result["training_iteration"] for one in analysis.trials]
        self.assertEqual(max(iterations), 8)
        self.assertLess(min(iterations), 8)

    def test_what_a_killed_rank_has_reported_counts_once(self):
        analysis = self.run_elastic(
            config={"x": 1, "pause": 0.03, "kill": 5 * STEPS_OF_A_REPORT},
            resources_per_trial={"cpu": 1, "ranks": (2, 2)},
        )
        self.check(analysis.trials[0])
        self.assertEqual(analysis.trials[0].last_result["sizes"][:2], [2, 1])

    def test_a_report_elsewhere_is_refused_with_what_to_do(self):
        analysis = self.run_elastic(
            trainable=reports_outside, config={"x": 1}, raise_on_failed_trial=False
        )
        self.assertEqual(analysis.trials[0].status, "ERROR")
        self.assertIn("function that elastic.run wraps", analysis.trials[0].error)

    def test_a_function_without_elastic_run_is_refused(self):
        with self.assertRaisesRegex(tune.TuneError, "elastic.run in Python"):
            self.run_elastic(trainable=lambda config: None, config={"x": 1})

    def test_a_population(self):
        mutations = {"x": tune.uniform(1, 2)}
        base = PopulationBasedTraining(
            "training_iteration", perturbation_interval=2, hyperparam_mutations=mutations
        )
        analysis = self.run_elastic(
            DistributeResourcesToTopJob(), base, saving, config={"x": tune.grid_search([1, 2])}
        )
        for one in analysis.trials:
            self.assertEqual((one.status, one.last_result["step"]), ("TERMINATED", 8))
            self.assertEqual(one.last_result["training_iteration"], 8)

    # --- what cannot be meant ---

    def refused(self, text, *arguments, **options):
        with self.assertRaisesRegex(ValueError, text):
            self.run_elastic(*arguments, config={"x": 1}, **options)

    def test_what_cannot_be_meant(self):
        self.refused("is a class", trainable=Steps)
        creator = tune.DistributedTrainableCreator(never_elastic, num_slots=2)
        self.refused("fixed number of ranks", trainable=creator, resources_per_trial=None)
        self.refused("leave executor out", executor="thread")
        self.refused("leave 'gpu' out", resources_per_trial={"cpu": 1, "gpu": 1})
        for wrong in (4, (0, 2), (3, 1), ("1", "2"), [1]):
            self.refused("such as .1, 4.", resources_per_trial={"ranks": wrong})
        self.refused("leave increase_by out", DistributeResources(increase_by={"CPU": 2}))
        self.refused(
            "'loss'.*that of the study is 'total'", DistributeResourcesToTopJob(metric="loss")
        )
        for wrong in (
            lambda: ResourceChangingScheduler("asha"),
            lambda: ResourceChangingScheduler(None, DistributeResources),
            lambda: ResourceChangingScheduler(None, "evenly"),
            lambda: ResourceChangingScheduler(None, lambda runner, trial, result, scheduler: None),
            lambda: DistributeResources(increase_by_times=0),
        ):
            with self.assertRaises(ValueError):
                wrong()
        made = tune.create_scheduler("resource_changing", base_scheduler=ASHAScheduler())
        self.assertIsInstance(made, ResourceChangingScheduler)

    def test_what_a_function_returns_is_checked(self):
        for wrong in ([1, 1], "all", [None]):
            with self.assertRaisesRegex(kolo.Error, "it returns"):
                self.run_elastic(lambda shares, wrong=wrong: wrong, config={"x": 1})


if __name__ == "__main__":
    unittest.main(verbosity=0)
