"""Training that survives failures, with the interface of horovod.tensorflow.elastic."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kolo._basics import rank
from kolo._elastic import ObjectState, State, check_count, root_rank
from kolo._errors import HorovodInternalError, HostsUpdatedInterrupt
from kolo.keras.elastic import KerasState, run
from kolo.tensorflow.functions import broadcast_object, broadcast_variables


class TensorFlowState(ObjectState):
    """A state of variables and plain values."""

    def __init__(self, variables: Any = None, session: Any = None, **kwargs: Any) -> None:
        self.variables = list(variables or tf.compat.v1.global_variables())
        self._save_variables()
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **kwargs)

    def save(self) -> None:
        """Remembers everything as it is now."""
        self._save_variables()
        super().save()

    def restore(self) -> None:
        """Brings back what was remembered."""
        for variable, value in zip(self.variables, self._values):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        """Takes everything from rank 0, or from root_rank(), and remembers it."""
        broadcast_variables(self.variables, root_rank())
        self._save_variables()
        super().sync()

    def saved(self) -> Any:
        """What save() has remembered."""
        return super().saved(), [value.numpy() for value in self._values]

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned."""
        plain, values = saved
        check_count(len(values), len(self._values))
        self._values = values
        self.restore()
        super().load(plain)

    def _save_variables(self) -> None:
        self._values = [tf.identity(tf.convert_to_tensor(v)) for v in self.variables]


class TensorFlowKerasState(KerasState):
    """A state of a model of Keras, its optimizer, and plain values."""

    def __init__(
        self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any
    ) -> None:
        self.backend = backend
        super().__init__(model, optimizer, **kwargs)


__all__ = [
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ObjectState",
    "State",
    "TensorFlowKerasState",
    "TensorFlowState",
    "run",
]
