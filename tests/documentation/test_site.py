"""The site builds without a warning, has a page for every node, and needs no network."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from every_node import every_node_type

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_every_node_has_a_page_from_its_metadata(site):
    for cls in every_node_type():
        name = cls.__name__
        page = (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        assert cls.meta.id in page
        assert page.count("<math") >= len(cls.meta.equations), name
        for parameter in cls.parameter_specs():
            assert f"<code>{parameter}</code>" in page, f"{name}.{parameter}"
        for entry in cls.meta.implementation:
            assert f"<code>{entry.function}</code>" in page, f"{name}: {entry.term}"


def test_reports_and_guides_are_in_the_navigation(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    for folder in ("algorithm_guide/nodes", "validation/benchmark_reports"):
        for source in (ROOT / "docs" / folder).glob("*.md"):
            address = f"{folder}/{source.stem}.html"
            section = (site / address).read_text(encoding="utf-8")
            assert f'href="{address}"' in page or f'href="{source.stem}.html"' in section


def test_pages_load_nothing_from_elsewhere_and_leave_no_latex(site):
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?://[^"]+', page), path
        assert "arithmatex" not in page, path
