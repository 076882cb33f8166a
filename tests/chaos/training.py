"""Elastic training whose ranks, custodians and launcher are killed. The weights at its end are those of
a run that was left alone, bit for bit."""

import re

from common import KOLO, ROOT, Loss, Round

PROGRAM = ROOT / "build/release/bin/kolo_digits_elastic"
RESULT = re.compile(r"\d+ epochs, every sample once in each, weights [0-9a-f]{16}")
EPOCHS = 12


def result_in(text):
    found = RESULT.search(text)
    return found and found.group()


def training(rng, folder, until):
    """Three ranks, of which one is enough; what ended is resumed from its last commit on disk."""
    round_ = Round("training", rng, folder, until)
    family = round_.family
    calm = family.run([KOLO, "run", "-np", "1", PROGRAM, "--epochs", EPOCHS], folder)
    wanted = result_in(calm)
    if not wanted:
        raise Loss(f"{PROGRAM} says nothing about its weights: {calm}")
    commits = folder / "commits"

    def start():
        place = "--resume" if list(commits.glob("*.kolo")) else "--commit-dir"
        if place == "--commit-dir" and commits.exists():
            commits.rename(folder / f"without-commit-{rng.getrandbits(32):x}")
        return family.start(
            [KOLO, "run", "-np", "3", "--min-np", "1", "-H", "localhost:3", "--blacklist-cooldown-range", "1,1",
             place, commits, PROGRAM, "--epochs", EPOCHS, "--pause-ms", "5"], folder, round_.log)

    def is_finished():
        return result_in(round_.log.read_text()) is not None

    round_.keep_going(start, is_finished, family.kill_one, 12)
    found = result_in(round_.log.read_text())
    if found != wanted:
        raise Loss(f"the weights differ: {wanted} and {found}")
    family.expect_nobody()
    return family.kills
