"""A dashboard with a browser in front of it, for one test in one folder."""
import os
import signal
import subprocess
import sys

import browser as chromium


def says(text):
    return f"document.body.innerText.includes({text!r})"


def drawn(*names):
    return "&&".join(f"document.querySelector('#{name} svg') !== null" for name in names)


def need_browser():
    if not os.access(chromium.PROGRAM, os.X_OK):
        print("chromium is not installed")
        sys.exit(77)


def use_folder(kolo, folder):
    """What kolo writes from now on is below this folder."""
    for name in ("KOLO_STORAGE", "KOLO_DB"):
        os.environ.pop(name, None)
    os.environ.update(KOLO_RESULTS=str(folder), KOLO_STORAGE=str(folder / "kolo.db"), XDG_STATE_HOME=str(folder / "state"),
                      PATH=os.path.dirname(kolo) + ":" + os.environ["PATH"])


class Served:
    """with Served(kolo, folder) as (page, address): the browser, and the address with the token in it."""

    def __init__(self, kolo, folder, *options):
        self.kolo, self.folder, self.options = kolo, folder, options
        self.browser = None

    def start(self, port=0):
        self.served = subprocess.Popen([self.kolo, "dashboard", "--port", str(port), *self.options], stdout=subprocess.PIPE, text=True)
        self.address = self.served.stdout.readline().strip()
        return self.address

    def stop(self):
        self.served.send_signal(signal.SIGINT)
        status = self.served.wait(timeout=chromium.PATIENCE)
        assert status == 0, f"kolo dashboard ended with {status}"

    def __enter__(self):
        self.start()
        self.browser = chromium.Browser(self.folder / "browser")
        return self.browser, self.address

    def __exit__(self, kind, *_):
        if self.browser:
            self.browser.close()
        if kind is None:
            self.stop()
        else:
            self.served.kill()
            self.served.wait()


def confirm(page):
    """Says yes to the question that an action asks."""
    page.wait_for("document.getElementById('dialog').open")
    page.evaluate("document.getElementById('yes').click()")
