"""Optimizers for large batches, with the numerics and defaults of kolo's C++ ones."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple

import torch

from kolo._errors import InvalidArgumentError


class Lars(torch.optim.Optimizer):
    """Layer-wise adaptive rates: You, Gitman, Ginsburg, "Large batch training of convolutional
    networks", 2017. Vectors (biases, normalisation) are neither adapted nor decayed unless
    ``adapt_all``."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
        eps: float = 0.0,
        adapt_all: bool = False,
    ) -> None:
        if min(lr, momentum, weight_decay, eps) < 0 or trust <= 0:
            raise InvalidArgumentError(
                f"Lars: lr {lr}, momentum {momentum}, weight_decay {weight_decay}, trust {trust}, "
                f"eps {eps}: none may be negative"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "trust": trust,
            "eps": eps,
            "adapt_all": adapt_all,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            decay = group["weight_decay"]
            for weights in group["params"]:
                direction = weights.grad
                if direction is None:
                    continue
                local = 1.0
                if weights.dim() > 1 or group["adapt_all"]:
                    size, slope = weights.norm().item(), direction.norm().item()
                    if size and slope:
                        local = group["trust"] * size / (slope + decay * size + group["eps"])
                    if decay:
                        direction = direction.add(weights, alpha=decay)
                state = self.state[weights]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(weights)
                velocity = state["momentum_buffer"]
                velocity.mul_(group["momentum"]).add_(direction, alpha=group["lr"] * local)
                weights.sub_(velocity)
        return loss


class Lamb(torch.optim.Optimizer):
    """Layer-wise adaptive moments: You and others, "Large batch optimization for deep learning:
    training BERT in 76 minutes", 2020."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        low: float = 0.0,
        high: float = math.inf,
    ) -> None:
        right = min(lr, eps, weight_decay, low, *betas) >= 0 and max(betas) < 1 and low <= high
        if not right:
            raise InvalidArgumentError(
                f"Lamb: lr {lr}, betas {betas}, eps {eps}, weight_decay {weight_decay}, low {low}, "
                f"high {high}: none may be negative, betas are below 1, low is not above high"
            )
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "low": low,
            "high": high,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._update(weights, group)
        return loss

    def _update(self, weights: torch.Tensor, group: Any) -> None:
        state = self.state[weights]
        if "exp_avg" not in state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(weights)
            state["exp_avg_sq"] = torch.zeros_like(weights)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean, square, grad = state["exp_avg"], state["exp_avg_sq"], weights.grad
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (square / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        update = (mean / (1 - beta1 ** state["step"])).div_(root)
        if group["weight_decay"]:
            update.add_(weights, alpha=group["weight_decay"])
        size = min(max(weights.norm().item(), group["low"]), group["high"])
        length = update.norm().item()
        ratio = size / length if size and length else 1.0
        weights.sub_(update, alpha=group["lr"] * ratio)


def _evaluated(closure: Optional[Callable[[], Any]]) -> Any:
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
