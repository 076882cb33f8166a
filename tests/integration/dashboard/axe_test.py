#!/usr/bin/env python3
"""Every page of the dashboard by axe-core's rules, in light on a screen and in dark on a phone, and by keys alone.

    axe_test.py KOLO RANK_PROGRAM AXE      AXE is axe.min.js, which scripts/setup gets
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser_test import PLACE, prepare
from served import Served, drawn, need_browser, says, use_folder
from standing import Cluster

PAGES = {
    "studies": ("/", "document.querySelector('#studies table') !== null"),
    "study": (PLACE, drawn("history", "parallel", "contour", "importance", "timeline") + "&& document.getElementById('table') !== null"),
    "trial": (PLACE + "/trial/3", drawn("trial-curves") + "&& document.querySelector('pre.log') !== null"),
    "compare": (PLACE + "/compare/1,2", drawn("curves")),
    "jobs": ("/jobs", "document.querySelector('#graph a') !== null"),
    "job": ("/jobs/1", "document.querySelector('#explain p') !== null"),
    "runs": ("/runs", says("wait for rank")),
    "cluster": ("/cluster", says("lab: 2 hosts")),
    "nothing": ("/study/none", "document.getElementById('complaint') !== null"),
}


def check_rules(page, place):
    found = []
    for width, dark in ((1280, False), (390, True)):
        page.look_like(width=width, dark=dark)
        for name, (where, ready) in PAGES.items():
            page.open(place + "#" + where)
            page.wait_for(ready)
            if name == "runs" and width == 1280:
                page.evaluate("document.querySelector('#runs td a').click()")
                page.wait_for(drawn("last-seconds"))
            page.evaluate(page.axe + "; undefined")
            violations = page.evaluate("axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')))")
            found += [f"{name}, {width} wide, {'dark' if dark else 'light'}: {v}" for v in violations]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                found.append(f"{name}: the page is {wide} wide on a screen of {width}")
    assert not found, "\n" + "\n".join(found)


def check_keys(page, place):
    """From the top of the first page to a trial of a study, and to its table, without a mouse."""
    page.look_like()
    focus = "document.activeElement.textContent"
    page.open(place + "#/")
    page.wait_for(PAGES["studies"][1])
    page.press("Tab")
    assert page.evaluate(focus) == "Skip to the content", page.evaluate(focus)
    page.press("Enter")
    page.wait_for("document.activeElement.id === 'content'")
    page.press("Tab")  # the scrolling table
    for _ in range(5):
        if page.evaluate("document.activeElement.tagName") == "A":
            break
        page.press("Tab")
    page.press("Enter")
    page.wait_for(PAGES["study"][1])
    page.evaluate("document.querySelector('#table a').focus()")
    page.press("Enter")
    page.wait_for("location.hash.includes('/trial/')")
    page.wait_for(PAGES["trial"][1])
    # A question can be left by a key, and the focus is where it was.
    page.open(place + "#/jobs/1")
    page.wait_for("document.getElementById('kill') && !document.getElementById('kill').hidden")
    page.evaluate("document.getElementById('kill').focus()")
    page.press("Enter")
    page.wait_for("document.getElementById('dialog').open")
    page.press("Escape")
    page.wait_for("!document.getElementById('dialog').open")
    assert page.evaluate("document.activeElement.id") == "kill"


def main():
    kolo, rank_program, axe = (os.path.abspath(word) for word in sys.argv[1:4])
    need_browser()
    if not os.path.exists(axe):
        print(f"{axe} is not here: scripts/setup test gets it where a package index can be reached")
        sys.exit(77)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        os.environ["KOLO_DB"] = str(folder / "jobs")
        prepare(kolo, folder)
        cluster = Cluster(kolo, folder / "state", "lab", slots=4)
        run = subprocess.Popen([kolo, "run", "-np", "3", rank_program, "behind", str(folder / "go")])
        try:
            with Served(kolo, folder) as (page, address):
                page.axe = Path(axe).read_text()
                page.open(address)
                place = address.split("?")[0]
                check_keys(page, place)
                check_rules(page, place)
        finally:
            (folder / "go").touch()
            run.wait(timeout=30)
            cluster.end()


main()
