"""The site builds, has a page for every node and public name, and needs no network."""

import tomllib
from pathlib import Path

import pytest

import mime
from browsers import Opened, browser, wait_for
from every_node import every_node_type
from mime.scenarios.bundled import bundled_scenarios
from website.build import build
from website.check import problems
from website.formulas import FormulaError, with_mathml
from website.gallery import lines_that_make_it
from website.links import address_of
from website.navigation import NavigationError, expanded
from website.reference import public_names, undocumented

ROOT = Path(__file__).parents[2]
OF_THE_SITE = pytest.mark.soak(
    "`make docs` builds the site and looks at it; test_links.py reads the links of its sources"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site"))


@OF_THE_SITE
def test_no_link_is_dead_no_page_loads_anything_from_elsewhere_and_no_latex_is_left(site):
    assert problems(site) == []


@OF_THE_SITE
def test_the_search_finds_a_name_on_pages_that_were_opened_from_disk(site):
    results = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.textContent).join()"
    with browser() as running, Opened(running, site / "howto" / "sweep.html") as opened:
        wait_for(opened.page, "document.querySelector('math, .md-search, button') !== null")
        opened.page.keyboard.press("/")
        wait_for(opened.page, "[...document.querySelectorAll('*')].some(e => e.shadowRoot)")
        opened.page.keyboard.type("with_payload", delay=30)
        wait_for(opened.page, f"({results}).includes('KinematicTree.with_payload')")
        assert all(url.startswith("file:") for url in opened.asked)
        assert opened.said == []


@OF_THE_SITE
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


@OF_THE_SITE
def test_every_public_name_has_its_place_in_the_reference(site):
    pages = [path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html")]
    for path, thing in public_names().items():
        assert sum(f'id="{thing.name}"' in page for page in pages) == 1, path


@OF_THE_SITE
def test_reports_and_guides_are_in_the_navigation(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    for folder in ("algorithm_guide/nodes", "validation/benchmark_reports"):
        for source in (ROOT / "docs" / folder).glob("*.md"):
            address = f"{folder}/{source.stem}.html"
            section = (site / address).read_text(encoding="utf-8")
            assert f'href="{address}"' in page or f'href="{source.stem}.html"' in section


@OF_THE_SITE
def test_the_first_page_shows_every_scenario_with_the_lines_that_make_it(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    for name, file in bundled_scenarios().items():
        assert f'src="images/gallery/{name}.png"' in page
        assert f"mime run {name}" in page
        whole = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        made = tomllib.loads(lines_that_make_it(Path(file).read_text(encoding="utf-8")))
        left_out = {"title", "description", "plots", "figures_of_merit"}
        assert made == {key: value for key, value in whole.items() if key not in left_out}


@OF_THE_SITE
def test_a_how_to_leads_to_its_notebook(site):
    for source in (ROOT / "docs" / "howto").glob("*.md"):
        page = (site / "howto" / f"{source.stem}.html").read_text(encoding="utf-8")
        assert f'href="{source.stem}.ipynb"' in page
        assert (site / "howto" / f"{source.stem}.ipynb").exists()


@OF_THE_SITE
def test_mkdocs_reads_the_same_sources(site, tmp_path):
    """Of one page with a formula, a table and code; Zensical has built all of them."""
    from mkdocs.commands.build import build as build_by_mkdocs
    from mkdocs.config import load_config

    pages = [{"Motor": "algorithm_guide/nodes/motor.md"}]
    settings = load_config(str(site.parent / "mkdocs.yml"), site_dir=str(tmp_path), nav=pages)
    docs = tmp_path / "docs"
    for file in ("algorithm_guide/nodes/motor.md", "site.css", "iframe-worker.js"):
        (docs / file).parent.mkdir(parents=True, exist_ok=True)
        (docs / file).write_bytes((site.parent / "docs" / file).read_bytes())
    settings.docs_dir, settings.site_dir = str(docs), str(tmp_path / "site")
    build_by_mkdocs(settings)
    name = "algorithm_guide/nodes/motor.html"
    theirs, ours = ((folder / name).read_text("utf-8") for folder in (tmp_path / "site", site))
    for tag in ("<math", "<table", "<pre", "<h2"):
        assert theirs.count(tag) == ours.count(tag) > 0, tag


def test_every_public_name_and_method_has_a_docstring():
    assert undocumented() == []
    assert {f"mime.{name}" for name in mime.__all__} <= set(public_names())


def test_code_that_names_a_public_name_leads_to_its_reference():
    assert address_of("parse_urdf") == "api/kinematics.md#parse_urdf"
    assert address_of('parse_urdf("arm.urdf")') == "api/kinematics.md#parse_urdf"
    assert address_of("tree.with_payload(...)") == "api/kinematics.md#KinematicTree.with_payload"
    assert address_of("Simulation.run") == "api/graphs.md#Simulation.run"
    assert address_of("run_batch") == "api/graphs.md#Simulation.run_batch"
    assert address_of("mime.MotorNode") == "reference/MotorNode.md"
    assert address_of("option") is None
    assert address_of("motor.r_ohm") is None


def test_formulas_become_mathml_outside_of_code():
    drawn = with_mathml("`$x$` and $a_1 * b$\n\n```sh\necho $HOME $x$\n```\n", "page.md")
    assert drawn.startswith('`$x$` and <span class="formula"><math')
    assert drawn.endswith("\n\n```sh\necho $HOME $x$\n```\n")
    assert "<mo>&#42;</mo>" in drawn or "&#x0002A;" in drawn
    with pytest.raises(FormulaError, match=r"page\.md: cannot draw"):
        with_mathml(r"$\nosuchcommand$", "page.md")


def test_a_page_is_in_the_navigation_once():
    pages = ["a.md", "nodes/x.md", "nodes/index.md"]
    nav = expanded(["a.md", {"Nodes": "nodes/*.md"}, {"None": "none/*.md"}], pages)
    assert nav == ["a.md", {"Nodes": ["nodes/index.md", "nodes/x.md"]}]
    for wrong, words in (
        (["a.md"], "nodes/x.md is not in the nav"),
        (["a.md", "nodes/*.md", "b.md"], "b.md, which does not exist"),
        (["a.md", "nodes/*.md", "a.md"], "a.md twice"),
    ):
        with pytest.raises(NavigationError, match=words):
            expanded(wrong, pages)


def test_what_is_wrong_with_a_site_is_found(tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="there">$$ \\frac{a}{b} $$</h1>', encoding="utf-8")
    (tmp_path / "a.html").write_text(
        '<script src="https://example.org/x.js"></script><a href="b.html#there">fine</a>'
        '<a href="b.html#gone">x</a><a href="c.html">x</a><img src="no.png"><code>$$ x $$</code>',
        encoding="utf-8",
    )
    assert problems(tmp_path) == [
        "a.html: loads https://example.org/x.js from elsewhere",
        "a.html: links to b.html#gone, a page without that anchor",
        "a.html: links to c.html, which does not exist",
        "a.html: links to no.png, which does not exist",
        "b.html: shows LaTeX: '$$ \\\\frac{a}{b} $$'",
    ]
