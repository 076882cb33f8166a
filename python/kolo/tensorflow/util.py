"""What programs import from horovod.tensorflow.util."""

from __future__ import annotations

from typing import Any, Callable, Dict

import tensorflow as tf


def _executing_eagerly() -> bool:
    return tf.executing_eagerly()


def _make_subgraph(f: Callable[..., Any]) -> Any:
    return tf.function(f)


def _cache(f: Callable[..., Any]) -> Callable[..., Any]:
    """Results by arguments, apart for eager mode and graphs."""
    known: Dict[Any, Any] = {}

    def wrapper(*args: Any) -> Any:
        key = (args, _executing_eagerly())
        if key not in known:
            known[key] = f(*args)
        return known[key]

    return wrapper


def vars_to_refs(vars: Any) -> Any:
    """References to variables, which can be keys; lists become tuples."""
    return tuple(vars_to_refs(v) for v in vars) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """The variables behind references."""
    return [refs_to_vars(r) for r in refs] if isinstance(refs, tuple) else refs.deref()
