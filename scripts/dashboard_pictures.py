#!/usr/bin/env python3
"""Draws the pictures of docs/dashboard.md: a study of examples/fashion_study.cc in a browser.

    scripts/dashboard_pictures.py BIN FOLDER     BIN has kolo and kolo_fashion_study (build/release/bin)
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/integration/dashboard"))
import browser as chromium


def main():
    binaries, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        os.environ.update(XDG_STATE_HOME=scratch + "/state", HOME=scratch)
        subprocess.run([binaries / "kolo_fashion_study", "--results", scratch, "--trials", "40", "--samples", "2000"],
                       check=True, stdout=subprocess.DEVNULL)
        database = next(pathlib.Path(scratch).glob("*.db"))
        served = subprocess.Popen([binaries / "kolo", "dashboard", "--port", "0", "--storage", str(database)],
                                  stdout=subprocess.PIPE, text=True)
        page = None
        try:
            address = served.stdout.readline().strip()
            page = chromium.Browser(pathlib.Path(scratch) / "browser")
            page.open(address)
            page.wait_for("document.querySelector('td a') !== null")
            study = page.evaluate("document.querySelector('td a').getAttribute('href')")
            for name, place, drawn in (("study", "", "#importance svg"), ("trial", "/trial/0", "#trial-curves svg")):
                page.open(address.split("?")[0] + study + place)
                page.wait_for(f"document.querySelector('{drawn}') !== null")
                page.picture(folder / f"dashboard-{name}.png")
        finally:
            if page:
                page.close()
            served.send_signal(signal.SIGINT)
            served.wait()


main()
