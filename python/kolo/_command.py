"""The command ``kolo`` of an installed package: the program that the package carries."""

from __future__ import annotations

import os
import sys

from kolo._files import command_path, plugin_directory


def main() -> None:
    """Becomes the program."""
    program = command_path()
    if program is None:
        sys.exit("kolo: the program is missing from the package; install it again")
    os.environ.setdefault("KOLO_PLUGIN_DIR", str(plugin_directory()))
    os.execv(program, [str(program), *sys.argv[1:]])
