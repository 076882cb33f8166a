"""Studies and searches with mistakes in them: each is refused with a word on what to do."""

import os
import unittest
import warnings

from study_case import StudyCase

import kolo
from kolo import tune
from kolo.hps import CBO, Evaluator, HpProblem, equals
from kolo.hps._files import load_object
from kolo.search import Sampler
from kolo.tune.suggest import BayesOptSearch

X = {"x": tune.uniform(0, 1)}
BEST = {"metric": "loss", "mode": "min"}


def train(config):
    tune.report(loss=config["x"], size=-config["x"])


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def problem(**parameters):
    made = HpProblem()
    for name, value in parameters.items():
        made.add_hyperparameter(value, name)
    return made


class Mistakes(StudyCase):
    def refuses(self, message, trainable=train, error=ValueError, **options):
        options.setdefault("config", X)
        with self.assertRaisesRegex(error, message):
            self.run_study(trainable, **options)

    def test_misspelt_names_are_answered_with_the_right_ones(self):
        for right, wrong in (
            ("grace_period", lambda: tune.schedulers.ASHAScheduler(max_t=9, grace_perid=1)),
            ("metric", lambda: tune.TuneConfig(metirc="loss")),
            ("name", lambda: tune.RunConfig(nam="first")),
            ("param_space", lambda: tune.Tuner(train, parm_space=X)),
            ("num_workers", lambda: Evaluator.create(train, method_kwargs={"num_worker": 1})),
            ("max_evals", lambda: CBO(problem(x=(0.0, 1.0)), train).search(max_eval=3)),
            ("num_proc", lambda: kolo.run(train, num_procs=2)),
        ):
            with self.assertRaisesRegex(TypeError, f"did you mean '({right})'"):
                wrong()
        with self.assertRaises(ValueError):
            tune.TuneConfig(metirc="loss")
        self.refuses("did you mean 'cpu'", resources_per_trial={"cpus": 1})
        self.refuses("'1' of the resource 'cpu' is not a number", resources_per_trial={"cpu": "1"})

    def test_dictionaries_in_place_of_settings(self):
        for wrong in (
            lambda: tune.Tuner(train, tune_config={"num_samples": 2}),
            lambda: tune.Tuner(train, run_config={"name": "first"}),
            lambda: tune.RunConfig(checkpoint_config={"num_to_keep": 2}),
        ):
            with self.assertRaisesRegex(ValueError, r"such as tune\..*Config\(\.\.\.\), not {"):
                wrong()
        self.assertEqual(tune.RunConfig(storage_path="/there").local_dir, "/there")
        with self.assertRaisesRegex(ValueError, "two names of one folder"):
            tune.RunConfig(storage_path="/there", local_dir="/elsewhere")

    def test_a_file_without_the_object(self):
        path = os.path.join(self._folder.name, "my.py")
        with open(path, "w") as file:
            file.write("Problem = 1\n")
        self.assertEqual(load_object(f"{path}:Problem"), 1)
        with self.assertRaisesRegex(AttributeError, "no 'Problm'; did you mean 'Problem'. it has"):
            load_object(f"{path}:Problm")

    def test_a_wrong_condition_is_not_kept(self):
        made = problem(kind=["a", "b"], x=(0.0, 1.0))
        with self.assertRaisesRegex(ValueError, "'z' is unknown.*known: kind, x"):
            made.add_condition("z", equals("kind", "a"))
        with self.assertRaises(ValueError):
            made.add_condition("x", equals("kin", "a"))
        with self.assertRaises(ValueError):
            made.add_forbidden_clause(equals("kin", "a"))
        made.add_condition("x", equals("kind", "a"))

    def test_trainables(self):
        class Plain:
            pass

        class WithoutStep(tune.Trainable):
            pass

        def without_config():
            pass

        def with_more(config, data):
            pass

        self.refuses("derive it from tune.Trainable", Plain)
        self.refuses("neither a function nor a class", Plain())
        self.refuses(r"WithoutStep has no step of its own; define step", WithoutStep)
        self.refuses(r"takes no argument; .* as without_config\(config\)", without_config)
        self.refuses(r"tune.with_parameters\(with_more, data=...\)", with_more)
        given = tune.with_parameters(with_more, data=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(len(self.run_study(given).trials), 1)

    def test_a_function_that_reports_nothing(self):
        with self.assertWarnsRegex(UserWarning, r"no trial has reported anything; .*tune.report"):
            self.run_study(lambda config: None)
        self.refuses("without reporting 'loss'", lambda c: None, tune.TuneError, **BEST)

    def test_metrics_and_modes(self):
        self.refuses(
            "the result has no 'los'; it has loss", error=tune.TuneError, metric="los", mode="min"
        )
        self.refuses(
            "'loss' has no mode; add mode='min' or mode='max'", metric="loss", scheduler="asha"
        )
        self.refuses("'min' or 'max', not 'minn'", metric="loss", mode="minn")
        self.refuses("2 metrics need as many modes, not 1", metric=["loss", "size"], mode=["min"])
        self.refuses("needs a metric and its mode", search_alg="bayesopt")
        with self.assertWarnsRegex(UserWarning, "did you mean 'loss'\\?"):
            self.assertIsNone(self.run_study(train, config=X).get_best_config("los", "min"))

    def test_one_mode_of_several_metrics(self):
        analysis = self.run_study(train, config=X, metric=["loss", "size"], mode="max")
        self.assertEqual(analysis.objectives, [("loss", "max"), ("size", "max")])

    def test_spaces(self):
        for search in ("bayesopt", "tpe"):
            self.refuses("has nothing to search", config={"x": 1.0}, search_alg=search, **BEST)
        self.refuses("a list is a constant", config={"x": [0, 1]}, search_alg="gp", **BEST)
        self.refuses(r"write tune.uniform\(...\)", config={"x": tune.uniform})
        for wrong in (
            lambda: tune.uniform("a", 1),
            lambda: tune.quniform(0, 1, "q"),
            lambda: tune.choice(3),
            lambda: tune.choice("relu"),
            lambda: tune.grid_search(3),
        ):
            with self.assertRaisesRegex(ValueError, "must be numbers|is not a list of values"):
                wrong()

    def test_values_that_have_no_end(self):
        loop = {"x": tune.uniform(0, 1)}
        loop["inner"] = [loop]
        self.refuses("a value is nested too deeply, or contains itself", config=loop)
        self.refuses("nested more than 100 deep", config={"x": nested(101)})

        def report(config):
            endless = {}
            endless["inner"] = endless
            tune.report(loss=1.0, inner=endless if config["loops"] else nested(100_000))

        analysis = self.run_study(
            report,
            config={"loops": tune.grid_search([True, False])},
            raise_on_failed_trial=False,
        )
        for trial in analysis.trials:
            self.assertIn("'inner': a value is nested more than 100 deep, or", trial.error)

    def test_a_value_of_the_deepest_kind_is_read_again(self):
        analysis = self.run_study(
            lambda config: tune.report(loss=1.0, inner=nested(99)),
            config={"inner": nested(99)},
            name="deep",
        )
        read = tune.ExperimentAnalysis(analysis.directory)
        self.assertEqual(read.trials[0].last_result["inner"], nested(99))

    def test_options(self):
        self.refuses("num_samples must be a whole number, not '3'", num_samples="3")
        self.refuses("time_budget_s must be a number of seconds", time_budget_s="1h")
        self.refuses(r"stop\['loss'\] must be a number", stop={"loss": "low"})
        self.refuses("unknown setting 'kapa'", search_alg=BayesOptSearch(kapa=1), **BEST)

    def test_resume(self):
        self.refuses("study 'nobody' is unknown", error=LookupError, name="nobody", resume=True)
        self.refuses("resume=True needs the name of the study", resume=True)
        self.refuses("did you mean 'ERRORED_ONLY'", name="nobody", resume="ERORED_ONLY")


class Searches(StudyCase):
    def search(self, given, run=lambda config: config["x"], max_evals=3):
        evaluator = Evaluator.create(run, method="thread")
        return CBO(given, evaluator, log_dir=self._folder.name).search(max_evals)

    def test_problems(self):
        with self.assertRaisesRegex(ValueError, "no hyperparameter of the problem varies"):
            self.search(problem(x=[1], y=2))
        with self.assertRaisesRegex(ValueError, "the problem has no hyperparameters"):
            self.search(problem())
        with self.assertRaisesRegex(ValueError, "max_evals must be a whole number, not '3'"):
            self.search(problem(x=(0.0, 1.0)), max_evals="3")
        with self.assertRaisesRegex(ValueError, "3.0 is outside of"):
            HpProblem().add_hyperparameter((0.0, 1.0), "x", default_value=3.0)

    def test_evaluations_that_all_fail(self):
        with self.assertWarnsRegex(
            UserWarning, "all 3 evaluations failed; the first: KeyError: 'y'"
        ):
            self.search(problem(x=(0.0, 1.0)), lambda config: config["y"])

    def test_values_that_have_no_end(self):
        loop = []
        loop.append(loop)
        clause = equals("x", 1.0)
        for _ in range(100_000):
            clause = {"kind": "all_of", "clauses": [clause]}
        for wrong in (
            lambda: Sampler(X).add({"x": loop}, 1.0),
            lambda: problem(x=[0.0, loop]),
            lambda: problem(x=[0.0, 1.0]).add_forbidden_clause(clause),
        ):
            with self.assertRaisesRegex(ValueError, "nested more than 100 deep"):
                wrong()

    def test_samplers(self):
        for wrong, message in (
            (lambda: Sampler({"x": 1.0}), "no value of the space is a domain"),
            (lambda: Sampler(X, algoritm="gp"), "did you mean 'algorithm'"),
            (lambda: Sampler(X).tell(0, "good"), "must be a number"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                wrong()


if __name__ == "__main__":
    unittest.main(verbosity=0)
