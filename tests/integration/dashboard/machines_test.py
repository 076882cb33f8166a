#!/usr/bin/env python3
"""The pages of runs and clusters in a real browser, and the same in `kolo top`: machines_test.py KOLO RANK_PROGRAM"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served, confirm, drawn, need_browser, says, use_folder
from standing import Cluster


def check_runs(page, place, kolo, rank_program, folder):
    page.open(place + "#/runs")
    page.wait_for(says("Nothing runs now"))
    run = subprocess.Popen([kolo, "run", "-np", "3", rank_program, "behind", str(folder / "go")])
    # The page follows by itself.
    page.wait_for(says("ranks 0, 1 wait for rank 2"))
    page.evaluate("document.querySelector('#runs td a').click()")
    page.wait_for(drawn("last-seconds"))
    page.wait_for(says("ranks 0, 1 wait for rank 2"))
    page.wait_for("document.querySelectorAll('#ranks tbody tr').length === 3")
    top = subprocess.run([kolo, "top", "--once"], check=True, capture_output=True, text=True).stdout
    assert "1 run" in top and "0, 1 for 2" in top, top
    (folder / "go").touch()
    assert run.wait(timeout=30) == 0
    page.wait_for(says("it has ended"))
    page.complaints.clear()  # the browser notes the answer that there is no such run
    assert not list((folder / "state/kolo/runs").iterdir())


def check_cluster(page, place, kolo, folder):
    page.open(place + "#/cluster")
    page.wait_for(says("There is no cluster"))
    cluster = Cluster(kolo, folder / "state", "lab", slots=4)
    try:
        page.wait_for(says("lab: 2 hosts"))
        page.wait_for("document.querySelector('.state.up') !== null && document.querySelector('.state.lost') !== null")
        page.wait_for(says("0 of 4") + "&&" + says("GB of"))
        program = subprocess.Popen([kolo, "run", "--cluster", "lab", "-np", "3", "sh", "-c", f"while [ ! -e {folder}/done ]; do sleep 0.05; done"],
                                   stderr=subprocess.DEVNULL)
        page.wait_for(says("3 of 4") + "&&" + says("kolo run sh of"))
        page.evaluate("document.querySelector('[aria-label=\"Drain here\"]').click()")
        confirm(page)
        page.wait_for("document.querySelector('.state.drained') !== null")
        status = subprocess.run([kolo, "status", "lab", "--json"], capture_output=True, text=True).stdout
        assert json.loads(status)["hosts"][0]["state"] == "drained", status
        (folder / "done").touch()
        assert program.wait(timeout=30) == 0
        page.wait_for(says("0 of 4"))
        page.evaluate("document.querySelector('[aria-label=\"Undrain here\"]').click()")
        confirm(page)
        page.wait_for("document.querySelector('.state.up') !== null")
        top = subprocess.run([kolo, "top", "--once"], check=True, capture_output=True, text=True).stdout
        assert "cluster lab: 2 hosts" in top and "lost" in top, top
    finally:
        cluster.end()
    actions = [json.loads(line) for line in (folder / "state/kolo/dashboard-actions.jsonl").read_text().splitlines()]
    assert [(a["action"], a["what"]["undo"], a["outcome"]) for a in actions] == [("/api/drain", False, "done"), ("/api/drain", True, "done")], actions
    assert all(a["user"] and a["from"] == "127.0.0.1" and a["time"] for a in actions)
    page.wait_for(says("There is no cluster"))  # it has ended, and the page sees it


def main():
    kolo, rank_program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    need_browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        with Served(kolo, folder) as (page, address):
            page.open(address)
            place = address.split("?")[0]
            check_runs(page, place, kolo, rank_program, folder)
            check_cluster(page, place, kolo, folder)
            assert not page.complaints, page.complaints


main()
