"""Who gets how many ranks, while the trials of a study run. The names are Ray Tune's."""

from __future__ import annotations

import inspect
import math
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from kolo._errors import InvalidArgumentError
from kolo.tune.error import SettingError
from kolo.tune.resources import amounts_of

# Ranks that a trial has at least and at most.
RankRange = Tuple[int, int]


class TrialShare(NamedTuple):
    """A running trial, to whoever shares out ranks."""

    number: int
    ranks: int
    #: Reports so far.
    iteration: int
    #: Of the first metric of the study, in the trial's last report.
    value: Optional[float]


class RankShares(NamedTuple):
    """What is shared out: ``ranks`` ranks, which the trials have or which are free. It can be less
    than they have, when another trial waits for a place."""

    trials: List[TrialShare]
    ranks: int
    #: Of each trial.
    least: int
    most: int
    mode: str


class Allocation:
    """One of kolo's own. ``increase_by`` is what one more rank has, so it must be what a rank has;
    ``increase_by_times`` says how many more a trial may get, -1: as many as there are.
    ``reserve_resources`` are left free. ``add_bundles`` changes nothing: more is always more
    ranks."""

    name = ""

    def __init__(
        self,
        add_bundles: bool = False,
        increase_by: Optional[Mapping[str, float]] = None,
        increase_by_times: int = -1,
        reserve_resources: Optional[Mapping[str, float]] = None,
    ) -> None:
        label = type(self).__name__
        if isinstance(increase_by_times, bool) or not isinstance(increase_by_times, int):
            raise SettingError(
                f"{label}: increase_by_times must be a whole number, not {increase_by_times!r}"
            )
        if increase_by_times == 0 or increase_by_times < -1:
            raise SettingError(
                f"{label}: increase_by_times is {increase_by_times}; give how many more ranks a "
                "trial may get, or -1 for as many as there are"
            )
        self.add_bundles = add_bundles
        self.increase_by = amounts_of(increase_by or {}, label)
        self.increase_by_times = increase_by_times
        self.reserve_resources = amounts_of(reserve_resources or {}, label)

    def check(self, per_rank: Mapping[str, float], objectives: Sequence[Tuple[str, str]]) -> None:
        """Refuses what does not suit the study."""
        if self.increase_by and any(
            per_rank.get(name, 0) != amount for name, amount in self.increase_by.items()
        ):
            raise InvalidArgumentError(
                f"{type(self).__name__}: increase_by is {self.increase_by}, but one more rank has "
                f"what each rank has, {dict(per_rank)} (resources_per_trial); leave increase_by out"
            )

    def reserved_ranks(self, per_rank: Mapping[str, float]) -> int:
        """Ranks whose places are left free."""
        wanted = [
            math.ceil(amount / per_rank[name])
            for name, amount in self.reserve_resources.items()
            if per_rank.get(name, 0) > 0
        ]
        return max(wanted, default=0)


class DistributeResources(Allocation):
    """Free ranks go to all trials evenly; the shares follow when trials come and end."""

    name = "distribute"


class DistributeResourcesToTopJob(Allocation):
    """Free ranks go to the best trial, as many as it may have, then to the next best. Others give
    theirs up. The best is so by the metric of the study."""

    name = "top_job"

    def __init__(
        self,
        add_bundles: bool = False,
        increase_by: Optional[Mapping[str, float]] = None,
        increase_by_times: int = -1,
        reserve_resources: Optional[Mapping[str, float]] = None,
        metric: Optional[str] = None,
        mode: Optional[str] = None,
    ) -> None:
        super().__init__(add_bundles, increase_by, increase_by_times, reserve_resources)
        self.metric = metric
        self.mode = mode

    def check(self, per_rank: Mapping[str, float], objectives: Sequence[Tuple[str, str]]) -> None:
        super().check(per_rank, objectives)
        first = objectives[0] if objectives else (None, None)
        if first[0] is None:
            raise InvalidArgumentError(
                "DistributeResourcesToTopJob: the study has no metric by which a trial is the best; "
                "give tune.run metric and mode"
            )
        for what, own, of_study in zip(("metric", "mode"), (self.metric, self.mode), first):
            if own is not None and own != of_study:
                raise InvalidArgumentError(
                    f"DistributeResourcesToTopJob: {what} is {own!r}, but that of the study is "
                    f"{of_study!r}, which decides; leave it out here"
                )


class ReuseWorkers(Allocation):
    """Trials keep what they have, and the ranks of those that have ended go to the best that run."""

    name = "reuse"


class CustomAllocation:
    """A function of RankShares, as the controller calls it."""

    label = "resources_allocation_function"

    def __init__(self, function: Callable[[RankShares], Sequence[int]]) -> None:
        self._function = function

    def allocate(
        self,
        trials: Sequence[Tuple[int, int, int, Optional[float]]],
        ranks: int,
        least: int,
        most: int,
        mode: str,
    ) -> List[int]:
        """The number of ranks of each trial."""
        shares = RankShares([TrialShare(*one) for one in trials], ranks, least, most, mode)
        answer = self._function(shares)
        if not isinstance(answer, (list, tuple)) or not all(
            hasattr(type(one), "__index__") for one in answer
        ):
            raise InvalidArgumentError(
                f"it returned {answer!r}; it returns a list with a number of ranks for each of "
                "shares.trials"
            )
        return [int(one) for one in answer]


AllocationFunction = Union[Allocation, Callable[[RankShares], Sequence[int]]]


def check_allocation(function: Any) -> None:
    """Refuses what is no allocation of ranks."""
    if isinstance(function, Allocation):
        return
    if inspect.isclass(function) and issubclass(function, Allocation):
        raise InvalidArgumentError(
            f"ResourceChangingScheduler: resources_allocation_function is the class "
            f"{function.__name__}; give an object of it, {function.__name__}()"
        )
    if not callable(function):
        raise InvalidArgumentError(
            f"ResourceChangingScheduler: resources_allocation_function is {function!r}; use "
            "DistributeResources(), DistributeResourcesToTopJob(), ReuseWorkers() or a function"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise InvalidArgumentError(
            "ResourceChangingScheduler: resources_allocation_function takes one argument here, "
            "shares, and returns a list with a number of ranks for each of shares.trials; Ray's "
            "functions of (controller, trial, result, scheduler) have no meaning in kolo"
        ) from None
    except ValueError:  # one that is not written in Python
        pass


def range_for(
    allocation: Optional[AllocationFunction],
    given: Optional[RankRange],
    per_rank: Mapping[str, float],
    total: Optional[Mapping[str, float]],
) -> Optional[RankRange]:
    """How many ranks a trial may have: as ``given``, or one and what the allocation adds. None: as
    many as it began with."""
    if given is not None or allocation is None:
        return given
    times = allocation.increase_by_times if isinstance(allocation, Allocation) else -1
    if times > 0:
        return (1, 1 + times)
    cpus = dict(total or {}).get("cpu") or len(os.sched_getaffinity(0))
    return (1, max(1, int(cpus / per_rank["cpu"]) if per_rank["cpu"] > 0 else int(cpus)))


def options_of(
    allocation: Optional[AllocationFunction], per_rank: Mapping[str, float]
) -> Dict[str, Any]:
    """For the compiled module."""
    own = allocation if isinstance(allocation, Allocation) else None
    custom = None if allocation is None or own else CustomAllocation(allocation)  # type: ignore[arg-type]
    return {
        "allocation": own.name if own else None,
        "reserved_ranks": own.reserved_ranks(per_rank) if own else 0,
        "custom_allocation": custom,
    }
