"""The page of a study: its numbers against others' code, and what a browser makes of them."""

import csv
import io
import shlex

import numpy as np
import pytest
import xarray
from scipy import stats

import mime
from browsers import Opened, browser, wait_for
from mime.running.trajectory import Divergence
from mime.scenarios.scenario import load_scenario
from mime.studies.file import load_study
from mime.studies.report.extremes import extremes
from mime.studies.report.front import front, fronts
from mime.studies.report.heat import all_cells, maps
from mime.studies.report.page import write_report
from mime.studies.report.selection import select
from mime.studies.report.slopes import slopes
from mime.studies.report.table import table_of
from mime.studies.result import StudyResult
from mime.studies.sweep import sweep
from motor_studies import write_study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rotors(tmp_path_factory):
    """A study of forty motors in a store, and its report."""
    folder = tmp_path_factory.mktemp("rotors")
    result = sweep(load_study(write_study(folder)), out=folder / "out", progress=False)
    result.report(folder / "out" / "report.html")
    return folder / "out", result


def made_up(size, seed=0, diverged=()):
    """A result without a run: two figures of four parameters, words and a logarithm among them."""
    random = np.random.default_rng(seed)
    a, b = random.uniform(1, 3, size), 10 ** random.uniform(-3, 1, size)
    c, words = random.integers(0, 5, size) * 0.5, random.choice(["lead", "zinc", "a,b"], size)
    cost = a * (1 + 0.1 * np.log10(b)) + random.normal(0, 0.1, size)
    time = np.where(b > 8, np.nan, 1 / a + 0.1 * c + random.exponential(0.2, size))
    for member in diverged:
        cost[member] = time[member] = np.nan
    coordinates = {
        "a": ("member", a, {"units": "m"}),
        "b": ("member", b, {"units": "Ω", "scale": "log"}),
        "c": ("member", c, {"units": "1"}),
        "metal": ("member", words, {"units": "1"}),
    }
    figures = {"cost": ("member", cost, {"units": "A"}), "time": ("member", time, {"units": "s"})}
    search = (
        '{"objectives": [{"figure": "time", "direction": "minimise"}], "best": 3, "front": [3],'
    )
    search += '"constraints": [{"figure": "cost", "sense": "<=", "bound": 2.5}]}'
    about = {"title": "Made up", "source": "nothing", "versions": "{}", "optimise": search}
    data = xarray.Dataset(figures, coordinates, about)
    failed = {member: Divergence("motor", "angle", 0.1) for member in diverged}
    return StudyResult("Made <up>", data, size, 0, failed)


def beaten(x, y):
    """(member,) whether another one is as good in both and better in one; by all pairs."""
    no_worse = (x[None] <= x[:, None]) & (y[None] <= y[:, None])
    return (no_worse & ((x[None] < x[:, None]) | (y[None] < y[:, None]))).any(axis=1)


def test_a_front_is_what_no_pair_contradicts():
    random = np.random.default_rng(2)
    for x, y in (random.normal(size=(2, 300)), random.integers(0, 6, (2, 300)).astype(float)):
        np.testing.assert_array_equal(front(x, y), ~beaten(x, y))
    x[:50] = np.nan
    assert not front(x, y)[:50].any()


def test_heat_maps_are_those_of_scipy():
    table = table_of(made_up(3000))
    cells = all_cells(table, True)
    found = {(m.x, m.y): m for m in maps(table, cells)}
    assert len(found) == 6
    a, b, cost = (next(c for c in table.columns if c.name == n) for n in ("a", "b", "time"))
    there = ~np.isnan(cost.values)
    edges = [np.array(cells[n].edges) for n in ("b", "a")]
    np.testing.assert_allclose(np.diff(np.log(edges[0])), np.log(edges[0][-1] / edges[0][0]) / 20)
    for place, kind in enumerate(("mean", "min", "max")):
        theirs = stats.binned_statistic_2d(
            b.values[there], a.values[there], cost.values[there], kind, edges
        ).statistic
        theirs = np.where(np.isfinite(theirs), theirs, np.nan)
        ours = found["a", "b"].figures["time"][place]
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)  # sums in another order
    counts = np.histogram2d(b.values, a.values, edges)[0]
    np.testing.assert_array_equal(found["a", "b"].members, counts)


def test_a_page_of_many_holds_ends_and_fronts_and_says_so():
    table = table_of(made_up(30_000, diverged=(5, 29_000)))
    chosen = select(table, [17])
    assert len(chosen.members) == 10_000
    assert "10,000 of 30,000" in chosen.words
    inside = np.zeros(30_000, bool)
    inside[chosen.members] = True
    assert inside[[5, 17, 29_000]].all()
    assert inside[fronts(table)].all()
    x, y = (next(c.values for c in table.columns if c.name == n) for n in ("cost", "time"))
    kept = np.where(table.outside, np.nan, x)
    assert 0.1 < table.outside.mean() < 0.9
    for sx, sy in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        assert inside[front(sx * kept, sy * y)].all()
        assert inside[[np.nanargmin(sx * x), np.nanargmin(sy * y)]].all()
    assert select(table_of(made_up(100))).words == ""


