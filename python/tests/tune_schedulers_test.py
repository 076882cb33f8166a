"""Schedulers of kolo by Tune's names: settings, errors, and the repetition of a population's trial."""

import glob
import importlib
import os
import unittest

from study_case import StudyCase

from kolo import tune
from kolo.tune.schedulers import (
    PB2,
    ASHAScheduler,
    HyperBandScheduler,
    PopulationBasedTraining,
    PopulationBasedTrainingReplay,
    create_scheduler,
)


class Climber(tune.Trainable):
    def setup(self, config):
        self.height = 0.0

    def reset_config(self, new_config):
        return True

    def step(self):
        self.height += self.config["rate"]
        return {"height": self.height, "rate": self.config["rate"]}

    def save_checkpoint(self, checkpoint_dir):
        return {"height": self.height}

    def load_checkpoint(self, checkpoint):
        self.height = checkpoint["height"]


class SchedulerTest(StudyCase):
    def population(self, **settings):
        scheduler = PopulationBasedTraining(
            time_attr="training_iteration",
            metric="height",
            mode="max",
            hyperparam_mutations={"rate": tune.uniform(0.1, 10)},
            resample_probability=0.0,
            **settings,
        )
        return self.run_study(
            Climber,
            name="population",
            config={"rate": tune.grid_search([0.1, 1.0, 2.0, 3.0])},
            scheduler=scheduler,
            stop={"training_iteration": 12},
            seed=3,
            loggers=["json"],  # a study without files has no files of its population either
        )

    def rates(self, analysis):
        return {result["rate"] for trial in analysis.trials for result in trial.results}

    def test_a_trial_of_a_population_is_repeated(self):
        # Else one may outrun the others, and nothing happens.
        analysis = self.population(perturbation_interval=3, synch=True)
        files = glob.glob(os.path.join(analysis.directory, "pbt_policy_*.txt"))
        self.assertTrue(files)
        again = self.run_study(
            Climber,
            scheduler=PopulationBasedTrainingReplay(files[0]),
            stop={"training_iteration": 12},
        )
        [trial] = again.trials
        self.assertGreater(len({result["rate"] for result in trial.results}), 1)
        self.assertTrue({r["rate"] for r in trial.results} <= self.rates(analysis))
        with self.assertRaisesRegex(ValueError, "no file"):
            PopulationBasedTrainingReplay("nothing.txt")

    def test_nothing_changes_while_a_population_burns_in(self):
        analysis = self.population(perturbation_interval=3, burn_in_period=100)
        self.assertEqual(self.rates(analysis), {0.1, 1.0, 2.0, 3.0})

    def test_factors(self):
        analysis = self.population(perturbation_interval=6, perturbation_factors=(2.0, 0.5))
        changed = self.rates(analysis) - {0.1, 1.0, 2.0, 3.0}
        self.assertTrue(changed <= {1.5, 6.0, 0.5, 4.0}, changed)

    def test_a_parameter_that_a_scheduler_does_not_have(self):
        with self.assertWarnsRegex(
            UserWarning, "'max_tt', which is left out; did you mean 'max_t'"
        ):
            create_scheduler("async_hyperband", max_tt=3)

    def test_settings_that_cannot_be_meant(self):
        mutations = {"rate": [1, 2]}
        for wrong in (
            lambda: PopulationBasedTraining(),
            lambda: PopulationBasedTraining(hyperparam_mutations={"rate": 3}),
            lambda: PopulationBasedTraining(hyperparam_mutations={"a": {"rate": 3}}),
            lambda: PopulationBasedTraining(hyperparam_mutations=mutations, quantile_fraction=0.7),
            lambda: PopulationBasedTraining(
                hyperparam_mutations=mutations, perturbation_interval=0
            ),
            lambda: PB2(),
            lambda: PB2(hyperparam_bounds={"rate": [1, 2, 3]}),
            lambda: ASHAScheduler(max_t=0),
            lambda: ASHAScheduler(grace_period=20, max_t=10),
            lambda: ASHAScheduler(reduction_factor=1),
            lambda: HyperBandScheduler(max_t=-1),
        ):
            with self.assertRaises(tune.TuneError) as caught:
                wrong()
            self.assertIsInstance(caught.exception, ValueError)

    def test_places_of_tune(self):
        for place, name in (
            ("async_hyperband", "ASHAScheduler"),
            ("hb_bohb", "HyperBandForBOHB"),
            ("hyperband", "HyperBandScheduler"),
            ("median_stopping_rule", "MedianStoppingRule"),
            ("pb2", "PB2"),
            ("pbt", "PopulationBasedTraining"),
            ("trial_scheduler", "TrialScheduler"),
        ):
            module = importlib.import_module(f"kolo.tune.schedulers.{place}")
            self.assertIs(getattr(module, name), getattr(tune.schedulers, name))

    def test_by_name(self):
        made = create_scheduler("hyperband", stop_last_trials=False)
        self.assertIs(made.settings["stop_last_trials"], False)
        self.run_study(
            Climber,
            config={"rate": tune.grid_search([1.0, 2.0])},
            scheduler=made,
            metric="height",
            mode="max",
            stop={"training_iteration": 3},
        )

    def test_a_scheduler_that_only_listens(self):
        ended = []

        class Own(tune.schedulers.FIFOScheduler):
            def on_trial_complete(self, trial_runner, trial, result):
                ended.append(result["height"])

        self.run_study(
            Climber,
            config={"rate": tune.grid_search([1.0, 2.0])},
            scheduler=Own(),
            metric="height",
            mode="max",
            stop={"training_iteration": 2},
        )
        self.assertEqual(sorted(ended), [2.0, 4.0])

    def test_the_state_of_a_scheduler_of_ones_own(self):
        class Own(tune.schedulers.FIFOScheduler):
            seen = 0

        path = os.path.join(self._folder.name, "state")
        one, other = Own(), Own()
        one.seen = 3
        one.save(path)
        other.restore(path)
        self.assertEqual(other.seen, 3)


if __name__ == "__main__":
    unittest.main()
