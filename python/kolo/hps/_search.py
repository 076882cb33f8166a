"""Searches and evaluators. The names are DeepHyper's; searches maximise."""

from __future__ import annotations

import inspect
import math
import os
import re
import time
import warnings
from contextlib import nullcontext
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from kolo import tune
from kolo._errors import InvalidArgumentError, UnsupportedError, suggests
from kolo.hps._evaluator import Evaluator, Job
from kolo.hps._problem import HpProblem
from kolo.hps._results import columns_of, move_aside, read_rows, write_rows
from kolo.hps.callback import SearchTerminationError
from kolo.search import Sampler
from kolo.tune._session import EvaluationFailed


_SEVERAL = re.compile(r"objective_\d+")
_OBJECTIVE = re.compile(r"objective(_\d+)?")


class RunningJob:
    """A running evaluation, for run functions that take a job: job.parameters, job["x"]."""

    def __init__(self, id: int, parameters: Dict[str, Any]) -> None:
        self.id = id
        self.parameters = parameters

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter, or the default."""
        return self.parameters.get(name, default)

    def record(self, budget: float, objective: float) -> None:
        """An intermediate objective."""
        tune.report(budget=budget, objective=objective)

    def stopped(self) -> bool:
        """Whether the evaluation has to end early."""
        return tune.should_stop()


class Evaluation:
    """Calls a run function for one configuration, and reports what it returns."""

    def __init__(self, evaluator: Evaluator, objectives: int) -> None:
        self.run = run = evaluator.run_function
        self.keywords = evaluator.keywords
        # What is dealt out among evaluations can be seen by those of this process alone.
        self.items = evaluator.items if evaluator.method == "thread" else None
        self.objectives = objectives
        self.__name__ = getattr(run, "__name__", "run")

    def __call__(self, config: Dict[str, Any]) -> None:
        names = list(inspect.signature(self.run).parameters)
        wants_job = bool(names) and names[0] in ("job", "running_job")
        argument: Any = config
        if wants_job:
            argument = RunningJob(int(tune.get_trial_id()), config)
        items: Any = nullcontext({}) if self.items is None else self.items()
        with items as more:
            result = self.run(argument, **self.keywords, **more)
        tune.report(**report_of(result, self.objectives))


def split_result(result: Any) -> Tuple[Any, Dict[str, Any]]:
    """The objective that a run function has returned, and what else: all other entries, and those of
    "metadata"."""
    if not isinstance(result, dict):
        return result, {}
    if "objective" not in result:
        raise InvalidArgumentError(
            f"the run function returned a dictionary without 'objective': {sorted(result)}"
        )
    more = {k: v for k, v in result.items() if k not in ("objective", "metadata")}
    more.update(result.get("metadata") or {})
    return result["objective"], {_metadata_name(name): value for name, value in more.items()}


def _metadata_name(name: Any) -> Any:
    """The names of objectives are taken: metadata of these names gets a "_" at the end."""
    is_taken = isinstance(name, str) and _OBJECTIVE.fullmatch(name.rstrip("_"))
    return f"{name}_" if is_taken else name


def report_of(result: Any, objectives: int = 1) -> Dict[str, Any]:
    """What a run function returned, as metrics: a number, several, a dictionary with "objective",
    or a text that begins with "F" for a failure, which raises."""
    result, metadata = split_result(result)
    if isinstance(result, str):
        raise EvaluationFailed(result)
    values = list(result) if isinstance(result, (list, tuple)) else [result]
    undeclared = objectives == 1 and len(values) > 1
    if len(values) != objectives and not undeclared:
        raise InvalidArgumentError(
            f"the run function returned {len(values)} objectives, and the problem has {objectives}"
        )
    numbers = []
    for value in values:
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"the run function returned {value!r}, which is not a number"
            ) from None
    if any(not math.isfinite(number) for number in numbers):
        raise EvaluationFailed("F_nan")
    if undeclared:  # the search is for their mean; HpProblem(objectives=2) searches for the front
        metadata["objective"] = sum(numbers) / len(numbers)
    names = ["objective"] if len(numbers) == 1 else [f"objective_{i}" for i in range(len(numbers))]
    return {**metadata, **dict(zip(names, numbers))}


class _Times:
    """When evaluations were submitted and gathered, in seconds since the beginning of the search; and
    tells the evaluator's callbacks of it."""

    def __init__(self, evaluator: Evaluator, names: List[str]) -> None:
        self._begin = time.monotonic()
        self._evaluator = evaluator
        self._names = names
        self._jobs: Dict[int, Job] = {}
        self.of: Dict[int, Dict[str, float]] = {}
        self.ended: List[Any] = []
        self.is_over = False

    def _note(self, number: int, what: str) -> float:
        now = time.monotonic() - self._begin
        self.of.setdefault(number, {})[what] = now
        return now

    def on_trial_start(self, trial: Any, **info: Any) -> None:
        now = self._note(trial.number, "timestamp_submit")
        job = self._jobs[trial.number] = Job(trial.number, trial.config, now)
        self._tell("on_launch", job)

    def on_trial_complete(self, trial: Any, **info: Any) -> None:
        now = self._note(trial.number, "timestamp_gather")
        self.ended.append(trial)
        job = self._jobs.pop(trial.number, None) or Job(trial.number, trial.config, now)
        job.timestamp_gather = now
        result = trial.last_result
        found = [result.get(name, _failure(trial)) for name in self._names]
        job.result = {
            "objective": found[0] if len(found) == 1 else found,
            "metadata": {k: v for k, v in result.items() if k not in self._names},
            **{k: result[k] for k in ("timestamp_start", "timestamp_end") if k in result},
        }
        self._tell("on_done", job)

    on_trial_error = on_trial_complete

    def _tell(self, event: str, job: Job) -> None:
        if not self.is_over:
            try:
                self._evaluator.tell(event, job)
            except SearchTerminationError:
                self.is_over = True


