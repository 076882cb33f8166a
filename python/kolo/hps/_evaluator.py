"""Where run functions are evaluated, by a search or by hand. The names are DeepHyper's."""

from __future__ import annotations

import functools
import os
import time
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type

from kolo._errors import (
    InvalidArgumentError,
    UnsupportedError,
    constructor_suggests,
    unknown_name,
)
from kolo.hps._results import append_rows, columns_of, move_aside, read_rows, write_rows

_METHODS = {
    "serial": "thread",
    "thread": "thread",
    "threadPool": "thread",
    "process": "process",
    "processPool": "process",
    "subprocess": "process",
    "loky": "process",
    "ray": "process",
    "ranks": "ranks",
    "mpicomm": "ranks",
}


_TIMES = ("timestamp_start", "timestamp_end")  # of profile


class Job:
    """One evaluation that was submitted by hand."""

    def __init__(self, id: int, config: Dict[str, Any], timestamp_submit: float) -> None:
        self.id = id
        self.config = config
        self.timestamp_submit = timestamp_submit
        self.timestamp_gather: Optional[float] = None
        self.result: Any = None

    def _part(self, name: str) -> Any:
        return self.result.get(name) if isinstance(self.result, dict) else None

    @property
    def output(self) -> Any:
        """All that the run function has returned."""
        return self.result

    @property
    def objective(self) -> Any:
        """The objective of it: a number, several, or a text for a failure."""
        return self._part("objective") if isinstance(self.result, dict) else self.result

    @property
    def metadata(self) -> Dict[str, Any]:
        """What else the run function has returned."""
        return dict(self._part("metadata") or {})

    @property
    def timestamp_start(self) -> Optional[float]:
        """When the run function began, if it is decorated with profile()."""
        return self._part("timestamp_start")

    @property
    def timestamp_end(self) -> Optional[float]:
        """When it ended."""
        return self._part("timestamp_end")

    def __getitem__(self, name: str) -> Any:
        return self.config[name]

    def row(self, objectives: Optional[int]) -> Dict[str, Any]:
        """A row of results.csv."""
        row: Dict[str, Any] = {**self.config, "job_id": self.id}
        more = dict(self.result) if isinstance(self.result, dict) else {"objective": self.result}
        objective = more.pop("objective", None)
        more.update(more.pop("metadata", None) or {})
        times = {name: more.pop(name) for name in _TIMES if name in more}
        if isinstance(objective, (list, tuple)) or (objectives or 1) > 1:
            several = isinstance(objective, (list, tuple))
            values = list(objective) if several else [objective] * (objectives or 1)
            row.update({f"objective_{i}": value for i, value in enumerate(values)})
        else:
            row["objective"] = objective
        own = {
            "timestamp_submit": self.timestamp_submit,
            "timestamp_gather": self.timestamp_gather,
            **times,
        }
        # What a run function says besides gets a "_" where its name is taken.
        taken = {**row, **own}
        others = {f"{name}_" if name in taken else name: v for name, v in more.items()}
        return {**row, **others, **own}


