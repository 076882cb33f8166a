"""Training with model.fit that survives failures, with the interface of horovod.keras.elastic."""

from __future__ import annotations

from typing import Any, Callable, List

import keras
import numpy as np

from kolo import _numpy_ops
from kolo._basics import rank
from kolo._elastic import ObjectState, check_count, root_rank, run_fn
from kolo._errors import InvalidArgumentError


class KerasState(ObjectState):
    """A state of a model of Keras, its optimizer, and plain values."""

    def __init__(self, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        if not getattr(model, "built", True):
            raise InvalidArgumentError("Model must be built first. Run `model.build(input_shape)`.")
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        self._values: List[Any] = []
        self._save_model()
        super().__init__(bcast_object=_numpy_ops.broadcast_object, get_rank=rank, **kwargs)

    def save(self) -> None:
        """Remembers everything as it is now."""
        self._save_model()
        super().save()

    def restore(self) -> None:
        """Brings back what was remembered."""
        self._assign(self._values)
        super().restore()

    def sync(self) -> None:
        """Takes everything from rank 0, or from root_rank(), and remembers it."""
        self._save_model()
        self._values = _numpy_ops.broadcast_object(self._values, root_rank(), "keras_state")
        self._assign(self._values)
        super().sync()

    def saved(self) -> Any:
        """What save() has remembered."""
        return super().saved(), self._values

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned."""
        plain, values = saved
        check_count(len(values), len(self._values))
        self._values = values
        self._assign(self._values)
        super().load(plain)

    def _variables(self) -> Any:
        owned = list(self.model.variables)
        known = {id(variable) for variable in owned}
        of_optimizer = [] if self.optimizer is None else list(self.optimizer.variables)
        return owned + [variable for variable in of_optimizer if id(variable) not in known]

    def _save_model(self) -> None:
        self._values = [np.array(keras.ops.convert_to_numpy(v)) for v in self._variables()]

    def _assign(self, values: Any) -> None:
        for variable, value in zip(self._variables(), values):
            variable.assign(value)


class CommitStateCallback(keras.callbacks.Callback):
    """Commits a state after so many batches, and after each epoch."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        self.batches_remaining = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):
    """Keeps state.batch; an epoch that was interrupted has that many steps less."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.steps_per_epoch: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self.params.get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):
    """Keeps state.epoch, which counts on over restarts."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.epoch = self.initial_epoch + epoch + 1


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a training function whose first argument is a state: it goes on from the last commit
    after a failure, and when ranks come or go (docs/elastic-runs.md)."""
    return run_fn(func)


__all__ = [
    "CommitStateCallback",
    "KerasState",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
    "run",
]
