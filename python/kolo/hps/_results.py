"""The file results.csv of a search, or of an evaluator that is used by hand."""

from __future__ import annotations

import contextlib
import csv
import os
import time
from typing import Any, Dict, List, Sequence, TextIO

Row = Dict[str, Any]


def columns_of(rows: Sequence[Row], known: Sequence[str] = ()) -> List[str]:
    """The names of all columns; new ones come behind those that are known."""
    return list(dict.fromkeys([*known, *(name for row in rows for name in row)]))


def write_rows(path: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """The whole file in place of the one that is there: nobody sees a part of it."""
    part = f"{path}.part"
    try:
        with _open(part, "w") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


def append_rows(path: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """All rows, or none: a full disk leaves no part of them."""
    size = os.path.getsize(path)
    try:
        with _open(path, "a") as file:
            csv.DictWriter(file, columns).writerows(rows)
    except BaseException:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise


def read_rows(path: str) -> List[Row]:
    """All rows of the file."""
    with _open(path, "r") as file:
        return list(csv.DictReader(file))


def _open(path: str, mode: str) -> TextIO:
    """Whatever the language of the machine."""
    return open(path, mode, newline="", encoding="utf-8", errors="surrogateescape")


def move_aside(path: str) -> None:
    """What an earlier search has written goes to a folder earlier-DATE, as ``kolo hps`` has it."""
    if not os.path.exists(path):
        return
    name = os.path.join(os.path.dirname(path), time.strftime("earlier-%Y-%m-%d_%H-%M-%S"))
    place, count = name, 0
    while os.path.exists(place):
        count += 1
        place = f"{name}-{count}"
    os.makedirs(place)
    os.replace(path, os.path.join(place, os.path.basename(path)))
