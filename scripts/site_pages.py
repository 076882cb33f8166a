#!/usr/bin/env python3
"""What scripts/docs needs around mkdocs.

    site_pages.py sources DIR     copies the pages of docs/ to DIR. Links that leave docs/ lead to copies
                                  of those files, or to the C++ reference for the public headers.
    site_pages.py check SITE      every relative link of the finished pages leads to a file and, where it
                                  names one, to an anchor in it
"""
import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
PAGES_OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md")  # they become pages, too


def sources(output):
    docs = pathlib.Path("docs")
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(docs, output)
    (output / "README.md").rename(output / "index.md")
    for page in PAGES_OUTSIDE:
        shutil.copy(page, output / page)
    for page in sorted(output.rglob("*.md")):
        at = page.relative_to(output)
        origin = pathlib.Path(".") if str(at) in PAGES_OUTSIDE else docs / at.parent

        def moved(match):
            target = match[2]
            if "://" in target or target.startswith("mailto:"):
                return match[0]
            path = pathlib.Path(os.path.normpath(origin / target))
            up = os.path.relpath(".", at.parent)
            if path == docs / "README.md":
                return f"{match[1]}{up}/index.md{match[3]}"
            if path.parts[:1] == ("docs",):
                return f"{match[1]}{up}/{path.relative_to(docs)}{match[3]}"
            if str(path) in PAGES_OUTSIDE:
                return f"{match[1]}{up}/{path}{match[3]}"
            if path.parts[:2] == ("include", "kolo"):
                return f"{match[1]}{up}/reference/index.html)"
            copy = output / "source" / f"{path}.txt"
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                copy.write_text("".join(f"{path}/{name}\n" for name in sorted(os.listdir(path))))
            else:
                shutil.copy(path, copy)
            return f"{match[1]}{up}/source/{path}.txt)"

        text = page.read_text()
        page.write_text("".join(part if i % 2 else LINK.sub(moved, part)
                                for i, part in enumerate(re.split(r"(```.*?```)", text, flags=re.S))))


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {"top"}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        link = values.get("href" if tag in ("a", "link") else "src")
        if link:
            self.links.append(link)


def check(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if "reference" not in path.parts}
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are those of the root, wherever it is shown
            continue
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(url.path))) if url.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(url.fragment)
            if not target.exists():
                broken.append(f"{path}: {link} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{path}: {link}: no such anchor")
    print("".join(f"{line}\n" for line in broken), end="")
    sys.exit(1 if broken else 0)


{"sources": sources, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
