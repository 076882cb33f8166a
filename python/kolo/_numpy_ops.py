"""Collectives on arrays of NumPy through the engine, for frameworks that give such arrays."""

from __future__ import annotations

import pickle
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from kolo import _core
from kolo._arrays import unmasked
from kolo._errors import InvalidArgumentError
from kolo._run import pickler
from kolo.process_sets import ProcessSet, global_process_set, id_of

Average, Sum, Adasum, Min, Max, Product = range(6)

_TYPES = {
    "bool": 0,
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "bfloat16": 7,
    "float32": 8,
    "float64": 9,
}


def _prepared(array: Any, what: str, is_moved: bool = False) -> Tuple[np.ndarray, int]:
    """Contiguous, in the byte order of this machine, and the number of its type. What is only moved
    may be of a type of that size."""
    array = np.ascontiguousarray(unmasked(array))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    name = array.dtype.name
    if is_moved and name == "uint16":
        name = "int16"
    if name not in _TYPES:
        raise InvalidArgumentError(f"{what}: arrays of type {name} cannot be exchanged")
    return array, _TYPES[name]


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


def _name(kind: str, name: Optional[str]) -> str:
    return f"{kind}.{name}" if name else ""


def _result(memory: Any, dtype: Any, shape: Sequence[int]) -> np.ndarray:
    return np.frombuffer(memory, dtype=np.uint8).view(dtype).reshape(shape)


def grouped_allreduce(
    arrays: Sequence[Any],
    name: Optional[str] = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[np.ndarray]:
    """New arrays: the reductions over all ranks, negotiated together."""
    rows, outputs, keep = [], [], []
    for array in arrays:
        shape = np.shape(array)
        source, number = _prepared(array, "allreduce")
        output = np.empty_like(source)
        rows.append((_address(source), _address(output), list(shape), number))
        outputs.append(output.reshape(shape))
        keep.append((source, output))
    pending = _core.grouped_allreduce_async(
        _name("allreduce", name),
        rows,
        op,
        float(prescale_factor),
        float(postscale_factor),
        id_of(process_set),
        keep,
    )
    pending.wait()
    return outputs


def allreduce(array: Any, **options: Any) -> np.ndarray:
    """A new array: the reduction over all ranks."""
    return grouped_allreduce([array], **options)[0]


def allgather(
    array: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> np.ndarray:
    """The arrays of all ranks, one below the other."""
    source, number = _prepared(array, "allgather", is_moved=True)
    if np.ndim(array) == 0:
        raise InvalidArgumentError("allgather: the array is a scalar; it needs a dimension")
    pending = _core.allgather_async(
        _name("allgather", name),
        _address(source),
        list(source.shape),
        number,
        id_of(process_set),
        source,
    )
    counts = pending.wait()
    row = int(np.prod(source.shape[1:], dtype=np.int64))
    rows = sum(counts) // row if row else source.shape[0]
    return _result(pending.result(), source.dtype, [rows, *source.shape[1:]])


def broadcast(
    array: Any,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> np.ndarray:
    """A new array: that of ``root_rank``."""
    shape = np.shape(array)
    source, number = _prepared(array, "broadcast", is_moved=True)
    output = source.copy()
    pending = _core.broadcast_async(
        _name("broadcast", name),
        _address(output),
        list(shape),
        number,
        root_rank,
        id_of(process_set),
        output,
    )
    pending.wait()
    return output.reshape(shape)


def alltoall(
    array: Any,
    splits: Optional[Sequence[int]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Tuple[np.ndarray, np.ndarray]:
    """What the ranks sent here, and how many rows came from each."""
    source, number = _prepared(array, "alltoall", is_moved=True)
    pending = _core.alltoall_async(
        _name("alltoall", name),
        _address(source),
        list(source.shape),
        number,
        [int(split) for split in (splits if splits is not None else [])],
        id_of(process_set),
        source,
    )
    rows = pending.wait()
    result = _result(pending.result(), source.dtype, [sum(rows), *source.shape[1:]])
    return result, np.array(rows, dtype=np.int32)


def reducescatter(
    array: Any,
    name: Optional[str] = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> np.ndarray:
    """Reduced over all ranks, and of that this rank's rows."""
    source, number = _prepared(array, "reducescatter")
    members, place = process_set.size() or 1, process_set.rank() or 0
    rows = source.shape[0] if np.ndim(array) else 0
    mine = rows // members + (1 if place < rows % members else 0)
    output = np.empty([mine, *source.shape[1:]], dtype=source.dtype)
    pending = _core.reducescatter_async(
        _name("reducescatter", name),
        (_address(source), _address(output), list(np.shape(array)), number),
        op,
        float(prescale_factor),
        float(postscale_factor),
        id_of(process_set),
        (source, output),
    )
    pending.wait()
    return output


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The object of ``root_rank``, on every rank."""
    label = name or type(obj).__name__
    data = np.frombuffer(pickler.dumps(obj), dtype=np.uint8)
    size = broadcast(np.array([data.size], dtype=np.int64), root_rank, f"{label}.sz", process_set)
    if _core.rank() != root_rank:
        data = np.zeros(int(size[0]), dtype=np.uint8)
    data = broadcast(data, root_rank, f"{label}.t", process_set)
    return obj if _core.rank() == root_rank else pickle.loads(data.tobytes())


def allgather_object(
    obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """The objects of all ranks, in their order."""
    label = name or type(obj).__name__
    data = np.frombuffer(pickler.dumps(obj), dtype=np.uint8)
    sizes = allgather(np.array([data.size], dtype=np.int64), f"{label}.sz", process_set)
    everything = allgather(data, f"{label}.t", process_set).tobytes()
    ends = np.cumsum(sizes)
    return [pickle.loads(everything[e - s : e]) for s, e in zip(sizes, ends)]
