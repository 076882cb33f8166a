#!/usr/bin/python3
"""kolo top in a terminal, and without one: top_test.py KOLO"""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

KOLO = sys.argv[1]
PATIENCE = 30


def kolo(*arguments, **options):
    done = subprocess.run([KOLO, *arguments], capture_output=True, text=True, timeout=PATIENCE, **options)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


class Terminal:
    """A program in a terminal of its own, and what it has written there."""

    def __init__(self, columns, rows, *command):
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.execv(command[0], command)
        self.text = ""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, part, start=0):
        """The place behind it."""
        until = time.monotonic() + PATIENCE
        while part not in self.text[start:]:
            assert time.monotonic() < until, f"{part!r} does not come: {self.text[-2000:]!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    assert part in self.text[start:], f"{part!r} did not come: {self.text[-2000:]!r}"
        return self.text.index(part, start) + len(part)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def longest_line(page):
    return max(len(line) for line in re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", page).split("\r\n"))


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    os.chdir(scratch)
    for name in ("KOLO_STORAGE", "KOLO_JOB_ID"):
        os.environ.pop(name, None)
    os.environ.update(KOLO_RESULTS=str(scratch), KOLO_STORAGE=str(scratch / "kolo.db"), TERM="xterm",
                      XDG_STATE_HOME=str(scratch / "state"))
    os.environ.pop("KOLO_DB", None)

    # Nothing is there: that is said, and no error.
    assert "there are no studies" in kolo("top")

    kolo("init", "db")
    os.environ["KOLO_DB"] = str(scratch / "db")
    kolo("app", "--name", "hello", "--exec", "true")
    kolo("job", "--name", "greet", "--workflow", "flow", "--app", "hello")
    (scratch / "space.yaml").write_text("x: {uniform: [0, 1]}\n")
    kolo("tune", "--space", "space.yaml", "--metric", "loss", "--mode", "min", "--name", "mnist", "--quiet",
         "--", "sh", "-c", "echo loss=1")
    plain = kolo("top")
    for part in ("1 study, 0 running", "mnist", "0 trials running", "1 job", "flow", "0 launchers"):
        assert part in plain, plain
    assert "\x1b" not in plain, plain

    terminal = Terminal(80, 24, KOLO, "top", "--interval", "0.2")
    place = terminal.wait_for("\x1b[J", terminal.wait_for("mnist"))
    # A job comes, and the page shows it by itself.
    kolo("job", "--name", "greet", "--workflow", "later", "--app", "hello")
    place = terminal.wait_for("\x1b[J", terminal.wait_for("later", place))
    for columns in (40, 200, 80):
        terminal.resize(columns, 24)
        os.kill(terminal.process, signal.SIGWINCH)
        start = terminal.wait_for("\x1b[J", place)
        start = terminal.wait_for("\x1b[J", start)  # one page may have been on its way
        place = terminal.wait_for("\x1b[J", start)
        assert longest_line(terminal.text[start:place]) <= columns, terminal.text[start:place]
    terminal.type("q")
    terminal.wait_for("\x1b[?1049l")
    assert terminal.status() == 0
print("passed")
