"""All pages of the site as Markdown without anything of MIME's own in it, and their settings."""

import html
import re
import shutil
from pathlib import Path

import yaml

from website.formulas import with_mathml
from website.gallery import MARK, gallery
from website.links import with_references
from website.navigation import expanded
from website.nodes import node_pages
from website.notebooks import notebook
from website.reference import reference_pages
from website.text import CODE, replaced, replaced_in_prose

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOWTOS = DOCS / "howto"
REPLAYS = ROOT / "build" / "replays"
"""Replays of the bundled scenarios, where they were made (`make docs` does)."""
SETTINGS = "site.yml"
SHARED = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site that live beside docs/, where those who look for them expect them."""


def write(folder: Path) -> Path:
    """Write the sources of the site into `folder`; gives the file of its settings."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = folder / "docs"
    pages = {path: plain(with_references(text, path), path) for path, text in all_pages().items()}
    for path, text in pages.items():
        _write(docs / path, text)
    for file in DOCS.rglob("*"):
        if file.is_file() and file.suffix != ".md" and file.name != SETTINGS:
            _copy(file, docs / file.relative_to(DOCS))
    for file in REPLAYS.glob("*.html"):
        _copy(file, docs / "replays" / file.name)
    for file in HOWTOS.glob("*.md"):
        _write(docs / "howto" / f"{file.stem}.ipynb", notebook(_read(file)))
    settings = yaml.safe_load((DOCS / SETTINGS).read_text(encoding="utf-8"))
    settings["nav"] = expanded(settings["nav"], pages)
    file = folder / "mkdocs.yml"
    _write(file, yaml.safe_dump(settings, allow_unicode=True, sort_keys=False))
    return file


def all_pages() -> dict[str, str]:
    """The pages by path: those in docs/, those beside it, and those that are made."""
    own = {path.relative_to(DOCS).as_posix(): _read(path) for path in sorted(DOCS.rglob("*.md"))}
    # In the site, docs/ is where they are.
    shared = {page: _read(ROOT / file).replace("](docs/", "](") for page, file in SHARED.items()}
    own["index.md"] = own["index.md"].replace(MARK, gallery(REPLAYS))
    for path in HOWTOS.glob("*.md"):
        title, rest = own[page := f"howto/{path.name}"].split("\n", 1)
        own[page] = f"{title}\n\n[This page as a notebook]({path.stem}.ipynb)\n{rest}"
    return own | shared | node_pages() | reference_pages()


def plain(text: str, path: str) -> str:
    """A page that needs no extension of ours: formulas drawn, no link to a file beyond docs/."""
    above = "../" * (path.count("/") + 1)
    text = re.sub(rf"\[([^\]]+)\]\({re.escape(above)}([^)]+)\)", r"`\2`", text)
    text = replaced(
        with_mathml(text, path), r"\\<", lambda _: "&lt;"
    )  # builders keep the backslash
    return _with_bars(text)


def _with_bars(text: str) -> str:
    r"""On GitHub `a\|b` in a table is a|b; in a site the backslash would stay."""

    def spelt(match: re.Match) -> str:
        if "\\|" not in match["code"]:
            return match[0]
        code = html.escape(match["code"], quote=False).replace("\\|", "&#124;")
        return f"<code>{code}</code>"

    return replaced_in_prose(text, CODE, spelt)


def _copy(file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
