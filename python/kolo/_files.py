"""Where the files of the installation are: the command ``kolo`` and the plug-ins."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Optional

_PACKAGE = Path(os.path.abspath(__file__)).parent


def _roots() -> list[Path]:
    # An installed package has bin/ and lib/ inside it; in a build tree they are two levels above
    # the package: <build>/python/kolo.
    roots = [_PACKAGE, _PACKAGE.parent.parent]
    # Debian's package leaves both to the package `kolo`: /usr/bin and /usr/lib.
    found = shutil.which("kolo")
    return [*roots, Path(found).parent.parent] if found else roots


def command_path() -> Optional[Path]:
    """The program ``kolo`` that belongs to this package, else the one on the PATH."""
    for root in _roots():
        program = root / "bin" / "kolo"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None


def plugin_directory() -> Path:
    """The folder with the plug-ins for ranks on several hosts."""
    for root in _roots():
        for directory in [root / "lib" / "kolo", *root.glob("lib/*-linux-gnu/kolo")]:
            if directory.is_dir():
                return directory
    return _PACKAGE / "lib" / "kolo"