class _Over(tune.Stopper):
    """Ends a search that a callback has ended."""

    def __init__(self, times: _Times) -> None:
        self._times = times

    def __call__(self, trial_id: str, result: Dict[str, Any]) -> bool:
        return self._times.is_over

    def stop_all(self) -> bool:
        return self._times.is_over


def _failure(trial: Any) -> str:
    """What stands for the objective of a trial that has none."""
    error = trial.error or "F"
    return error if error.startswith("F") else "F_error"


class Search:
    """A search over a problem. The classes below differ in their algorithm.

    ``columns`` says what the columns of the result are called: "plain", as DeepHyper's up to 0.4
    (``x``, ``job_id``, ``objective``, ``timestamp_submit``), or "prefixed", as its later ones and
    those of ``kolo hps`` (``p:x``, ``objective``, ``job_id``, ``job_status``,
    ``m:timestamp_submit``).
    """

    algorithm = "random"

    def __init__(
        self,
        problem: HpProblem,
        evaluator: Union[Evaluator, Callable[..., Any]],
        random_state: Optional[int] = None,
        log_dir: str = ".",
        verbose: int = 0,
        columns: str = "plain",
        **settings: Any,
    ) -> None:
        if columns not in ("plain", "prefixed"):
            raise InvalidArgumentError(f"columns must be 'plain' or 'prefixed', not {columns!r}")
        if not isinstance(problem, HpProblem):
            raise InvalidArgumentError(f"{type(self).__name__}: {problem!r} is not an HpProblem")
        self._problem = problem
        self._evaluator = evaluator if isinstance(evaluator, Evaluator) else Evaluator(evaluator)
        self._seed = random_state
        self._log_dir = os.path.abspath(log_dir)
        self._verbose = verbose
        self._columns = columns
        self._settings = settings
        self.rows: List[Dict[str, Any]] = []
        self._points: List[Dict[str, Any]] = []
        self._known: List[Tuple[Dict[str, Any], List[float]]] = []

    def _names(self) -> List[str]:
        count = self._problem.objectives
        return ["objective"] if count == 1 else [f"objective_{i}" for i in range(count)]

    @suggests
    def search(self, max_evals: int = -1, timeout: Optional[float] = None) -> Any:
        """Evaluates configurations until there are enough or the time is over. Returns a frame of
        pandas, or a list of dictionaries without pandas; both as in results.csv."""
        if not hasattr(type(max_evals), "__index__"):
            raise InvalidArgumentError(
                f"search: max_evals must be a whole number, not {max_evals!r}"
            )
        if max_evals < 0 and timeout is None:
            raise InvalidArgumentError("search: max_evals or timeout is needed")
        space = self._problem._kolo_space()
        if not self._problem.varies():
            raise InvalidArgumentError(
                "search: no hyperparameter of the problem varies, so all evaluations would be the "
                "same; add one as a range, (0.0, 1.0), or as a list of values"
            )
        count = self._problem.objectives
        names = self._names()
        evaluation: Any = Evaluation(self._evaluator, count)
        times = _Times(self._evaluator, names)
        for callback in self._evaluator.callbacks:
            if hasattr(callback, "set_max_evals"):
                callback.set_max_evals(max_evals)
        if self._evaluator.method == "ranks":
            evaluation = tune.DistributedTrainableCreator(
                evaluation, num_slots=self._evaluator.num_ranks
            )
        searcher = tune.suggest.Searcher(
            name=self.algorithm, points_to_evaluate=self._points, **self._settings
        )
        searcher.known = self._known
        options: Dict[str, Any] = dict(
            _space=space,
            metric=names if count > 1 else "objective",
            mode=["max"] * count if count > 1 else "max",
            num_samples=max_evals,
            time_budget_s=timeout,
            stop=_Over(times),
            search_alg=searcher,
            executor=self._evaluator.method,
            max_concurrent_trials=self._evaluator.num_workers,
            total_resources={"cpu": 1e6},
            local_dir=os.path.join(self._log_dir, "search"),
            raise_on_failed_trial=False,
            loggers=[],
            callbacks=[times, *self._evaluator.callbacks],
            verbose=self._verbose,
            seed=self._seed,
        )
        try:
            analysis = tune.run(evaluation, **options)
        except BaseException:  # Ctrl-C, or a callback: what was evaluated is kept
            self._keep(times.ended, times)
            raise
        self._keep(analysis.trials, times)
        failed = [trial for trial in analysis.trials if trial.status == "ERROR"]
        if failed and len(failed) == len(self.rows):
            warnings.warn(
                f"all {len(failed)} evaluations failed; the first: {failed[0].error}", stacklevel=2
            )
        try:
            import pandas
        except ImportError:
            return self.rows
        return pandas.DataFrame(self.rows)

    def _row(self, trial: Any, names: List[str], times: Dict[str, float]) -> Dict[str, Any]:
        parameters = sorted(trial.evaluated_params.items())
        failed = trial.status == "ERROR" or any(n not in trial.last_result for n in names)
        found = {name: "F" if failed else trial.last_result[name] for name in names}
        if failed and trial.error:
            found[names[0]] = _failure(trial)
        several = {k: v for k, v in trial.last_result.items() if _SEVERAL.fullmatch(k)}
        if names == ["objective"] and several:  # whose mean was searched for
            found = dict(sorted(several.items(), key=lambda item: int(item[0].split("_")[1])))
        if self._columns == "plain":
            return {**dict(parameters), "job_id": trial.number, **found, **times}
        return {
            **{f"p:{name}": value for name, value in parameters},
            **found,
            "job_id": trial.number,
            "job_status": "FAILED" if failed else "DONE",
            **{f"m:{name}": value for name, value in times.items()},
        }

    def _keep(self, trials: List[Any], times: _Times) -> None:
        """The rows of trials that have ended, here and in results.csv."""
        names = self._names()
        self.rows = [self._row(trial, names, times.of.get(trial.number, {})) for trial in trials]
        if not self.rows:
            return
        path = os.path.join(self._log_dir, "results.csv")
        try:
            os.makedirs(self._log_dir, exist_ok=True)
            move_aside(path)
            write_rows(path, self.rows, columns_of(self.rows))
        except OSError as error:  # a full disk does not cost what was found
            why = f"{path} cannot be written: {error}"
            warnings.warn(f"{why}; the results are in `rows`", stacklevel=3)


