"""Whoever adds a node: it is listed, public, has its page, and its metadata is whole."""

import re
import runpy
from pathlib import Path

import mime
from elements import Rotor
from every_node import every_node_type
from mime import Effect, Scalar, effect, option, parameter
from mime.reporting.node_sheet import example_node, markdown, node_sheet
from mime.scenarios.node_types import own_types

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "algorithm_guide" / "nodes"


def _text(path):
    return path.read_text(encoding="utf-8")


def test_the_registry_knows_every_node():
    assert list(own_types().values()) == every_node_type()


def test_every_node_is_a_public_name():
    assert [cls for cls in every_node_type() if getattr(mime, cls.__name__, None) is not cls] == []


def test_every_node_has_a_guide():
    guides = "\n".join(page.read_text(encoding="utf-8") for page in GUIDES.glob("*.md"))
    assert [cls for cls in every_node_type() if cls.meta.id not in guides] == []


def test_every_guide_ends_with_what_its_nodes_declare():
    renewed = runpy.run_path(str(ROOT / "tools" / "guide_pages.py"))["renewed"]
    old = [page.name for page in GUIDES.glob("*.md") if renewed(text := _text(page)) != text]
    assert old == [], "write them anew: python tools/guide_pages.py"


def test_every_node_cites_the_bibliography_and_its_changelog_ends_with_its_version():
    known = re.findall(r"^@\w+\{(\w+),", _text(ROOT / "docs" / "bibliography.bib"), re.MULTILINE)
    assert len(set(known)) == len(known)
    for cls in every_node_type():
        cited = re.findall(r"\[@(\w+)\]", " ".join(cls.meta.references))
        assert cited, cls
        assert set(cited) <= set(known), cls
        assert cls.meta.changelog[-1][0] == cls.meta.version, cls
        assert f"version {cls.meta.version}" in markdown(node_sheet(cls))


def test_a_sheet_says_how_a_node_was_verified_and_where_it_works():
    page = markdown(node_sheet(Rotor))
    assert "Verification: Mode 2 (independent)" in page
    assert "Operating context: External apparatus in the laboratory" in page


def test_every_node_agrees_with_its_metadata():
    examples = {cls.__name__: example_node(cls)[0] for cls in every_node_type()}
    found = {
        name: node.validate_mime_consistency() if node else ["no scenario builds one"]
        for name, node in examples.items()
    }
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_a_sheet_says_which_function_computes_which_term():
    for cls in every_node_type():
        page = markdown(node_sheet(cls))
        for entry in cls.meta.implementation:
            assert f"| `{entry.term}` | `{entry.function}` |" in page, cls


class Brake(Effect):
    """tau = -t"""

    torque_n_m: Scalar = parameter("N·m", above=0.0, doc="t")


class Braked(Rotor):
    """A rotor with a brake."""

    brake: Brake | None = effect(Brake, doc="a brake on the shaft")
    side: str = option(default="left", choices=("left", "right"))


def test_a_sheet_shows_effects_with_their_parameters_and_choices_of_options():
    page = markdown(node_sheet(Braked))
    assert "| `brake` |  | none |  | a brake on the shaft |" in page
    assert "| `side` |  | left | left, right |  |" in page
    assert "## Brake: brake" in page
    assert "| `torque_n_m` | N·m | required | \\> 0 | t |" in page
