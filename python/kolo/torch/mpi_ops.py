"""Collective operations on tensors, with Horovod's names, signatures and meanings.

``name`` gives a new tensor and can be differentiated, ``name_`` works in place, ``name_async``
starts and returns a handle. Every member of the process set calls the same operations under the
same names, in any order; without names, in the same order.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

from kolo import (
    _basics,  # noqa: F401
    _core,
)
from kolo._basics import *  # noqa: F403  (part of this module's interface)
from kolo._basics import group_users
from kolo._errors import InvalidArgumentError, UnsupportedError
from kolo.process_sets import ProcessSet, global_process_set, id_of
from kolo.torch.compression import Compression

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5

_TYPES = {
    torch.bool: 0,
    torch.uint8: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.bfloat16: 7,
    torch.float32: 8,
    torch.float64: 9,
}


class _Started:
    """One handle: the operations behind it, and what makes the result of their ends."""

    __slots__ = ("finish", "pending", "was_polled")

    def __init__(self, pending: List[Any], finish: Callable[[List[List[int]]], Any]) -> None:
        self.pending = pending
        self.finish = finish
        self.was_polled = False


_started: Dict[int, _Started] = {}
_numbers = itertools.count(1)


class _Handles:
    """Operations under way are forgotten with their group, and names without a number of the
    caller's begin anew: ranks that come later count from the same."""

    def __init__(self) -> None:
        self.unnamed = itertools.count(1)

    def enter_group(self) -> None:
        self.unnamed = itertools.count(1)

    def leave_group(self) -> None:
        _started.clear()


_handles = _Handles()
group_users.add(_handles)


def _handle(pending: List[Any], finish: Callable[[List[List[int]]], Any]) -> int:
    number = next(_numbers)
    _started[number] = _Started(pending, finish)
    return number


def poll(handle: int) -> bool:
    """Whether synchronize(handle) would return at once.

    With one rank an operation is done as soon as it was started. The first answer is False all the
    same: programs ask whether that ever happens, to see that operations do not block.
    """
    started = _started.get(handle)
    if started is None:
        return True
    is_early = not started.was_polled and _core.size() == 1
    started.was_polled = True
    return not is_early and all(pending.poll() for pending in started.pending)


def synchronize(handle: Any) -> Any:
    """Waits for an operation and returns its result. None for a handle that is not known."""
    if callable(handle):  # of sparse_allreduce_async
        return handle()
    started = _started.get(handle)
    if started is None:
        return None
    try:
        counts = [pending.wait() for pending in started.pending]
    except KeyboardInterrupt:
        raise  # the operation goes on
    except BaseException:
        _started.pop(handle, None)
        raise
    _started.pop(handle, None)
    return started.finish(counts)


# --- tensors --------------------------------------------------------------------------------------


