"""Programs that say ``import horovod`` run on kolo when this folder's parent is on PYTHONPATH.

PYTHONPATH=python/compat kolo run -np 4 python train.py
"""

import sys as _sys

from kolo._names import install_horovod_names as _install

_install()
_sys.modules.pop("horovod", None)

import importlib as _importlib  # noqa: E402

_sys.modules["horovod"] = _importlib.import_module("horovod")
globals().update(
    {k: v for k, v in _sys.modules["horovod"].__dict__.items() if not k.startswith("__")}
)