class CBO(Search):
    """DeepHyper's centralised Bayesian optimisation, with kolo's forests."""

    algorithm = "forest"

    def __init__(
        self,
        problem: HpProblem,
        evaluator: Union[Evaluator, Callable[..., Any]],
        random_state: Optional[int] = None,
        log_dir: str = ".",
        verbose: int = 0,
        surrogate_model: str = "ET",
        acq_func: str = "UCB",
        kappa: float = 1.96,
        xi: float = 0.001,
        n_initial_points: int = 10,
        initial_points: Optional[Sequence[Dict[str, Any]]] = None,
        acq_optimizer: str = "auto",
        initial_point_generator: str = "random",
        n_jobs: int = 1,
        sync_communication: bool = False,
        update_prior: bool = False,
        max_failures: int = 100,
        **settings: Any,
    ) -> None:
        """``surrogate_model``: "ET" or "RF", forests; "GP", a Gaussian process; "DUMMY", none, so
        that every configuration is drawn at random. ``initial_points`` are tried first. The other
        parameters up to ``max_failures`` change nothing."""
        if acq_func == "gp_hedge":
            warnings.warn("CBO: acq_func 'gp_hedge' is not there; UCB is used", stacklevel=2)
            acq_func = "UCB"
        self.algorithm = {"GP": "gp", "DUMMY": "random"}.get(surrogate_model, "forest")
        if self.algorithm == "forest":
            settings.update(
                surrogate_model=surrogate_model,
                acq_func=acq_func,
                kappa=kappa,
                xi=xi,
                n_initial_points=n_initial_points,
            )
        super().__init__(problem, evaluator, random_state, log_dir, verbose, **settings)
        self._n_initial_points = n_initial_points
        self._points = [dict(point) for point in initial_points or []]

    def fit_surrogate(self, df: Any) -> None:
        """The results of an earlier search of this problem, as a frame or as the path of its
        results.csv, are known to this one."""
        self._known += self._earlier(df, "fit_surrogate")

    def fit_generative_model(
        self, df: Any, q: float = 0.9, n_iter_optimize: int = 0, n_samples: int = 100
    ) -> Sampler:
        """The initial points of this search are drawn from a model of the best of an earlier one, as a
        frame or as the path of its results.csv: of all but the part ``q``. Returns the model, whose
        ask() draws. ``n_iter_optimize`` and ``n_samples`` change nothing."""
        if not 0 < q < 1:
            raise InvalidArgumentError(
                f"fit_generative_model: q is the part that is left out, between 0 and 1, not {q!r}"
            )
        earlier = self._earlier(df, "fit_generative_model")
        best = int((1 - q) * len(earlier) + 1e-9)
        if best < 1:
            raise InvalidArgumentError(
                f"fit_generative_model: the results have {len(earlier)} evaluations that did not "
                f"fail; the best part of them, 1 - q, is less than one: {math.ceil(1 / (1 - q) - 1e-9)} are "
                "needed, or a smaller q"
            )
        model = Sampler(
            self._problem,
            "tpe",
            ["maximize"] * self._problem.objectives,
            self._seed or 0,
            n_startup=1,
            n_candidates=1,  # a draw from the density of the good ones
            gamma=1 - q,
            max_good=min(best, 10_000),
        )
        model.tell(model.ask(), None)  # the one that the sampler draws before it has a model
        for config, numbers in earlier:
            model.add(config, numbers)
        self._points += [asked.config for asked in model.ask(self._n_initial_points)]
        return model

    def fit_search_space(self, *arguments: Any, **options: Any) -> None:
        """DeepHyper's; not here."""
        raise UnsupportedError(
            "CBO.fit_search_space is not there; fit_generative_model draws the initial points from "
            "the best of an earlier search, and fit_surrogate learns from all of it"
        )

    def _earlier(self, df: Any, what: str) -> List[Tuple[Dict[str, Any], List[float]]]:
        """Configurations and objectives of the results of another search."""
        if isinstance(df, (str, os.PathLike)):
            rows: List[Dict[str, Any]] = read_rows(os.fspath(df))
        elif isinstance(df, (list, tuple)):
            rows = list(df)
        elif hasattr(df, "to_dict"):
            rows = df.to_dict("records")
        else:
            raise InvalidArgumentError(
                f"{what}: {df!r} is neither a frame nor the path of a results.csv"
            )
        columns = sorted({str(name) for row in rows for name in row})
        # One that no row had has no column.
        may_miss = {child for child, _ in self._problem._conditions}
        hyperparameters = [n for n in self._problem.hyperparameter_names if n not in may_miss]
        known = {name[2:] if name.startswith("p:") else name for name in columns}
        missing = [name for name in (*self._names(), *hyperparameters) if name not in known]
        if missing:
            raise InvalidArgumentError(
                f"{what}: the results have no column {missing[0]!r}; they have {', '.join(columns)}"
            )
        found = []
        for row in rows:
            try:
                numbers = [float(row[name]) for name in self._names()]
            except (TypeError, ValueError):
                continue  # a failure
            if all(map(math.isfinite, numbers)):
                found.append((self._parameters(row), numbers))
        return found

    def _parameters(self, row: Dict[str, Any]) -> Dict[str, Any]:
        """The hyperparameters of a row, with the types that the problem has for them."""
        found = {}
        for name in self._problem.hyperparameter_names:
            value = row.get(name, row.get(f"p:{name}"))
            if value is None or value == "" or value != value:  # inactive
                continue
            found[name] = self._problem.typed(name, value)
        return found


AMBS = CBO


class RandomSearch(Search):
    """Independent draws."""

    algorithm = "random"


class TPE(Search):
    """The tree-structured Parzen estimator."""

    algorithm = "tpe"
