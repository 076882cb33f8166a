"""tune.run: a study from Python, on kolo's controller."""

from __future__ import annotations

import datetime
import inspect
import itertools
import os
import sys
import time
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

from kolo import _core
from kolo._errors import AlreadyExistsError, Error, InvalidArgumentError, did_you_mean
from kolo._files import command_path
from kolo._run import dump_function, python_path
from kolo.tune import suggest
from kolo.tune._arguments import (
    check_counts,
    check_executor,
    check_space,
    check_times,
    objectives,
    resume_word,
    stop_rules,
)
from kolo.tune._custom import CustomScheduler, CustomSearch, watched
from kolo.tune._handover import handover_folder
from kolo.tune._output import file_names
from kolo.tune._prepared import Prepared
from kolo.tune._space import Constants, plain, prepare
from kolo.tune.analysis import ExperimentAnalysis, results_of, together
from kolo.tune.callback import Listeners
from kolo.tune.error import TuneError
from kolo.tune.experiment import Experiment
from kolo.tune.logger import loggers_beside
from kolo.tune.progress_reporter import reporters_of
from kolo.tune.resources import check_names
from kolo.tune.result import results_dir
from kolo.tune.schedulers import ResourceChangingScheduler, TrialScheduler, create_scheduler
from kolo.tune.schedulers._allocations import Allocation, options_of, range_for
from kolo.tune.stopper import Stopper
from kolo.tune.trial import Trial, new_row, trial_of


