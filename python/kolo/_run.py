"""A function on several ranks: what horovod.run does."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

from kolo._errors import FailureError, InvalidArgumentError, NotFoundError, UnsupportedError
from kolo._files import command_path

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


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Any = None,
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
    executable: Optional[str] = None,
    num_proc: Optional[int] = None,
    network_interfaces: Optional[str] = None,
    env: Optional[Dict[str, str]] = None,
) -> List[Any]:
    """Calls a function on ``np`` ranks, each a process, and returns their results by rank.

    The parameters are those of horovod.run. ``num_proc`` is another name of ``np``. Elastic ones
    (min_np and the like) are refused: the set of ranks is fixed.
    """
    if not callable(func):
        raise InvalidArgumentError(f"run: {func!r} is not a function")
    if any(
        value is not None
        for value in (min_np, max_np, slots, reset_limit, cooldown_range, host_discovery_script)
    ):
        raise UnsupportedError("run: elastic options are not supported; the set of ranks is fixed")
    count = num_proc if num_proc is not None else np if np is not None else 1
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidArgumentError(f"run: np must be a positive number of ranks, not {count!r}")
    program = command_path()
    if program is None:
        raise NotFoundError("run: the command 'kolo' is neither in the package nor on the PATH")
    command = [str(program), "run", "-np", str(count)]
    interface = network_interface or network_interfaces
    for option, value in (
        ("-H", hosts),
        ("--hostfile", hostfile),
        ("--start-timeout", start_timeout),
        ("--ssh-port", ssh_port),
        ("--ssh-identity-file", ssh_identity_file),
        ("--output-filename", output_filename),
        ("--network-interface", interface),
        ("--mpi-args", mpi_args),
    ):
        if value is not None:
            command += [option, str(value)]
    if use_mpi:
        command.append("--mpi")
    if verbose:
        command.append("--verbose")
    # Other hosts have to see the folder: it is beside the program then, not in /tmp.
    place = os.getcwd() if hosts or hostfile else None
    with tempfile.TemporaryDirectory(prefix=".kolo-run-", dir=place) as folder:
        directory = Path(folder)
        (directory / "function").write_bytes(dump_function(func, tuple(args), dict(kwargs or {})))
        command += [executable or sys.executable, "-m", "kolo._run_rank", folder]
        environment = dict(os.environ if env is None else env, PYTHONPATH=python_path())
        status = subprocess.run(command, env=environment, check=False).returncode
        results = []
        for rank in range(count):
            path = directory / f"result.{rank}"
            if not path.exists():
                raise FailureError(_failure(directory, func, status))
            results.append(pickle.loads(path.read_bytes()))
        if status != 0:
            raise FailureError(_failure(directory, func, status))
        return results


def _failure(directory: Path, func: Callable[..., Any], status: int) -> str:
    name = getattr(func, "__name__", "the function")
    for path in sorted(directory.glob("error.*")):
        return f"run: {name}() failed on rank {path.suffix[1:]}: {path.read_text()}"
    return f"run: {name}() gave no result on every rank; 'kolo run' ended with status {status}"
