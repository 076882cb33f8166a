"""``python -m kolo.hps.evaluate my.py:run`` evaluates the configuration of a trial."""

from __future__ import annotations

import inspect
import json
import os
import sys

from kolo.hps._files import load_object
from kolo.hps._search import RunningJob, split_result


def main() -> None:
    """The program. The result is its last line of output."""
    with open(os.environ["KOLO_TRIAL_CONFIG"]) as file:
        config = json.load(file)
    run = load_object(sys.argv[1])
    names = list(inspect.signature(run).parameters)
    if names and names[0] in ("job", "running_job"):
        config = RunningJob(int(os.environ.get("KOLO_TRIAL_ID", "0")), config)
    result, metadata = split_result(run(config))
    if isinstance(result, str):
        sys.exit(result)
    several = isinstance(result, (list, tuple))
    objective = [float(value) for value in result] if several else float(result)
    if int(os.environ.get("KOLO_RANK", "0")) == 0:
        print(json.dumps({"objective": objective, **metadata}), flush=True)


if __name__ == "__main__":
    main()
