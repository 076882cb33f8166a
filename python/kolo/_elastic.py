"""States that are committed, restored and synchronised, for every framework."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterable, List

from kolo._elastic_run import check_group, root_rank, run_fn
from kolo._errors import InvalidArgumentError, UnsupportedError


def check_names(saved: Iterable[str], own: Iterable[str]) -> None:
    """Whether a commit on disk has the values of this state, and no others."""
    if set(saved) != set(own):
        raise InvalidArgumentError(
            f"the commit on disk has {_listed(saved)}, but this program's state has "
            f"{_listed(own)}; resume with the program that wrote it"
        )


def check_count(saved: int, own: int) -> None:
    """The same for values that have an order and no names."""
    if saved != own:
        raise InvalidArgumentError(
            f"the commit on disk has {saved} variables, but this program's state has {own}; resume "
            "with the program that wrote it"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(repr, names))) or "no values"


class StateHandler:
    """Keeps one value of a state."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Remembers the value."""
        raise NotImplementedError

    def restore(self) -> None:
        """Brings back what was remembered."""
        raise NotImplementedError

    def sync(self) -> None:
        """Takes the value of rank 0, or of root_rank() where that is another."""
        raise NotImplementedError

    def saved(self) -> Any:
        """What save() has remembered, for a file; see load()."""
        raise UnsupportedError(f"{type(self).__name__} has no saved(), which commits on disk need")

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned as the value."""
        raise UnsupportedError(f"{type(self).__name__} has no load(), which commits on disk need")

    def set_value(self, value: Any) -> None:
        """Keeps another value from now on."""
        self.value = value
        self.save()


class State:
    """What a training function needs to go on after a failure."""

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: List[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: List[Callable[[], None]]) -> None:
        """Called after the ranks met again and before sync()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """The ranks met again."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: Any, update_res: Any) -> None:
        """Of no effect: kolo tells of changes at the end of a step, on all ranks at once."""

    def commit(self) -> None:
        """The end of a step. Remembers everything: a failure later goes back to here. In an elastic
        job it is collective, and raises HostsUpdatedInterrupt where the group is to change."""
        self.save()
        check_group(self, is_commit=True)

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt where the group is to change, on all ranks alike.
        Collective in an elastic job."""
        check_group(self, is_commit=False)

    def save(self) -> None:
        """Remembers everything as it is now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Brings back what was remembered."""
        raise NotImplementedError

    def sync(self) -> None:
        """Takes everything from rank 0, or from root_rank() where that is another."""
        raise NotImplementedError

    def saved(self) -> Any:
        """What save() has remembered, for a file; see load()."""
        raise UnsupportedError(f"{type(self).__name__} has no saved(), which commits on disk need")

    def load(self, saved: Any) -> None:
        """Takes what saved() has returned as the value."""
        raise UnsupportedError(f"{type(self).__name__} has no load(), which commits on disk need")

    def reset(self) -> None:
        """For classes of one's own: the ranks met again."""


class ObjectState(State):
    """A state of plain values, which become attributes."""

    def __init__(
        self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any
    ) -> None:
        self._saved_state: Dict[str, Any] = kwargs
        self._set_attrs()
        super().__init__(bcast_object, get_rank)

    def save(self) -> None:
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        self._set_attrs()

    def sync(self) -> None:
        if self._saved_state:
            current = {name: getattr(self, name) for name in self._saved_state}
            root = root_rank()
            place = {"root_rank": root} if root else {}
            self._saved_state = self._bcast_object(current, name="elastic_state", **place)
            self._set_attrs()

    def saved(self) -> Any:
        return self._saved_state

    def load(self, saved: Any) -> None:
        check_names(saved, self._saved_state)
        self._saved_state = saved
        self._set_attrs()

    def _set_attrs(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))


__all__ = ["ObjectState", "State", "StateHandler", "root_rank", "run_fn"]
