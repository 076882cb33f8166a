"""Schedulers: which trials go on. The names and defaults are Ray Tune's."""

from __future__ import annotations

import os
import pickle
from typing import Any, Callable, Dict, Optional, Tuple

from kolo._errors import (
    InvalidArgumentError,
    UnsupportedError,
    constructor_suggests,
    known_arguments,
    unknown_name,
)
from kolo._run import pickler
from kolo.tune.error import SettingError
from kolo.tune.sample import Domain, uniform
from kolo.tune.schedulers._allocations import (
    AllocationFunction,
    DistributeResources,
    DistributeResourcesToTopJob,
    RankShares,
    ReuseWorkers,
    TrialShare,
    check_allocation,
)
from kolo.tune.schedulers._rules import Rules


def _check(scheduler: type, **settings: bool) -> None:
    """Refuses what cannot be meant, when the scheduler is made."""
    for name, is_good in settings.items():
        if not is_good:
            raise SettingError(f"{scheduler.__name__}: {name} is out of range")


def _check_mutations(mutations: Dict[str, Any]) -> None:
    for name, value in mutations.items():
        if isinstance(value, dict):
            _check_mutations(value)
        elif not isinstance(value, (list, tuple, Domain)) and not callable(value):
            raise SettingError(
                f"PopulationBasedTraining: hyperparam_mutations[{name!r}] is {value!r}; use a list, "
                "a domain such as tune.uniform(0, 1), a function, or a dictionary of them"
            )


class TrialScheduler:
    """A scheduler by its name in ``kolo list schedulers``, with its settings; or, for a class of
    one's own that overrides on_trial_result, one in Python."""

    CONTINUE = "CONTINUE"
    PAUSE = "PAUSE"
    STOP = "STOP"
    NOOP = "NOOP"

    name = "fifo"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        constructor_suggests(cls)

    def __init__(
        self,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        time_attr: str = "",
        mutations: Optional[Dict[str, Any]] = None,
        explore: Optional[Callable[[Dict[str, Any]], Dict[str, Any]]] = None,
        **settings: Any,
    ) -> None:
        if mode not in (None, "min", "max"):
            raise InvalidArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        self.metric = metric
        self.mode = mode
        self.time_attr = time_attr
        self.mutations = mutations
        self.explore = explore
        self.settings = settings
        self._rules: Optional[Rules] = None

    # --- for a class of one's own ---

    def set_search_properties(self, metric: Any, mode: Any, **spec: Any) -> bool:
        """Told what tune.run was given. False: this scheduler has others already."""
        if (self.metric and metric) or (self.mode and mode):
            return False
        self.metric = metric or self.metric
        self.mode = mode or self.mode
        return True

    def on_trial_add(self, trial_runner: Any, trial: Any) -> None:
        """There is another trial."""

    def on_trial_result(self, trial_runner: Any, trial: Any, result: Dict[str, Any]) -> str:
        """What becomes of a trial: CONTINUE, PAUSE (until there is a place again) or STOP."""
        if self.name == "fifo":
            return self.CONTINUE
        if self.name not in ("asha", "median_stopping_rule"):
            raise UnsupportedError(
                f"{type(self).__name__}: the rules of this scheduler cannot be asked from Python; "
                "derive a scheduler of your own from FIFOScheduler, ASHAScheduler or "
                "MedianStoppingRule"
            )
        if not self.metric or not self.mode:
            raise InvalidArgumentError(f"{type(self).__name__}: metric and mode are not set")
        for name in (self.metric, self.time_attr):
            if name not in result:
                raise InvalidArgumentError(f"{type(self).__name__}: the result has no {name!r}")
        if self._rules is None:
            self._rules = Rules(self.name, self.mode, self.settings)
        return self._rules.decide(trial.trial_id, result[self.time_attr], result[self.metric])

    def on_trial_complete(self, trial_runner: Any, trial: Any, result: Dict[str, Any]) -> None:
        """A trial has come to its end."""
        if self._rules and self.metric:
            time, value = result.get(self.time_attr), result.get(self.metric)
            self._rules.complete(trial.trial_id, time, value)

    def on_trial_remove(self, trial_runner: Any, trial: Any) -> None:
        """A trial was taken out before its end."""

    def on_trial_error(self, trial_runner: Any, trial: Any) -> None:
        """A trial has failed."""
        if self._rules:
            self._rules.fail(trial.trial_id)

    def choose_trial_to_run(self, trial_runner: Any) -> Any:
        """Which of those that wait shall run; without an own rule, the oldest."""
        return None

    def save(self, checkpoint_path: str) -> None:
        """Writes what the scheduler knows to a file. Studies keep that of kolo's own themselves."""
        with open(checkpoint_path, "wb") as file:
            file.write(pickler.dumps(self.__dict__))

    def restore(self, checkpoint_path: str) -> None:
        """Takes what save() has written."""
        with open(checkpoint_path, "rb") as file:
            self.__dict__.update(pickle.load(file))

    def debug_string(self) -> str:
        """For people."""
        return f"Using {self.name} scheduling algorithm."

    def is_custom(self) -> bool:
        """Whether its rules are in Python: also one that only listens, without a rule for results."""
        names = ["on_trial_result"]
        if self.name == "fifo":
            names += ["on_trial_add", "on_trial_complete", "on_trial_error", "choose_trial_to_run"]
        return any(getattr(type(self), one) is not getattr(TrialScheduler, one) for one in names)


