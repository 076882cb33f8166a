"""Parameters, states of optimizers and objects, from one rank to all."""

from __future__ import annotations

import collections.abc
import ctypes
import pickle
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from kolo._errors import InvalidArgumentError
from kolo._run import pickler
from kolo.process_sets import ProcessSet, global_process_set
from kolo.torch.mpi_ops import (
    allgather,
    broadcast_,
    broadcast_async_,
    rank,
    synchronize,
)


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Overwrites tensors by those of ``root_rank``: a state_dict(), named_parameters(), or a list
    of tensors."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, collections.abc.Iterable) and not isinstance(params, torch.Tensor):
        pairs = [p if isinstance(p, tuple) else (None, p) for p in params]
    else:
        raise InvalidArgumentError(
            f"broadcast_parameters: {type(params).__name__} is neither a dictionary nor a list of "
            "parameters"
        )
    handles = []
    for name, tensor in pairs:
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            continue  # state_dict() of some modules holds other things
        handles.append(broadcast_async_(tensor.data, root_rank, name=name))
    for handle in handles:
        synchronize(handle)


def _set_scalar(owner: Dict[Any, Any], key: Any, kind: type) -> Callable[[Any], None]:
    def set_value(value: Any) -> None:
        owner[key] = kind(value) if kind in (int, float, bool) else value

    return set_value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: Optional[torch.nn.Module] = None
) -> None:
    """Overwrites the state and the options of an optimizer by those of ``root_rank``.

    A rank whose optimizer has no state yet makes one by a step with zero gradients that changes
    nothing, and has zeros as gradients afterwards. ``model`` tells which parameters have sparse
    gradients.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidArgumentError(
            f"broadcast_optimizer_state: {type(optimizer).__name__} is not an optimizer of torch"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgumentError(
            "broadcast_optimizer_state: the state of LBFGS cannot be broadcast"
        )
    if getattr(optimizer, "_shards", None) is not None:
        raise InvalidArgumentError(
            "broadcast_optimizer_state: each rank keeps a share of the state of its own "
            "(shard_optimizer_state)"
        )
    if not optimizer.state_dict()["state"]:
        _make_state(optimizer, model)
    state_dict = optimizer.state_dict()
    if not state_dict["state"]:
        # Nothing is kept per parameter (SGD without momentum): options alone.
        groups = broadcast_object(state_dict["param_groups"], root_rank, name="param_groups")
        if rank() != root_rank:
            for group, given in zip(optimizer.param_groups, groups):
                group.update({k: v for k, v in given.items() if k != "params"})
        return

    tensors: List[Tuple[str, torch.Tensor]] = []
    scalars: Dict[str, Any] = {}
    setters: Dict[str, Callable[[Any], None]] = {}
    for index, group in enumerate(state_dict["param_groups"]):
        for option, value in group.items():
            if option == "params":
                continue
            key = f"{option}.{index}"
            scalars[key] = value
            setters[key] = _set_scalar(optimizer.param_groups[index], option, type(value))
    for number, parameter_state in sorted(state_dict["state"].items()):
        for option, value in parameter_state.items():
            key = f"{number}.{option}"
            if torch.is_tensor(value):
                tensors.append((key, value))
            else:
                scalars[key] = value
                setters[key] = _set_scalar(parameter_state, option, type(value))
    broadcast_parameters(tensors, root_rank)
    received = broadcast_object(scalars, root_rank, name="optimizer_scalars")
    if rank() != root_rank:
        for key, value in received.items():
            if key in setters:
                setters[key](value)


def _make_state(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
    """One step with zero gradients and no effect, without any communication."""
    sparse: set = set()
    if model is not None:
        for module in model.modules():
            if getattr(module, "sparse", False):
                sparse.update(module.parameters(recurse=False))
    saved = []
    options: List[Dict[str, Any]] = []
    for group in optimizer.param_groups:
        options.append({key: group[key] for key in ("lr", "weight_decay") if key in group})
        for key in options[-1]:
            group[key] = 0.0 * group[key]
        for parameter in group["params"]:
            saved.append((parameter, parameter.grad, parameter.data.clone()))
            if parameter in sparse:
                parameter.grad = torch.zeros_like(parameter.data).to_sparse()
            elif parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter.data)
    # The step of the optimizer itself, not that of a wrapper, which would talk to other ranks.
    plain = getattr(optimizer, "_kolo_plain_step", optimizer.step)
    plain()
    for parameter, grad, data in saved:
        if grad is not None:
            parameter.grad = grad
        parameter.data.copy_(data)
    for group, values in zip(optimizer.param_groups, options):
        group.update(dict(values))


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor of main memory; torch works without NumPy, and so does this."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The object of ``root_rank``, on every rank. What can be pickled can be sent."""
    label = name if name is not None else type(obj).__name__
    if rank() == root_rank:
        data = torch.frombuffer(bytearray(pickler.dumps(obj)), dtype=torch.uint8)
        length = torch.tensor([data.numel()], dtype=torch.int64)
    else:
        length = torch.zeros(1, dtype=torch.int64)
    length = broadcast_(length, root_rank, f"{label}.sz", process_set)
    if rank() != root_rank:
        data = torch.empty(int(length.item()), dtype=torch.uint8)
    data = broadcast_(data, root_rank, f"{label}.t", process_set)
    return obj if rank() == root_rank else pickle.loads(_bytes_of(data))


def allgather_object(
    obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """The objects of all ranks, in their order."""
    label = name if name is not None else type(obj).__name__
    data = torch.frombuffer(bytearray(pickler.dumps(obj)), dtype=torch.uint8)
    lengths = allgather(torch.tensor([data.numel()], dtype=torch.int64), f"{label}.sz", process_set)
    everything = _bytes_of(allgather(data, f"{label}.t", process_set))
    objects = []
    begin = 0
    for length in lengths.tolist():
        objects.append(pickle.loads(everything[begin : begin + length]))
        begin += length
    return objects


__all__ = [
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
]
