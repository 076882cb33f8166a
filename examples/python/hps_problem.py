"""A problem and a run function in DeepHyper's terms.

Run:     kolo hps ambs --problem hps_problem.py:Problem --run hps_problem.py:run --max-evals 30
or:      python examples/python/hps_problem.py
Expect:  a best objective above -5.
"""

from kolo.hps import CBO, Evaluator, HpProblem  # was: from deephyper.problem import HpProblem …

Problem = HpProblem()
Problem.add_hyperparameter((-10.0, 10.0), "x0")
Problem.add_hyperparameter((-10.0, 10.0), "x1")
Problem.add_hyperparameter(["plus", "minus"], "sign")
Problem.add_starting_point(x0=5.0, x1=5.0, sign="plus")


def run(config):
    value = -(config["x0"] ** 2) - config["x1"] ** 2
    return value if config["sign"] == "plus" else value - 1


if __name__ == "__main__":
    evaluator = Evaluator.create(run, method="thread", method_kwargs={"num_workers": 2})
    search = CBO(Problem, evaluator, random_state=1, log_dir="log")
    search.search(max_evals=60)
    best = max(search.rows, key=lambda row: row["objective"])
    print(f"{len(search.rows)} evaluations, best objective {best['objective']:.3f}")
