"""The loop around an elastic function, with a launcher and ranks that are played: what becomes of
meetings that fail, and of commits that cannot be written or are another program's."""

import contextlib
import io
import os
import pathlib
import pickle
import sys
import tempfile
import types
import unittest
from unittest import mock

from kolo import _basics, _elastic, _elastic_run, _run_rank
from kolo._errors import (
    CancelledError,
    CollectiveError,
    FailureError,
    InvalidArgumentError,
    WaitTimeoutError,
)


class Worker:
    """One that is alone in its groups, whose meetings fail as `meetings` says."""

    commit_every = 1
    has_commit_dir = has_launcher = True

    def __init__(self, meetings):
        self.meetings, self.has_met, self.failed = list(meetings), False, 0
        self.calls = []

    def join(self, *_):
        self.has_met = False
        error = self.meetings.pop(0)
        if isinstance(error, Exception) and not isinstance(error, CollectiveError):
            raise error
        self.next_error = error

    def enter_group(self):
        if self.next_error is not None:
            raise self.next_error
        self.has_met, self.failed = True, 0

    def ends_group(self, code):  # as src/comm/elastic/membership.cc has it
        if code == "peer_lost":
            return True
        if code not in ("timeout", "unavailable") or self.has_met:
            return False
        self.failed += 1
        return self.failed < 3

    def gather(self, value):
        return [value]

    def end_step(self):
        return True

    def read_commit(self):
        return None

    def await_next(self):
        return "join"

    def __getattr__(self, name):
        return lambda *values: self.calls.append((name, *values))


class LoopTest(unittest.TestCase):
    def run_loop(self, meetings, steps=1):
        self.worker = Worker(meetings)
        core = types.SimpleNamespace(
            ElasticWorker=lambda: self.worker,
            is_elastic_worker=lambda: True,
            last_failure_in_graph=lambda: None,
            rank=lambda: 0,
            told_count=lambda: 0,
            set_told_count=lambda count: None,
        )
        state = _elastic.ObjectState(lambda value, **_: value, lambda: 0, step=0)

        def train(state):
            while state.step < steps:
                state.step += 1
                state.commit()
            return state.step

        with mock.patch.object(_elastic_run, "_core", core), mock.patch.object(
            _basics, "join_group", self.worker.join
        ), mock.patch.object(_basics, "shutdown"):
            return _elastic_run.run_fn(train)(state)

    def test_the_next_group_meets(self):
        late = WaitTimeoutError("rank 1 has not come")
        away = FailureError("no answer", "unavailable")
        for error in (late, away, CollectiveError("rank 1 has not come", "timeout")):
            self.assertEqual(self.run_loop([error, error, None], steps=2), 2)
            left = [call for call in self.worker.calls if call[0] == "leave_group"]
            self.assertEqual(left, [("leave_group", -1)] * 2)

    def test_meetings_do_not_fail_for_ever(self):
        for error in (WaitTimeoutError("late"), CollectiveError("late", "timeout")):
            with self.assertRaises(type(error)):
                self.run_loop([error] * 4)
            self.assertEqual(len(self.worker.meetings), 1)

    def test_other_errors_are_errors(self):
        with self.assertRaises(InvalidArgumentError):
            self.run_loop([InvalidArgumentError("KOLO_TRANSPORT is wrong"), None])

    def test_a_disk_that_cannot_be_written_is_left_to_what_writes(self):
        self.run_loop([None], steps=3)
        written = [call[1] for call in self.worker.calls if call[0] == "try_write_commit"]
        self.assertEqual(written, [1, 2, 3])


class InitTest(unittest.TestCase):
    """Programs call init() before the loop begins."""

    def test_a_first_meeting_that_fails(self):
        late = WaitTimeoutError("late")
        for answers, succeeds in (([True, True], True), ([True, False], False)):
            core = mock.Mock()
            core.is_initialized.side_effect = [False] * 3 + [True]
            core.meets_again.side_effect = answers
            join = mock.Mock(side_effect=[late, late, None])
            with mock.patch.object(_basics, "_core", core), mock.patch.object(
                _basics, "join_group", join
            ):
                if succeeds:
                    _basics.init()
                    self.assertEqual(join.call_count, 3)
                else:
                    with self.assertRaises(WaitTimeoutError):
                        _basics.init()
            self.assertEqual(core.meets_again.call_args, mock.call("timeout", -1))

    def test_a_worker_that_is_asked_to_leave_before_it_has_a_group(self):
        for is_to_leave, expected in ((True, SystemExit), (False, CancelledError)):
            core = mock.Mock()
            core.is_initialized.return_value = False
            core.is_to_leave.return_value = is_to_leave
            core.meets_again.return_value = False
            core.init.side_effect = CancelledError("worker 1 was asked to leave")
            with mock.patch.object(_basics, "_core", core), self.assertRaises(expected) as raised:
                _basics.init()
            if is_to_leave:
                self.assertEqual(raised.exception.code, 0)


def leave(code):
    sys.exit(code)


class RankTest(unittest.TestCase):
    """Ranks of kolo.run(..., min_num_proc=1), which are asked to leave by the way."""

    def ended(self, code):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(
            _run_rank, "_basics"
        ) as basics, mock.patch.dict(os.environ, KOLO_WORKER="3"), mock.patch.object(
            sys, "argv", ["", folder]
        ), contextlib.redirect_stderr(io.StringIO()):
            basics.rank.return_value = 1
            (pathlib.Path(folder) / "function").write_bytes(pickle.dumps((leave, (code,), {})))
            return _run_rank.main(), sorted(os.listdir(folder))

    def test_one_that_leaves_has_not_failed(self):
        self.assertEqual(self.ended(0), (0, ["function"]))
        self.assertEqual(self.ended(3), (1, ["error.1", "function"]))


class LoadTest(unittest.TestCase):
    def test_a_commit_of_another_program(self):
        state = _elastic.ObjectState(None, None, step=0, epoch=0)
        state.load({"step": 5, "epoch": 1})
        self.assertEqual((state.step, state.epoch), (5, 1))
        for other in ({"step": 6}, {"step": 6, "epoch": 2, "loss": 1.0}, {}):
            with self.assertRaisesRegex(InvalidArgumentError, "the program that wrote it"):
                state.load(other)
        self.assertEqual((state.step, state.epoch), (5, 1))


if __name__ == "__main__":
    unittest.main(verbosity=0)