def _check_tensor(tensor: Any, what: str) -> int:
    if not isinstance(tensor, torch.Tensor):
        raise InvalidArgumentError(f"{what}: a tensor is needed, not {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise InvalidArgumentError(
            f"{what}: the tensor is {tensor.layout}; use sparse_allreduce_async for sparse tensors"
        )
    if tensor.is_meta:
        raise InvalidArgumentError(f"{what}: the tensor is on the device meta and has no data")
    try:
        return _TYPES[tensor.dtype]
    except KeyError:
        raise InvalidArgumentError(
            f"{what}: tensors of type {tensor.dtype} cannot be exchanged between ranks"
        ) from None


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy: contiguous and in main memory."""
    with torch.no_grad():
        return tensor.detach().cpu().contiguous()


def _tensor_of(memory: Any, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """A tensor over memory of kolo, or a copy of it on the device of ``like``."""
    count = 1
    for length in shape:
        count *= length
    if count == 0:
        return torch.empty(list(shape), dtype=like.dtype, device=like.device)
    tensor = torch.frombuffer(memory, dtype=like.dtype, count=count).reshape(list(shape))
    return tensor if like.device.type == "cpu" else tensor.to(like.device)


def _name(kind: str, name: Optional[str]) -> str:
    return "" if name is None else f"{kind}.{name}"


def _reduction(op: Any, average: Any) -> int:
    if op is not None and average is not None:
        raise InvalidArgumentError("the parameters 'average' and 'op' exclude each other; use 'op'")
    if average is not None:
        warnings.warn(
            "Parameter `average` has been replaced with `op`", DeprecationWarning, stacklevel=4
        )
        return Average if average else Sum
    if op is None:
        return Average
    if isinstance(op, bool) or not isinstance(op, int) or not 0 <= op <= 5:
        raise InvalidArgumentError(f"op is {op!r}; use Average, Sum, Adasum, Min, Max or Product")
    return op


def _into(result: torch.Tensor, host: torch.Tensor) -> torch.Tensor:
    """Brings what a stage holds to where it belongs."""
    if result is not host and (
        result.device != host.device or result.data_ptr() != host.data_ptr()
    ):
        with torch.no_grad():
            result.copy_(host.view(result.shape))
    return result


# --- allreduce ------------------------------------------------------------------------------------


def _start_allreduce(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    kind: str,
    name: Optional[str],
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> Tuple[Any, List[torch.Tensor]]:
    what = f"{kind} {name!r}" if name else kind
    rows = []
    stages = []
    keep: List[Any] = []
    for tensor, output in zip(tensors, outputs):
        data_type = _check_tensor(tensor, what)
        source = _on_host(tensor)
        # A result that is where kolo can write it, else a stage that is copied at the end.
        is_direct = output.device.type == "cpu" and output.is_contiguous()
        stage = output if is_direct else torch.empty_like(source)
        rows.append((source.data_ptr(), stage.data_ptr(), list(source.shape), data_type))
        stages.append(stage)
        keep.append((source, stage))
    number = id_of(process_set)
    prescale, postscale = float(prescale_factor), float(postscale_factor)
    if kind == "allreduce":
        pending = _core.allreduce_async(
            _name(kind, name), rows[0], op, prescale, postscale, number, keep
        )
    else:
        pending = _core.grouped_allreduce_async(
            _name(kind, name), rows, op, prescale, postscale, number, keep
        )
    return pending, stages


def _allreduce(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: Optional[str],
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> int:
    pending, stages = _start_allreduce(
        [tensor], [output], "allreduce", name, op, prescale_factor, postscale_factor, process_set
    )
    return _handle([pending], lambda _: _into(output, stages[0]))


def allreduce_async(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce; synchronize() of the handle returns the new tensor."""
    op = _reduction(op, average)
    _check_tensor(tensor, "allreduce")
    output = torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
    return _allreduce(tensor, output, name, op, prescale_factor, postscale_factor, process_set)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale_factor, postscale_factor, process_set):
        ctx.how = (op, prescale_factor, postscale_factor, process_set)
        handle = allreduce_async(
            tensor, None, name, op, prescale_factor, postscale_factor, process_set
        )
        return synchronize(handle)

    @staticmethod
    def backward(ctx, grad):
        op, prescale_factor, postscale_factor, process_set = ctx.how
        reduced = allreduce(
            grad,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            process_set=process_set,
        )
        return reduced, None, None, None, None, None


def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """A new tensor: the average (or ``op``) over all ranks. Its gradient is the allreduce of the
    gradient."""
    op = _reduction(op, average)
    _check_tensor(tensor, "allreduce")
    compressed, context = compression.compress(tensor)
    how = (op, prescale_factor, postscale_factor, process_set)
    if compressed.requires_grad:
        reduced = _Allreduce.apply(compressed, name, *how)
    else:  # without the cost of autograd, which is larger than that of a small message
        reduced = synchronize(allreduce_async(compressed, None, name, *how))
    return compression.decompress(reduced, context)


