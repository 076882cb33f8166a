"""What tune.run refuses before anything is started: arguments that cannot be meant."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Mapping, Optional, Tuple

from kolo._errors import InvalidArgumentError, unknown_name
from kolo.tune._custom import trial_id_of
from kolo.tune._space import has_domains
from kolo.tune.error import SettingError
from kolo.tune.stopper import CombinedStopper, Stopper

_RESUME = {
    None: "no",
    False: "no",
    True: "yes",
    "LOCAL": "yes",
    "AUTO": "auto",
    "ERRORED_ONLY": "errored",
    "PROMPT": "auto",
}


def resume_word(resume: Any, name: Optional[str]) -> str:
    """What the compiled module calls this way to resume."""
    if resume not in _RESUME:
        raise unknown_name("tune.run: resume", resume, [str(word) for word in _RESUME])
    word = _RESUME[resume]
    if word in ("yes", "errored") and not name:
        raise InvalidArgumentError(
            f"tune.run: resume={resume!r} needs the name of the study that is to go on: name=..."
        )
    return word


def objectives(metric: Any, mode: Any, must_be_known: bool) -> List[Tuple[str, str]]:
    """Pairs of metrics and modes. One mode is that of all metrics. A metric without a mode says
    nothing, which is refused if something decides by it."""
    metrics = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    modes = list(mode) if isinstance(mode, (list, tuple)) else [mode] * len(metrics)
    for one in modes:
        if one not in (None, "min", "max"):
            raise InvalidArgumentError(f"tune.run: mode must be 'min' or 'max', not {one!r}")
    if len(metrics) != len(modes):
        raise InvalidArgumentError(
            f"tune.run: {len(metrics)} metrics need as many modes, not {len(modes)}"
        )
    pairs = [pair for pair in zip(metrics, modes) if pair[0] is not None]
    for name, way in pairs:
        if way is None and must_be_known:
            raise InvalidArgumentError(
                f"tune.run: the metric {name!r} has no mode; add mode='min' or mode='max'"
            )
        if way is None:
            warnings.warn(
                f"tune.run: the metric {name!r} has no mode, so that no trial is the best; add "
                "mode='min' or mode='max'",
                stacklevel=3,
            )
            return []
    return pairs


def check_counts(counts: Mapping[str, Any]) -> None:
    """Whole numbers, or None."""
    for name, value in counts.items():
        if value is not None and not hasattr(type(value), "__index__"):
            raise InvalidArgumentError(f"tune.run: {name} must be a whole number, not {value!r}")


def check_times(times: Mapping[str, Any]) -> None:
    """Seconds, or None."""
    for name, value in times.items():
        if value is not None and not hasattr(type(value), "__float__"):
            raise InvalidArgumentError(
                f"tune.run: {name} must be a number of seconds, not {value!r}"
            )


def _limits(stop: Mapping[str, Any]) -> Mapping[str, float]:
    """The numbers at which a trial ends."""
    limits = {}
    for name, limit in stop.items():
        if not hasattr(type(limit), "__float__"):
            raise SettingError(
                f"tune.run: stop[{name!r}] must be a number, at which a trial ends, not {limit!r}"
            )
        limits[str(name)] = float(limit)
    return limits


def stop_rules(stop: Any) -> Dict[str, Any]:
    """When trials end, and when the study does."""
    if stop is None:
        return {"stop": None, "stopper": None, "stop_all": None}
    if isinstance(stop, Mapping):
        return {"stop": _limits(stop), "stopper": None, "stop_all": None}
    if isinstance(stop, (list, tuple)) and all(isinstance(one, Stopper) for one in stop):
        stop = CombinedStopper(*stop)
    if callable(stop):
        return {
            "stop": None,
            "stopper": lambda number, result: stop(trial_id_of(number), result),
            "stop_all": stop.stop_all if isinstance(stop, Stopper) else None,
        }
    raise InvalidArgumentError(
        f"tune.run: stop is {stop!r}; use a dictionary of limits, a function, or a Stopper"
    )


def check_space(search: str, space: Any) -> None:
    """A search that learns needs something that varies. Without one, trials may be repeats."""
    if search not in ("", "random", "grid") and not has_domains(space):
        raise InvalidArgumentError(
            f"tune.run: the search {search!r} has nothing to search: no value of `config` is a "
            "domain, such as tune.uniform(0, 1) or tune.choice([...]); a list is a constant"
        )


def check_executor(kind: str, ranks: Any, cluster: Optional[str]) -> None:
    """What a trial is must fit the trainable and the place."""
    if cluster and kind not in ("process", "ranks"):
        raise InvalidArgumentError(
            f"tune.run: trials on a cluster are processes or ranks, not {kind!r}; leave executor out"
        )
    if kind == "ranks" and not ranks:
        raise InvalidArgumentError(
            "tune.run: the executor 'ranks' needs a DistributedTrainableCreator, which says how "
            "many ranks a trial has, or a range of ranks in resources_per_trial"
        )
    if ranks and kind != "ranks":
        raise InvalidArgumentError("tune.run: a distributed trainable needs the executor 'ranks'")
