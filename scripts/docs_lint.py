#!/usr/bin/env python3
"""Checks Markdown pages; prints one line per finding and exits with 1 if there is any.

    scripts/docs_lint.py PAGE...

A page has one H1 on its first line and a paragraph after it. Prose is at most 100 columns wide;
tables, code blocks and lines that are nothing but a link are exempt. Every table row has as many
cells as its header. Relative links and anchors lead somewhere. A part of kolo is called a module,
and how they fit together an architecture.
"""
import os
import re
import sys

WIDTH = 100
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
LINK_ALONE = re.compile(r"\s*(?:[-*] )?" + LINK.pattern + r"[.,;:]?\s*")
FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"(#+) +(.*)")
DELIMITER_ROW = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?\s*)?")
NOT_A_PARAGRAPH = re.compile(r"#|\||```|~~~|<!--|[-*] |\d+\. |>")
# "make room", "room for more" and "no room" are ordinary English.
OLD_WORDS = re.compile(r"(?<!make )(?<!makes )(?<!no )\b(rooms?(?! (?:for|to|left))|houses?)\b", re.I)


def lines_of(path):
    """Yields (number, line, is_code) for each line; fences count as code."""
    fence = None
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page.read().split("\n"), 1):
            mark = FENCE.match(line)
            is_code = fence is not None or mark is not None
            if mark and fence is None:
                fence = mark.group(1)
            elif mark and mark.group(1) == fence:
                fence = None
            yield number, line, is_code


def without_code(line):
    return re.sub(r"(`+)[^`]+?\1", "", line)


def anchors_of(path):
    """The anchors that GitHub gives to the headings of a page."""
    anchors = set()
    for _, line, is_code in lines_of(path):
        heading = None if is_code else HEADING.match(line)
        if heading:
            text = LINK.sub(lambda link: link.group(0).split("](")[0].lstrip("!["), heading.group(2))
            slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            anchor, copies = slug, 0
            while anchor in anchors:
                copies += 1
                anchor = f"{slug}-{copies}"
            anchors.add(anchor)
    return anchors


def cells(row):
    return len(re.split(r"(?<!\\)\|", row.strip().strip("|"))) if row.strip() != "|" else 0


def check_beginning(path, complain):
    content = [(number, line) for number, line, _ in lines_of(path) if line.strip()]
    if not content or not content[0][1].startswith("# "):
        complain(1, "the page does not begin with a heading '# …'")
    elif len(content) < 2 or NOT_A_PARAGRAPH.match(content[1][1]):
        complain(content[0][0], "no paragraph after the heading says what the page is for")
    titles = [n for n, line, is_code in lines_of(path) if not is_code and line.startswith("# ")]
    for number in titles[1:]:
        complain(number, "a second heading of the first level")


def check_link(path, target, complain, number):
    if re.match(r"[a-z]+:", target):
        return
    name, _, anchor = target.partition("#")
    page = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(page):
        complain(number, f"the link to {target} leads nowhere")
    elif anchor and page.endswith(".md") and anchor not in anchors_of(page):
        complain(number, f"{os.path.basename(page)} has no heading for the anchor #{anchor}")


def check_prose(path, complain):
    header = previous = None  # cells of the table that the line is in; the line before
    for number, line, is_code in lines_of(path):
        if is_code:
            header = previous = None
            continue
        if line.startswith("|"):
            if DELIMITER_ROW.fullmatch(line) and header is None and previous is not None:
                header = cells(previous)
            if header is not None and cells(line) != header:
                complain(number, f"{cells(line)} cells in a table of {header} columns (write \\| for a bar)")
            previous = line
        else:
            if previous is not None and header is None:
                complain(number - 1, "a table without the row |---| below its header")
            header = previous = None
            if len(line) > WIDTH and not LINK_ALONE.fullmatch(line):
                complain(number, f"{len(line)} columns, {WIDTH} are allowed")
        words = without_code(line)
        for link in LINK.finditer(words):
            check_link(path, link.group(1), complain, number)
        for word in OLD_WORDS.finditer(LINK.sub("", line)):
            complain(number, f"'{word.group(1)}': write module, or architecture")


def main(paths):
    findings = 0
    for path in paths:

        def complain(number, text):
            nonlocal findings
            findings += 1
            print(f"{path}:{number}: {text}")

        check_beginning(path, complain)
        check_prose(path, complain)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