def test_the_csv_has_all_members_to_the_last_bit(rotors):
    folder, result = rotors
    rows = list(csv.DictReader((folder / "members.csv").open(encoding="utf-8", newline="")))
    assert len(rows) == 40
    assert list(rows[0])[:3] == ["member", "address", "rotor.r_ohm [Ω]"]
    for name, heading in (
        ("rotor.r_ohm", "rotor.r_ohm [Ω]"),
        ("median speed", "median speed [rad/s]"),
    ):
        read = [float(row[heading]) for row in rows]
        np.testing.assert_array_equal(read, result.dataset[name].values)
    addresses = [bytes.fromhex(row["address"]) for row in rows]
    assert addresses == [row.tobytes() for row in result.study.addresses]
    opened = mime.open_study(folder)
    np.testing.assert_array_equal(opened.addresses, result.study.addresses)


def test_slopes_are_those_of_neighbouring_members(rotors):
    _, result = rotors
    table, study = table_of(result), result.study
    ends = extremes(table)
    found = slopes(study, ends)
    step = 1e-5
    for end in ends:
        point = {name: column[end.best] for name, column in study.columns.items()}
        rows = {row["name"]: row for row in found[end.figure.name].rows}
        assert found[end.figure.name].member == end.best
        for name, x in point.items():
            pair = {n: np.array([v, v]) for n, v in point.items()}
            pair[name] = x * np.array([1 - step, 1 + step])
            values = sweep(study.with_columns(pair), progress=False).dataset[end.figure.name].values
            slope = (values[1] - values[0]) / (2 * step * x)
            # Third derivatives times step², and rounding over step: both near 1e-10.
            np.testing.assert_allclose(rows[name]["slope"], slope, rtol=1e-7)
            elasticity = slope * x / end.figure.values[end.best]
            np.testing.assert_allclose(rows[name]["elasticity"], elasticity, rtol=1e-7)


def test_the_ends_of_figures_run_again_with_the_same_bits(rotors):
    folder, result = rotors
    ends = {m for e in extremes(table_of(result)) for m in (e.best, e.worst)}
    assert {f.name for f in (folder / "replays").iterdir()} == {f"member_{m}.html" for m in ends}
    assert "all figures have the bits of the store" in (folder / "report.html").read_text()
    run = result.study.run(7)
    every = run["rotor"]["current"][24::25]
    np.testing.assert_array_equal(every, result.dataset["rotor.current"].values[7])
    with pytest.raises(mime.InputError, match="member"):
        result.study.run(40)


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


def opened(chromium, file, **options):
    page = Opened(chromium, file, **options)
    wait_for(page.page, "window.mimeStudy !== undefined && mimeStudy.parallel.done")
    return page


@pytest.fixture(scope="module")
def large(tmp_path_factory, chromium):
    """A page of 12,000 members, of which it holds 10,000."""
    result = made_up(12_000, diverged=(11,))
    file = write_report(result, tmp_path_factory.mktemp("large") / "page.html")
    with opened(chromium, file) as page:
        yield table_of(result), page
        assert page.said == []
        assert page.asked == [page.url]


def column(table, name):
    return next(c.values for c in table.columns if c.name == name)


def test_a_brush_selects_members_everywhere(large):
    table, opened = large
    page = opened.page
    assert "10,000 of 12,000 members are shown" in page.inner_text("header")
    assert "Diverged, without figures: 1 of 12,000" in page.inner_text("header")
    handle = page.locator(".handle").nth(0).bounding_box()
    x, top = handle["x"] + 16, handle["y"] + 10
    page.mouse.move(x, top + 100)
    page.mouse.down()
    page.mouse.move(x, top + 150)
    page.mouse.move(x, top + 200)
    page.mouse.up()
    wait_for(page, "mimeStudy.parallel.done && !mimeStudy.members.waiting")
    low, high = page.evaluate("mimeStudy.members.brushes.get(0)")
    a = column(table, "a")
    np.testing.assert_allclose([low, high], a.min() + np.ptp(a) * np.array([1, 2]) / 3, atol=0.02)
    shown = np.array(page.evaluate("Array.from(mimeStudy.members.number)"))
    expected = np.count_nonzero((a[shown] >= low) & (a[shown] <= high))
    assert page.inner_text("#count") == f"{expected:,} of 10,000 members selected"
    assert f"of {expected:,}" in page.inner_text("#members output")
    page.locator(".handle").nth(3).focus()
    page.keyboard.press("ArrowUp")  # the upper half of the words
    words = np.array(["lead", "zinc", "a,b"])
    wait_for(page, "mimeStudy.members.brushes.size === 2 && !mimeStudy.members.waiting")
    text = page.evaluate("mimeStudy.table.csv()")
    rows = list(csv.DictReader(io.StringIO(text)))
    metal = column(table, "metal").astype(int)
    chosen = [int(row["member"]) for row in rows]
    names = table_of(made_up(12_000)).parameters[3].words
    inside = (a[shown] >= low) & (a[shown] <= high) & (metal[shown] >= 1)
    assert set(chosen) == set(shown[inside].tolist())
    np.testing.assert_array_equal([float(row["a [m]"]) for row in rows], a[chosen])
    assert {row["metal"] for row in rows} == set(names[1:])
    assert set(names) == set(words)
    page.keyboard.press("Escape")
    page.click("#clear")
    wait_for(page, "mimeStudy.members.passing === 10000 && !mimeStudy.members.waiting")


