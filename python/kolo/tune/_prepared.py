"""A trainable, whatever it is, as the compiled module takes it."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from kolo import _core
from kolo._errors import InvalidArgumentError
from kolo.tune import _session
from kolo.tune._output import into_files
from kolo.tune.checkpoint import load_object, save_object
from kolo.tune.registry import registered
from kolo.tune.resources import PlacementGroupFactory, amounts_of, placement_of
from kolo.tune.trainable import DistributedTrainable, Ranks, Trainable, step_of


class _ClassAdapter:
    """What the compiled module calls of a class."""

    def __init__(self, prepared: Prepared) -> None:
        self._trainable = prepared.trainable()
        self._trainable._trial_resources = prepared.placement
        self._restore = prepared.constants.restore
        self._files = prepared.files
        self._export_formats = prepared.export_formats
        self._is_exported = True

    def setup(self, config: Dict[str, Any]) -> None:
        config = self._restore(config)
        self._trainable.config = config
        if not hasattr(self._trainable, "iteration"):
            self._trainable.iteration = 0
        with into_files(self._files):
            self._trainable.setup(config)

    def step(self) -> Any:
        self._is_exported = True  # a step that fails leaves nothing to export
        with into_files(self._files):
            result = step_of(self._trainable)
        self._is_exported = False
        self._trainable.iteration += 1
        if result.get("done"):  # before the report: an error of the export is the trial's then
            self._export()
        return result

    def save(self, directory: str) -> None:
        save_object(self._trainable, directory)

    def load(self, directory: str) -> None:
        load_object(self._trainable, directory)

    def cleanup(self) -> None:
        try:
            self._export()
        finally:
            self._trainable.cleanup()

    def _export(self) -> None:
        """Once after the last step."""
        if self._export_formats and not self._is_exported:
            self._is_exported = True
            self._trainable.export_model(self._export_formats)


def call_function(function: Callable[..., Any], config: Dict[str, Any]) -> None:
    """A function of Tune: reports by tune.report, by a reporter, by yield, or by what it returns."""
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    arguments: Dict[str, Any] = {}
    if "checkpoint_dir" in names:
        checkpoint = _session.get_checkpoint()
        if (
            checkpoint is not None
            or parameters["checkpoint_dir"].default is inspect.Parameter.empty
        ):
            arguments["checkpoint_dir"] = checkpoint
    if len(names) > 1 and names[1] == "reporter":
        arguments["reporter"] = _session.report
    result = function(config, **arguments)
    if inspect.isgenerator(result):
        for item in result:
            _session.report(item)
    elif isinstance(result, dict):
        _session.report(**result)
    elif result is not None:
        _session.report(result)
    sys.stdout.flush()


def _rank_range(given: Any) -> Optional[Tuple[int, int]]:
    """How many ranks a trial may have, as resources_per_trial says it."""
    if given is None:
        return None
    pair = list(given) if isinstance(given, (list, tuple)) else []
    are_numbers = all(isinstance(one, int) and not isinstance(one, bool) for one in pair)
    if len(pair) != 2 or not are_numbers or not 1 <= pair[0] <= pair[1]:
        raise InvalidArgumentError(
            f"tune.run: 'ranks' of resources_per_trial is {given!r}; it is a range, such as (1, 4), "
            "for trials whose number of ranks changes. DistributedTrainableCreator(num_slots=N) "
            "gives each trial N of them"
        )
    return (pair[0], pair[1])


def _takes_checkpoint(function: Callable[..., Any]) -> bool:
    try:
        return "checkpoint_dir" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _check_arguments(function: Callable[..., Any], name: str) -> None:
    """A function of a trial is called with the configuration, and with what it asks for by name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # one that is not written in Python
        return
    kinds = inspect.Parameter
    if not any(
        p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD, kinds.VAR_POSITIONAL)
        for p in parameters
    ):
        raise InvalidArgumentError(
            f"tune.run: {name} takes no argument; it is called with the configuration, as "
            f"{name}(config)"
        )
    for one in parameters[1:]:
        is_needed = one.default is kinds.empty and one.kind not in (
            kinds.VAR_POSITIONAL,
            kinds.VAR_KEYWORD,
        )
        if is_needed and one.name not in ("checkpoint_dir", "reporter"):
            raise InvalidArgumentError(
                f"tune.run: {name} needs {one.name!r} besides the configuration; give it by "
                f"tune.with_parameters({name}, {one.name}=...)"
            )


