"""Hyperparameter search with the interface of DeepHyper.

from kolo.hps import CBO, Evaluator, HpProblem

problem = HpProblem()
problem.add_hyperparameter((-10.0, 10.0), "x")
evaluator = Evaluator.create(lambda config: -config["x"] ** 2, method="thread")
results = CBO(problem, evaluator).search(max_evals=100)
"""

from kolo.hps import callback
from kolo.hps._evaluator import (
    Evaluator,
    Job,
    ProcessPoolEvaluator,
    SerialEvaluator,
    SubprocessEvaluator,
    ThreadPoolEvaluator,
    profile,
)
from kolo.hps._problem import (
    BaseProblem,
    HpProblem,
    SpaceDimNameOfWrongType,
    all_of,
    any_of,
    equals,
    greater,
    less,
    not_equals,
    one_of,
)
from kolo.hps._queue import queued
from kolo.hps._search import AMBS, CBO, TPE, RandomSearch, RunningJob, Search

__all__ = [
    "AMBS",
    "CBO",
    "TPE",
    "BaseProblem",
    "Evaluator",
    "HpProblem",
    "Job",
    "ProcessPoolEvaluator",
    "RandomSearch",
    "RunningJob",
    "Search",
    "SerialEvaluator",
    "SpaceDimNameOfWrongType",
    "SubprocessEvaluator",
    "ThreadPoolEvaluator",
    "all_of",
    "any_of",
    "callback",
    "equals",
    "greater",
    "less",
    "not_equals",
    "one_of",
    "profile",
    "queued",
]
