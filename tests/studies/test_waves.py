"""Keys of inputs over time vary inside one batch: members are the runs of the same keys by hand."""

import jax
import numpy as np
import pytest

import mime
from mime.scenarios.waveforms import WAVEFORMS
from mime.studies.file import load_study
from mime.studies.sweep import sweep
from mime.studies.waves import of_members, telling
from motor_scenario import motor_scenario
from sizes import sized

TIMES = np.linspace(0.0, 0.02, 9)
KINDS = {
    "step": {"after": 5.0, "before": 1.0, "at": 0.004},
    "ramp": {"after": 5.0, "before": 1.0, "begin": 0.001, "end": 0.01},
    "sine": {"amplitude": 3.0, "frequency_hz": 70.0, "offset": 1.0, "phase_rad": 0.3},
    "chirp": {"amplitude": 3.0, "begin_hz": 7.0, "end_hz": 90.0, "duration": 0.007, "offset": 1.0},
    "pulse_train": {"high": 3.0, "low": -1.0, "period": 0.006, "width": 0.002, "delay": 0.001},
    "points": {"scale": 2.0},
}
FIXED = {"points": {"times": [0.0, 0.004, 0.012], "points": [0.0, 3.0, -1.0]}}
FACTORS = np.array([1.0, 0.7, 1.3])


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_waveform_is_the_members_own(kind, double):
    def table(numbers):
        return WAVEFORMS[kind](kind=kind, **FIXED.get(kind, {}), **numbers)

    base = table(KINDS[kind])
    assert all(base.takes_number(key) for key in KINDS[kind])
    numbers = {
        key: value * np.roll(FACTORS, i) for i, (key, value) in enumerate(KINDS[kind].items())
    }
    with jax.enable_x64(double):
        found = of_members(base, base.shape((2,)), numbers)
        for member in range(len(FACTORS)):
            own = {key: float(column[member]) for key, column in numbers.items()}
            expected = jax.vmap(table(own).shape((2,)))(TIMES)
            np.testing.assert_array_equal(jax.vmap(found.of(member))(TIMES), expected)
            alone = jax.vmap(of_members(base, base.shape((2,)), own))(TIMES)
            np.testing.assert_array_equal(alone, expected)


def test_words_lists_and_files_make_a_graph_of_their_own():
    sine = WAVEFORMS["sine"](kind="sine", amplitude=[1.0, 2.0], frequency_hz=1.0)
    assert sine.takes_number("amplitude")
    assert not sine.takes_number("kind")
    points = WAVEFORMS["points"](kind="points", times=[0.0, 1.0], points=[0.0, 1.0])
    assert not points.takes_number("times")
    assert not points.takes_number("points[0]")
    csv = WAVEFORMS["csv"](kind="csv", file="a.csv", column="u")
    assert not csv.takes_number("scale")


STUDY = """
scenario = "rotor.toml"
draws = {draws}
[vary]
"inputs.rotor.commanded_voltage.frequency_hz" = {{uniform = [20.0, 90.0]}}
"inputs.rotor.commanded_voltage.amplitude" = {{uniform = [1.0, 5.0]}}
"rotor.r_ohm" = {{uniform = [0.5, 2.0]}}
[keep]
fields = ["rotor.current"]
"""
SINE = 'kind = "sine"\namplitude = 3.0\nfrequency_hz = 50.0'


@pytest.fixture
def file(tmp_path):
    (tmp_path / "rotor.toml").write_text(motor_scenario(voltage=SINE))
    found = tmp_path / "study.toml"
    found.write_text(STUDY.format(draws=sized(32, small=2)))
    return found


@pytest.mark.filterwarnings("error:Explicitly requested dtype")
def test_a_study_of_a_sine_is_one_graph_and_its_members_are_runs_by_hand(file, tmp_path):
    with jax.enable_x64(False):  # as a command begins: the scenario's precision holds
        study = load_study(file)
    assert len(study.experiments) == 1
    assert study.units["inputs.rotor.commanded_voltage.frequency_hz"] == "Hz"
    assert study.units["inputs.rotor.commanded_voltage.amplitude"] == "V"
    data = sweep(study, out=tmp_path / "out", progress=False).dataset
    for member in range(study.size):
        keys = [f"{name}={float(column[member])!r}" for name, column in study.columns.items()]
        by_hand = mime.load_scenario(tmp_path / "rotor.toml", keys).run(progress=False)
        current = by_hand["rotor"]["current"]
        np.testing.assert_allclose(data["rotor.current"][member], current, rtol=1e-12, atol=1e-15)
    assert np.ptp(data["rotor.current"].values[:, -1]) > 0.1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[20.0, 90.0]", "[-90.0, -20.0]", r"frequency_hz must be > 0, got -.* for member"),
        (".amplitude", ".amplitud", r"unknown key .*amplitude"),
        ("{uniform = [1.0, 5.0]}", '["much", "more"]', "must be numbers, got 'much'"),
    ],
)
def test_a_number_that_the_waveform_does_not_take_is_told(file, old, new, words):
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(mime.ScenarioError, match=words):
        load_study(file)


def test_a_ramp_that_ends_before_it_begins_is_told_in_a_scenario_and_in_a_study(file, tmp_path):
    ramp = 'kind = "ramp"\nafter = 3.0\nbegin = 0.004\nend = 0.006'
    (tmp_path / "rotor.toml").write_text(motor_scenario(voltage=ramp))
    name = "inputs.rotor.commanded_voltage"
    with pytest.raises(mime.ScenarioError, match=r"must be > begin = 0\.004 s, got 0\.002"):
        mime.load_scenario(tmp_path / "rotor.toml", [f"{name}.end=0.002"])
    for begin in ([0.001, 0.002, 0.007], [0.001, 0.0065, 0.007]):
        vary = {f"{name}.begin": begin, f"{name}.end": [0.003, 0.006, 0.008]}
        options = {"zip": [list(vary)], "fields": ["rotor.current"], "progress": False}
        if begin[1] < 0.006:
            assert len(sweep(tmp_path / "rotor.toml", vary, **options).study.experiments) == 1
        else:
            with pytest.raises(
                mime.ScenarioError, match=r"must be > begin = 0\.0065 s, got 0\.006 for member 1"
            ):
                sweep(tmp_path / "rotor.toml", vary, **options)


def test_members_that_tell_are_at_the_ends_of_columns_sums_and_differences():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 200))
    found = telling([a, b])
    assert len(found) <= 8
    for one, other in ((1, 0), (0, 1), (1, 1), (1, -1)):
        each = one * a + other * b
        assert {int(np.argmin(each)), int(np.argmax(each))} <= set(found)