def test_heat_maps_of_an_unbrushed_page_are_of_all_members(large):
    table, opened = large
    page, cells = opened.page, all_cells(table, True)
    found = {(m.x, m.y): m for m in maps(table, cells)}
    page.locator("#heat select").nth(0).select_option("1")  # b across, a up: the other way round
    page.locator("#heat select").nth(1).select_option("0")
    for place, kind in enumerate(("mean", "min", "max")):
        page.locator("#heat select").nth(3).select_option(kind)
        values = page.evaluate("Array.from(mimeStudy.heat.values().found)")
        ours = np.array(values, float).reshape(found["a", "b"].members.shape[::-1])
        theirs = found["a", "b"].figures["time"][place].T.astype(np.float32)
        np.testing.assert_array_equal(ours, theirs)
    page.evaluate("mimeStudy.members.brush(4, [-Infinity, Infinity])")  # all that have a value
    shown = np.array(page.evaluate("Array.from(mimeStudy.members.number)"))
    values = np.array(page.evaluate("Array.from(mimeStudy.heat.values().found)"), float)
    a, b, time = (column(table, name)[shown] for name in ("a", "b", "time"))
    there = ~np.isnan(time)
    edges = [np.array(cells[n].edges) for n in ("a", "b")]
    theirs = stats.binned_statistic_2d(a[there], b[there], time[there], "max", edges).statistic
    np.testing.assert_array_equal(values, np.where(np.isfinite(theirs), theirs, np.nan).ravel())
    page.evaluate("mimeStudy.members.clear()")


def test_a_scatter_has_the_front_and_a_click_the_member(large):
    table, opened = large
    page = opened.page
    assert page.evaluate("[mimeStudy.scatter.x.value, mimeStudy.scatter.y.value]") == ["5", "4"]
    page.locator("#scatter select").nth(3).select_option("maximise")
    rows = page.evaluate("mimeStudy.scatter.front.map((row) => mimeStudy.members.number[row])")
    time, cost = column(table, "time"), column(table, "cost")
    kept = np.where(cost <= 2.5, time, np.nan)  # who breaks a limit is on no front
    assert set(rows) == set(np.flatnonzero(front(kept, -cost)).tolist())
    page.locator("#scatter svg").focus()
    page.keyboard.press("ArrowRight")
    wait_for(page, "mimeStudy.members.picked >= 0 && !mimeStudy.members.waiting")
    words = page.inner_text("#member")
    assert f"Member {rows[0]}" in words
    assert "result.study.run(" in words
    assert f"{time[rows[0]]:.4f}"[:5] in words
    box = page.locator("#scatter svg").bounding_box()
    spot = page.evaluate("mimeStudy.scatter.at(mimeStudy.scatter.front.at(-1))")
    page.mouse.click(box["x"] + spot[0], box["y"] + spot[1])
    wait_for(page, f"!document.querySelector('#member h3').textContent.endsWith(' {rows[0]}')")
    place = page.evaluate("mimeStudy.scatter.at(mimeStudy.members.picked)")
    np.testing.assert_allclose(place, spot, atol=1.0)  # a pixel: another one may lie beside it


def test_a_page_of_a_scenario_says_how_to_run_a_member(rotors, chromium):
    folder, result = rotors
    with opened(chromium, folder / "report.html", dark=True, size=(400, 800)) as page:
        assert page.page.evaluate("document.documentElement.scrollWidth") == 400
        page.page.locator("#members tbody button").nth(4).click()
        wait_for(page.page, "document.querySelector('#member pre') !== null")
        words = shlex.split(page.page.inner_text("#member pre"))
        assert words[:2] == ["mime", "run"]
        assert result.study.addresses[4].tobytes().hex() in (page.page.inner_text("#member"))
        scenario = load_scenario(words[2], words[4::2])
        figures = {figure.name: figure.value for figure in scenario.figures(scenario.run())}
        for name, value in figures.items():  # a run is a batch of one, to rounding
            np.testing.assert_allclose(value, result.dataset[name].values[4], rtol=1e-12)
        assert page.page.locator("#heat .bar").inner_text().count("A") == 2  # units at both ends
        assert page.said == []
        assert page.asked == [page.url]


def test_studies_of_one_member_or_of_diverged_ones_have_a_page(tmp_path, chromium):
    for result in (made_up(1), made_up(3, diverged=(0, 1, 2))):
        data = result.dataset.drop_vars(["b", "c", "metal"])
        for each in (result, StudyResult("One", data, 1, 0, result.diverged)):
            with opened(chromium, write_report(each, tmp_path / "page.html")) as page:
                assert page.said == []
                assert (
                    page.page.locator("#members tbody tr").count() == each.dataset.sizes["member"]
                )
