"""The gradients of an optimizer: in buckets of shared memory that ranks reduce while backward runs.

A hook behind each parameter tells the buckets that its gradient is complete. Afterwards the
gradients are views of the buckets, so nothing is copied back. Gradients that do not fit in there
(another device, another type on the wire, another layout) are *staged*: copied in and out by torch.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from kolo import _core
from kolo._errors import InvalidArgumentError
from kolo.process_sets import ProcessSet, id_of
from kolo.torch.mpi_ops import _TYPES, sparse_allreduce_async


def add_gradient_hook(parameter: torch.nn.Parameter, hook: Any) -> Tuple[Any, Any]:
    """Calls hook() each time the gradient of a parameter was accumulated. Returns what must be kept
    for that, and the handle that ends it."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return None, parameter.register_post_accumulate_grad_hook(hook)
    # Before torch 2.1: behind the node that accumulates, which only the graph keeps alive.
    accumulator: Any = parameter.expand_as(parameter).grad_fn.next_functions[0][0]  # type: ignore
    return accumulator, accumulator.register_hook(hook)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a stretch of memory without holes, in any order."""
    expected = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape)):
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


class Gradients:
    """Buckets are made at the end of the first step of a group: ranks that come later make theirs
    together with those that were there before."""

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[torch.nn.Parameter],
        groups: Sequence[int],
        op: int,
        prescale: float,
        postscale: float,
        wire_type: Optional[torch.dtype],
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self._names = names
        self._parameters = parameters
        self._op = op
        self._process_set = process_set
        self._sparse_as_dense = sparse_as_dense
        self._types = [
            wire_type if wire_type is not None and p.dtype.is_floating_point else p.dtype
            for p in parameters
        ]
        rows = []
        for name, parameter, group, dtype in zip(names, parameters, groups, self._types):
            if dtype not in _TYPES:
                raise InvalidArgumentError(
                    f"DistributedOptimizer: parameter {name!r} has the type {dtype}, which ranks "
                    "cannot exchange"
                )
            rows.append((name, list(parameter.shape), _TYPES[dtype], 0, group))
        self._make_buckets = lambda: _core.GradientBuckets(
            rows, op, prescale, postscale, id_of(process_set), 0
        )
        self._buckets: Any = None
        # Where the gradient itself can be the view: its strides; None: staged.
        self._strides: List[Any] = [
            p.stride() if p.device.type == "cpu" and dtype == p.dtype and _is_dense(p) else None
            for p, dtype in zip(parameters, self._types)
        ]
        self.leave_group()

    def leave_group(self) -> None:
        """The buckets belong to the ranks of now; others make their own."""
        self._buckets = None
        self._early: List[int] = []
        self._views: List[Optional[torch.Tensor]] = [None] * len(self._parameters)
        self._pointers: List[int] = [0] * len(self._parameters)
        self._kept: List[torch.Tensor] = []

    # --- in backward ---

    def arrived(self, index: int) -> None:
        """The gradient of a parameter is complete on this rank."""
        grad = self._parameters[index].grad
        view = self._views[index]
        if view is None or grad is None:  # the first step; sparse
            if self._buckets is None:
                self._early.append(index)
            else:
                self._buckets.arrived(index, 0)
            return
        if grad.layout is torch.strided and grad.stride() == self._strides[index]:
            self._buckets.arrived(index, grad.data_ptr())
            return
        with torch.no_grad():
            view.copy_(grad.to_dense() if grad.is_sparse else grad)
        self._buckets.arrived(index, 0)

    # --- at the end of a step ---

    def finish(self, arrived: Sequence[bool]) -> None:
        """Reduces what is left. Parameters without a gradient count as zero; their gradient stays
        as it was if no rank has one. Collective over the process set."""
        if self._buckets is None:
            self._buckets = self._make_buckets()
            for index in self._early:
                self._buckets.arrived(index, 0)
        is_first = not self._buckets.has_plan
        if is_first:
            self._bring_first()
        else:
            for index, here in enumerate(arrived):
                if not here and self._parameters[index].grad is not None:
                    self.arrived(index)
        sparse = self._start_sparse() if not is_first else None
        self._buckets.finish()
        self._kept = []
        if is_first:
            self._make_views()
            sparse = self._start_sparse()
        self._hand_back(self._buckets.used())
        for index, wait in sparse or []:
            self._parameters[index].grad = wait().to(self._parameters[index].device)

    def _bring_first(self) -> None:
        pointers = []
        is_sparse = []
        for parameter, dtype, strides in zip(self._parameters, self._types, self._strides):
            grad = parameter.grad
            sparse = grad is not None and grad.is_sparse
            is_sparse.append(sparse and not self._sparse_as_dense)
            if grad is None or is_sparse[-1]:
                pointers.append(0)
                continue
            with torch.no_grad():
                if sparse:
                    grad = grad.to_dense()
                if strides is None:
                    grad = grad.to("cpu", dtype).contiguous()
                elif grad.stride() != strides:
                    grad = torch.empty_strided(parameter.shape, strides, dtype=dtype).copy_(grad)
            self._kept.append(grad)
            pointers.append(grad.data_ptr())
        self._buckets.set_first(pointers, is_sparse)

    def _make_views(self) -> None:
        memories = self._buckets.buckets()
        for index, (parameter, dtype) in enumerate(zip(self._parameters, self._types)):
            if self._buckets.is_sparse(index):
                continue
            bucket, offset = self._buckets.place_of(index)
            count = parameter.numel()
            if count == 0:
                self._views[index] = torch.empty(parameter.shape, dtype=dtype)
                continue
            flat = torch.frombuffer(memories[bucket], dtype=dtype, count=count, offset=offset)
            strides = self._strides[index]
            view = (
                flat.view(parameter.shape)
                if strides is None
                else flat.as_strided(parameter.shape, strides)
            )
            self._views[index] = view
            self._pointers[index] = view.data_ptr()

    def _hand_back(self, used: Sequence[bool]) -> None:
        for index, parameter in enumerate(self._parameters):
            view = self._views[index]
            if view is None or not used[index]:
                continue
            grad = parameter.grad
            if self._strides[index] is not None:
                if grad is None or grad.is_sparse or grad.data_ptr() != self._pointers[index]:
                    parameter.grad = view
                continue
            with torch.no_grad():
                if grad is None or grad.is_sparse:
                    parameter.grad = grad = torch.empty_like(parameter)
                grad.copy_(view)

    def _start_sparse(self) -> List[Tuple[int, Any]]:
        started = []
        for index, parameter in enumerate(self._parameters):
            if not self._buckets.is_sparse(index):
                continue
            grad = parameter.grad
            if grad is None:
                entries = torch.zeros([1, 0], dtype=torch.int64)
                values = torch.zeros([0, *parameter.shape[1:]], dtype=parameter.dtype)
                grad = torch.sparse_coo_tensor(entries, values, parameter.shape)
            elif not grad.is_sparse:
                grad = grad.to_sparse(1)
            name = f"sparse.{self._names[index]}"
            started.append(
                (index, sparse_allreduce_async(grad.cpu(), name, self._op, self._process_set))
            )
        return started

    def zero(self) -> None:
        """Sets all gradients that are views to zero, bucket by bucket."""
        for view, strides in zip(self._views, self._strides):
            if view is not None and strides is not None:
                view.zero_()
