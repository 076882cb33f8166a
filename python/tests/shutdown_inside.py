"""Leaves the job while another thread is in an operation that the other ranks never come to: by
shutdown(), by the end of the program, or in a signal handler."""

import array
import atexit
import contextlib
import os
import signal
import sys
import threading
import time

import kolo
from kolo import _basics

# The others do not leave before rank 0 does.
end = f"{os.path.basename(__file__)}.{sys.argv[1]}.end"
with contextlib.suppress(FileNotFoundError):
    os.remove(end)
if os.environ["KOLO_RANK"] == "0":
    atexit.register(lambda: open(end, "w").close())  # after the shutdown() that init() registers
kolo.init()
errors = []


class User:
    """As an optimizer, which gives up its buckets."""

    has_left = False

    def enter_group(self):
        pass

    def leave_group(self):
        self.has_left = True


user = User()
_basics.group_users.add(user)


def wait_for_nobody():
    try:
        kolo.allreduce(array.array("d", [1.0]))
    except Exception as error:
        errors.append(error)


def shut_down_in_handler(*_):
    try:
        kolo.shutdown()
    except ValueError as error:
        errors.append(error)
    raise KeyboardInterrupt


if kolo.rank() == 0:
    if sys.argv[1] == "handler":
        signal.signal(signal.SIGALRM, shut_down_in_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            kolo.barrier()
        except KeyboardInterrupt:
            pass
        assert "signal handler" in str(errors[0]), errors
        assert kolo.is_initialized()
        assert not user.has_left
    else:
        thread = threading.Thread(target=wait_for_nobody, daemon=True)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    if sys.argv[1] == "shutdown":
        kolo.shutdown()
        thread.join(30)
        assert "kolo was shut down by another thread" in str(errors[0]), errors
    print("rank 0 leaves")
else:
    while not os.path.exists(end):
        time.sleep(0.01)
