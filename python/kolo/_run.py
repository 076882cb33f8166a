"""A function on several ranks: what horovod.run does."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

from kolo._errors import FailureError, InvalidArgumentError, NotFoundError, suggests
from kolo._files import command_path
from kolo._own_files import temporary_folder

try:
    import cloudpickle as pickler
except ImportError:
    pickler = pickle  # type: ignore[assignment]


def dump_function(function: Callable[..., Any], *arguments: Any) -> bytes:
    """A function and its arguments as bytes: by value with cloudpickle, else by module and name."""
    try:
        return pickler.dumps((function, *arguments))
    except Exception as error:
        advice = "" if pickler is not pickle else "; cloudpickle is not installed, and could help"
        raise InvalidArgumentError(
            f"{getattr(function, '__name__', function)!r} cannot be sent to another process: "
            f"{error}{advice}"
        ) from error


def python_path() -> str:
    """PYTHONPATH for a Python that shall find what this one finds."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


@suggests
def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Optional[Sequence[float]] = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    start_timeout: Optional[int] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[Any] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interface: Optional[str] = None,
    network_interfaces: Optional[str] = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
    env: Optional[Dict[str, str]] = None,
) -> List[Any]:
    """Calls a function on ``num_proc`` ranks, each a process, and returns their results by rank.

    The parameters are those of horovod.run; ``np``, ``min_np`` and ``max_np`` are older names. With
    ``min_num_proc`` or ``host_discovery_script`` the job is elastic, and the results are those of
    the ranks that were there at the end.
    """
    if not callable(func):
        raise InvalidArgumentError(f"run: {func!r} is not a function")
    count = num_proc if num_proc is not None else np if np is not None else 1
    least = min_num_proc if min_num_proc is not None else min_np
    most = max_num_proc if max_num_proc is not None else max_np
    for name, number in (("num_proc", count), ("min_num_proc", least), ("max_num_proc", most)):
        is_number = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and (not is_number or number < 1):
            raise InvalidArgumentError(
                f"run: {name} must be a positive number of ranks, not {number!r}"
            )
    program = command_path()
    if program is None:
        raise NotFoundError("run: the command 'kolo' is neither in the package nor on the PATH")
    command = [str(program), "run", "-np", str(count)]
    is_elastic = least is not None or host_discovery_script is not None
    cooldown = None if cooldown_range is None else ",".join(map(str, cooldown_range))
    for option, value in (
        ("--min-num-proc", least),
        ("--max-num-proc", most),
        ("--slots-per-host", slots),
        ("--reset-limit", reset_limit),
        ("--blacklist-cooldown-range", cooldown),
        ("--host-discovery-script", host_discovery_script),
        ("-H", hosts),
        ("--hostfile", hostfile),
        ("--start-timeout", start_timeout),
        ("--ssh-port", ssh_port),
        ("--ssh-identity-file", ssh_identity_file),
        ("--output-filename", output_filename),
        ("--network-interface", network_interface or network_interfaces),
        ("--mpi-args", mpi_args),
    ):
        if value is not None:
            command += [option, str(value)]
    if use_mpi:
        command.append("--mpi")
    if verbose:
        command.append("--verbose")
    # Other hosts have to see the folder: it is beside the program then, not in /tmp.
    place = os.getcwd() if hosts or hostfile or host_discovery_script else None
    with temporary_folder(".kolo-run-", place) as folder:
        directory = Path(folder)
        (directory / "function").write_bytes(dump_function(func, tuple(args), dict(kwargs or {})))
        command += [executable or sys.executable, "-m", "kolo._run_rank", folder]
        environment = dict(os.environ if env is None else env, PYTHONPATH=python_path())
        status = subprocess.run(command, env=environment, check=False).returncode
        results = {
            int(path.suffix[1:]): pickle.loads(path.read_bytes())
            for path in directory.glob("result.*")
        }
        if status != 0 or not results or (len(results) < count and not is_elastic):
            raise FailureError(_failure(directory, func, status))
        return [results[rank] for rank in sorted(results)]


def _failure(directory: Path, func: Callable[..., Any], status: int) -> str:
    name = getattr(func, "__name__", "the function")
    for path in sorted(directory.glob("error.*")):
        return f"run: {name}() failed on rank {path.suffix[1:]}: {path.read_text()}"
    return f"run: {name}() gave no result on every rank; 'kolo run' ended with status {status}"
