#!/usr/bin/env python3
"""Puts the C++ examples of the pages into programs that a compiler can read.

doc_examples.py SOURCE_DIR OUTPUT_DIR

Each file of tests/integration/consumer/docs is a frame: a line `//@ PAGE N` stands for the N-th
C++ block of that page. Lines of a block that begin with … are left out, and its #includes go to the
top. It is an error if a block has no place in any frame, or a frame names a block that is not there.
"""
import pathlib
import re
import sys


def blocks_of(page):
    """The C++ blocks of a page, with the number of their first line."""
    blocks, lines, start = [], None, 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if lines is None and line.strip() == "```cpp":
            lines, start = [], number + 1
        elif lines is not None and line.startswith("```"):
            blocks.append((start, lines))
            lines = None
        elif lines is not None:
            lines.append(line)
    return blocks


def main():
    source, output = map(pathlib.Path, sys.argv[1:3])
    pages = [source / "README.md", *sorted((source / "docs").rglob("*.md"))]
    blocks = {str(page.relative_to(source)): blocks_of(page) for page in pages}
    left = {(name, n) for name, found in blocks.items() for n in range(1, len(found) + 1)}
    output.mkdir(parents=True, exist_ok=True)
    for frame in sorted((source / "tests/integration/consumer/docs").glob("*.cc")):
        includes, body = [], []
        for line in frame.read_text().splitlines():
            place = re.fullmatch(r"\s*//@ (\S+) (\d+)", line)
            if not place:
                body.append(line)
                continue
            name, n = place[1], int(place[2])
            if n > len(blocks.get(name, [])):
                sys.exit(f"{frame.name}: {name} has no C++ block {n}")
            left.discard((name, n))
            start, text = blocks[name][n - 1]
            body.append(f'#line {start} "{source / name}"')
            for example in text:
                if example.startswith("#include"):
                    includes.append(example)
                body.append("" if example.startswith("#include") or example.lstrip().startswith("…") else example)
        (output / frame.name).write_text("\n".join([*includes, *body]) + "\n")
    for name, n in sorted(left):
        print(f"{name}:{blocks[name][n - 1][0]}: this C++ example is in no frame of "
              "tests/integration/consumer/docs, so nothing compiles it")
    sys.exit(1 if left else 0)


main()
