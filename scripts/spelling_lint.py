#!/usr/bin/env python3
"""Looks for misspelled words in the prose of Markdown pages; prints one line per finding and exits with 1 if there is any.

    scripts/spelling_lint.py PAGE...

A word is right if hunspell knows it in American or British English, or if scripts/words.txt has it. Code, links, names
with digits and names in CamelCase or capitals are left out.
"""
import pathlib
import re
import subprocess
import sys

from docs_lint import lines_of, without_code

WORD = re.compile(r"(?<![\w.’'-])[A-Z]?[a-zäöüé]{2,}(?:'s)?(?![\w]|\.\w)")
ADDRESS = re.compile(r"\]\([^)]*\)|<[^>]*>|\b[a-z]+://\S+")


def words_of(page):
    """Yields (number of the line, word)."""
    for number, line, is_code in lines_of(page):
        if not is_code:
            for word in WORD.findall(ADDRESS.sub(" ", without_code(line))):
                yield number, word.removesuffix("'s")


def unknown_of(words):
    """Those that hunspell does not know."""
    done = subprocess.run(["hunspell", "-i", "utf-8", "-d", "en_US,en_GB", "-l"], input="\n".join(sorted(words)),
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"spelling_lint: hunspell failed: {done.stderr.strip()}")
    return set(done.stdout.split("\n"))


def main(pages):
    found = {page: list(words_of(page)) for page in pages}
    kept = {word.lower() for word in (pathlib.Path(__file__).parent / "words.txt").read_text("utf-8").split()}
    words = {word for of_page in found.values() for _, word in of_page if word.lower() not in kept}
    unknown = unknown_of(words)
    findings = [(page, number, word) for page, of_page in found.items() for number, word in of_page if word in unknown]
    for page, number, word in findings:
        print(f"{page}:{number}: '{word}' is misspelled, or belongs into scripts/words.txt")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