def run(
    run_or_experiment: Any,
    name: Optional[str] = None,
    metric: Any = None,
    mode: Any = None,
    stop: Union[None, Mapping[str, float], Stopper, Callable[..., bool]] = None,
    time_budget_s: Union[None, float, datetime.timedelta] = None,
    config: Optional[Dict[str, Any]] = None,
    resources_per_trial: Any = None,
    num_samples: int = 1,
    local_dir: Optional[str] = None,
    search_alg: Any = None,
    scheduler: Any = None,
    keep_checkpoints_num: Optional[int] = None,
    checkpoint_score_attr: Optional[str] = None,
    checkpoint_freq: int = 0,
    checkpoint_at_end: bool = False,
    verbose: int = 1,
    max_failures: int = 0,
    fail_fast: Union[bool, str] = False,
    restore: Optional[str] = None,
    resume: Any = False,
    queue_trials: bool = False,
    reuse_actors: bool = False,
    raise_on_failed_trial: bool = True,
    callbacks: Optional[Sequence[Any]] = None,
    loggers: Optional[Sequence[str]] = None,
    trial_dirname_creator: Optional[Callable[..., str]] = None,
    max_concurrent_trials: Optional[int] = None,
    log_to_file: Any = False,
    progress_reporter: Any = None,
    trial_name_creator: Optional[Callable[[Trial], str]] = None,
    chdir_to_trial_dir: bool = True,
    checkpoint_config: Any = None,
    sync_config: Any = None,
    server_port: Optional[int] = None,
    export_formats: Optional[Sequence[str]] = None,
    executor: Optional[str] = None,
    total_resources: Optional[Mapping[str, float]] = None,
    trial_time_limit_s: Optional[float] = None,
    storage: Optional[str] = None,
    seed: Optional[int] = None,
    cluster: Optional[str] = None,
    _space: Any = None,
    **unknown: Any,
) -> ExperimentAnalysis:
    """Runs a study to its end, or goes on with one that was interrupted, and returns its results.

    The parameters are Ray Tune's, with a few of kolo's own at the end. ``executor`` says what a
    trial is: "thread" (the default for functions and classes: cheapest), "process" (a crash is the
    trial's own), "ranks" (for DistributedTrainableCreator). ``cluster`` names a cluster that
    ``kolo up`` made: trials are processes or ranks there. Python, this package and ``local_dir``
    must have the same paths on its hosts. ``run_or_experiment`` may be an Experiment; what that has
    comes on top. A list of them runs one after another, and the result has the trials of all.
    ``queue_trials``, ``reuse_actors``, ``chdir_to_trial_dir``, ``sync_config`` and
    ``server_port`` change nothing: trials wait for their places anyway, a trial has no process of
    its own unless you ask for one, and results stay where they are.
    """
    if unknown:
        first = sorted(unknown)[0]
        hint = did_you_mean(first, inspect.signature(run).parameters)
        raise InvalidArgumentError(
            f"tune.run: the parameter {first!r} is unknown or has no meaning in kolo{hint}"
        )
    if isinstance(run_or_experiment, (Experiment, list, tuple)):
        given = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        if not isinstance(run_or_experiment, Experiment):
            return _run_all(run_or_experiment, given)
        return run(run_or_experiment.spec["run"], **{**given, **run_or_experiment.options()})
    if checkpoint_config is not None:
        keep_checkpoints_num = checkpoint_config.num_to_keep
        checkpoint_score_attr = checkpoint_config.score_attr
        checkpoint_freq = checkpoint_config.checkpoint_frequency or 0
        checkpoint_at_end = bool(checkpoint_config.checkpoint_at_end)
    if isinstance(time_budget_s, datetime.timedelta):
        time_budget_s = time_budget_s.total_seconds()
    constants = Constants()
    trainable = Prepared(
        run_or_experiment, constants, file_names(log_to_file), export_formats or ()
    )
    for option, value in (
        ("checkpoint_at_end", checkpoint_at_end),
        ("checkpoint_freq", checkpoint_freq),
    ):
        if value and trainable.saves_by_itself:
            raise InvalidArgumentError(
                f"tune.run: {option} cannot be used with a function that takes checkpoint_dir: the "
                "function writes its checkpoints itself, by tune.checkpoint_dir"
            )
    search = suggest.create_searcher(search_alg) if isinstance(search_alg, str) else search_alg
    search = search or suggest.BasicVariantGenerator()
    if not isinstance(search, suggest.Searcher):
        raise InvalidArgumentError(f"tune.run: search_alg is {search_alg!r}, which is no search")
    schedule = create_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
    schedule = schedule or TrialScheduler()
    if not isinstance(schedule, TrialScheduler):
        raise InvalidArgumentError(f"tune.run: scheduler is {scheduler!r}, which is no scheduler")
    allocation = None
    if isinstance(schedule, ResourceChangingScheduler):
        allocation = schedule.resources_allocation_function
        schedule = schedule.base_scheduler
    metric = metric or search.metric or schedule.metric
    mode = mode or search.mode or schedule.mode
    decides = search.name not in ("", "random", "grid") or schedule.name not in ("", "fifo")
    pairs = objectives(metric, mode, decides)
    if config is not None and not isinstance(config, dict):
        raise InvalidArgumentError(f"tune.run: config must be a dictionary, not {config!r}")
    check_counts(
        {
            "num_samples": num_samples,
            "keep_checkpoints_num": keep_checkpoints_num,
            "checkpoint_freq": checkpoint_freq,
            "verbose": verbose,
            "max_failures": max_failures,
            "max_concurrent_trials": max_concurrent_trials,
            "seed": seed,
        }
    )
    check_times({"time_budget_s": time_budget_s, "trial_time_limit_s": trial_time_limit_s})
    own_search = own_schedule = None
    space = {**search.space, **(config or {})}
    rules = stop_rules(stop)
    if search.is_custom():
        own_search = CustomSearch(search, space, metric, mode)
        space = own_search.space(constants)
    if schedule.is_custom():
        own_schedule = CustomScheduler(schedule, constants, metric, mode)
    watchers = [one for one in (own_search, own_schedule) if one is not None]
    rules["stopper"] = watched(watchers, rules["stopper"])
    ranks = trainable.ranks
    resources = trainable.reserve(resources_per_trial, config or {})
    if not cluster:  # which has resources of its own
        check_names(resources, total_resources)
    rank_range = range_for(allocation, trainable.rank_range, resources, total_resources)
    kind = executor or ("ranks" if ranks or rank_range else "process" if cluster else "thread")
    if rank_range:
        trainable.check_elastic(kind, resources)
    check_executor(kind, ranks or rank_range, cluster)
    if isinstance(allocation, Allocation):
        allocation.check(resources, pairs)

    def known(row: Dict[str, Any]) -> Trial:
        trial = trial_of(row, constants.restore(row["config"]), trainable.name)
        if trial_name_creator is not None:
            trial.name = str(trial_name_creator(trial))
        return trial

    listeners = Listeners(
        [*(callbacks or []), *reporters_of(progress_reporter, metric, mode)], known
    )
    prepared = prepare(space, constants)
    if _space is None and own_search is None:
        check_space(search.name, prepared)
    options: Dict[str, Any] = {
        "name": name or new_name(trainable.name),
        "metric": pairs[0][0] if len(pairs) == 1 else None,
        "mode": pairs[0][1] if len(pairs) == 1 else None,
        "objectives": pairs if len(pairs) > 1 else [],
        "space": _space,
        "config": prepared,
        "num_samples": num_samples,
        # Of a search of the user's own it is a name of one that needs no metric.
        "search": "random" if own_search else search.name,
        "custom_search": own_search,
        "search_settings": {} if own_search else search.sampler_settings(),
        "points_to_evaluate": [] if own_search else search.points_to_evaluate,
        "search_max_concurrent": search.max_concurrent,
        "known": [] if own_search else [(plain(c, constants), v) for c, v in search.known],
        "scheduler": schedule.name,
        "custom_scheduler": own_schedule,
        "scheduler_settings": schedule.settings,
        "time_attr": schedule.time_attr,
        "mutations": None if schedule.mutations is None else _mutations(schedule.mutations),
        "explore": schedule.explore,
        **options_of(allocation, resources),
        "rank_range": rank_range,
        "seed": search.seed if seed is None else seed,
        **rules,
        "time_budget": time_budget_s,
        "trial_time_limit": trial_time_limit_s,
        "resources_per_trial": resources,
        "total_resources": None if total_resources is None else dict(total_resources),
        "max_concurrent_trials": max_concurrent_trials,
        "max_failures": max_failures,
        "fail_fast": bool(fail_fast),
        "keep_checkpoints_num": keep_checkpoints_num,
        "checkpoint_score_attr": checkpoint_score_attr,
        "checkpoint_freq": checkpoint_freq,
        "checkpoint_at_end": checkpoint_at_end,
        "restore": restore,
        "resume": resume_word(resume, name),
        "local_dir": None if local_dir is None else os.path.expanduser(local_dir),
        "storage": storage,
        "loggers": loggers_beside(
            None if loggers is None else list(loggers), list(callbacks or [])
        ),
        "verbose": verbose,
        "callbacks": [listeners] if listeners else [],
        "trial_dirname_creator": _dirname_of(trial_dirname_creator, known),
        "executor": kind,
        "trainable_name": trainable.name,
        "trainable": trainable,
        "is_class": trainable.is_class,
        "kolo": str(command_path() or "kolo"),
        "num_hosts": ranks.num_hosts if ranks else None,
        "num_slots": ranks.num_slots if ranks else None,
        "hosts": ranks.hosts if ranks else None,
        "cluster": cluster,
        "command": [],
        "environment": [],
    }
    listeners.begin(stop, num_samples)
    try:
        raw = _run_under_a_free_name(options, trainable)
    except Error:
        if listeners.error is not None:
            raise listeners.error
        raise
    trials = [known(row) for row in raw["trials"]]
    listeners.end(trials)
    if isinstance(search, suggest.BasicVariantGenerator):
        search.note_trials(len(trials))
    failed = [trial for trial in trials if trial.status == "ERROR"]
    if failed and (raise_on_failed_trial or fail_fast == "raise"):
        raise TuneError(
            f"study {raw['name']}: {len(failed)} of {len(trials)} "
            f"{'trial' if len(trials) == 1 else 'trials'} failed; the first, "
            f"{failed[0].name}: {failed[0].error}"
        )
    ended = [trial for trial in trials if trial.status == Trial.TERMINATED]
    if ended and not raw["was_interrupted"] and not any(trial.results for trial in ended):
        warnings.warn(
            f"study {raw['name']}: no trial has reported anything; {trainable.name} must call "
            'tune.report(loss=...), or return a dictionary such as {"loss": 0.3}',
            stacklevel=2,
        )
    return results_of(raw, trials)


