"""One trial that is a process, or one of its ranks: ``python -m kolo.tune._trial FILE``."""

from __future__ import annotations

import os
import pickle
import sys

from kolo import _core
from kolo._files import plugin_directory


def main() -> None:
    """The program. It does not return: the compiled module ends the process."""
    os.environ.setdefault("KOLO_PLUGIN_DIR", str(plugin_directory()))
    with open(sys.argv[1], "rb") as file:
        trainable, freq, at_end = pickle.load(file)
    _core.run_as_trial(trainable, trainable.is_class, freq, at_end)


if __name__ == "__main__":
    main()
