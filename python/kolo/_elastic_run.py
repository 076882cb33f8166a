"""The loop around an elastic training function: one turn for each group that this process is in.

A job of ``kolo run --min-np`` is elastic: its launcher forms one group of ranks after the other
(docs/elastic-runs.md). A rank that is lost makes collectives of the others fail, which leaves the
function; they restore their last commit, meet in a new group, take the state of one of them and
enter the function again. A rank that comes is waited for at the end of a step.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import sys
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from kolo import _basics, _core, _errors
from kolo._errors import (
    Error,
    FailedPreconditionError,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InvalidArgumentError,
)
from kolo._run import pickler

if TYPE_CHECKING:
    from kolo._elastic import State

# Failures without a commit in between after which a function is not tried again.
_FAILURES = 100


class Job:
    """What this process knows of the elastic job that it works for."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.worker = _core.ElasticWorker()
        self.commits = 0
        self.root = 0
        self.is_synced = False
        self.is_first = True
        self.is_writer = False
        # What a study was told until the last commit. It goes with the state: a step that is taken
        # again tells again, under the same numbers, and a rank that joins counts as the others do.
        self.told = 0

    def enter_group(self) -> None:
        """Meets the others, and takes the state of one of them that has it."""
        _basics.join_group()
        self.worker.enter_group()
        self.is_writer = _core.rank() == 0
        if not self.is_first:
            self.state.on_reset()
        self.is_first = False
        # 0: this rank has not been given the state of the job yet. Ranks are dealt out by age, so
        # rank 0 has it as a rule, which is where states of other people's making take it from.
        standings = self.worker.gather(self.commits + 1 if self.is_synced else 0)
        self.root = next((rank for rank, standing in enumerate(standings) if standing), 0)
        if not any(standings) and self.worker.has_commit_dir:
            standings = self._begin()
        told = self.worker.gather(_core.told_count())
        self.state.sync()
        # No other rank is needed from here on: all of it goes together.
        self.told = told[self.root]
        _core.set_told_count(self.told)
        self.commits = max(standings[self.root] - 1, 0)
        self.is_synced = True

    def end_step(self, is_commit: bool) -> None:
        """Goes on if all ranks do."""
        if is_commit:
            self.commits += 1
            self.told = _core.told_count()
        if not self.worker.end_step():
            raise HostsUpdatedInterrupt()
        if is_commit and self.commits % self.worker.commit_every == 0:
            self._try_to_write_commit()

    def restore(self) -> None:
        """Back to the last commit."""
        self.state.restore()
        _core.set_told_count(self.told)

    def leave_group(self) -> None:
        """Others that wait for this rank hear of it."""
        self.worker.end_meeting()
        _basics.shutdown()

    def ends_group(self, error: Exception, failure: Optional[BaseException]) -> bool:
        """Whether the job goes on with the next group. Until the ranks have met, that is seen by the
        code of the error, as for C++; then a failure of any operation is one."""
        if self.worker.has_met:
            return failure is not None
        return isinstance(error, Error) and self.worker.ends_group(error.code)

    def write_commit(self) -> None:
        """To disk, if that is wanted, by one rank."""
        if self._is_to_write():
            self.worker.write_commit(self.commits, self._bytes())

    def _try_to_write_commit(self) -> None:
        if self._is_to_write():
            self.worker.try_write_commit(self.commits, self._bytes())

    def _is_to_write(self) -> bool:
        return self.is_writer and self.worker.has_commit_dir and self.commits > 0

    def _bytes(self) -> bytes:
        return pickler.dumps(self.state.saved())

    def _begin(self) -> List[int]:
        """No rank has the state of the job: the root takes it from disk. If it cannot, that is the
        end of all ranks: another root would fare no better."""
        error: Optional[Exception] = None
        if _core.rank() == self.root:
            try:
                self._read_commit()
            except Exception as one:
                error = one
        standings = self.worker.gather(0 if error else self.commits + 1)
        if error is not None:
            raise error
        if not standings[self.root]:
            raise FailedPreconditionError(
                f"rank {self.root} could not take the state of the job from disk; its own error "
                "says why"
            )
        return standings

    def _read_commit(self) -> None:
        found = self.worker.read_commit()
        if found is not None:
            self.commits, data = found
            self.state.load(pickle.loads(data))


