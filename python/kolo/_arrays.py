"""Collectives without names, on anything with memory: arrays of NumPy, tensors, the array module.

They work on the calling thread, without a negotiation: the fastest way for small messages. All ranks
call them in the same order, from one thread at a time.
"""

from __future__ import annotations

import sys
from typing import Any, Tuple

from kolo import _core
from kolo._errors import InvalidArgumentError

Average, Sum, Adasum, Min, Max, Product = range(6)

# By the letter of the type in the array interface, and the bytes of an element.
_TYPES = {
    ("b", 1): 0,
    ("u", 1): 1,
    ("i", 1): 2,
    ("i", 2): 3,
    ("i", 4): 4,
    ("i", 8): 5,
    ("f", 2): 6,
    ("f", 4): 8,
    ("f", 8): 9,
}
_STRUCT = {
    "?": "b",
    "B": "u",
    "b": "i",
    "h": "i",
    "i": "i",
    "l": "i",
    "q": "i",
    "e": "f",
    "f": "f",
    "d": "f",
}
_TORCH = {
    "torch.bool": 0,
    "torch.uint8": 1,
    "torch.int8": 2,
    "torch.int16": 3,
    "torch.int32": 4,
    "torch.int64": 5,
    "torch.float16": 6,
    "torch.bfloat16": 7,
    "torch.float32": 8,
    "torch.float64": 9,
}
_torch_types: dict = {}
_FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"  # in the array interface


def unmasked(array: Any) -> Any:
    """The array, which has no mask of NumPy: ranks mask different elements, and what is below a mask
    is no value. Those without any masked element are refused as well, so that all ranks are told."""
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise InvalidArgumentError(
            "masked arrays cannot be exchanged: kolo would take the elements below the mask for "
            "values; use array.filled(...) with what they stand for, 0 in a sum for example"
        )
    return array


def _describe(array: Any) -> Tuple[int, int, int]:
    """Address, number of elements, and type."""
    pointer = getattr(array, "data_ptr", None)
    if pointer is not None:  # torch
        if not array.is_contiguous() or array.device.type != "cpu":
            raise InvalidArgumentError("allreduce: the tensor must be contiguous and on the CPU")
        dtype = array.dtype
        number = _torch_types.get(dtype)
        if number is None:
            number = _torch_types[dtype] = _TORCH.get(str(dtype), -1)
        if number < 0:
            raise InvalidArgumentError(f"allreduce: the type {dtype} is not supported")
        return pointer(), array.numel(), number
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:  # NumPy
        unmasked(array)
        if interface.get("strides") is not None:
            raise InvalidArgumentError("allreduce: the array must be contiguous")
        address, is_read_only = interface["data"]
        if is_read_only:
            raise InvalidArgumentError("allreduce: the array is read-only")
        code = interface["typestr"]
        if code[0] == _FOREIGN_ORDER:
            raise InvalidArgumentError(
                "allreduce: the numbers of the array are in the byte order of another machine; "
                "convert it, by array.astype(array.dtype.newbyteorder('='))"
            )
        key = (code[1], int(code[2:]))
        count = array.size
    else:
        try:
            view = memoryview(array)
        except TypeError:
            raise InvalidArgumentError(
                f"allreduce: {type(array).__name__} has no memory that kolo can use; use an array "
                "of NumPy, a tensor, or an object with the buffer protocol"
            ) from None
        if view.readonly or not view.contiguous:
            raise InvalidArgumentError("allreduce: the buffer must be writable and contiguous")
        import ctypes

        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        key = (_STRUCT.get(view.format, "?"), view.itemsize)
        count = view.nbytes // view.itemsize
    if key not in _TYPES:
        raise InvalidArgumentError("allreduce: the element type is not supported")
    return address, count, _TYPES[key]


def allreduce(array: Any, op: int = Average) -> Any:
    """Reduces an array in place over all ranks, and returns it."""
    address, count, number = _describe(array)
    if not isinstance(op, int) or not 0 <= op <= 5:
        raise InvalidArgumentError(f"op is {op!r}; use Average, Sum, Min, Max or Product")
    _core.allreduce_now(address, address, count, number, op, 1.0, 1.0)
    return array


def barrier() -> None:
    """Waits until all ranks are here."""
    _core.barrier_now()