class Prepared:
    """A trainable as the compiled module takes it; it travels to other processes as a whole."""

    def __init__(
        self,
        trainable: Any,
        constants: Any,
        files: Optional[Tuple[str, str]] = None,
        export_formats: Sequence[str] = (),
    ) -> None:
        """``files``: to which trials print. ``export_formats``: of models of classes, at the end."""
        self.files = files
        self.export_formats = list(export_formats)
        self.ranks: Optional[Ranks] = None
        # Of trials that change their number of ranks while they run.
        self.rank_range: Optional[Tuple[int, int]] = None
        if isinstance(trainable, DistributedTrainable):
            self.ranks = trainable.ranks
            trainable = trainable.function
        if isinstance(trainable, str):
            trainable = registered(trainable)
        self.placement: Optional[PlacementGroupFactory] = None
        if not callable(trainable):
            raise InvalidArgumentError(
                f"tune.run: {trainable!r} is neither a function nor a class of Trainable"
            )
        self.trainable = trainable
        self.constants = constants
        self.is_class = inspect.isclass(trainable)
        self.saves_by_itself = not self.is_class and _takes_checkpoint(trainable)
        self.name = getattr(trainable, "__name__", type(trainable).__name__)
        if self.name == "<lambda>":
            self.name = "lambda"
        if not self.is_class:
            _check_arguments(trainable, self.name)
        elif not hasattr(trainable, "step"):
            raise InvalidArgumentError(
                f"tune.run: the class {self.name} has no function step; derive it from "
                "tune.Trainable"
            )
        elif trainable.step is Trainable.step:
            raise InvalidArgumentError(
                f"tune.run: the class {self.name} has no step of its own; define step(self), which "
                "returns a dictionary of metrics"
            )

    def reserve(self, given: Any, config: Dict[str, Any]) -> Dict[str, float]:
        """What each trial needs: as with_resources says, or the class, or resources_per_trial."""
        own = getattr(self.trainable, "_kolo_resources", None)
        if own is None and self.is_class and hasattr(self.trainable, "default_resource_request"):
            own = self.trainable.default_resource_request(config)
            if own is not None and given is not None:
                raise InvalidArgumentError(
                    f"tune.run: {self.name}.default_resource_request says what a trial needs; leave "
                    "resources_per_trial out"
                )
        if own is None:
            own = {"cpu": 1} if given is None else given
        if callable(own):
            own = own(config)
        amounts = amounts_of(own, "tune.run")
        self.rank_range = _rank_range(amounts.pop("ranks", None))
        if self.ranks:
            amounts["cpu"] = self.ranks.cpus_per_slot * self.ranks.num_slots
            amounts["gpu"] = self.ranks.num_slots if self.ranks.use_gpu else 0
        amounts.setdefault("cpu", 1)
        self.placement = own if isinstance(own, PlacementGroupFactory) else placement_of(amounts)
        return amounts

    def check_elastic(self, kind: str, resources: Dict[str, float]) -> None:
        """Refuses trials that cannot have another number of ranks while they run."""
        why = ""
        if self.ranks:
            why = (
                "a DistributedTrainableCreator has a fixed number of ranks; give its function itself "
                "to tune.run"
            )
        elif self.is_class:
            why = (
                f"{self.name} is a class, whose steps the study counts; write a function that works "
                "inside of elastic.run"
            )
        elif kind != "ranks":
            why = f"they are ranks, not {kind!r}; leave executor out"
        elif resources.get("gpu"):
            why = "GPUs are reserved for a fixed number of ranks; leave 'gpu' out"
        if why:
            raise InvalidArgumentError(
                f"tune.run: the trials shall change their number of ranks, but {why}"
            )

    def __call__(self, *arguments: Any) -> Any:
        if self.is_class:
            return _ClassAdapter(self)
        with into_files(self.files), _session.of_function(self.placement):
            try:
                return call_function(self.trainable, self.constants.restore(arguments[0]))
            except SystemExit as leaving:
                # By this a worker leaves a trial that has fewer ranks from now on.
                if _core.is_elastic_worker() and not leaving.code:
                    raise _session.TrialStopped from None
                raise
