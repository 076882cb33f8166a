"""``python -m kolo.hps.export my.py:Problem`` prints a problem as ``kolo hps`` reads it."""

from __future__ import annotations

import sys

from kolo.hps._files import load_object
from kolo.hps._problem import HpProblem


def main() -> None:
    """The program."""
    problem = load_object(sys.argv[1])
    if not isinstance(problem, HpProblem):
        sys.exit(f"{sys.argv[1]} is {type(problem).__name__}, not an HpProblem")
    print(problem.to_json())


if __name__ == "__main__":
    main()
