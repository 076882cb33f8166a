"""States with models, optimizers and samplers of torch."""

from __future__ import annotations

import copy
from typing import Any, Callable, List, Tuple

import torch

from kolo._elastic import ObjectState, StateHandler, check_names, root_rank, run_fn
from kolo._errors import UnsupportedError
from kolo.torch.elastic.sampler import ElasticSampler
from kolo.torch.functions import broadcast_object, broadcast_parameters
from kolo.torch.mpi_ops import rank


class _DictHandler(StateHandler):
    """Anything with state_dict() and load_state_dict()."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(self._saved)

    def sync(self) -> None:
        name = type(self).__name__
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), root_rank(), name))

    def saved(self) -> Any:
        """What save() has remembered."""
        return self._saved

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned."""
        self._saved = saved
        self.restore()


class ModelStateHandler(_DictHandler):
    """A torch.nn.Module."""

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank())


class OptimizerStateHandler(_DictHandler):
    """A torch.optim.Optimizer. A rank that comes later may have another set of entries."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        if getattr(optimizer, "_is_sharded", False):
            raise UnsupportedError(
                "TorchState: with shard_optimizer_state each rank keeps a share of the optimizer's "
                "state, which is lost with the rank"
            )
        super().__init__(optimizer)


class SamplerStateHandler(_DictHandler):
    """An ElasticSampler, which counts what all ranks have processed."""


_registry: List[Tuple[type, Callable[[Any], StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> List[Tuple[type, Callable[[Any], StateHandler]]]:
    """Which handler keeps which type of value."""
    return _registry


def set_handler_registry(registry: List[Tuple[type, Callable[[Any], StateHandler]]]) -> None:
    """Replaces the table of handlers."""
    global _registry
    _registry = registry


class TorchState(ObjectState):
    """A state of models, optimizers, samplers and plain values; all become attributes."""

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        values = {**kwargs, "model": model, "optimizer": optimizer}
        handlers = {}
        plain = {}
        for name, value in values.items():
            for kind, make_handler in get_handler_registry():
                if isinstance(value, kind):
                    handlers[name] = make_handler(value)
                    break
            else:
                plain[name] = value
        self._handlers = handlers
        for name, handler in handlers.items():
            object.__setattr__(self, name, handler.value)
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **plain)

    def __setattr__(self, name: str, value: Any) -> None:
        handlers = self.__dict__.get("_handlers", {})
        if name in handlers:
            handlers[name].set_value(value)
        super().__setattr__(name, value)

    def save(self) -> None:
        """Remembers everything as it is now."""
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        """Brings back what was remembered."""
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        """Takes everything from rank 0, or from root_rank(), and remembers it."""
        for handler in self._handlers.values():
            handler.sync()
        super().sync()
        self.save()

    def saved(self) -> Any:
        """What save() has remembered."""
        return super().saved(), {name: h.saved() for name, h in self._handlers.items()}

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned."""
        plain, handled = saved
        check_names(handled, self._handlers)
        super().load(plain)
        for name, value in handled.items():
            self._handlers[name].load(value)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a training function whose first argument is a state: it goes on from the last commit
    after a failure, and when ranks come or go (docs/elastic-runs.md)."""
    return run_fn(func)
