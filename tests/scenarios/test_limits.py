"""Files larger than can be meant are refused with the number; precision holds on every road."""

import jax
import numpy as np
import pytest

from mime.scenarios import ScenarioError, load_scenario
from mime.scenarios.bundled import bundled_scenarios
from motor_scenario import motor_scenario

MOTOR = motor_scenario()
NODE = '[nodes.n{}]\ntype = "MotorNode"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# " + "x" * 2**20, "1,048,578 bytes: not a scenario, which has at most 1,048,576"),
        ("".join(f"k{i} = 1\n" for i in range(20_000)), "20,000 keys: not a scenario"),
        (f"x = [{'1, ' * 200_001}]", "200,001 values: not a scenario"),
        ("a" + ".a" * 400_000 + " = 1", "400,000 parts in dotted keys: not a scenario"),
        (
            MOTOR + "".join(map(NODE.format, range(2000))),
            "nodes: 2,001 of them, more than the 500 that a scenario can have",
        ),
        (
            MOTOR.replace("duration = 0.01", 'duration = 0.01\nprecision = "single"').replace(
                "value = 5.0", "value = 1e39"
            ),
            'value: 1e+39 is too large for precision = "single". Take "double"',
        ),
    ],
    ids=["bytes", "keys", "values", "dots", "nodes", "single"],
)
def test_more_than_can_be_meant_is_refused_with_the_number(tmp_path, text, expected):
    file = tmp_path / "large.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as refusal:
        load_scenario(file)
    (problem,) = refusal.value.problems
    assert expected in str(problem)


def test_thousands_of_problems_are_told_in_a_screen(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text("".join(f"k{i} = 1\n" for i in range(4000)) + MOTOR)
    with pytest.raises(ScenarioError) as refusal:
        load_scenario(file)
    assert len(refusal.value.problems) == 4000
    assert len(str(refusal.value)) < 2000
    assert "more" in str(refusal.value).splitlines()[-1]


def test_a_state_to_hold_of_the_wrong_length_is_refused(tmp_path):
    text = bundled_scenarios()["arm_3link_pd"].read_text(encoding="utf-8")
    file = tmp_path / "arm.toml"
    file.write_text(text.replace("joint_angles = [0.0, 0.0, 0.0]", "holding = [0.0]"))
    with pytest.raises(ScenarioError, match=r"holding: does not fit: .*shape \(3,\), got \(1,\)"):
        load_scenario(file)


def test_a_tick_that_no_brain_has_is_refused():
    with pytest.raises(ScenarioError, match=r"tick_s: must be >= 1e-05, got 1e-09"):
        load_scenario(bundled_scenarios()["mouse_in_maze"], ["mouse.tick_s=1e-9"])


def test_a_file_of_the_command_line_is_looked_for_where_the_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as refusal:
        load_scenario(bundled_scenarios()["mouse_in_maze"], ["mouse.maze=m16.txt"])
    words = str(refusal.value)
    assert f"no such file: m16.txt in {tmp_path}" in words
    assert "those of --set to where you stand" in words


@pytest.mark.filterwarnings("error")
def test_a_scenario_is_double_on_every_road_whatever_jax_is_set_to(tmp_path):
    file = tmp_path / "motor.toml"
    file.write_text(MOTOR)
    with jax.enable_x64(False):
        scenario = load_scenario(file)
        alone = scenario.simulation.run(0.01, scenario.inputs, progress=False)
        many = scenario.simulation.run_batch(
            0.01, scenario.inputs, parameters={"rotor.r_ohm": np.array([1.0, 2.0])}, progress=False
        )
    wanted = scenario.run()["rotor"]["current"]
    assert alone["rotor"]["current"].dtype == many["rotor"]["current"].dtype == np.float64
    np.testing.assert_array_equal(alone["rotor"]["current"], wanted)
    # Two programs of the same steps: rounding apart, single precision would be 1e-7 off.
    np.testing.assert_allclose(many["rotor"]["current"][0], wanted, rtol=1e-13)
