"""How tensors travel: as they are, or in 16 bits."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf


class NoneCompressor:
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor to send, and what decompress needs to know."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The tensor as it was before."""
        return tensor


class FP16Compressor:
    """Sends floating-point tensors in half precision."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor to send, and its type."""
        return (tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The tensor in its type."""
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class Compression:
    """The compressors that there are."""

    none = NoneCompressor
    fp16 = FP16Compressor