def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce in place."""
    op = _reduction(op, average)
    _check_tensor(tensor, "allreduce")
    return _allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """An allreduce in place; returns the tensor."""
    op = _reduction(op, average)
    handle = allreduce_async_(
        tensor, None, name, op, prescale_factor, postscale_factor, process_set
    )
    return synchronize(handle)


def _check_group(tensors: Any, what: str) -> List[torch.Tensor]:
    if isinstance(tensors, torch.Tensor) or not isinstance(tensors, (list, tuple)):
        raise InvalidArgumentError(f"{what}: a list of tensors is needed")
    if not tensors:
        raise InvalidArgumentError(f"{what}: the list of tensors is empty")
    for tensor in tensors:
        _check_tensor(tensor, what)
    if len({tensor.device for tensor in tensors}) > 1:
        raise InvalidArgumentError(f"{what}: all tensors of a group must be on one device")
    return list(tensors)


def _grouped_allreduce(
    tensors: List[torch.Tensor],
    outputs: List[torch.Tensor],
    name: Optional[str],
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> int:
    pending, stages = _start_allreduce(
        tensors,
        outputs,
        "grouped_allreduce",
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )

    def finish(_):
        return [_into(output, stage) for output, stage in zip(outputs, stages)]

    return _handle([pending], finish)


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of several tensors, which are negotiated and done together."""
    op = _reduction(op, average)
    checked = _check_group(tensors, "grouped_allreduce")
    outputs = [
        torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
        for tensor in checked
    ]
    return _grouped_allreduce(
        checked, outputs, name, op, prescale_factor, postscale_factor, process_set
    )


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        ctx.how = (op, prescale_factor, postscale_factor, process_set)
        handle = grouped_allreduce_async(
            list(tensors), None, name, op, prescale_factor, postscale_factor, process_set
        )
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx, *grads):
        op, prescale_factor, postscale_factor, process_set = ctx.how
        reduced = grouped_allreduce(
            list(grads),
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            process_set=process_set,
        )
        return (None, None, None, None, None, *reduced)


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """New tensors: the averages (or ``op``) over all ranks."""
    op = _reduction(op, average)
    checked = _check_group(tensors, "grouped_allreduce")
    compressed, contexts = zip(*[compression.compress(tensor) for tensor in checked])
    reduced = _GroupedAllreduce.apply(
        name, op, prescale_factor, postscale_factor, process_set, *compressed
    )
    return [compression.decompress(tensor, ctx) for tensor, ctx in zip(reduced, contexts)]


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of several tensors in place."""
    op = _reduction(op, average)
    checked = _check_group(tensors, "grouped_allreduce")
    return _grouped_allreduce(
        checked, checked, name, op, prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """An allreduce of several tensors in place; returns them."""
    op = _reduction(op, average)
    handle = grouped_allreduce_async_(
        tensors, None, name, op, prescale_factor, postscale_factor, process_set
    )
    return synchronize(handle)


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: Optional[int] = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Starts an allreduce of COO tensors; call what it returns to wait for the result."""
    op = _reduction(op, None)
    if not isinstance(tensor, torch.Tensor) or not tensor.is_sparse:
        raise InvalidArgumentError("sparse_allreduce_async: a sparse COO tensor is needed")
    if op not in (Average, Sum):
        raise InvalidArgumentError("sparse_allreduce_async: op must be Average or Sum")
    tensor = tensor.detach()
    if not tensor.is_coalesced():
        tensor = tensor.coalesce()
    label = name if name is not None else f"sparse.noname.{next(_handles.unnamed)}"
    # Rows of indices, so that ranks may have any number of entries.
    indices = allgather_async(
        tensor._indices().t().contiguous(), name=f"{label}.indices", process_set=process_set
    )
    values = allgather_async(tensor._values(), name=f"{label}.values", process_set=process_set)
    size = _core.process_set_size(id_of(process_set))
    shape = tensor.shape

    def wait() -> torch.Tensor:
        all_values = synchronize(values)
        all_indices = synchronize(indices)
        if op == Average:
            all_values = all_values / size
        return torch.sparse_coo_tensor(all_indices.t(), all_values, shape)

    return wait


# --- moving ---------------------------------------------------------------------------------------


def _start_allgather(tensor: torch.Tensor, name: str, process_set: ProcessSet) -> Any:
    data_type = _check_tensor(tensor, "allgather")
    source = _on_host(tensor)
    return _core.allgather_async(
        name, source.data_ptr(), list(source.shape), data_type, id_of(process_set), source
    )


def _gathered(pending: Any, counts: List[int], tensor: torch.Tensor) -> torch.Tensor:
    row = 1
    for length in tensor.shape[1:]:
        row *= length
    rows = sum(counts) // row if row else tensor.shape[0]
    return _tensor_of(pending.result(), [rows, *tensor.shape[1:]], tensor)


