"""horovod.common and horovod.common.util: what programs import from there."""

from __future__ import annotations

import importlib.util
import os
import re
from contextlib import contextmanager
from typing import Any, Iterator, List, Sequence

from kolo import _basics
from kolo._basics import *  # noqa: F403
from kolo._errors import HorovodInternalError, HostsUpdatedInterrupt


def check_extension(*_args: object) -> None:
    """Does nothing: there is no extension that would have to be compiled for each framework."""


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether the framework is there: kolo needs nothing else."""
    return importlib.util.find_spec(ext_base_name) is not None


def mpi_built(verbose: bool = False) -> bool:
    """Whether the plug-in for an MPI is there."""
    return _basics.mpi_built()


def gloo_built(verbose: bool = False) -> bool:
    """Whether ranks can meet without MPI. They always can."""
    return _basics.gloo_built()


def nccl_built(verbose: bool = False) -> bool:
    """False."""
    return bool(_basics.nccl_built())


def ddl_built(verbose: bool = False) -> bool:
    """False."""
    return False


def ccl_built(verbose: bool = False) -> bool:
    """False."""
    return False


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether a number is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(items: Sequence[Any], n: int) -> List[Any]:
    """A list in n parts of about equal length."""
    length, longer = divmod(len(items), n)
    ends = [(i + 1) * length + min(i + 1, longer) for i in range(n)]
    return [items[begin:end] for begin, end in zip([0, *ends], ends)]


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Compares two versions."""
    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError(f"versions are texts, not {ver!r} and {target!r}")
    numbers = [
        [int(number) for number in re.findall(r"\d+", one.split("+")[0])[:3]]
        for one in (ver, target)
    ]
    return numbers[0] >= numbers[1]


@contextmanager
def env(**variables: Any) -> Iterator[None]:
    """Other variables of the environment, for a while; None removes one."""
    before = dict(os.environ)
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def gpu_available(ext_base_name: str = "torch", verbose: bool = False) -> bool:
    """Whether the framework sees a GPU."""
    if ext_base_name != "torch":
        return False
    import torch

    return torch.cuda.is_available()


__all__ = [
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ccl_built",
    "check_extension",
    "ddl_built",
    "env",
    "extension_available",
    "gloo_built",
    "gpu_available",
    "is_version_greater_equal_than",
    "mpi_built",
    "nccl_built",
    "num_rank_is_power_2",
    "split_list",
]
