"""Runs a program that imports horovod, unchanged, on kolo: ``python -m kolo.horovod train.py``.

As ``kolo run -np 4 python -m kolo.horovod train.py``, or by the command line of horovodrun:
``python -m kolo.horovod -np 4 python train.py``.
"""

from __future__ import annotations

import os
import runpy
import sys

from kolo._files import command_path
from kolo._names import install_horovod_names


def main() -> None:
    """The program."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if arguments else 2)
    if arguments[0].startswith("-") and arguments[0] != "-m":
        program = command_path()
        if program is None:
            sys.exit("kolo.horovod: the command 'kolo' is neither in the package nor on the PATH")
        os.execv(program, ["kolo", "run", *arguments])
    install_horovod_names()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            sys.exit("kolo.horovod: -m needs the name of a module")
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(arguments[0]):
        sys.exit(f"kolo.horovod: there is no program {arguments[0]!r}")
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
