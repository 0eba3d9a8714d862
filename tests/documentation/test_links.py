"""Links between pages: whoever reads the sources, here or on the site, gets to what they name.

The site itself, with its pages of nodes and names, is built and read by `make docs`.
"""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
MADE = ("api/", "reference/")
"""Pages that the site alone has."""
COPIES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site that are files at the top of the repository."""


@cache
def anchors(page):
    """Of each heading, as Markdown's builders and GitHub make them."""
    words = HEADING.findall(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL))
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", word)).lower() for word in words]
    return {re.sub(r"\s+", "-", word.strip()) for word in plain}


def target(page, address):
    found = (page.parent / address).resolve()
    if not found.exists() and found.parent == ROOT / "docs" and found.name in COPIES:
        return ROOT / COPIES[found.name]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_to_a_heading_in_it(page):
    for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        address, _, anchor = link.partition("#")
        if "://" in address or address.startswith(("mailto:", *MADE)):
            continue
        found = target(page, address) if address else page
        assert found.exists(), f"{link} is not there"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{link}: {sorted(anchors(found))}"
