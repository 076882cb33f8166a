"""States that are committed, restored and synchronised, for every framework."""

from __future__ import annotations

import copy
import functools
from typing import Any, Callable, Dict, List

from kolo._errors import Error, HorovodInternalError, HostsUpdatedInterrupt


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
        """Takes the value of rank 0."""
        raise NotImplementedError

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
        """Hosts came or went: does not happen while the set of ranks is fixed."""

    def commit(self) -> None:
        """Remembers everything: a failure later goes back to here."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Would raise HostsUpdatedInterrupt; the set of ranks is fixed."""

    def save(self) -> None:
        """Remembers everything as it is now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Brings back what was remembered."""
        raise NotImplementedError

    def sync(self) -> None:
        """Takes everything from rank 0."""
        raise NotImplementedError

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
            self._saved_state = self._bcast_object(current, name="elastic_state")
            self._set_attrs()

    def _set_attrs(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))


def run_fn(func: Callable[..., Any], reset_limit: int = 100) -> Callable[..., Any]:
    """The loop around an elastic training function: sync, train; after a failure that all ranks
    survived, restore, meet again and go on."""

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        skip_sync = False
        for _ in range(reset_limit + 1):
            try:
                if not skip_sync:
                    state.sync()
                return func(state, *args, **kwargs)
            except HorovodInternalError as error:
                if isinstance(error, Error) and error.code == "peer_lost":
                    raise  # a rank that is gone does not come back in a fixed set
                state.restore()
                skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                skip_sync = interrupt.skip_sync
            state.on_reset()
        raise RuntimeError(f"the training function failed {reset_limit} times")

    return wrapper
