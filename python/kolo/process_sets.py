"""Ranks that work together without the others. The names are Horovod's."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from kolo import _core
from kolo._errors import AlreadyExistsError, Error, InvalidArgumentError, UnsupportedError


class ProcessSet:
    """Some of the ranks, by their numbers. It can be used once it is part of init() or was given
    to add_process_set()."""

    process_set_id: Optional[int] = None

    def __init__(self, ranks_or_comm: Sequence[int]) -> None:
        try:
            ranks = sorted({int(rank) for rank in ranks_or_comm})
        except TypeError:
            raise UnsupportedError(
                "a ProcessSet is made of a list of ranks; MPI communicators are not supported"
            ) from None
        if not ranks or ranks[0] < 0:
            raise InvalidArgumentError(f"a ProcessSet needs ranks from 0 on, not {ranks}")
        self.ranks: List[int] = ranks
        self.mpi_comm = None

    def _check(self) -> int:
        if self.process_set_id is None:
            raise InvalidArgumentError(
                f"{self} is not known yet: give it to init() or to add_process_set() first"
            )
        return self.process_set_id

    def size(self) -> Optional[int]:
        """The number of ranks in it; None before it is added."""
        return None if self.process_set_id is None else _core.process_set_size(self._check())

    def rank(self) -> Optional[int]:
        """This rank's number among them; None if it is none of them."""
        if self.process_set_id is None:
            return None
        place = _core.process_set_rank(self._check())
        return None if place < 0 else place

    def included(self) -> Optional[bool]:
        """Whether this rank is one of them; None before it is added."""
        if self.process_set_id is None:
            return None
        return _core.process_set_rank(self._check()) >= 0

    def __repr__(self) -> str:
        return (
            f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
            f"mpi_comm={self.mpi_comm})"
        )

    def __str__(self) -> str:
        return repr(self)


class _GlobalProcessSet(ProcessSet):
    def __init__(self) -> None:
        self.process_set_id = 0
        self.mpi_comm = None

    @property
    def ranks(self) -> List[int]:  # type: ignore[override]
        return list(range(_core.size())) if _core.is_initialized() else []


global_process_set = _GlobalProcessSet()
_known: Dict[int, ProcessSet] = {0: global_process_set}


def id_of(process_set: Any) -> int:
    """The number of a set that operations can be given."""
    if isinstance(process_set, ProcessSet):
        return process_set._check()
    if process_set is None:
        return 0
    raise InvalidArgumentError(f"process_set is {process_set!r}, which is not a ProcessSet")


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Makes a set of some of the ranks. Every rank calls it, with the same ranks."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise AlreadyExistsError(f"{process_set} was added already")
    if process_set.ranks[-1] >= _core.size():
        raise InvalidArgumentError(
            f"{process_set} has rank {process_set.ranks[-1]}, but there are {_core.size()} ranks"
        )
    process_set.process_set_id = _core.add_process_set(process_set.ranks)
    _known[process_set.process_set_id] = process_set
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a set. Every rank calls it. False for the global set and one that is not known."""
    if not isinstance(process_set, ProcessSet):
        raise InvalidArgumentError(f"{process_set!r} is not a ProcessSet")
    number = process_set.process_set_id
    if not number:
        return False
    removed = _core.remove_process_set(number)
    _known.pop(number, None)
    process_set.process_set_id = None
    return removed


def get_process_set_ids_and_ranks() -> Dict[int, List[int]]:
    """The ranks of every set, by its number."""
    return {number: _core.process_set_ranks(number) for number in _core.process_set_ids()}


def process_set_by_id(process_set_id: int) -> ProcessSet:
    """The set with this number."""
    try:
        return _known[process_set_id]
    except KeyError:
        raise InvalidArgumentError(f"there is no process set {process_set_id}") from None


def _after_init(process_sets: Sequence[Union[ProcessSet, Sequence[int]]]) -> None:
    added: List[ProcessSet] = []
    try:
        for process_set in process_sets:
            if (
                isinstance(process_set, ProcessSet)
                and process_set.ranks == global_process_set.ranks
            ):
                raise AlreadyExistsError(f"{process_set} has the ranks of the global set")
            added.append(add_process_set(process_set))
    except Error:
        for process_set in added:
            process_set.process_set_id = None
        raise


def _after_shutdown() -> None:
    for number in [number for number in _known if number != 0]:
        _known.pop(number).process_set_id = None
