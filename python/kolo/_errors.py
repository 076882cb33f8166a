"""Exceptions: one base class with a code, and Horovod's types where its users catch them."""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, TypeVar


class HorovodInternalError(RuntimeError):
    """An operation between ranks failed. Elastic training restores its state and goes on."""


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts were added to or removed from the job. Elastic training goes on with the new ones."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


class Error(Exception):
    """Raised by every function of kolo that fails.

    ``code`` is one of the names in docs/errors.md ("invalid_argument", "peer_lost", ...).
    ``rank`` is the rank that was lost, where the code is "peer_lost".
    """

    code = "internal"

    def __init__(self, message: str, code: Optional[str] = None, rank: Optional[int] = None):
        super().__init__(message)
        if code is not None:
            self.code = code
        self.rank = rank

    def __reduce__(self):  # the default would lose code and rank
        return (type(self), (self.args[0], self.code, self.rank))


class InvalidArgumentError(Error, ValueError):
    """The call is wrong; the same call will fail again."""

    code = "invalid_argument"


class NotFoundError(Error, LookupError):
    """A named thing does not exist."""

    code = "not_found"


class AlreadyExistsError(Error, ValueError):
    """A name is taken."""

    code = "already_exists"


class FailedPreconditionError(Error, ValueError):
    """Right call, wrong moment, for example before init()."""

    code = "failed_precondition"


class UnsupportedError(Error, NotImplementedError):
    """kolo, as built or on this machine, cannot do this."""

    code = "unsupported"


class WaitTimeoutError(Error, TimeoutError):
    """A wait came to its end."""

    code = "timeout"


class CollectiveError(Error, HorovodInternalError):
    """An operation between ranks failed while it was under way."""


class PeerLostError(CollectiveError):
    """Another rank died, left or stalled; see ``rank``."""

    code = "peer_lost"


class CancelledError(Error, RuntimeError):
    """Somebody asked for the work to end."""

    code = "cancelled"


class FailureError(Error, RuntimeError):
    """Any other failure; ``code`` says which."""


_CLASSES = {
    "invalid_argument": InvalidArgumentError,
    "not_found": NotFoundError,
    "already_exists": AlreadyExistsError,
    "failed_precondition": FailedPreconditionError,
    "timeout": WaitTimeoutError,
    "peer_lost": PeerLostError,
    "cancelled": CancelledError,
    "unsupported": UnsupportedError,
}


# The last one of an operation between ranks. Frameworks whose graphs call kolo raise an error of
# their own instead, with this one's message.
last_failure: Optional[Error] = None


def make_error(code: str, message: str, rank: Optional[int], in_operation: bool) -> Error:
    """The exception for an error of the compiled module, which calls this."""
    global last_failure
    if in_operation and code != "peer_lost":
        error: Error = CollectiveError(message, code, rank)
    else:
        error = _CLASSES.get(code, FailureError)(message, code, rank)
    if isinstance(error, CollectiveError):
        last_failure = error
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean 'thread'?" where a known name is near, else nothing."""
    near = difflib.get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def known_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> Dict[str, Any]:
    """Those that the function takes. The others are said to be left out."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return dict(given)
    for name in sorted(set(given) - set(parameters)):
        label = getattr(function, "__name__", str(function))
        hint = did_you_mean(name, parameters)
        warnings.warn(f"{label} has no parameter {name!r}, which is left out{hint}", stacklevel=3)
    return {name: value for name, value in given.items() if name in parameters}


class UnknownArgumentError(InvalidArgumentError, TypeError):
    """A function was given an argument by a name that it does not know."""


Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def suggests(function: Function, label: Optional[str] = None) -> Function:
    """The function, which answers an unknown name of an argument with the nearest that it knows."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return function

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in parameters:
                raise UnknownArgumentError(
                    f"{label or function.__name__} has no parameter {name!r}"
                    f"{did_you_mean(name, parameters)}"
                )
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def constructor_suggests(made: Class) -> Class:
    """The class, whose constructor does what suggests() says."""
    if "__init__" in vars(made):
        made.__init__ = suggests(made.__init__, made.__name__)  # type: ignore[misc]
    return made


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidArgumentError:
    """The error for a name that is none of those known."""
    names = sorted(known)
    hint = did_you_mean(name, names)
    return InvalidArgumentError(
        f"{kind} {name!r} is unknown{hint}{'' if hint else ';'} known: {', '.join(names)}"
    )