_job: Optional[Job] = None


def is_in_group() -> bool:
    """Whether this process is inside of an elastic training function, as a worker of a job."""
    return _job is not None


def root_rank() -> int:
    """The rank whose state the others take in sync(). 0 but for cases in which rank 0 has none."""
    return 0 if _job is None else _job.root


def check_group(state: State, is_commit: bool) -> None:
    """At the end of a step: raises HostsUpdatedInterrupt if the group is to change."""
    if _job is not None and _job.state is state:
        _job.end_step(is_commit)


def _failure_behind(error: BaseException) -> Optional[BaseException]:
    """The failed operation, if that is what it was. Frameworks pass errors on as their own when it
    was their graph that called kolo."""
    if isinstance(error, HorovodInternalError):
        return error
    if _errors.last_failure is not None and str(_errors.last_failure) in str(error):
        return _errors.last_failure
    in_graph = _core.last_failure_in_graph()
    if in_graph is None:
        return None
    code, message, rank = in_graph
    return _errors.make_error(code, message, rank, True) if message in str(error) else None


def _work(job: Job, call: Callable[[], Any]) -> Any:
    failures = 0
    while True:
        has_returned = False
        result = None
        blamed = -1
        commits = job.commits
        try:
            job.enter_group()
            result = call()
            has_returned = True
            job.worker.finish()
            return result
        except HostsUpdatedInterrupt:
            failures = 0
        except Exception as error:
            failure = _failure_behind(error)
            if not job.ends_group(error, failure):
                raise
            rank = getattr(failure or error, "rank", None)
            blamed = -1 if rank is None else rank
            failures = 0 if job.commits > commits or blamed >= 0 else failures + 1
            if failures == _FAILURES:
                raise
            job.restore()
        # Whoever waits after the end of the function is waited for by nobody, and stays in its
        # group in case that the work is over.
        if not has_returned:
            job.leave_group()
        job.worker.leave_group(blamed)
        following = job.worker.await_next()
        if following == "finish":
            return result
        if has_returned:
            job.leave_group()
        if following == "leave":
            # Without a launcher no group follows, and this is the last that is known of the job.
            if not job.worker.has_launcher:
                job.write_commit()
            sys.exit(0)


def _work_in_one_group(state: State, call: Callable[[], Any]) -> Any:
    """Nobody forms other groups: a rank that is gone does not come back."""
    skip_sync = False
    for _ in range(_FAILURES + 1):
        try:
            if not skip_sync:
                state.sync()
            return call()
        except HorovodInternalError as error:
            if isinstance(error, Error) and error.code == "peer_lost":
                raise
            state.restore()
            skip_sync = False
        except HostsUpdatedInterrupt as interrupt:
            skip_sync = interrupt.skip_sync
        state.on_reset()
    raise RuntimeError(f"the training function failed {_FAILURES} times")


def _end_children_by_sigterm() -> None:
    """SIGTERM asks a worker to go at the end of its step; processes that it forks have none."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run_fn(func: Callable[..., Any], reset: Any = None) -> Callable[..., Any]:
    """Wraps a training function whose first argument is a state. ``reset`` is Horovod's and of no
    use here."""
    if not callable(func):
        raise InvalidArgumentError(f"elastic.run: {func!r} is not a function")

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        global _job
        stopped: List[BaseException] = []

        def call() -> Any:
            stopped.clear()
            try:
                return func(state, *args, **kwargs)
            except BaseException as error:
                # A study has ended this trial: the work is done, which all ranks have to know.
                if not getattr(error, "ends_trial", False):
                    raise
                stopped.append(error)

        if not _core.is_elastic_worker():
            return _work_in_one_group(state, call)
        state.save()  # something to go back to before the first commit
        _job = Job(state)
        os.register_at_fork(after_in_child=_end_children_by_sigterm)
        try:
            result = _work(_job, call)
        finally:
            _job = None
        if stopped:
            raise stopped[0]
        return result

    return wrapper
