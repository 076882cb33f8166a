"""Classes that are trained step by step, and trainables as rings of ranks."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import tempfile
import time
import warnings
from typing import Any, Callable, Dict, Optional, Sequence, Union

from kolo._errors import InvalidArgumentError
from kolo.tune import _session
from kolo.tune.checkpoint import load_object, pack, save_object, unpack
from kolo.tune.resources import PlacementGroupFactory


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
        and stop(). Checkpoints are in the folder ``logdir`` of what logger_creator(config) returns.
        The other parameters have no meaning here."""
        self.config: Dict[str, Any] = {}
        self.iteration = 0
        self._time_total = 0.0
        self._timesteps_total = 0
        self._episodes_total = 0
        self._since_restore = (0, 0.0)
        self._logdir = getattr(logger_creator(config or {}), "logdir", "") if logger_creator else ""
        self._is_set_up = False
        if config is not None:
            self._set_up(config)

    def _set_up(self, config: Optional[Dict[str, Any]] = None) -> None:
        """Once. An object without a config has none when it is used first."""
        if not self._is_set_up:
            self._is_set_up = True
            self.config = dict(config or {})
            self.setup(dict(self.config))

    def train(self) -> Dict[str, Any]:
        """One step, and what is reported of it."""
        self._set_up()
        begin = time.monotonic()
        result = dict(step_of(self))
        self.iteration += 1
        took = time.monotonic() - begin
        self._time_total += took
        steps, seconds = self._since_restore
        result.setdefault("done", False)
        return {
            **result,
            **_here(),
            "trial_id": self.trial_id,
            "training_iteration": self.iteration,
            "iterations_since_restore": self.iteration - steps,
            "time_this_iter_s": took,
            "time_total_s": self._time_total,
            "time_since_restore": self._time_total - seconds,
            "config": self.config,
        }

    def save(self, checkpoint_dir: Optional[str] = None) -> str:
        """Writes a checkpoint, and returns its folder: checkpoint_dir, or one of logdir."""
        self._set_up()
        directory = checkpoint_dir
        if directory is None:
            directory = os.path.join(self.logdir, f"checkpoint_{self.iteration:06d}")
            shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory, exist_ok=True)
        save_object(self, directory)
        return directory

    def restore(self, checkpoint_path: str, fallback_to_latest: bool = True) -> None:
        """Goes on from a folder that save() returned. If it is gone, ``fallback_to_latest`` takes the
        newest of logdir, with a warning."""
        path = os.fspath(checkpoint_path)
        if fallback_to_latest and not os.path.isdir(path):
            latest = self._get_latest_available_checkpoint()
            if latest is not None:
                warnings.warn(f"there is no checkpoint {path!r}: {latest!r} is used", stacklevel=2)
                path = latest
        self._set_up()
        load_object(self, path)
        self._since_restore = (self.iteration, self._time_total)

    def _get_latest_available_checkpoint(self) -> Optional[str]:
        found = sorted(glob.glob(os.path.join(glob.escape(self.logdir), "checkpoint_*")))
        return found[-1] if found else None

    def delete_checkpoint(self, checkpoint_dir: str) -> None:
        """Removes what save() has written; nothing if it is gone."""
        shutil.rmtree(checkpoint_dir, ignore_errors=True)

    def save_to_object(self) -> bytes:
        """A checkpoint as bytes."""
        self._set_up()
        with tempfile.TemporaryDirectory(prefix="kolo-checkpoint-") as directory:
            save_object(self, directory)
            return pack(directory)

    def restore_from_object(self, obj: bytes) -> None:
        """Goes on from what save_to_object() returned."""
        with tempfile.TemporaryDirectory(prefix="kolo-checkpoint-") as directory:
            unpack(obj, directory)
            self.restore(directory)

    def reset_config(self, new_config: Dict[str, Any]) -> bool:
        """Override it to take another configuration without a new object, and return True."""
        return False

    def reset(self, new_config: Dict[str, Any], logger_creator: Any = None) -> bool:
        """Begins anew with another configuration. False if reset_config() does not take it."""
        if not self.reset_config(new_config):
            return False
        self.config = dict(new_config)
        self.iteration = 0
        self._time_total = 0.0
        self._timesteps_total = 0
        self._episodes_total = 0
        self._since_restore = (0, 0.0)
        return True

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

    @property
    def trial_resources(self) -> Optional[PlacementGroupFactory]:
        """What the study has reserved for the trial; None without a study."""
        return getattr(self, "_trial_resources", None)

    @classmethod
    def default_resource_request(cls, config: Dict[str, Any]) -> Any:
        """Override it to say what a trial needs: {"cpu": 2}, or a PlacementGroupFactory. It is asked
        once for the study, with tune.run's ``config``; None leaves it to resources_per_trial."""
        return None

    def export_model(
        self, export_formats: Union[str, Sequence[str]], export_dir: Optional[str] = None
    ) -> Dict[str, str]:
        """Writes the model in these formats into a folder, by default that of the trial, and returns
        the paths by format. Override _export_model. A study calls it at the end of each trial that
        did not fail, if tune.run was given ``export_formats``."""
        formats = [export_formats] if isinstance(export_formats, str) else list(export_formats)
        directory = export_dir or self.logdir
        os.makedirs(directory, exist_ok=True)
        return self._export_model(formats, directory)

    def _export_model(self, export_formats: Sequence[str], export_dir: str) -> Dict[str, str]:
        """Override it if the model can be exported."""
        return {}

    def setup(self, config: Dict[str, Any]) -> None:
        """Called once, before everything else."""

    def step(self) -> Dict[str, Any]:
        """One iteration; what it returns is reported. ``{"done": True}`` ends the trial."""
        raise NotImplementedError(f"the class {type(self).__name__} has no step")

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Writes a checkpoint into a folder, or returns a dictionary to be kept."""
        raise NotImplementedError("the class has no save_checkpoint")

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Reads what save_checkpoint wrote: the folder, or the dictionary."""
        raise NotImplementedError("the class has no load_checkpoint")

    def cleanup(self) -> None:
        """Called once, at the end."""

    @property
    def _iteration(self) -> int:
        """Tune's name of ``iteration``, which classes of users read when they save checkpoints."""
        return self.iteration

    @_iteration.setter
    def _iteration(self, iteration: int) -> None:
        self.iteration = iteration

    @property
    def training_iteration(self) -> int:
        """Steps so far."""
        return self.iteration

    @property
    def logdir(self) -> str:
        """The folder of the trial; without a study, that of logger_creator's logger or a new one."""
        if _session.is_session_enabled():
            return _session.get_trial_dir()
        self._logdir = self._logdir or tempfile.mkdtemp(prefix="kolo-trainable-")
        return self._logdir


def _here() -> Dict[str, Any]:
    """Where and when a result is made."""
    now = time.time()
    return {
        "date": time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now)),
        "timestamp": int(now),
        "pid": os.getpid(),
        "hostname": socket.gethostname(),
    }


def step_of(trainable: Any) -> Dict[str, Any]:
    """What its step() reports."""
    result = trainable.step()
    if not isinstance(result, dict):
        raise InvalidArgumentError(
            f"{type(trainable).__name__}.step() must return a dictionary of metrics, such as "
            f'{{"loss": 0.3}}; it returned {result!r}'
        )
    return _session.with_totals(trainable, result)


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