def profile(run_function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a run function: when it began and ended is part of what it returns."""

    @functools.wraps(run_function)
    def timed(*arguments: Any, **keywords: Any) -> Any:
        begin = time.time()
        result = run_function(*arguments, **keywords)
        kept = dict(result) if isinstance(result, dict) else {"objective": result}
        return {**kept, "timestamp_start": begin, "timestamp_end": time.time()}

    return timed


@constructor_suggests
class Evaluator:
    """Where a run function is evaluated: a thread, a process or a ring of ranks each."""

    def __init__(
        self,
        run_function: Callable[..., Any],
        method: str = "thread",
        num_workers: int = 0,
        run_function_kwargs: Optional[Dict[str, Any]] = None,
        num_ranks: int = 2,
        callbacks: Sequence[Any] = (),
    ) -> None:
        if not callable(run_function):
            raise InvalidArgumentError(f"Evaluator: {run_function!r} is not a function")
        if method not in _METHODS:
            raise unknown_name("evaluator", method, _METHODS)
        self.run_function = run_function
        self.method = _METHODS[method]
        self.num_workers = 1 if method == "serial" else num_workers or os.cpu_count() or 1
        self.keywords = dict(run_function_kwargs or {})
        self.num_ranks = num_ranks
        self.callbacks = list(callbacks)
        self.num_objective: Optional[int] = None
        self.jobs_done: List[Job] = []
        self._begin = time.monotonic()
        self._pool: Any = None
        self._running: Dict[Any, Job] = {}
        self._submitted = 0
        self._columns: Dict[str, List[str]] = {}  # of the files that were written

    @staticmethod
    def create(
        run_function: Callable[..., Any],
        method: str = "serial",
        method_kwargs: Optional[Dict[str, Any]] = None,
    ) -> Evaluator:
        """An evaluator by its name."""
        return Evaluator(run_function, method, **dict(method_kwargs or {}))

    # --- by hand, without a search ---

    def submit(self, configs: Sequence[Dict[str, Any]]) -> None:
        """Starts evaluations of configurations; gather() collects what came of them."""
        if self.method == "ranks":
            raise UnsupportedError("submit: rings of ranks are evaluated by searches only")
        if self._pool is None:
            self._pool = self._make_pool()
        for config in configs:
            job = Job(self._submitted, dict(config), self._now())
            self._submitted += 1
            self.tell("on_launch", job)
            self._running[self._start(dict(config))] = job

    def _start(self, config: Dict[str, Any], **more: Any) -> Any:
        with suppress(BrokenExecutor):  # one of its processes was killed
            return self._pool.submit(self.run_function, config, **self.keywords, **more)
        self._pool = self._make_pool()
        return self._pool.submit(self.run_function, config, **self.keywords, **more)

    def _make_pool(self) -> Any:
        kind = ProcessPoolExecutor if self.method == "process" else ThreadPoolExecutor
        return kind(self.num_workers)

    @contextmanager
    def items(self) -> Iterator[Dict[str, Any]]:
        """More arguments for one evaluation, as long as it runs; see queued()."""
        yield {}

    def gather(self, type: str, size: int = 1) -> List[Job]:
        """The evaluations that have ended: "ALL" waits for all, "BATCH" for at least ``size``. What
        an evaluation has raised is raised here; the next call has the others."""
        if type not in ("ALL", "BATCH"):
            raise InvalidArgumentError(f"gather: {type!r} is neither 'ALL' nor 'BATCH'")
        wanted = len(self._running) if type == "ALL" else min(size, len(self._running))
        ended: set = set()
        pending = set(self._running)
        while len(ended) < wanted:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            ended |= done
        order = sorted(ended, key=lambda one: self._running[one].id)
        for future in order:
            if future.exception() is not None:
                del self._running[future]
                raise future.exception()
        gathered = []
        for future in order:
            job = self._running.pop(future)
            job.result = future.result()
            job.timestamp_gather = self._now()
            gathered.append(job)
        self.jobs_done += gathered
        for job in gathered:
            self.tell("on_done", job)
        return gathered

    def tell(self, event: str, job: Job) -> None:
        """Calls what callbacks have for an event, in DeepHyper's words."""
        for callback in self.callbacks:
            function = getattr(callback, event, None)
            if function is not None:
                function(job)

    def dump_evals(self, log_dir: str = ".", filename: str = "results.csv") -> None:
        """Writes what was gathered since the last time, below what is there."""
        rows = [job.row(self.num_objective) for job in self.jobs_done]
        if not rows:
            return
        path = os.path.abspath(os.path.join(log_dir, filename))
        known = self._columns.get(path) if os.path.exists(path) else None
        columns = columns_of(rows, known or ())
        if known is None:
            move_aside(path)
            write_rows(path, rows, columns)
        elif columns == known:
            append_rows(path, rows, columns)
        else:
            write_rows(path, [*read_rows(path), *rows], columns)
        self._columns[path] = columns
        self.jobs_done = []

    def _now(self) -> float:
        return time.monotonic() - self._begin


def _of_method(name: str, method: str) -> Type[Evaluator]:
    def __init__(self: Any, run_function: Callable[..., Any], *more: Any, **keywords: Any) -> None:
        Evaluator.__init__(self, run_function, method, *more, **keywords)

    return type(name, (Evaluator,), {"__init__": __init__, "__doc__": f"The method {method!r}."})


SerialEvaluator = _of_method("SerialEvaluator", "serial")
ThreadPoolEvaluator = _of_method("ThreadPoolEvaluator", "thread")
ProcessPoolEvaluator = _of_method("ProcessPoolEvaluator", "process")
SubprocessEvaluator = _of_method("SubprocessEvaluator", "subprocess")
