"""Checks the built site: every link to a page, an image or an anchor of it has a target.

python docs/site/check_links.py FOLDER
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The crates' documentation is checked by rustdoc.
CRATES = "rust-api"


class Page(HTMLParser):
    """The anchors of a page, and what it links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def broken(site: Path) -> list[str]:
    """The links that lead nowhere, each with its page."""
    skipped = {CRATES, "_static"}
    files = [f for f in sorted(site.rglob("*.html")) if not skipped & {*f.relative_to(site).parts}]
    pages = {f.resolve(): Page(f.read_text()) for f in files}
    found = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            anchors = pages[target].anchors if target in pages else None
            if not target.is_file() or (
                anchors is not None and unquote(parts.fragment) not in anchors
            ):
                found.append(f"{file.relative_to(site.resolve())}: {link}")
    if len(pages) < 20:
        found.append(f"{site} has {len(pages)} pages: this is not the whole site")
    return sorted(set(found))


def main(arguments: list[str]) -> int:
    """Prints the broken links."""
    if len(arguments) != 1:
        print("usage: python docs/site/check_links.py FOLDER")
        return 2
    found = broken(Path(arguments[0]))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
