#!/usr/bin/env python3
"""Draws the pictures of docs/dashboard.md: a study of examples/fashion_study.cc, jobs, a run and a cluster.

    scripts/dashboard_pictures.py BIN FOLDER     BIN has kolo, kolo_fashion_study and kolo_run_rank (build/release/bin)
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/integration/dashboard"))
from served import Served, drawn, says, use_folder
from standing import Cluster

JOBS = (["app", "--name", "prepare", "--executable", "true"], ["app", "--name", "train", "--executable", "true"],
        ["app", "--name", "compare", "--executable", "true"],
        ["job", "--name", "data", "--workflow", "mnist", "--application", "prepare"],
        *(["job", "--name", f"train-{n}", "--workflow", "mnist", "--application", "train"] for n in range(3)),
        ["job", "--name", "report", "--workflow", "mnist", "--application", "compare"],
        *(["dep", "1", str(n)] for n in (2, 3, 4)), *(["dep", str(n), "5"] for n in (2, 3, 4)), ["kill", "4"])


def prepare(binaries, folder):
    kolo = binaries / "kolo"
    subprocess.run([binaries / "kolo_fashion_study", "--results", str(folder), "--trials", "40", "--samples", "2000"],
                   check=True, stdout=subprocess.DEVNULL)
    os.environ["KOLO_STORAGE"] = str(next(folder.glob("*.db")))
    os.environ["KOLO_DB"] = str(folder / "jobs")
    subprocess.run([kolo, "init", folder / "jobs"], check=True, stdout=subprocess.DEVNULL)
    for words in JOBS:
        subprocess.run([kolo, *words], check=True, stdout=subprocess.DEVNULL)


def main():
    binaries, pictures = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch)
        use_folder(str(binaries / "kolo"), folder)
        os.environ["HOME"] = scratch
        prepare(binaries, folder)
        cluster = Cluster(str(binaries / "kolo"), folder / "state", "lab", slots=4)
        shutil.copy(binaries / "kolo_run_rank", folder / "train")
        runs = [subprocess.Popen([binaries / "kolo", "run", *where, "-np", "3", "./train", "behind", "go"], cwd=folder)
                for where in (["--cluster", "lab"], [])]
        try:
            with Served(str(binaries / "kolo"), folder) as (page, address):
                page.open(address)
                page.wait_for("document.querySelector('td a') !== null")
                study = page.evaluate("document.querySelector('td a').getAttribute('href')")
                page.open(address.split("?")[0] + "#/runs")
                page.wait_for("document.querySelectorAll('#runs td a').length === 2 && " + says("wait for rank 2"))
                run = page.evaluate("document.querySelector('#runs td a').getAttribute('href')")
                for name, place, ready, height in (
                        ("study", study, drawn("importance"), 1600), ("trial", study + "/trial/12", drawn("trial-curves"), 1250),
                        ("run", run, says("ranks 0, 1 wait for rank 2"), 700), ("jobs", "#/jobs", drawn("graph"), 1000),
                        ("cluster", "#/cluster", says("3 of 4") + "&&" + says("GB of"), 360)):
                    page.look_like(height=height)
                    page.open(address.split("?")[0] + place)
                    page.wait_for(ready)
                    page.picture(pictures / f"dashboard-{name}.png")
        finally:
            (folder / "go").touch()
            for one in runs:
                one.wait()
            cluster.end()


main()
