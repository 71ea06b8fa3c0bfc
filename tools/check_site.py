# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks a built site: every internal link has a target, and no page loads anything from another host.

    python3 tools/check_site.py docs/_build

It does not follow links that leave the site: `make docs LINKS=1` has Sphinx do that, if there is a network.
"""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src")}
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}
FROM_CSS = re.compile(r"""(?:@import\s+|url\(\s*)["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """A page's links, the addresses it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects the addresses and anchors of one element."""
        found = {key: value or "" for key, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        self._style = tag == "style"
        if "style" in found:
            self.loads += FROM_CSS.findall(found["style"])
        loading = tag == "link" and not LOADING_LINKS.isdisjoint(found.get("rel", "").split())
        for key, value in found.items():
            if (tag, key) in LOADED or (loading and key == "href"):
                self.loads.append(value)
            elif (tag, key) == ("a", "href"):
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        """Collects addresses that style sheets within the page load."""
        if self._style:
            self.loads += FROM_CSS.findall(data)


@cache
def read(file: Path) -> Page:
    """Parses a page; cached, because many pages link to it."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def elsewhere(address: str) -> bool:
    """Whether an address names another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) and parts.scheme in ("", "http", "https")


def wrong_link(root: Path, file: Path, address: str) -> str:
    """Describes the error of a link of a page; empty if it is right."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = file
    if parts.path:
        base = root if parts.path.startswith("/") else file.parent
        target = base / unquote(parts.path).lstrip("/")
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"there is no {parts.path}"
    anchor = unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in read(target).anchors:
        return f"there is no {anchor}" + (f" in {parts.path}" if parts.path else "")
    return ""


def main(root: Path) -> int:
    """Prints a line for each error."""
    found: dict[str, None] = {}
    pages = [file for file in sorted(root.rglob("*.html")) if file.relative_to(root).parts[0] != "rust"]
    for file in pages:
        page = read(file)
        at = file.relative_to(root)
        for address in page.loads:
            if elsewhere(address):
                found[f"{at}: {address} comes from elsewhere"] = None
            elif not address.startswith("data:") and (why := wrong_link(root, file, address)):
                found[f"{at}: {why}"] = None
        for address in page.links:
            if why := wrong_link(root, file, address):
                found[f"{at}: {why}"] = None
    for sheet in sorted(root.rglob("*.css")):
        for address in FROM_CSS.findall(sheet.read_text(encoding="utf-8", errors="replace")):
            found[f"{sheet.relative_to(root)}: {address} comes from elsewhere"] = None
    for line in found:
        print(line, file=sys.stderr)
    if not pages:
        print(f"{root}: has no pages", file=sys.stderr)
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
