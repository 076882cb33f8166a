"""How gradients travel: as they are, or in 16 bits."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from kolo._errors import InvalidArgumentError


class Compressor:
    """The interface of compressors, for classes of one's own."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """The tensor to send, and what decompress needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The tensor as it was before, from what came back."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


class _CastCompressor(Compressor):
    wire_type: Optional[torch.dtype] = None

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:  # type: ignore[override]
        if tensor.dtype.is_floating_point:
            return tensor.to(cls.wire_type), tensor.dtype
        return tensor, tensor.dtype

    @classmethod
    def decompress(cls, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:  # type: ignore[override]
        return tensor.to(ctx) if ctx is not None and ctx.is_floating_point else tensor


class FP16Compressor(_CastCompressor):
    """Sends floating-point tensors in IEEE half precision."""

    wire_type = torch.float16


class BF16Compressor(_CastCompressor):
    """Sends floating-point tensors as bfloat16."""

    wire_type = torch.bfloat16


class Compression:
    """The compressors that there are."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor

    @staticmethod
    def power_sgd(rank: int = 4) -> Any:
        """Gradients of DistributedOptimizer as products of two matrices with ``rank`` columns."""
        from kolo.torch._lossy import LossyCompression

        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
            raise InvalidArgumentError(f"Compression.power_sgd: rank {rank!r} is not positive")
        return LossyCompression("power_sgd", rank)

    @staticmethod
    def top_k(ratio: float = 0.01) -> Any:
        """Of gradients of DistributedOptimizer, this share of the entries, the largest."""
        from kolo.torch._lossy import LossyCompression

        if not 0 < ratio <= 1:
            raise InvalidArgumentError(f"Compression.top_k: the ratio {ratio!r} is not in (0, 1]")
        return LossyCompression("top_k", ratio)
