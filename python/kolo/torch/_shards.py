"""ZeRO stage 1: each rank keeps the optimizer's state of its share of the parameters alone, updates
those, and gathers the others (Rajbhandari and others, "ZeRO: memory optimizations toward training
trillion parameter models", 2020). Parameters are shared out whole.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import torch

from kolo.process_sets import ProcessSet
from kolo.torch.mpi_ops import allgather


class Shards:
    """Which rank updates which parameters."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], process_set: ProcessSet) -> None:
        self._parameters = list(parameters)
        self._process_set = process_set
        self._size = process_set.size() or 1
        self._rank = process_set.rank() or 0
        self.owners = self._share_out()

    def _share_out(self) -> List[int]:
        """The largest first, each to the rank with the least so far: the same on every rank."""
        owners = [0] * len(self._parameters)
        load = [0] * self._size
        order = sorted(range(len(owners)), key=lambda i: (-self._parameters[i].numel(), i))
        for index in order:
            owner = min(range(self._size), key=lambda rank: (load[rank], rank))
            owners[index] = owner
            load[owner] += self._parameters[index].numel()
        return owners

    def step(self, plain_step: Callable[[], Any]) -> Any:
        """The optimizer's own step for the parameters of this rank, and then everybody's result."""
        hidden = []
        for parameter, owner in zip(self._parameters, self.owners):
            if owner != self._rank:
                hidden.append((parameter, parameter.grad))
                parameter.grad = None  # optimizers leave such parameters alone
        try:
            result = plain_step()
        finally:
            for parameter, grad in hidden:
                parameter.grad = grad
        self._exchange()
        return result

    def _exchange(self) -> None:
        kinds: Dict[torch.dtype, List[int]] = {}
        for index, parameter in enumerate(self._parameters):
            kinds.setdefault(parameter.dtype, []).append(index)
        with torch.no_grad():
            for dtype, members in kinds.items():
                own = [i for i in members if self.owners[i] == self._rank]
                parts = [self._parameters[i].detach().reshape(-1).cpu() for i in own]
                flat = torch.cat(parts) if parts else torch.zeros(0, dtype=dtype)
                everything = allgather(flat, f"shards.{dtype}", self._process_set)
                begin = 0
                for rank in range(self._size):
                    for index in (i for i in members if self.owners[i] == rank):
                        parameter = self._parameters[index]
                        count = parameter.numel()
                        if rank != self._rank:
                            parameter.copy_(everything[begin : begin + count].view_as(parameter))
                        begin += count
