"""How a study is run and kept. The names and defaults are those of ray.air.config."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, List, Mapping, Optional, Tuple, Union

from kolo._errors import InvalidArgumentError, UnsupportedError, constructor_suggests


@constructor_suggests
@dataclass
class FailureConfig:
    """What follows from trials that fail: how often each may go on, and whether the study does.

    ``fail_fast="raise"`` also raises in the program that has started the study.
    """

    max_failures: int = 0
    fail_fast: Union[bool, str] = False

    def __post_init__(self) -> None:
        if self.fail_fast not in (True, False, "raise"):
            raise InvalidArgumentError(
                f"FailureConfig: fail_fast must be True, False or 'raise', not {self.fail_fast!r}"
            )
        if self.fail_fast and self.max_failures != 0:
            raise InvalidArgumentError(
                "FailureConfig: max_failures must be 0 with fail_fast, which permits no failure; "
                f"it is {self.max_failures}"
            )


@constructor_suggests
@dataclass
class CheckpointConfig:
    """How many checkpoints of a trial are kept, which ones, and when a class writes them."""

    num_to_keep: Optional[int] = None
    checkpoint_score_attribute: Optional[str] = None
    checkpoint_score_order: Optional[str] = "max"
    checkpoint_frequency: Optional[int] = 0
    checkpoint_at_end: Optional[bool] = None

    def __post_init__(self) -> None:
        if self.num_to_keep is not None and self.num_to_keep <= 0:
            raise InvalidArgumentError(
                "CheckpointConfig: num_to_keep must be None, which keeps all, or positive, not "
                f"{self.num_to_keep}"
            )
        if self.checkpoint_score_order not in ("min", "max"):
            raise InvalidArgumentError(
                "CheckpointConfig: checkpoint_score_order must be 'min' or 'max', not "
                f"{self.checkpoint_score_order!r}"
            )
        if self.checkpoint_frequency is not None and self.checkpoint_frequency < 0:
            raise InvalidArgumentError(
                "CheckpointConfig: checkpoint_frequency must be at least 0, not "
                f"{self.checkpoint_frequency}"
            )

    @property
    def score_attr(self) -> Optional[str]:
        """As tune.run has it: "min-loss" for the smallest."""
        name = self.checkpoint_score_attribute
        return f"min-{name}" if name and self.checkpoint_score_order == "min" else name


@constructor_suggests
@dataclass
class SyncConfig:
    """Programs for Tune may construct it. Results stay where local_dir says: nothing is sent to
    another place, so ``upload_dir`` is refused."""

    upload_dir: Optional[str] = None
    syncer: Any = "auto"
    sync_on_checkpoint: bool = True
    sync_period: float = 300
    sync_timeout: float = 1800
    sync_artifacts: bool = True

    def __post_init__(self) -> None:
        if self.upload_dir:
            raise UnsupportedError(
                f"SyncConfig: results are not uploaded to {self.upload_dir!r}; give a folder that "
                "all hosts see as local_dir"
            )


@constructor_suggests
@dataclass
class RunConfig:
    """What a study is called, where it is kept, when it ends and who is told of it. ``storage_path``
    is the later name of ``local_dir``."""

    name: Optional[str] = None
    local_dir: Optional[str] = None
    callbacks: Optional[List[Any]] = None
    stop: Union[None, Mapping[str, float], Callable[..., bool]] = None
    failure_config: FailureConfig = field(default_factory=FailureConfig)
    sync_config: SyncConfig = field(default_factory=SyncConfig)
    checkpoint_config: CheckpointConfig = field(default_factory=CheckpointConfig)
    progress_reporter: Any = None
    verbose: int = 1
    log_to_file: Union[bool, str, Tuple[str, str]] = False
    storage_path: Optional[str] = None

    def __post_init__(self) -> None:
        if self.storage_path is not None:
            if self.local_dir not in (None, self.storage_path):
                raise InvalidArgumentError(
                    "RunConfig: local_dir and storage_path are two names of one folder; give one of "
                    "them"
                )
            self.local_dir = self.storage_path
        for name, given, kind in (
            ("failure_config", self.failure_config, FailureConfig),
            ("sync_config", self.sync_config, SyncConfig),
            ("checkpoint_config", self.checkpoint_config, CheckpointConfig),
        ):
            if given is not None and not isinstance(given, kind):
                raise InvalidArgumentError(
                    f"RunConfig: {name} must be a {kind.__name__}, such as "
                    f"tune.{kind.__name__}(...), not {given!r}"
                )
        self.failure_config = self.failure_config or FailureConfig()
        self.sync_config = self.sync_config or SyncConfig()
        self.checkpoint_config = self.checkpoint_config or CheckpointConfig()
