#!/usr/bin/env python3
"""The documentation as a site in target/site/book, with mdBook.

    packaging/site.py FOLDER        called by `make site`, with target/site

Pages are those of docs/SUMMARY.md, under their paths in the repository, so that their links hold. A link to a file that is
no page (a source, a test) becomes its text, or leads to the repository that Cargo.toml names, if it names one. At the end each
link of the site is followed, headings included; a broken one is printed, and the exit code is 1. The folder is emptied first,
unless it has files and no book.toml of a site that this script made: then the exit code is 2.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = Path("docs/SUMMARY.md")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
BOOK = """[book]
title = "forerun"
src = "src"
language = "en"

# A preprocessor would rename README.md, to which pages link.
[build]
use-default-preprocessors = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
smart-punctuation = false
no-section-label = true
additional-css = ["site.css"]

# The playground has no crate of ours.
[output.html.playground]
runnable = false
"""
# Lines of 100 columns in a fence fit a desk. On a phone tables are set closer, and pictures keep a size at which their text is read:
# what is wider scrolls by itself. Links of the dark theme have the contrast of 4.5 that WCAG asks for.
STYLE = """:root { --content-max-width: 860px; }
.navy { --links: #62b0d9; --sidebar-active: #62b0d9; }
main p:has(> img), main .checkbox-label { overflow-x: auto; }
@media (max-width: 600px) {
  main p > img, main .checkbox-label > img { min-width: 640px; max-width: none; }
  main table td, main table th { padding: 3px 8px !important; }
}
"""


def at(page, target):
    """The path in the repository to which a link of a page leads."""
    return Path(os.path.normpath(page.parent / target))


def copied(page, pages, repository):
    """The text of a page, with links to files that are no pages taken out."""

    def link(found):
        text, whole = found.groups()
        target = whole.split("#")[0]
        if not target or "://" in target:
            return found[0]
        path = at(page, target)
        if path in pages or path.suffix in (".svg", ".png"):
            return found[0]
        return f"[{text}]({repository}/blob/main/{path})" if repository else text

    return LINK.sub(link, (ROOT / page).read_text())


class Links(HTMLParser):
    """Links and names of a page."""

    def __init__(self):
        super().__init__()
        self.links, self.names = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id":
                self.names.add(value)


def broken(book):
    """Links that lead nowhere, and how many there are in all."""
    pages = {}
    for path in book.rglob("*.html"):
        pages[path.resolve()] = links = Links()
        links.feed(path.read_text())
    found, count = [], 0
    for path, page in pages.items():
        # These two are not read under their own addresses.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            count += 1
            target, _, name = link.partition("#")
            goal = (path.parent / unquote(target)).resolve() if target else path
            if not goal.exists():
                found.append(f"{path.relative_to(book)}: {link}")
            elif name and goal in pages and unquote(name) not in pages[goal].names:
                found.append(f"{path.relative_to(book)}: {link}: no such heading")
    return found, count


def foreign(folder):
    """Whether a folder has files of others."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        return True
    book = folder / "book.toml"
    is_ours = book.is_file() and book.read_text(errors="replace").startswith(BOOK[:BOOK.index("src")])
    return any(folder.iterdir()) and not is_ours


def main(folder):
    folder = Path(folder).resolve()
    if foreign(folder):
        print(f"{folder}: has files of others: give an empty folder, or one that has a site", file=sys.stderr)
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    repository = package.get("repository", "").rstrip("/")
    more = f'git-repository-url = "{repository}"\n' if repository else ""
    # First, for by it the folder is ours: a site that was not finished is made again.
    (folder / "book.toml").write_text(BOOK + more)
    source = folder / "src"
    summary = (ROOT / SUMMARY).read_text()
    pages = {at(SUMMARY, target) for _, target in LINK.findall(summary)}
    for page in pages:
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / page).write_text(copied(page, pages, repository))
    for picture in (ROOT / "docs").glob("*.svg"):
        shutil.copy(picture, source / "docs")
    (source / "SUMMARY.md").write_text(
        LINK.sub(lambda found: f"[{found[1]}]({at(SUMMARY, found[2])})", summary)
    )
    (folder / "site.css").write_text(STYLE)
    subprocess.run(["mdbook", "build", str(folder)], check=True)
    found, count = broken((folder / "book").resolve())
    print("\n".join(found + [f"{len(pages)} pages, {count} links, {len(found)} broken"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
