"""Checkpoints: of functions, which hand them over as values, and of classes, which write them."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional, Tuple

from kolo._errors import InvalidArgumentError, NotFoundError

# The file of a dictionary, and the key of a folder's files in one.
_DICTIONARY = "dict_checkpoint.pkl"
_FILES = "fs_checkpoint"
# What is kept of an object besides what it has written itself.
_STATE = "state.pkl"


def _write(value: Any, *path: str) -> None:
    with open(os.path.join(*path), "wb") as file:
        pickle.dump(value, file)


def _read(*path: str) -> Any:
    with open(os.path.join(*path), "rb") as file:
        return pickle.load(file)


def pack(directory: str) -> bytes:
    """All files below a folder."""
    files = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, directory)] = file.read()
    return pickle.dumps(files)


def unpack(packed: bytes, directory: str) -> None:
    """Writes the files of pack() below a folder."""
    for name, content in pickle.loads(packed).items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


class Checkpoint(str):
    """The path of a checkpoint's folder, with the members that Tune's checkpoints have.

    One that was made of a dictionary has a folder of its own, which is removed with the object.
    """

    @property
    def dir_or_data(self) -> str:
        """The folder."""
        return str(self)

    _local_path = dir_or_data
    local_path = dir_or_data
    path = dir_or_data
    value = dir_or_data

    @property
    def uri(self) -> str:
        """Where it is, as an address."""
        return f"file://{self}"

    def get_internal_representation(self) -> Tuple[str, str]:
        """What it is kept as, and where: always a folder."""
        return "local_path", str(self)

    @classmethod
    def from_uri(cls, uri: str) -> Checkpoint:
        """Of an address that ``uri`` gave."""
        if not uri.startswith("file://"):
            raise InvalidArgumentError(f"Checkpoint.from_uri: {uri!r} is no file:// address")
        return cls.from_directory(uri[len("file://") :])

    @classmethod
    def from_directory(cls, path: Any) -> Checkpoint:
        """Of a folder that is there."""
        if not os.path.isdir(path):
            raise NotFoundError(
                f"Checkpoint.from_directory: there is no folder {os.fspath(path)!r}"
            )
        return cls(os.fspath(path))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> Checkpoint:
        """Of a dictionary, which must be one that can be pickled."""
        if not isinstance(data, dict):
            raise InvalidArgumentError(
                f"Checkpoint.from_dict takes a dictionary, not {type(data).__name__}"
            )
        made = cls(tempfile.mkdtemp(prefix="kolo-checkpoint-"))
        weakref.finalize(made, shutil.rmtree, str(made), ignore_errors=True)
        if set(data) == {_FILES}:
            unpack(data[_FILES], made)
        else:
            _write(data, made, _DICTIONARY)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        """Of what to_bytes() returned."""
        return cls.from_dict(pickle.loads(data))

    def to_dict(self) -> Dict[str, Any]:
        """The dictionary that it was made of. That of a folder has the folder's files, for
        from_dict."""
        if os.path.exists(os.path.join(self, _DICTIONARY)):
            return _read(self, _DICTIONARY)
        if os.path.exists(os.path.join(self, _STATE)):
            kept = _read(self, _STATE)
            if kept["is_dict"]:
                return kept["state"]
        return {_FILES: pack(self)}

    def to_bytes(self) -> bytes:
        """The whole of it, to be sent or stored."""
        return pickle.dumps(self.to_dict())

    def to_directory(self, path: Optional[str] = None) -> str:
        """A copy of the folder, at ``path`` or at a new place."""
        path = path or tempfile.mkdtemp(prefix="kolo-checkpoint-")
        shutil.copytree(self, path, dirs_exist_ok=True)
        return path

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """The folder, for a while: read it, and do not change it."""
        yield str(self)

    def __reduce__(self) -> Tuple[Any, ...]:
        # Another process cannot count on the folder of a dictionary.
        if os.path.exists(os.path.join(self, _DICTIONARY)):
            return Checkpoint.from_dict, (self.to_dict(),)
        return Checkpoint, (str(self),)


def save_object(trainable: Any, directory: str) -> None:
    """Has an object write its checkpoint into a folder."""
    state = trainable.save_checkpoint(directory)
    kept = {
        "iteration": trainable.iteration,
        "time_total": getattr(trainable, "_time_total", 0.0),
        "timesteps_total": getattr(trainable, "_timesteps_total", 0),
        "episodes_total": getattr(trainable, "_episodes_total", 0),
        "is_dict": isinstance(state, dict),
    }
    if isinstance(state, dict):
        kept["state"] = state
    elif isinstance(state, str):
        kept["path"] = os.path.relpath(state, directory)
    _write(kept, directory, _STATE)


def load_object(trainable: Any, directory: str) -> None:
    """Has an object read the checkpoint of save_object()."""
    try:
        kept = _read(directory, _STATE)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"{directory!r} is no checkpoint of a Trainable; give a folder that save() returned"
        ) from None
    trainable.iteration = kept["iteration"]
    trainable._time_total = kept.get("time_total", 0.0)
    trainable._timesteps_total = kept.get("timesteps_total", 0)
    trainable._episodes_total = kept.get("episodes_total", 0)
    where = os.path.normpath(os.path.join(directory, kept.get("path", ".")))
    trainable.load_checkpoint(kept["state"] if kept["is_dict"] else where)
