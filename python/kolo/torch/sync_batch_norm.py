"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from kolo import _core
from kolo.process_sets import ProcessSet, global_process_set
from kolo.torch.mpi_ops import Sum, allreduce


class SyncBatchNorm(_BatchNorm):
    """As torch.nn.BatchNorm1d, 2d and 3d, with mean and variance of the batches of all ranks, which
    may differ in size. Plain batch normalisation with one rank and in eval()."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalises a batch."""
        self._check_input_dim(input)
        uses_batch = self.training or self.running_mean is None
        if not uses_batch or not _core.is_initialized() or self.process_set.size() == 1:
            return self._run_plain(input, uses_batch)
        output, mean, variance, count = _SyncBatchNorm.apply(
            input, self.weight, self.bias, self.eps, self.process_set
        )
        if self.training and self.track_running_stats:
            self._track(mean, variance, count)
        return output

    def _run_plain(self, input: torch.Tensor, uses_batch: bool) -> torch.Tensor:
        momentum = self._next_momentum() if self.training and self.track_running_stats else 0.0
        tracked = not self.training or self.track_running_stats
        return torch.nn.functional.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            uses_batch,
            momentum,
            self.eps,
        )

    def _next_momentum(self) -> float:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if self.momentum is not None:
            return self.momentum
        return 1.0 / float(self.num_batches_tracked)  # type: ignore[arg-type]

    def _track(self, mean: torch.Tensor, variance: torch.Tensor, count: torch.Tensor) -> None:
        momentum = self._next_momentum()
        unbiased = variance * (count / (count - 1).clamp(min=1))
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)  # type: ignore
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)  # type: ignore


def _channel_sums(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.sum(dim=[0, *range(2, tensor.dim())])


class _SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, input: torch.Tensor, weight: Any, bias: Any, eps: float, process_set: ProcessSet
    ) -> Tuple[torch.Tensor, ...]:
        # Sums in double precision, so that the variance does not suffer from cancellation.
        wide = input.double()
        channels = input.shape[1]
        count = input.numel() // channels
        sums = torch.cat(
            [
                _channel_sums(wide),
                _channel_sums(wide * wide),
                torch.tensor([count], dtype=wide.dtype),
            ]
        )
        sums = allreduce(sums, op=Sum, process_set=process_set)
        total = sums[-1]
        mean = sums[:channels] / total
        variance = (sums[channels : 2 * channels] / total - mean * mean).clamp(min=0)
        inverse = (variance + eps).rsqrt()
        shape = [1, channels] + [1] * (input.dim() - 2)
        normalised = ((wide - mean.view(shape)) * inverse.view(shape)).to(input.dtype)
        output = normalised
        if weight is not None:
            output = output * weight.view(shape)
        if bias is not None:
            output = output + bias.view(shape)
        ctx.save_for_backward(normalised, weight, inverse.to(input.dtype), total)
        ctx.process_set = process_set
        ctx.mark_non_differentiable(mean, variance, total)
        return output.to(input.dtype), mean, variance, total

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        grad = grads[0]
        normalised, weight, inverse, total = ctx.saved_tensors
        channels = grad.shape[1]
        shape = [1, channels] + [1] * (grad.dim() - 2)
        sum_grad = _channel_sums(grad)
        sum_grad_normalised = _channel_sums(grad * normalised)
        grad_input = None
        if ctx.needs_input_grad[0]:
            sums = torch.cat([sum_grad, sum_grad_normalised])
            sums = allreduce(sums, op=Sum, process_set=ctx.process_set) / total.to(grad.dtype)
            scale = inverse if weight is None else inverse * weight
            grad_input = scale.view(shape) * (
                grad - sums[:channels].view(shape) - normalised * sums[channels:].view(shape)
            )
        grad_weight = sum_grad_normalised if weight is not None else None
        grad_bias = sum_grad if ctx.needs_input_grad[2] else None
        return grad_input, grad_weight, grad_bias, None, None
