"""Objects in Python files, by "my.py:Problem"."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from kolo._errors import did_you_mean


def load_object(target: str) -> Any:
    """The object of a file. The file's folder is where it finds modules beside it."""
    path, _, name = target.rpartition(":")
    path = os.path.abspath(path)
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        hint = did_you_mean(name, known)
        raise AttributeError(
            f"{path} has no {name!r}{hint}{'' if hint else ';'} it has {', '.join(known)}"
        )
    return getattr(module, name)
