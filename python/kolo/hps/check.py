"""``python -m kolo.hps.check my.py:run`` fails if a file has no such function. It runs nothing."""

from __future__ import annotations

import sys

from kolo.hps._files import check_object


def main() -> None:
    """The program."""
    try:
        check_object(sys.argv[1])
    except SyntaxError as error:
        sys.exit(f"{error.filename}, line {error.lineno}: {error.msg}")
    except (OSError, ValueError, AttributeError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
