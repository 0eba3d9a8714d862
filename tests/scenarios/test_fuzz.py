"""A thousand spoilt scenario files: each loads, or is refused with a `ScenarioError`."""

import copy
import json
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mime.scenarios import ScenarioError, load_scenario
from mime.scenarios.bundled import bundled_scenarios

pytestmark = pytest.mark.slow

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
    | st.sampled_from([0, -1, 1e-300, 1e300, float("inf")])
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
        problems = list(map(str, error.problems))
    assert problems
    assert all(str(file) in problem for problem in problems)


@pytest.mark.filterwarnings("ignore")
@settings(SETTINGS, max_examples=500)
@given(text=spoilt_tables())
def test_a_spoilt_table_never_ends_in_a_traceback(tmp_path, text):
    load(tmp_path, text)


@settings(SETTINGS, max_examples=500)
@given(text=spoilt_texts())
def test_a_spoilt_text_never_ends_in_a_traceback(tmp_path, text):
    load(tmp_path, text)
