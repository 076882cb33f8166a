"""Lossy compression of gradients. What is left out is kept and added to the next gradient (error
feedback), so nothing is lost for good. Reduced in synchronize(), not while backward runs.

The algorithms are those of the C++ module (src/train/power_sgd.cc, top_k.cc): Vogels, Karimireddy,
Jaggi, "PowerSGD: practical low-rank gradient compression for distributed optimization", 2019;
Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", 2018.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence

import torch

from kolo._errors import InvalidArgumentError, UnsupportedError
from kolo.process_sets import ProcessSet
from kolo.torch.mpi_ops import Average, Sum, allgather, grouped_allreduce


class LossyReducer:
    """Reduces the gradients of an optimizer. One that is None here counts as zero."""

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[torch.nn.Parameter],
        op: int,
        process_set: ProcessSet,
    ) -> None:
        if op not in (Average, Sum):
            raise InvalidArgumentError("lossy compression needs op=Average or op=Sum")
        self.names = names
        self.parameters = parameters
        self.op = op
        self.process_set = process_set
        self.errors: Dict[int, torch.Tensor] = {}

    def reduce(self) -> None:
        """Replaces every gradient by its reduction over all ranks."""
        with torch.no_grad():
            gradients = [self._with_error(index) for index in range(len(self.parameters))]
            averages = self._averages(gradients)
            scale = (self.process_set.size() or 1) if self.op == Sum else 1
            for parameter, average in zip(self.parameters, averages):
                reduced = (average * scale).view(parameter.shape).to(parameter)
                if parameter.grad is None or parameter.grad.is_sparse:
                    parameter.grad = reduced
                else:
                    parameter.grad.copy_(reduced)

    def _with_error(self, index: int) -> torch.Tensor:
        """The gradient in main memory, plus what was left out of it last time."""
        parameter = self.parameters[index]
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        dense = (grad.to_dense() if grad.is_sparse else grad).detach().cpu().clone()
        error = self.errors.get(index)
        return dense if error is None else dense.add_(error)

    def _averages(self, gradients: List[torch.Tensor]) -> List[torch.Tensor]:
        raise NotImplementedError


class _PowerSgdReducer(LossyReducer):
    """M is about P Q^T, by one step of a power iteration that starts from the Q of the last step."""

    def __init__(self, columns: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._columns = columns
        self._factors: Dict[int, torch.Tensor] = {}

    def _factor(self, index: int, matrix: torch.Tensor) -> Optional[torch.Tensor]:
        """Q, or None where the factors would not be smaller than the matrix."""
        rows, columns = matrix.shape
        rank = min(self._columns, rows, columns)
        if (rows + columns) * rank >= rows * columns:
            return None
        if index not in self._factors:
            # The same start on every rank.
            generator = torch.Generator().manual_seed(1000003 + index)
            q = torch.randn(columns, rank, generator=generator, dtype=matrix.dtype)
            self._factors[index] = _orthogonal(q)
        return self._factors[index]

    def _averages(self, gradients: List[torch.Tensor]) -> List[torch.Tensor]:
        matrices = [
            g.reshape(g.shape[0], -1) if g.dim() > 1 and g.numel() else g.reshape(1, -1)
            for g in gradients
        ]
        factors = [self._factor(index, matrix) for index, matrix in enumerate(matrices)]
        first = [g if q is None else m @ q for g, m, q in zip(gradients, matrices, factors)]
        first = self._reduced(first, "first")
        averages = list(first)
        low = [index for index, q in enumerate(factors) if q is not None]
        for index in low:
            first[index] = _orthogonal(first[index])
        second = self._reduced([matrices[i].t() @ first[i] for i in low], "second")
        for index, q in zip(low, second):
            self._factors[index] = q
            averages[index] = (first[index] @ q.t()).view(gradients[index].shape)
            self.errors[index] = gradients[index] - averages[index]
        return averages

    def _reduced(self, tensors: List[torch.Tensor], name: str) -> List[torch.Tensor]:
        if not tensors:
            return []
        return grouped_allreduce(
            tensors, name=f"power_sgd.{name}", op=Average, process_set=self.process_set
        )


def _orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Orthogonal columns of length one (modified Gram and Schmidt); what vanishes becomes zero."""
    matrix = matrix.clone()
    for index in range(matrix.shape[1]):
        column = matrix[:, index]
        norm = column.norm().item()
        column.mul_(1.0 / norm if norm > 1e-20 else 0.0)
        rest = matrix[:, index + 1 :]
        rest.sub_(torch.outer(column, rest.t() @ column))
    return matrix


class _TopKReducer(LossyReducer):
    """The entries of largest absolute value travel, as places and values."""

    def __init__(self, ratio: float, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ratio = ratio

    def _averages(self, gradients: List[torch.Tensor]) -> List[torch.Tensor]:
        size = self.process_set.size() or 1
        averages = []
        for name, (index, gradient) in zip(self.names, enumerate(gradients)):
            flat = gradient.reshape(-1)
            count = max(1, math.ceil(self._ratio * flat.numel())) if flat.numel() else 0
            places = flat.abs().topk(count, sorted=False)[1]
            values = flat[places]
            error = flat.clone()
            error[places] = 0
            self.errors[index] = error.view(gradient.shape)
            all_places = allgather(places, f"top_k.places.{name}", self.process_set)
            all_values = allgather(values, f"top_k.values.{name}", self.process_set)
            total = torch.zeros_like(flat).index_add_(0, all_places, all_values)
            averages.append(total.div_(size).view(gradient.shape))
        return averages


class LossyCompression:
    """For DistributedOptimizer. Compression.power_sgd and Compression.top_k make it."""

    def __init__(self, kind: str, amount: Any) -> None:
        self.kind = kind
        self.amount = amount

    def reducer(self, *arguments: Any) -> LossyReducer:
        """What reduces the gradients of one optimizer."""
        kind = _PowerSgdReducer if self.kind == "power_sgd" else _TopKReducer
        return kind(self.amount, *arguments)

    def compress(self, tensor: torch.Tensor) -> Any:
        """Not for single tensors: what is left out has to be kept."""
        raise UnsupportedError(f"Compression.{self.kind} works with DistributedOptimizer only")

    def decompress(self, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Not for single tensors."""
        raise UnsupportedError(f"Compression.{self.kind} works with DistributedOptimizer only")