def allgather_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allgather."""
    pending = _start_allgather(tensor, _name("allgather", name), process_set)
    return _handle([pending], lambda counts: _gathered(pending, counts[0], tensor))


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[0] if tensor.dim() else 0
        ctx.process_set = process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, grad):
        averaged = allreduce(grad, op=Average, process_set=ctx.process_set)
        rows = allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set)
        begin = int(rows[: ctx.process_set.rank()].sum())
        return averaged.narrow(0, begin, ctx.rows), None, None


def allgather(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The tensors of all ranks, one below the other; their first dimensions may differ."""
    _check_tensor(tensor, "allgather")
    return _Allgather.apply(tensor, name, process_set)


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allgather of several tensors."""
    checked = _check_group(tensors, "grouped_allgather")
    total = len(checked)
    pending = [
        _start_allgather(
            tensor,
            _name("grouped_allgather", None if name is None else f"{name}_{i + 1}of{total}"),
            process_set,
        )
        for i, tensor in enumerate(checked)
    ]

    def finish(counts: List[List[int]]) -> List[torch.Tensor]:
        return [
            _gathered(one, count, tensor) for one, count, tensor in zip(pending, counts, checked)
        ]

    return _handle(pending, finish)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[0] if tensor.dim() else 0 for tensor in tensors]
        ctx.process_set = process_set
        return tuple(synchronize(grouped_allgather_async(list(tensors), name, process_set)))

    @staticmethod
    def backward(ctx, *grads):
        averaged = grouped_allreduce(list(grads), op=Average, process_set=ctx.process_set)
        rows = allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set)
        before = rows[: ctx.process_set.rank()].sum(dim=0)
        parts = [grad.narrow(0, int(before[i]), ctx.rows[i]) for i, grad in enumerate(averaged)]
        return (None, None, *parts)


def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """allgather of each tensor of a list."""
    checked = _check_group(tensors, "grouped_allgather")
    return list(_GroupedAllgather.apply(name, process_set, *checked))


def _broadcast(
    tensor: torch.Tensor,
    output: torch.Tensor,
    root_rank: int,
    name: Optional[str],
    process_set: ProcessSet,
) -> int:
    data_type = _check_tensor(tensor, "broadcast")
    if isinstance(root_rank, bool) or not isinstance(root_rank, int):
        raise InvalidArgumentError(f"broadcast: root_rank is {root_rank!r}, which is not a rank")
    is_direct = output.device.type == "cpu" and output.is_contiguous()
    if is_direct:
        stage = output
        if tensor is not output:
            with torch.no_grad():
                stage.copy_(tensor)
    else:
        stage = _on_host(tensor)
        if stage.data_ptr() == tensor.data_ptr():
            stage = stage.clone()
    pending = _core.broadcast_async(
        _name("broadcast", name),
        stage.data_ptr(),
        list(stage.shape),
        data_type,
        root_rank,
        id_of(process_set),
        stage,
    )
    return _handle([pending], lambda _: _into(output, stage))


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a broadcast to a new tensor."""
    _check_tensor(tensor, "broadcast")
    output = torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
    return _broadcast(tensor, output, root_rank, name, process_set)


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, grad):
        averaged = allreduce(grad, op=Average, process_set=ctx.process_set)
        if _core.rank() != ctx.root_rank:
            averaged = averaged * 0
        return averaged, None, None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """A new tensor: that of ``root_rank``, which is a rank of the whole job."""
    _check_tensor(tensor, "broadcast")
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a broadcast in place."""
    return _broadcast(tensor, tensor, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """A broadcast in place; returns the tensor."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def _splits_of(splits: Any) -> List[int]:
    if splits is None:
        return []
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.is_floating_point():
            raise InvalidArgumentError("alltoall: splits must be a 1-dimensional integer tensor")
        splits = splits.tolist()
    try:
        numbers = [int(split) for split in splits]
    except TypeError:
        raise InvalidArgumentError(f"alltoall: splits must be integers, not {splits!r}") from None
    if any(number < 0 for number in numbers):
        raise InvalidArgumentError(f"alltoall: splits must not be negative, but are {numbers}")
    return numbers