class FIFOScheduler(TrialScheduler):
    """Every trial runs to its end."""


class AsyncHyperBandScheduler(TrialScheduler):
    """ASHA, the stopping variant."""

    name = "asha"

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        max_t: float = 100,
        grace_period: float = 1,
        reduction_factor: float = 4,
        brackets: int = 1,
        stop_last_trials: bool = True,
    ) -> None:
        _check(
            type(self),
            max_t=(max_t > 0),
            grace_period=(0 < grace_period <= max_t),
            reduction_factor=(reduction_factor > 1),
            brackets=(brackets > 0),
        )
        super().__init__(
            metric,
            mode,
            time_attr,
            max_t=max_t,
            grace_period=grace_period,
            reduction_factor=reduction_factor,
            brackets=brackets,
            stop_last_trials=stop_last_trials,
        )


ASHAScheduler = AsyncHyperBandScheduler


class HyperBandScheduler(TrialScheduler):
    """HyperBand."""

    name = "hyperband"

    def __init__(
        self,
        time_attr: str = "training_iteration",
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        max_t: float = 81,
        reduction_factor: float = 3,
        stop_last_trials: bool = True,
    ) -> None:
        _check(type(self), max_t=(max_t > 0), reduction_factor=(reduction_factor > 1))
        super().__init__(
            metric,
            mode,
            time_attr,
            max_t=max_t,
            reduction_factor=reduction_factor,
            stop_last_trials=stop_last_trials,
        )


class HyperBandForBOHB(HyperBandScheduler):
    """HyperBand as BOHB wants it."""

    name = "hb_bohb"


class MedianStoppingRule(TrialScheduler):
    """Stops trials whose best result is worse than the median of the others' means."""

    name = "median_stopping_rule"

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        grace_period: float = 60.0,
        min_samples_required: int = 3,
        min_time_slice: float = 0,
        hard_stop: bool = True,
    ) -> None:
        super().__init__(
            metric,
            mode,
            time_attr,
            grace_period=grace_period,
            min_samples_required=min_samples_required,
            min_time_slice=min_time_slice,
            hard_stop=hard_stop,
        )


class PopulationBasedTraining(TrialScheduler):
    """Trials that do badly go on from the checkpoints of those that do well, slightly changed."""

    name = "pbt"

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        perturbation_interval: float = 60.0,
        burn_in_period: float = 0.0,
        hyperparam_mutations: Optional[Dict[str, Any]] = None,
        quantile_fraction: float = 0.25,
        resample_probability: float = 0.25,
        perturbation_factors: Tuple[float, float] = (1.2, 0.8),
        custom_explore_fn: Optional[Callable[[Dict[str, Any]], Dict[str, Any]]] = None,
        log_config: bool = True,
        require_attrs: bool = True,
        synch: bool = False,
    ) -> None:
        if not hyperparam_mutations and custom_explore_fn is None:
            raise SettingError(
                "PopulationBasedTraining: hyperparam_mutations or custom_explore_fn is needed"
            )
        _check_mutations(hyperparam_mutations or {})
        _check(
            type(self),
            perturbation_interval=(perturbation_interval > 0),
            quantile_fraction=(0 <= quantile_fraction <= 0.5),
            burn_in_period=(burn_in_period >= 0),
        )
        super().__init__(
            metric,
            mode,
            time_attr,
            hyperparam_mutations,
            custom_explore_fn,
            perturbation_interval=perturbation_interval,
            burn_in_period=burn_in_period,
            quantile_fraction=quantile_fraction,
            resample_probability=resample_probability,
            perturbation_factors=list(perturbation_factors),
            synch=synch,
        )


class PopulationBasedTrainingReplay(TrialScheduler):
    """One trial that repeats what led to a trial of a population: ``policy_file`` is the file
    pbt_policy_<trial>.txt of that study's folder. Without a config it begins as that trial did."""

    name = "pbt_replay"

    def __init__(self, policy_file: str) -> None:
        path = os.path.expanduser(os.fspath(policy_file))
        if not os.path.isfile(path):
            raise InvalidArgumentError(
                f"PopulationBasedTrainingReplay: there is no file {policy_file!r}"
            )
        # What it repeats is decided already; a study with a scheduler has a metric nevertheless.
        super().__init__("training_iteration", "max", policy_file=path)


