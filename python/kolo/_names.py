"""Horovod's module names for kolo's modules."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

# What has another place in kolo; any other horovod.x.y is kolo.x.y.
_PLACES = {
    "horovod": "kolo",
    "horovod.common": "kolo._horovod_common",
    "horovod.common.exceptions": "kolo._errors",
    "horovod.common.process_sets": "kolo.process_sets",
    "horovod.common.elastic": "kolo._elastic",
    "horovod.common.util": "kolo._horovod_common",
    "horovod.common.basics": "kolo._basics",
    "horovod.runner": "kolo._run",
    "horovod.ray": "kolo.tune",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "horovod" and not name.startswith("horovod."):
            return None
        place = _PLACES.get(name, "kolo" + name[len("horovod") :])
        try:
            found = importlib.util.find_spec(place)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        # Each may have modules below it, whatever it is in kolo.
        return importlib.machinery.ModuleSpec(name, self, origin=place, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(str(spec.origin))
        alias = ModuleType(spec.name, module.__doc__)
        alias.__path__ = []
        alias.__dict__.update(
            {
                k: v
                for k, v in module.__dict__.items()
                if not (k.startswith("__") and k != "__all__")
            }
        )
        alias.__dict__["__version__"] = getattr(module, "__version__", None)
        return alias

    def exec_module(self, module: ModuleType) -> None:
        """Everything was there when it was made."""


def install_horovod_names() -> None:
    """From now on ``import horovod.torch`` gives kolo.torch, and so on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
