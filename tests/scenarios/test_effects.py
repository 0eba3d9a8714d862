"""Effects of a node and entries of its arrays in a scenario: `[nodes.rotor.gear]`, `--set`."""

import pytest

from mime import Coulomb, Gear, Stribeck
from mime.scenarios import ScenarioError, load_scenario

GEAR = "[nodes.rotor.gear]\nratio = 20\nefficiency = 0.7\n"
ARM = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:planar_arm_3link"
end_effector_link_name = "tool"
"""


def motor(file, *overrides):
    return load_scenario(file, overrides).simulation.nodes["rotor"]


def problems(file, *overrides):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file, overrides)
    return [str(problem).replace(f"{file.parent}/", "") for problem in caught.value.problems]


def test_a_table_makes_the_effect_that_the_node_declares(write):
    gear = motor(write(add=GEAR)).gear
    assert isinstance(gear, Gear)
    assert (gear.ratio, gear.efficiency) == (20.0, 0.7)
    inline = motor(write(replace={"r_ohm = 1.0": "r_ohm = 1.0\ngear = { ratio = 3 }"}))
    assert inline.gear.ratio == 3.0
    assert motor(write()).gear is None


def test_the_type_chooses_where_there_are_several_kinds(write):
    table = '[nodes.rotor.friction]\ntype = "Coulomb"\ntorque_n_m = 1e-3\n'
    assert isinstance(motor(write(add=table)).friction, Coulomb)
    table = (
        '[nodes.rotor.friction]\ntype = "Stribeck"\ncoulomb_torque_n_m = 1e-3\n'
        "static_torque_n_m = 2e-3\nvelocity_rad_per_s = 1.0\n"
    )
    assert isinstance(motor(write(add=table)).friction, Stribeck)
    table = (
        '[nodes.rotor.friction]\ntype = "LoadFriction"\n'
        "coulomb_torque_n_m = 1e-3\nmotor_load = 0.2\n"
    )
    friction = motor(write(add=table), "rotor.friction.external_load=0.1").friction
    assert (friction.motor_load, friction.external_load) == (0.2, 0.1)


def test_an_override_reaches_into_an_effect_and_can_give_one(write):
    assert motor(write(add=GEAR), "rotor.gear.ratio=5").gear.ratio == 5.0
    assert motor(write(), "rotor.gear.ratio=5").gear.ratio == 5.0


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (GEAR.replace("20", "-1"), "motor.toml:19: nodes.rotor.gear.ratio: must be > 0, got -1"),
        (
            GEAR.replace("20", '"x"'),
            "motor.toml:19: nodes.rotor.gear.ratio: must be a number [1], got 'x'",
        ),
        (
            GEAR.replace("efficiency", "eficiency"),
            "motor.toml:20: nodes.rotor.gear.eficiency: Gear has no parameter 'eficiency' "
            "(did you mean 'efficiency'?)",
        ),
        (
            GEAR.replace("ratio = 20\n", ""),
            "motor.toml:18: nodes.rotor.gear: Gear needs ratio as well",
        ),
        (
            "[nodes.rotor.friction]\ntorque_n_m = 1e-3\n",
            "motor.toml:18: nodes.rotor.friction.type: the key is missing, "
            "expected one of 'Coulomb', 'Stribeck', 'LoadFriction'",
        ),
        (
            '[nodes.rotor.friction]\ntype = "Stribek"\n',
            "motor.toml:19: nodes.rotor.friction.type: no such effect: 'Stribek' "
            "(did you mean 'Stribeck'?), expected one of 'Coulomb', 'Stribeck', 'LoadFriction'",
        ),
        (
            '[nodes.rotor.friction]\ntype = "Stribeck"\ncoulomb_torque_n_m = 2e-3\n'
            "static_torque_n_m = 1e-3\nvelocity_rad_per_s = 1.0\n",
            "motor.toml:21: nodes.rotor.friction.static_torque_n_m: must be >= coulomb_torque_n_m",
        ),
        (
            "[nodes.rotor.gearbox]\nratio = 20\n",
            "motor.toml:18: nodes.rotor.gearbox: MotorNode has no parameter 'gearbox' "
            "(did you mean 'gear'?)",
        ),
    ],
)
def test_a_mistake_in_an_effect_is_told_with_its_line(write, table, expected):
    found = problems(write(add=table))
    assert [problem[: len(expected)] for problem in found] == [expected]


def test_what_is_no_table_is_told(write):
    found = problems(write(replace={"r_ohm = 1.0": "r_ohm = 1.0\ngear = 20"}))
    assert found == ["motor.toml:11: nodes.rotor.gear: must be a table, got 20"]
    found = problems(write(replace={"r_ohm = 1.0": "r_ohm = 1.0\ngear_ratio = 20"}))
    assert "(did you mean 'gear.ratio'?)" in found[0]


def test_an_entry_of_an_array_is_set_by_its_address(write):
    def mass(file, *overrides):
        tree = load_scenario(file, overrides).simulation.nodes["arm"].tree
        return tree.masses[tree.link_names.index("link_2")]

    assert mass(write(ARM), "arm.link[link_2].mass_kg=7.5") == 7.5
    assert mass(write(ARM, add='"link[link_2].mass_kg" = 6.5\n')) == 6.5


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("link[lnk_2].mass_kg=1", "has no link 'lnk_2' (did you mean 'link_2', "),
        ("link[link_2].mas=1", "has a link with no 'mas' (did you mean 'mass_kg'?)"),
        ("link[link_2].mass_kg=x", "must be a number, got 'x'"),
    ],
)
def test_an_entry_that_is_not_there_is_told_by_its_address(write, entry, expected):
    address = entry.split("=")[0]
    (found,) = problems(write(ARM), f"arm.{entry}")
    assert found.startswith(f'--set arm.{entry}: nodes.arm."{address}": {expected}')
