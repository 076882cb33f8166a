"""Compares the table of Horovod's names in docs/python.md with a module, name by name.

exports_test.py torch|tensorflow|keras
"""

import importlib
import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ["torch", "tensorflow", "keras"]
FRAMEWORK = sys.argv.pop(1)


def rows():
    """For each name of the table what is said about it here."""
    text = (ROOT / "docs/python.md").read_text()
    table = text.split("### Names of Horovod", 1)[1].split("\n### ", 1)[0]
    said = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            for name in cells[0].strip("`").split(", "):
                if name in said:
                    raise AssertionError(f"{name} is in the table twice")
                said[name] = cells[1 + COLUMNS.index(FRAMEWORK)]
    return said


class Exports(unittest.TestCase):
    module = importlib.import_module(f"kolo.{FRAMEWORK}")
    said = rows()

    def public(self):
        return [
            name
            for name in self.module.__all__
            if not isinstance(getattr(self.module, name), types.ModuleType)
            or name in ("elastic", "callbacks")
        ]

    def test_what_the_table_promises_is_there(self):
        self.assertGreater(len(self.said), 60)
        for name, word in self.said.items():
            self.assertIn(word, ("yes", "own", "–", ""), name)
            self.assertEqual(hasattr(self.module, name), word in ("yes", "own"), name)

    def test_what_is_there_is_in_the_table(self):
        for name in self.public():
            self.assertIn(self.said.get(name), ("yes", "own"), name)

    def test_every_name_is_used_by_a_test(self):
        folder = pathlib.Path(__file__).parent
        sources = "".join(
            path.read_text() for path in folder.glob("*.py") if path.name != "exports_test.py"
        )
        unused = [name for name in self.public() if not re.search(rf"\b{name}\b", sources)]
        self.assertEqual(unused, [])

    def test_every_function_is_documented(self):
        for name in self.public():
            value = getattr(self.module, name)
            self.assertTrue(value.__doc__ or not callable(value), name)


if __name__ == "__main__":
    unittest.main(verbosity=0)
