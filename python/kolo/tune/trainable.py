"""Trainables: functions, classes, and either of them as a ring of ranks."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Optional, Sequence

from kolo._errors import InvalidArgumentError
from kolo.tune import _session
from kolo.tune.registry import registered


class Trainable:
    """A trial that is trained step by step. The study decides when it saves checkpoints.

    Override setup, step, save_checkpoint and load_checkpoint.
    """

    def __init__(
        self,
        config: Optional[Dict[str, Any]] = None,
        logger_creator: Any = None,
        remote_checkpoint_dir: Any = None,
        custom_syncer: Any = None,
        sync_timeout: Any = None,
    ) -> None:
        """With a config the object is set up, for use without a study: train(), save(), restore()
        and stop(). The other parameters have no meaning here."""
        self.config: Dict[str, Any] = {}
        self.iteration = 0
        self._time_total = 0.0
        if config is not None:
            self.config = dict(config)
            self.setup(dict(config))

    def train(self) -> Dict[str, Any]:
        """One step, and what is reported of it."""
        begin = time.monotonic()
        result = dict(self.step())
        self.iteration += 1
        took = time.monotonic() - begin
        self._time_total += took
        result.setdefault("done", False)
        return {
            **result,
            "training_iteration": self.iteration,
            "time_this_iter_s": took,
            "time_total_s": self._time_total,
            "config": self.config,
        }

    def save(self, checkpoint_dir: Optional[str] = None) -> str:
        """Writes a checkpoint, and returns its folder."""
        directory = checkpoint_dir or tempfile.mkdtemp(prefix="kolo-checkpoint-")
        os.makedirs(directory, exist_ok=True)
        _save(self, directory)
        return directory

    def restore(self, checkpoint_path: str) -> None:
        """Goes on from a folder that save() returned."""
        _load(self, checkpoint_path)

    def save_to_object(self) -> bytes:
        """A checkpoint as bytes."""
        with tempfile.TemporaryDirectory(prefix="kolo-checkpoint-") as directory:
            _save(self, directory)
            return pack(directory)

    def restore_from_object(self, obj: bytes) -> None:
        """Goes on from what save_to_object() returned."""
        with tempfile.TemporaryDirectory(prefix="kolo-checkpoint-") as directory:
            unpack(obj, directory)
            _load(self, directory)

    def stop(self) -> None:
        """The end."""
        self.cleanup()

    def get_config(self) -> Dict[str, Any]:
        """The configuration."""
        return self.config

    @property
    def trial_id(self) -> str:
        """The number of the trial; "default" without a study."""
        return _session.get_trial_id() if _session.is_session_enabled() else "default"

    @property
    def trial_name(self) -> str:
        """The name of the trial; "default" without a study."""
        return _session.get_trial_name() if _session.is_session_enabled() else "default"

    def setup(self, config: Dict[str, Any]) -> None:
        """Called once, before everything else."""

    def step(self) -> Dict[str, Any]:
        """One iteration; what it returns is reported. ``{"done": True}`` ends the trial."""
        raise NotImplementedError

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Writes a checkpoint into a folder, or returns a dictionary to be kept."""
        raise NotImplementedError("the class has no save_checkpoint")

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Reads what save_checkpoint wrote: the folder, or the dictionary."""
        raise NotImplementedError("the class has no load_checkpoint")

    def cleanup(self) -> None:
        """Called once, at the end."""

    @property
    def training_iteration(self) -> int:
        """Steps so far."""
        return self.iteration

    @property
    def logdir(self) -> str:
        """The folder of the trial."""
        return _session.get_trial_dir()


_STATE = "state.pkl"


def pack(directory: str) -> bytes:
    """All files below a folder."""
    files = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, directory)] = file.read()
    return pickle.dumps(files)


def unpack(packed: bytes, directory: str) -> None:
    """Writes the files of pack() below a folder."""
    for name, content in pickle.loads(packed).items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


def _save(trainable: Any, directory: str) -> None:
    state = trainable.save_checkpoint(directory)
    kept = {"iteration": trainable.iteration, "is_dict": isinstance(state, dict)}
    if isinstance(state, dict):
        kept["state"] = state
    elif isinstance(state, str):
        kept["path"] = os.path.relpath(state, directory)
    with open(os.path.join(directory, _STATE), "wb") as file:
        pickle.dump(kept, file)


def _load(trainable: Any, directory: str) -> None:
    with open(os.path.join(directory, _STATE), "rb") as file:
        kept = pickle.load(file)
    trainable.iteration = kept["iteration"]
    where = os.path.normpath(os.path.join(directory, kept.get("path", ".")))
    trainable.load_checkpoint(kept["state"] if kept["is_dict"] else where)


class _ClassAdapter:
    """What the compiled module calls of a class."""

    def __init__(self, cls: type, restore: Callable[[Any], Any]) -> None:
        self._trainable = cls()
        self._restore = restore

    def setup(self, config: Dict[str, Any]) -> None:
        config = self._restore(config)
        self._trainable.config = config
        if not hasattr(self._trainable, "iteration"):
            self._trainable.iteration = 0
        self._trainable.setup(config)

    def step(self) -> Any:
        result = self._trainable.step()
        self._trainable.iteration += 1
        return result

    def save(self, directory: str) -> None:
        _save(self._trainable, directory)

    def load(self, directory: str) -> None:
        _load(self._trainable, directory)

    def cleanup(self) -> None:
        self._trainable.cleanup()


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


def _takes_checkpoint(function: Callable[..., Any]) -> bool:
    try:
        return "checkpoint_dir" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Prepared:
    """A trainable as the compiled module takes it; it travels to other processes as a whole."""

    def __init__(self, trainable: Any, constants: Any) -> None:
        self.ranks: Optional[Ranks] = None
        if isinstance(trainable, DistributedTrainable):
            self.ranks = trainable.ranks
            trainable = trainable.function
        if isinstance(trainable, str):
            trainable = registered(trainable)
        if not callable(trainable):
            raise InvalidArgumentError(
                f"tune.run: {trainable!r} is neither a function nor a class of Trainable"
            )
        self.trainable = trainable
        self.constants = constants
        self.is_class = inspect.isclass(trainable)
        self.saves_by_itself = not self.is_class and _takes_checkpoint(trainable)
        if self.is_class and not hasattr(trainable, "step"):
            raise InvalidArgumentError(
                f"tune.run: the class {trainable.__name__} has no function step; derive it from "
                "tune.Trainable"
            )
        self.name = getattr(trainable, "__name__", type(trainable).__name__)
        if self.name == "<lambda>":
            self.name = "lambda"

    def __call__(self, *arguments: Any) -> Any:
        if self.is_class:
            return _ClassAdapter(self.trainable, self.constants.restore)
        return call_function(self.trainable, self.constants.restore(arguments[0]))


class Ranks:
    """How large a trial of several ranks is."""

    def __init__(
        self,
        num_hosts: int,
        num_slots: int,
        cpus_per_slot: float,
        use_gpu: bool,
        timeout_s: float,
        hosts: Sequence[str],
    ) -> None:
        for name, value in (("num_hosts", num_hosts), ("num_slots", num_slots)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgumentError(
                    f"DistributedTrainableCreator: {name} must be a positive number, not {value!r}"
                )
        self.num_hosts = num_hosts
        self.num_slots = num_slots
        self.cpus_per_slot = cpus_per_slot
        self.use_gpu = use_gpu
        self.timeout_s = timeout_s
        self.hosts = list(hosts)


class DistributedTrainable:
    """A function whose trials are rings of ranks. DistributedTrainableCreator makes it."""

    def __init__(self, function: Callable[..., Any], ranks: Ranks) -> None:
        self.function = function
        self.ranks = ranks
        self.__name__ = getattr(function, "__name__", "trainable")


def DistributedTrainableCreator(
    func: Callable[..., Any],
    use_gpu: bool = False,
    num_hosts: int = 1,
    num_slots: int = 1,
    num_cpus_per_slot: float = 1,
    timeout_s: float = 30,
    replicate_pem: bool = False,
    cpus_per_slot: Optional[float] = None,
    hosts: Sequence[str] = (),
) -> DistributedTrainable:
    """Each trial as a ring of num_hosts * num_slots ranks, in which init() just works.

    ``hosts`` names them if there are several; the first is this machine. ``replicate_pem`` has no
    meaning here.
    """
    if not callable(func):
        raise InvalidArgumentError(f"DistributedTrainableCreator: {func!r} is not a function")
    cpus = num_cpus_per_slot if cpus_per_slot is None else cpus_per_slot
    return DistributedTrainable(func, Ranks(num_hosts, num_slots, cpus, use_gpu, timeout_s, hosts))
