"""Objects in Python files, by "my.py:Problem"."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from typing import Any, Iterator, List

from kolo._errors import did_you_mean

# Built-in functions by which a module may give itself any name.
_BINDERS = ("exec", "globals", "locals", "setattr", "vars")


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
        raise AttributeError(_without(path, name, [n for n in vars(module) if n[0] != "_"]))
    return getattr(module, name)


def check_object(target: str) -> None:
    """Refuses the name of an object that its file does not have, without running the file."""
    path, _, name = target.rpartition(":")
    with open(path, "rb") as file:
        module = ast.parse(file.read(), path)
    names = list(dict.fromkeys(_bound(module)))
    if not {name, "*", "__getattr__", *_BINDERS}.intersection(names):
        raise AttributeError(_without(path, name, [n for n in names if n[0] != "_"]))


def _bound(node: ast.AST) -> Iterator[str]:
    """What a module binds, and which built-in functions it uses that bind names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child.name
            for inner in ast.walk(child):
                if isinstance(inner, ast.Global):
                    yield from inner.names
        elif isinstance(child, ast.alias):
            yield child.asname or child.name.partition(".")[0]
        elif isinstance(child, ast.Name):
            if isinstance(child.ctx, ast.Store) or child.id in _BINDERS:
                yield child.id
        else:
            yield from _bound(child)


def _without(path: str, name: str, known: List[str]) -> str:
    hint = did_you_mean(name, known)
    return f"{path} has no {name!r}{hint}{'' if hint else ';'} it has {', '.join(known)}"