def alltoall_async(
    tensor: torch.Tensor,
    splits: Union[None, torch.Tensor, Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall; synchronize() returns the tensor and the rows that came from each."""
    data_type = _check_tensor(tensor, "alltoall")
    source = _on_host(tensor)
    pending = _core.alltoall_async(
        _name("alltoall", name),
        source.data_ptr(),
        list(source.shape),
        data_type,
        _splits_of(splits),
        id_of(process_set),
        source,
    )
    device = splits.device if isinstance(splits, torch.Tensor) else "cpu"

    def finish(counts: List[List[int]]) -> Tuple[torch.Tensor, torch.Tensor]:
        rows = counts[0]
        result = _tensor_of(pending.result(), [sum(rows), *tensor.shape[1:]], tensor)
        return result, torch.tensor(rows, dtype=torch.int32, device=device)

    return _handle([pending], finish)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received = received
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, grad, _):
        back, _ = synchronize(
            alltoall_async(grad, splits=ctx.received, process_set=ctx.process_set)
        )
        return back, None, None, None


def alltoall(
    tensor: torch.Tensor,
    splits: Union[None, torch.Tensor, Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Sends rows to every rank. Returns what came; with ``splits`` also how many from each."""
    _check_tensor(tensor, "alltoall")
    output, received = _Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


# --- reducescatter --------------------------------------------------------------------------------


def _start_reducescatter(
    tensor: torch.Tensor,
    name: str,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    process_set: ProcessSet,
) -> Tuple[Any, torch.Tensor]:
    data_type = _check_tensor(tensor, "reducescatter")
    if op not in (Average, Sum):
        raise UnsupportedError("reducescatter: op must be Average or Sum")
    number = id_of(process_set)
    members = _core.process_set_size(number)
    place = _core.process_set_rank(number)
    source = _on_host(tensor)
    rows = source.shape[0] if source.dim() else 0
    mine = rows // members + (1 if place < rows % members else 0)
    output = torch.empty([mine, *source.shape[1:]], dtype=source.dtype)
    pending = _core.reducescatter_async(
        name,
        (source.data_ptr(), output.data_ptr(), list(source.shape), data_type),
        op,
        float(prescale_factor),
        float(postscale_factor),
        number,
        (source, output),
    )
    return pending, output


def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter."""
    pending, output = _start_reducescatter(
        tensor,
        _name("reducescatter", name),
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )
    return _handle([pending], lambda _: output.to(tensor.device))


def _reducescatter_gradient(ctx, grads: List[torch.Tensor]) -> List[torch.Tensor]:
    op, prescale_factor, postscale_factor, process_set = ctx.how
    factor = prescale_factor * postscale_factor
    if op == Sum:
        factor *= process_set.size()
    scaled = [grad * factor if factor != 1.0 else grad for grad in grads]
    return grouped_allgather(scaled, process_set=process_set)


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.how = (op, prescale_factor, postscale_factor, process_set)
        handle = reducescatter_async(
            tensor, name, op, process_set, prescale_factor, postscale_factor
        )
        return synchronize(handle)

    @staticmethod
    def backward(ctx, grad):
        return (_reducescatter_gradient(ctx, [grad])[0], None, None, None, None, None)


def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduced over all ranks, and of that this rank's rows."""
    _check_tensor(tensor, "reducescatter")
    compressed, context = compression.compress(tensor)
    reduced = _Reducescatter.apply(
        compressed, name, op, process_set, prescale_factor, postscale_factor
    )
    return compression.decompress(reduced, context)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter of several tensors."""
    checked = _check_group(tensors, "grouped_reducescatter")
    total = len(checked)
    started = [
        _start_reducescatter(
            tensor,
            _name("grouped_reducescatter", None if name is None else f"{name}_{i + 1}of{total}"),
            op,
            prescale_factor,
            postscale_factor,
            process_set,
        )
        for i, tensor in enumerate(checked)
    ]
    outputs = [output for _, output in started]
    device = checked[0].device
    return _handle(
        [pending for pending, _ in started], lambda _: [output.to(device) for output in outputs]
    )


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.how = (op, prescale_factor, postscale_factor, process_set)
        handle = grouped_reducescatter_async(
            list(tensors), name, op, process_set, prescale_factor, postscale_factor
        )
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, None, None, None, *_reducescatter_gradient(ctx, list(grads)))


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    """reducescatter of each tensor of a list."""
    checked = _check_group(tensors, "grouped_reducescatter")
    compressed, contexts = zip(*[compression.compress(tensor) for tensor in checked])
    reduced = _GroupedReducescatter.apply(
        name, op, process_set, prescale_factor, postscale_factor, *compressed
    )
    return [compression.decompress(tensor, ctx) for tensor, ctx in zip(reduced, contexts)]


# --- meeting --------------------------------------------------------------------------------------


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set are here."""
    _core.barrier_async(id_of(process_set)).wait()


def join(device: int = -1) -> int:
    """This rank has no more data: until all ranks have joined it adds zeros to the others'
    allreduces. Returns the rank that joined last. ``device`` has no meaning here."""
    return _core.join(0)
