"""What the site has beyond the pages in docs/: node pages, shared files, equations without scripts.

Hooks of MkDocs; `mkdocs.yml` names this file.
"""

import html
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mime.reporting.node_sheet import markdown, node_sheet
from mime.scenarios.node_types import own_types
from mime.xla.cache import enable_compilation_cache

ROOT = Path(__file__).parent.parent
GUIDE = "algorithm_guide/nodes"
SHARED = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site that live beside docs/, where those who look for them expect them."""
FORMULA = r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """In the nav an entry with a * stands for all pages of that pattern, if there are any."""
    enable_compilation_cache()  # some nodes of the examples compile a program when built
    docs = Path(config.docs_dir)
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    config.nav = _expanded(config.nav, [*pages, *_generated()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page a node from its metadata, and the shared files."""
    for path, text in _generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to sources, which the site does not have, become file names."""
    above = "../" * (page.file.src_uri.count("/") + 1)
    return re.sub(rf"\[([^\]]+)\]\({re.escape(above)}([^)]+)\)", r"`\2`", text)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """LaTeX -> MathML, which browsers draw by themselves: no script, no network."""

    def draw(match: re.Match) -> str:
        return _mathml(html.unescape(match[2]), match[1] == "div", page.file.src_uri)

    content = re.sub(FORMULA, draw, content, flags=re.DOTALL)
    # Elsewhere `a\|b` in a table is a|b; here the backslash would stay.
    return re.sub(r"<code>[^<]*</code>", lambda code: code[0].replace("\\|", "|"), content)


@cache
def _generated() -> dict[str, str]:
    nodes = {f"reference/{name}.md": _node_page(name) for name in own_types()}
    shared = {page: (ROOT / file).read_text(encoding="utf-8") for page, file in SHARED.items()}
    # In the site, docs/ is where they are.
    return nodes | {page: text.replace("](docs/", "](") for page, text in shared.items()}


def _node_page(name: str) -> str:
    cls = own_types()[name]
    page = markdown(node_sheet(cls))
    stems = [path.stem for path in (ROOT / "docs" / GUIDE).glob("*.md")]
    for part in reversed(cls.__module__.split(".")):  # mime.nodes.actuation.motor.node -> motor
        for stem in stems:
            if stem.endswith(part):
                title, rest = page.split("\n", 1)
                link = f"[How it works, why, and the evidence](../{GUIDE}/{stem}.md)."
                return f"{title}\n\n{link}\n{rest}"
    return page


def _expanded(nav: list, pages: list[str]) -> list:
    """`["a.md", {"Nodes": "nodes/*.md"}]` -> `["a.md", {"Nodes": ["nodes/x.md", ...]}]`"""
    found: list = []
    for entry in nav:
        if isinstance(entry, str):
            found += _matching(entry, pages)
            continue
        ((title, inside),) = entry.items()
        if isinstance(inside, str) and "*" not in inside:
            found.append(entry)
        elif inside := _expanded([inside] if isinstance(inside, str) else inside, pages):
            found.append({title: inside})
    return found


def _matching(pattern: str, pages: list[str]) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    matching = [page for page in pages if fnmatch(page, pattern)]
    return sorted(matching, key=lambda page: (not page.endswith("/index.md"), page))


def _mathml(tex: str, block: bool, where: str) -> str:
    tex = tex.replace(r"\mathrel{+}", "{+}")
    drawn = convert(tex, display="block" if block else "inline")
    for left, right in ((r"\lceil", "⌈"), (r"\rceil", "⌉"), (r"\_", "_")):
        drawn = drawn.replace(left, right)
    if "\\" in drawn:
        raise PluginError(f"{where}: cannot draw the equation {tex.strip()}")
    return f'<div class="equation">{drawn}</div>' if block else drawn
