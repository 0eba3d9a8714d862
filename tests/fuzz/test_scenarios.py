"""Spoilt scenario files: each loads, or is refused with a `ScenarioError` that a person can read.

`MIME_FUZZ` is how many: `make fuzz` tries 10,000.
"""

import copy
import json
import os
import tomllib

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mime.commands.execution import execute
from mime.reporting.summary import figures_table, wide_console
from mime.scenarios import ScenarioError, load_scenario
from mime.scenarios.bundled import bundled_scenarios
from motor_scenario import motor_scenario

pytestmark = pytest.mark.slow

HOW_MANY = int(os.environ.get("MIME_FUZZ", "60"))
LIGHT = ("motor_step", "geared_motor_voltage", "elastic_joint_resonance", "arm_3link_pd")
TEXTS = [bundled_scenarios()[name].read_text(encoding="utf-8") for name in LIGHT]
FILES = [tomllib.loads(text) for text in TEXTS]
SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def words_of(data):
    """All keys and strings of the bundled files: near misses come from real names."""
    if isinstance(data, dict):
        return {*data, *(word for value in data.values() for word in words_of(value))}
    if isinstance(data, list):
        return {word for value in data for word in words_of(value)}
    return {data} if isinstance(data, str) and len(data) < 40 else set()


WORDS = sorted(words_of(FILES))
names = st.sampled_from(WORDS) | st.text(max_size=6)
scalars = (
    st.none().map(lambda _: float("nan"))
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([0, -1, 1e-300, 1e39, 1e308, float("inf")])
    | st.sampled_from(["[/V]", "[rpm]", "$U_{12$", "$$", "\x1b[31m", "a" * 5000, "x.py:Node"])
    | names
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def places(data, path=()):
    """The path of every value in the file."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


PLACES = [list(places(data)) for data in FILES]


def toml(value):
    """A value as inline TOML."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {toml(entry)}" for key, entry in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return repr(value)


@st.composite
def spoilt_tables(draw):
    """A bundled file with one to three values replaced, removed, renamed or added."""
    index = draw(st.integers(0, len(FILES) - 1))
    data = copy.deepcopy(FILES[index])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES[index]))
        table = data
        try:
            for part in path[:-1]:
                table = table[part]
            old = table[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        what = draw(st.sampled_from(["replace", "replace", "remove", "rename", "add"]))
        if what == "replace" or not isinstance(table, dict):
            table[path[-1]] = draw(values)
        elif what == "add":
            table[draw(names)] = draw(values)
        else:
            del table[path[-1]]
            if what == "rename":
                table[draw(names)] = old
    return "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in data.items())


@st.composite
def spoilt_texts(draw):
    """A bundled file with a piece cut out and some characters put in."""
    text = draw(st.sampled_from(TEXTS))
    start = draw(st.integers(0, len(text)))
    stop = start + draw(st.integers(0, 40))
    put = draw(st.text("[]{}\"'=.,#\n \\0a9é\x00", max_size=8))
    return text[:start] + put + text[stop:]


def load(tmp_path, text):
    file = tmp_path / "spoilt.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    problems = [str(file)]
    try:
        load_scenario(file)
    except ScenarioError as error:
        problems, words = list(map(str, error.problems)), str(error)
        assert len(words) <= 2000
    assert problems
    assert all(str(file) in problem for problem in problems)


@pytest.mark.filterwarnings("ignore")
@settings(SETTINGS, max_examples=HOW_MANY // 2)
@given(text=spoilt_tables())
def test_a_spoilt_table_never_ends_in_a_traceback(tmp_path, text):
    load(tmp_path, text)


@settings(SETTINGS, max_examples=HOW_MANY // 2)
@given(text=spoilt_texts())
def test_a_spoilt_text_never_ends_in_a_traceback(tmp_path, text):
    load(tmp_path, text)


words = st.text("[]/\\{}$_^%&#<>:*`\"' \naVr1é→", min_size=1, max_size=12)


@pytest.mark.filterwarnings("ignore:Glyph")
@settings(SETTINGS, max_examples=max(2, HOW_MANY // 100), phases=[Phase.generate])
@given(title=words, plot=words, name=words, value=st.sampled_from([5.0, 0.0, 1e-300, 1e305]))
def test_any_words_and_numbers_run_to_the_end(tmp_path, title, plot, name, value):
    file = tmp_path / "words.toml"
    more = f"""
[[plots]]
title = {toml(plot)}
fields = ["rotor.current", "rotor.angle"]
[[figures_of_merit]]
name = {toml(name)}
kind = "rms"
field = "rotor.current"
"""
    constant = f'kind = "constant"\nvalue = {value}'
    text = f"title = {toml(title)}\n" + motor_scenario(voltage=constant, more=more)
    file.write_text(text, encoding="utf-8")
    outcome = execute(load_scenario(file), tmp_path / "out", "mime run", progress=False)
    assert outcome.ok
    console = wide_console()
    with console.capture() as shown:
        console.print(figures_table(outcome.figures))
    flat = "".join(shown.get().split())
    assert all("".join(line.split()) in flat for line in name.split("\n"))
