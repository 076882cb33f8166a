"""One rank of kolo.run(): calls the function and leaves its result in the folder."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from pathlib import Path

from kolo import _basics
from kolo._run import pickler


def main() -> int:
    """The program."""
    directory = Path(sys.argv[1])
    rank = os.environ.get("KOLO_RANK", os.environ.get("HOROVOD_RANK", "0"))
    try:
        if "KOLO_WORKER" in os.environ:  # of an elastic job, in which ranks are known by init()
            _basics.init()
            rank = str(_basics.rank())
        function, args, kwargs = pickle.loads((directory / "function").read_bytes())
        result = function(*args, **kwargs)
        if _basics.is_initialized():
            rank = str(_basics.rank())
        # Nobody sees half of a result.
        temporary = directory / f".result.{rank}"
        temporary.write_bytes(pickler.dumps(result))
        temporary.rename(directory / f"result.{rank}")
    except BaseException as error:
        # By this a worker leaves an elastic job that it was asked to leave.
        if isinstance(error, SystemExit) and not error.code and "KOLO_WORKER" in os.environ:
            return 0
        traceback.print_exc()
        (directory / f"error.{rank}").write_text(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
