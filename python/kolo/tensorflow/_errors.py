"""Errors of kolo that are also those of TensorFlow which Horovod's users catch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

import tensorflow as tf

from kolo import _errors as plain


class _Both:
    """Made of an error of kolo: keeps its message, code and rank."""

    def __init__(self, error: plain.Error) -> None:
        plain.Error.__init__(self, str(error), error.code, error.rank)  # type: ignore[arg-type]
        self._message = str(error)
        self._node_def = self._op = None

    def __reduce__(self) -> Any:
        return (type(self), (plain.Error(self._message, self.code, self.rank),))  # type: ignore

    def __str__(self) -> str:
        return self._message


class InvalidArgumentError(_Both, plain.InvalidArgumentError, tf.errors.InvalidArgumentError):
    """The call is wrong."""


class CollectiveError(_Both, plain.CollectiveError, tf.errors.FailedPreconditionError):
    """The ranks do not agree."""


class PeerLostError(_Both, plain.PeerLostError, tf.errors.UnknownError):
    """Another rank died, left or stalled."""


_KINDS = (
    (plain.PeerLostError, PeerLostError),
    (plain.CollectiveError, CollectiveError),
    (plain.InvalidArgumentError, InvalidArgumentError),
)


@contextmanager
def as_tensorflow_errors() -> Iterator[None]:
    """What kolo raises inside is also an error of TensorFlow."""
    try:
        yield
    except plain.Error as error:
        for kind, both in _KINDS:
            if isinstance(error, kind) and not isinstance(error, _Both):
                raise both(error) from None
        raise
