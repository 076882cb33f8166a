"""Callbacks for model.fit. The names and rules are Horovod's."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import keras
import numpy as np

from kolo import _core, _numpy_ops


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """After the first batch, all ranks take model and optimizer from ``root_rank``."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        self._local = {id(variable) for variable in local_variables or []}

    def register_local_var(self, var: Any) -> None:
        """This variable stays as the rank has it."""
        self._local.add(id(var))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.broadcast_done:
            return
        self.broadcast_done = True
        optimizer = getattr(self.model, "optimizer", None)
        variables = list(self.model.variables)
        if optimizer is not None:
            known = {id(v) for v in variables}
            variables += [v for v in optimizer.variables if id(v) not in known]
        for index, variable in enumerate(variables):
            if id(variable) in self._local:
                continue
            value = keras.ops.convert_to_numpy(variable)
            if value.dtype.name in _numpy_ops._TYPES:
                variable.assign(_numpy_ops.broadcast(value, self.root_rank, f"keras.{index}"))


class MetricAverageCallback(keras.callbacks.Callback):
    """At the end of an epoch, metrics are averaged over all ranks."""

    def __init__(self, device: str = "") -> None:
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if not logs:
            return
        for name in sorted(logs):
            value = np.array(float(logs[name]))
            logs[name] = float(_numpy_ops.allreduce(value, name=f"metric.{name}"))


class LearningRateScheduleCallback(keras.callbacks.Callback):
    """lr = initial_lr * multiplier(epoch)."""

    def __init__(
        self,
        initial_lr: float,
        multiplier: Union[float, Callable[[float], float]],
        start_epoch: int = 0,
        end_epoch: Optional[int] = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self.restore_momentum: Optional[float] = None
        if callable(multiplier):
            self.multiplier = multiplier
        else:  # exponential decay
            self.multiplier = lambda epoch: multiplier ** (epoch - start_epoch)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def _is_on(self) -> bool:
        return self.current_epoch >= self.start_epoch and (
            self.end_epoch is None or self.current_epoch < self.end_epoch
        )

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if not self._is_on():
            return
        if self.staircase:
            if batch == 0:
                self._adjust(float(self.current_epoch))
            return
        steps = self.steps_per_epoch or self.params.get("steps")
        if not steps:
            raise ValueError("steps_per_epoch is needed: the number of steps is not known")
        self._adjust(self.current_epoch + float(batch) / steps)

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        old = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        new = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate.assign(new)
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and isinstance(momentum, float) and momentum and old:
            self.restore_momentum = momentum
            optimizer.momentum = momentum * new / old

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.restore_momentum is not None:
            self.model.optimizer.momentum = self.restore_momentum
            self.restore_momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is not None:
            logs["lr"] = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """From initial_lr / size up to initial_lr, over the first epochs."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: Optional[int] = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch: float) -> float:
            steps = self.steps_per_epoch or self.params.get("steps") or 1
            size = _core.size()
            return 1.0 / size * ((epoch + 1.0 / steps) * (size - 1) / warmup_epochs + 1)

        super().__init__(
            initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch + 1 == self.end_epoch and self.verbose > 0 and _core.rank() == 0:
            rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
            print(f"Epoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Saves the best model; give it a filepath before training."""

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        filepath: Optional[str] = None,
    ) -> None:
        default = "best.weights.h5" if save_weights_only else "best.keras"
        super().__init__(
            filepath=filepath or default,
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=save_weights_only,
            mode=mode,
            save_freq=save_freq,
        )


__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
]
