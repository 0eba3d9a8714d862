"""What is wrong with a site that was built: dead links, lost anchors, foreign hosts, LaTeX left.

It reads the pages that a reader gets, so it holds for every builder.
"""

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""What a browser fetches with the page."""
DRAWN = re.compile(r"<(pre|math|svg)\b.*?</\1>", re.DOTALL)
"""Code and drawings: many tags, and no links."""
LATEX = re.compile(r"(?<![\w$])\$\$|\\(?:frac|dot|tfrac|omega|theta|begin)\b")


def problems(site: Path) -> list[str]:
    """One line per problem, of all pages."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    files = {path for path in site.rglob("*") if path.is_file()}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # it knows no folder that it stands in
            continue
        name = path.relative_to(site).as_posix()
        found += [f"{name}: {words}" for words in _of_page(path, page, pages, files)]
    return found


def _of_page(
    path: Path, page: "_Page", pages: dict[Path, "_Page"], files: set[Path]
) -> Iterator[str]:
    for address in page.loaded:
        if urlsplit(address).netloc:
            yield f"loads {address} from elsewhere"
    for address in page.linked:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
        if target not in files:
            yield f"links to {address}, which does not exist"
        elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"links to {address}, a page without that anchor"
    if match := LATEX.search(page.prose):
        start = max(0, match.start() - 30)
        yield f"shows LaTeX: {page.prose[start : match.end() + 30]!r}"


class _Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = {"", "__skip"}
        self.prose = ""
        self._quoting = 0
        self.feed(DRAWN.sub("", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in LOADED and LOADED[tag] in given and given.get("rel") != "canonical":
            self.loaded.append(given[LOADED[tag]])
        self.linked += [given[name] for name in ("href", "src") if given.get(name)]
        self._quoting += tag in ("code", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._quoting -= tag in ("code", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._quoting:
            self.prose += data
