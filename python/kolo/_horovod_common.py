"""horovod.common and horovod.common.util: what programs import from there."""

from __future__ import annotations

from kolo._basics import *  # noqa: F403
from kolo._errors import HorovodInternalError, HostsUpdatedInterrupt


def check_extension(*_args: object) -> None:
    """Does nothing: there is no extension that would have to be compiled for each framework."""


def gpu_available(ext_base_name: str = "torch", verbose: bool = False) -> bool:
    """Whether the framework sees a GPU."""
    if ext_base_name != "torch":
        return False
    import torch

    return torch.cuda.is_available()


__all__ = ["HorovodInternalError", "HostsUpdatedInterrupt", "check_extension", "gpu_available"]
