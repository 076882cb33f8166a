#!/usr/bin/env python3
"""Checks that no two types have the same full name.

types_lint.py FILE…

Two types of one name in one namespace break the rule of one definition: the linker keeps one
destructor for both, and says nothing. FILEs are C++ files formatted by clang-format. Seen are types
with a body that begin at the margin, in headers and sources; what an anonymous namespace holds is
the file's own, and programs (one file with its own main) do not meet each other.
"""

import collections
import re
import sys

NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
ANONYMOUS = re.compile(r"namespace \{")
END_OF_ANONYMOUS = re.compile(r"\}  // namespace$")
TYPE = re.compile(
    r"(?:struct|class|union|enum class|enum)(?: (?:alignas|KOLO_\w+)(?:\([^)]*\))?)?(?: \[\[\w+\]\])?"
    r" (\w+)(?: final)?(?: ?:[^:;].*)?(?: \{|$)"
)
MAIN = re.compile(r"^int main\(", re.MULTILINE)


def types(text):
    """Yields (full name, line number) of each type of a file."""
    namespace, anonymous = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if match := NAMESPACE.match(line):
            namespace = match[1]
        elif ANONYMOUS.match(line):
            anonymous = True
        elif END_OF_ANONYMOUS.match(line):
            anonymous = False
        elif not anonymous and (match := TYPE.match(line)):
            yield f"{namespace}::{match[1]}", number


def main():
    places = collections.defaultdict(list)
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if MAIN.search(text):
            continue
        for name, number in types(text):
            places[name].append(f"{path}:{number}")
    doubles = {name: found for name, found in places.items() if len(found) > 1}
    for name, found in sorted(doubles.items()):
        print(f"{found[0]}: {name} is a type in {found[1]}, too; rename one of them")
    sys.exit(bool(doubles))


if __name__ == "__main__":
    main()