# What an Experiment that is run takes the place of.
_NOT_OPTIONS = ("run_or_experiment", "unknown")


def _run_all(experiments: Sequence[Any], options: Dict[str, Any]) -> ExperimentAnalysis:
    """Studies one after another, and their results as those of one."""
    if not experiments or not all(isinstance(one, Experiment) for one in experiments):
        raise InvalidArgumentError(f"tune.run: {experiments!r} is not a list of Experiments")
    studies = [run(experiment, **options) for experiment in experiments]
    raw = together(os.path.dirname(studies[0].directory), [vars(study) for study in studies])
    return results_of(raw, raw["trials"])


_names: Dict[str, int] = {}


def new_name(trainable: str) -> str:
    """A name with the date; studies of one second are numbered."""
    name = f"{trainable}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    count = _names[name] = _names.get(name, 0) + 1
    return name if count == 1 else f"{name}_{count}"


def _run_under_a_free_name(options: Dict[str, Any], trainable: Prepared) -> Dict[str, Any]:
    """A study whose name is taken is a new one, as Tune has it: it gets a number. resume=True goes on
    with the old one."""
    name = options["name"]
    for number in itertools.count(2):
        try:
            return _run_prepared(dict(options), trainable)
        except AlreadyExistsError:
            options["name"] = f"{name}_{number}"
            warnings.warn(
                f"tune.run: there is a study {name!r} already; this one is {options['name']!r}. Add "
                "resume=True to go on with the old one",
                stacklevel=3,
            )
    raise AssertionError