class PB2(TrialScheduler):
    """Population based bandits."""

    name = "pb2"

    def __init__(
        self,
        time_attr: str = "time_total_s",
        metric: Optional[str] = None,
        mode: Optional[str] = None,
        perturbation_interval: float = 60.0,
        hyperparam_bounds: Optional[Dict[str, Any]] = None,
        quantile_fraction: float = 0.25,
        log_config: bool = True,
        require_attrs: bool = True,
        synch: bool = False,
    ) -> None:
        if not hyperparam_bounds:
            raise SettingError("PB2: hyperparam_bounds is needed")
        for name, bounds in hyperparam_bounds.items():
            if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
                raise SettingError(
                    f"PB2: hyperparam_bounds[{name!r}] must be a list of two numbers, not {bounds!r}"
                )
        mutations = {name: uniform(*bounds) for name, bounds in hyperparam_bounds.items()}
        super().__init__(
            metric,
            mode,
            time_attr,
            mutations,
            perturbation_interval=perturbation_interval,
            quantile_fraction=quantile_fraction,
            synch=synch,
        )


class ResourceChangingScheduler(TrialScheduler):
    """Changes how many ranks trials have while they run, beside another scheduler, which decides what
    goes on. A trial is a function whose work is done inside of elastic.run. It has as many ranks as
    ``ranks`` in resources_per_trial says, {"cpu": 1, "ranks": (1, 4)}; without, between one and what
    ``resources_allocation_function`` adds.

    That is DistributeResources(), DistributeResourcesToTopJob(), ReuseWorkers(), or a function of
    RankShares that returns a number of ranks for each of its trials."""

    def __init__(
        self,
        base_scheduler: Optional[TrialScheduler] = None,
        resources_allocation_function: Optional[AllocationFunction] = None,
    ) -> None:
        base = FIFOScheduler() if base_scheduler is None else base_scheduler
        if not isinstance(base, TrialScheduler) or isinstance(base, ResourceChangingScheduler):
            raise InvalidArgumentError(
                f"ResourceChangingScheduler: base_scheduler is {base!r}; give a scheduler such as "
                "ASHAScheduler()"
            )
        if resources_allocation_function is None:
            resources_allocation_function = DistributeResources()
        check_allocation(resources_allocation_function)
        super().__init__(base.metric, base.mode, base.time_attr)
        self.base_scheduler = base
        self.resources_allocation_function = resources_allocation_function
        self.name = base.name

    def set_search_properties(self, metric: Any, mode: Any, **spec: Any) -> bool:
        took_it = self.base_scheduler.set_search_properties(metric, mode, **spec)
        self.metric, self.mode = self.base_scheduler.metric, self.base_scheduler.mode
        return took_it

    def on_trial_result(self, trial_runner: Any, trial: Any, result: Dict[str, Any]) -> str:
        return self.base_scheduler.on_trial_result(trial_runner, trial, result)

    def on_trial_complete(self, trial_runner: Any, trial: Any, result: Dict[str, Any]) -> None:
        self.base_scheduler.on_trial_complete(trial_runner, trial, result)

    def on_trial_error(self, trial_runner: Any, trial: Any) -> None:
        self.base_scheduler.on_trial_error(trial_runner, trial)

    def debug_string(self) -> str:
        return f"(ResourceChangingScheduler) {self.base_scheduler.debug_string()}"


def create_scheduler(scheduler: str, **kwargs: Any) -> TrialScheduler:
    """A scheduler by Tune's name for it."""
    names = {
        "fifo": FIFOScheduler,
        "async_hyperband": AsyncHyperBandScheduler,
        "asynchyperband": AsyncHyperBandScheduler,
        "asha": AsyncHyperBandScheduler,
        "median_stopping_rule": MedianStoppingRule,
        "medianstopping": MedianStoppingRule,
        "hyperband": HyperBandScheduler,
        "hb_bohb": HyperBandForBOHB,
        "pbt": PopulationBasedTraining,
        "pbt_replay": PopulationBasedTrainingReplay,
        "pb2": PB2,
        "resource_changing": ResourceChangingScheduler,
    }
    if scheduler not in names:
        raise unknown_name("scheduler", scheduler, names)
    return names[scheduler](**known_arguments(names[scheduler], kwargs))


__all__ = [
    "PB2",
    "ASHAScheduler",
    "AsyncHyperBandScheduler",
    "DistributeResources",
    "DistributeResourcesToTopJob",
    "FIFOScheduler",
    "HyperBandForBOHB",
    "HyperBandScheduler",
    "MedianStoppingRule",
    "PopulationBasedTraining",
    "PopulationBasedTrainingReplay",
    "RankShares",
    "ResourceChangingScheduler",
    "ReuseWorkers",
    "TrialScheduler",
    "TrialShare",
    "create_scheduler",
]
