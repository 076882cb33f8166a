"""``python -m kolo.hps.evaluate my.py:run`` evaluates the configuration of a trial."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from typing import Any, Dict

from kolo import _core
from kolo._errors import FailedPreconditionError
from kolo.hps._files import load_object
from kolo.hps._search import RunningJob, split_result


def _report(result: Dict[str, Any]) -> None:
    """To the study, beside what the run function prints, and its threads and exit functions."""
    try:
        _core.trial_report_last(result)
    except FailedPreconditionError:  # of a rank that has no connection, or by hand
        text = json.dumps(result, default=lambda number: number.item())
        print(f"\n{text}", flush=True)


def _fail(text: str) -> None:
    """The evaluation has failed as the text says; without a study, the exit status says it."""
    with contextlib.suppress(FailedPreconditionError):
        _core.trial_fail(text)


def main() -> None:
    """The program. Its result is a message to the study; without one, its last line of output."""
    with open(os.environ["KOLO_TRIAL_CONFIG"]) as file:
        config = json.load(file)
    run = load_object(sys.argv[1])
    names = list(inspect.signature(run).parameters)
    if names and names[0] in ("job", "running_job"):
        config = RunningJob(int(os.environ.get("KOLO_TRIAL_ID", "0")), config)
    result, metadata = split_result(run(config))
    is_first = int(os.environ.get("KOLO_RANK", "0")) == 0
    if isinstance(result, str):
        if is_first:
            _fail(result)
        sys.exit(result)
    several = isinstance(result, (list, tuple))
    objective = [float(value) for value in result] if several else float(result)
    if is_first:
        _report({**metadata, "objective": objective})


if __name__ == "__main__":
    main()
