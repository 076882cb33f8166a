"""A study whose processes are killed and whose disk runs full."""

import json
import sys

from common import KOLO, FullDisk, Loss, Round

SPACE = "x:\n  grid_search: [1, 2, 3, 4]\ny:\n  grid_search: [0.5, 0.25, 0.125]\n"
TRIAL = """
import json, os, time
x, y = float(os.environ["KOLO_PARAM_X"]), float(os.environ["KOLO_PARAM_Y"])
with os.fdopen(int(os.environ["KOLO_TRIAL_FD"]), "w") as reports:
    for epoch in range(1, 6):
        time.sleep(0.05)
        print(json.dumps({"loss": x * y / epoch, "epoch": epoch}), file=reports, flush=True)
"""


def tune_command(folder, storage, results):
    return [KOLO, "tune", "--space", "space.yaml", "--metric", "loss", "--mode", "min", "--name", "chaos",
            "--max-failures", "-1", "--max-concurrent", "3", "--total-cpus", "3", "--resume", "--quiet",
            "--storage", storage, "--local-dir", results, "--", sys.executable, folder / "trial.py"]


def trials_of(run, folder, storage):
    rows = json.loads(run([KOLO, "export", "chaos", "--format", "json", "--storage", storage], folder))
    return sorted((row["config/x"], row["config/y"], row["loss"], row["epoch"], row["status"]) for row in rows)


def study(rng, folder, until):
    """A grid of twelve trials, twice: left alone, then with faults."""
    (folder / "space.yaml").write_text(SPACE)
    (folder / "trial.py").write_text(TRIAL)
    round_ = Round("study", rng, folder, until)
    disk = FullDisk(folder / "disk")
    try:
        calm = folder / "calm.db"
        round_.family.run(tune_command(folder, calm, folder / "calm"), folder)
        storage = disk.folder / "chaos.db"
        command = tune_command(folder, storage, disk.folder / "results")

        def fault():
            if disk.mounted and rng.random() < 0.1:
                disk.fill_for(0.5)
                round_.family.kills["a full disk"] += 1
            else:
                round_.family.kill_one()

        def is_finished():
            listed = json.loads(round_.family.run([KOLO, "studies", "--json", "--storage", storage], folder))
            return any(row["name"] == "chaos" and row["state"] == "finished" for row in listed)

        round_.keep_going(lambda: round_.family.start(command, folder, round_.log), is_finished, fault, 15)
        wanted = trials_of(round_.family.run, folder, calm)
        found = trials_of(round_.family.run, folder, storage)
        if found != wanted:
            raise Loss(f"the trials differ:\n  {wanted}\n  {found}")
        round_.family.expect_nobody()
        return round_.family.kills
    finally:
        disk.close()
