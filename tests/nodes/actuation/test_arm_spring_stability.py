"""The longest step of springs beside the joints, against the eigenvalues of the arm's own step."""

import warnings

import jax
import jax.flatten_util
import numpy as np
import pytest

from mime import RobotArmNode, Servo, parse_mjcf
from mime.core.problem import StabilityWarning

ARM = """<mujoco><option gravity="0 0 0"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" stiffness="{}" damping="0.3"/>
<inertial mass="2" pos="0 0 0.2" diaginertia="0.02 0.02 0.01"/>
<body name="fore" pos="0 0 0.4"><joint name="elbow" axis="0 1 0" stiffness="{}" damping="0.05"/>
<inertial mass="0.5" pos="0 0 0.15" diaginertia="0.004 0.004 0.001"/></body></body>
</worldbody></mujoco>"""
ELASTIC = {
    "rotor_inertia_kg_m2": {"elbow": 0.01},
    "joint_stiffness_n_m_per_rad": {"elbow": 50.0},
    "joint_stiffness_damping_n_m_s": {"elbow": 0.1},
}

IDLE = Servo(0.0, 0.0, gravity_compensation=False, limit_torque=False, limit_speed=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("mjcf") / "arm.xml"
    file.write_text(ARM.format(2e4, 3e3))
    return parse_mjcf(file)


def growths(arm, *steps):
    """The largest eigenvalue of each step about the equilibrium: above 1 it grows."""
    state = arm.initial_state()
    values, restore = jax.flatten_util.ravel_pytree(state)

    def step(values, dt):
        return jax.flatten_util.ravel_pytree(arm.update(restore(values), {}, dt))[0]

    slopes = jax.jit(jax.jacfwd(step))
    return [np.abs(np.linalg.eigvals(np.asarray(slopes(values, dt)))).max() for dt in steps]


@pytest.mark.small("explicit", "elastic")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrator": "explicit"},
        ELASTIC,
        ELASTIC | {"spring_integrator": "backward_euler"},
        ELASTIC | {"servo": IDLE},
    ],
    ids=["implicit", "explicit", "elastic", "backward Euler", "idle servo"],
)
def test_the_named_step_is_where_the_arm_begins_to_shake(tree, options):
    with pytest.warns(StabilityWarning, match="beside joint '(shoulder|elbow)'") as caught:
        RobotArmNode("arm", 0.05, tree, "fore", **options)
    (message,) = (str(warning.message) for warning in caught)
    longest = float(message.split("Take at most ")[1].split(" s")[0])
    assert longest < 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm = RobotArmNode("arm", 0.98 * longest, tree, "fore", **options)
    shorter, longer = growths(arm, 0.99 * longest, 1.01 * longest)
    assert shorter < 1 + 1e-5 < longer  # named with three digits


def test_it_names_the_joint_whose_spring_it_is(tmp_path):
    for stiffness, joint in (((2e4, 1.0), "shoulder"), ((1.0, 3e3), "elbow")):
        file = tmp_path / f"{joint}.xml"
        file.write_text(ARM.format(*stiffness))
        with pytest.warns(StabilityWarning, match=f"joint '{joint}' is too stiff"):
            RobotArmNode("arm", 0.05, parse_mjcf(file), "fore")


def test_a_slow_growth_is_told_as_one(tmp_path):
    """Beside an elastic joint without damping; the arm's own step says how slow."""
    (tmp_path / "arm.xml").write_text(ARM.format(1e3, 0.0).replace('damping="0.3"', ""))
    with pytest.warns(StabilityWarning, match="times as much a second later") as caught:
        arm = RobotArmNode(
            "arm",
            1e-3,
            parse_mjcf(tmp_path / "arm.xml"),
            "fore",
            rotor_inertia_kg_m2={"shoulder": 1.0},
            joint_stiffness_n_m_per_rad={"shoulder": 60.0},
        )
    told = float(str(caught[0].message).split(", and ")[1].split(" times")[0])
    assert told == pytest.approx(growths(arm, 1e-3)[0] ** 1000, rel=5e-3)  # three digits
    assert 1.01 < told < 10
    assert "spring_integrator 'backward_euler'" in str(caught[0].message)


@pytest.mark.parametrize("stiffness", [(0.0, 0.0), (20.0, 5.0)])
def test_soft_springs_are_not_worth_a_word(tmp_path, stiffness):
    (tmp_path / "soft.xml").write_text(ARM.format(*stiffness))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RobotArmNode("arm", 1e-3, parse_mjcf(tmp_path / "soft.xml"), "fore")