def _dirname_of(
    creator: Optional[Callable[..., str]], known: Callable[[Dict[str, Any]], Trial]
) -> Optional[Callable[[int, Any], str]]:
    """Functions of a trial, as Tune has them, and of its number and configuration."""
    if creator is None or len(inspect.signature(creator).parameters) > 1:
        return creator
    used: Dict[str, int] = {}

    def name_of(number: int, config: Any) -> str:
        name = str(creator(known(new_row(number, config))))
        # Two trials must not write into one folder.
        return name if used.setdefault(name, number) == number else f"{name}_{number:05d}"

    return name_of


def _shared_folder(options: Dict[str, Any]) -> Optional[str]:
    """Where the hosts of a cluster find the trainable: beside the results. None = anywhere here."""
    if not options["cluster"]:
        return None
    folder = results_dir(options["local_dir"])
    os.makedirs(folder, exist_ok=True)
    return folder


def _run_prepared(options: Dict[str, Any], trainable: Prepared) -> Dict[str, Any]:
    program = command_path()
    if program is not None:
        _core.set_custodian_program(str(program))
    if options["executor"] == "thread":
        return _core.run_study(options)
    with handover_folder(_shared_folder(options)) as folder:
        path = os.path.join(folder, "trainable")
        with open(path, "wb") as file:
            # A tuple, whose first element is the trainable.
            file.write(
                dump_function(trainable, options["checkpoint_freq"], options["checkpoint_at_end"])
            )
        options["command"] = [sys.executable, "-m", "kolo.tune._trial", path]
        options["environment"] = [f"PYTHONPATH={python_path()}"]
        if trainable.ranks:
            options["environment"].append(f"KOLO_START_TIMEOUT={trainable.ranks.timeout_s}")
        options["trainable"] = None
        return _core.run_study(options)


def _mutations(mutations: Dict[str, Any]) -> Dict[str, Any]:
    from kolo.tune.sample import choice, sample_from

    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: one(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return choice(list(value))
        if callable(value) and not hasattr(value, "_kolo_domain"):
            return sample_from(value)
        return value

    return {key: one(value) for key, value in mutations.items()}
