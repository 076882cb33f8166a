"""What the tests share. Each file is a program that every rank runs."""

from __future__ import annotations

import sys
import unittest


class RankTest(unittest.TestCase):
    """A test that all ranks run together: one that fails here ends the whole job, so that nobody
    waits for this rank."""

    def run(self, result=None):
        outcome = super().run(result)
        if result is not None and not result.wasSuccessful():
            for _, text in result.failures + result.errors:
                print(text, file=sys.stderr)
            sys.stderr.flush()
            sys.exit(1)
        return outcome


def main() -> None:
    """Runs the tests of the calling program in one order on every rank."""
    unittest.main(verbosity=0)
