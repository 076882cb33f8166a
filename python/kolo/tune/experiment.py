"""Studies as values, which run one after another. The names are Ray Tune's."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from kolo._errors import InvalidArgumentError
from kolo.tune._prepared import Prepared
from kolo.tune._space import Constants
from kolo.tune.error import SettingError, TuneError, UntrainableError
from kolo.tune.trial import Trial


class Experiment:
    """One study: its name, what it trains, and further parameters of tune.run."""

    def __init__(self, name: str, run: Any, **spec: Any) -> None:
        self.name = name
        self.spec: Dict[str, Any] = {"run": run, **spec}
        try:
            prepared = Prepared(run, Constants())
        except InvalidArgumentError as error:
            raise UntrainableError(f"experiment {name!r}: {error}") from error
        kept = spec.get("checkpoint_config")
        if kept is not None and not prepared.is_class:
            if kept.checkpoint_at_end or kept.checkpoint_frequency:
                raise InvalidArgumentError(
                    f"Experiment: {prepared.name} is a function, which writes its checkpoints "
                    "itself: checkpoint_at_end and checkpoint_frequency are for classes"
                )

    @classmethod
    def from_json(cls, name: str, spec: Mapping[str, Any]) -> Experiment:
        """Of a dictionary: {"run": ..., "config": ..., "stop": ...}."""
        if "run" not in spec:
            raise TuneError(f"the experiment {name!r} does not say what to run: 'run' is missing")
        return cls(name, **spec)

    @property
    def public_spec(self) -> Dict[str, Any]:
        """What was given."""
        return dict(self.spec)

    def options(self) -> Dict[str, Any]:
        """The parameters of tune.run that it stands for."""
        return {**{k: v for k, v in self.spec.items() if k != "run"}, "name": self.name}

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, {self.spec!r})"


Experiments = Union[None, Experiment, Mapping[str, Any], Sequence[Union[Experiment, Mapping]]]


def _convert_to_experiment_list(experiments: Experiments) -> List[Experiment]:
    """Experiments, whether one is given, or several, or their dictionaries by name."""
    if experiments is None:
        return []
    if isinstance(experiments, Experiment):
        return [experiments]
    if isinstance(experiments, Mapping):
        return [Experiment.from_json(name, spec) for name, spec in experiments.items()]
    if isinstance(experiments, (list, tuple)):
        return [one for given in experiments for one in _convert_to_experiment_list(given)]
    raise TuneError(
        f"{experiments!r} is neither an Experiment, nor a list of them, nor a dictionary such as "
        '{"name": {"run": train}}'
    )


def run_experiments(
    experiments: Experiments, scheduler: Optional[Any] = None, **options: Any
) -> List[Trial]:
    """Runs studies one after another, and returns the trials of all. The other parameters are those
    of tune.run; they are the same for all, and an experiment's own come on top. ``concurrent``
    changes nothing: the trials of a study share the machine already."""
    from kolo.tune._run import run  # which takes an Experiment, too

    options.pop("concurrent", None)
    trials: List[Trial] = []
    for experiment in _convert_to_experiment_list(experiments):
        try:
            trials += run(experiment, scheduler=scheduler, **options).trials
        except InvalidArgumentError as error:  # as what is no experiment at all
            raise SettingError(f"experiment {experiment.name!r}: {error}") from error
    return trials


__all__ = ["Experiment", "Trial", "run_experiments"]
