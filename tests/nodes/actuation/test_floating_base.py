"""An arm on a base that floats: momentum, falling, drives between links, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import (
    Coulomb,
    GraphManager,
    InputError,
    ParameterError,
    Payload,
    RobotArmNode,
    Servo,
    load_scenario,
    parse_mjcf,
    parse_robot,
    parse_urdf,
)
from tree_dynamics import link_poses, rotation

URDF = """<robot name="satellite">
<link name="hull"><inertial><origin xyz="0.02 -0.01 0.03" rpy="0 0 0"/><mass value="5"/>
<inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0.01" ixz="0" iyz="-0.02"/></inertial></link>
<link name="arm"><inertial><origin xyz="0.2 0 0.05"/><mass value="1.5"/>
<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="boom"><inertial><origin xyz="0 0 0.1"/><mass value="0.7"/>
<inertia ixx="0.004" iyy="0.004" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="tool"/>
<joint name="turn" type="revolute"><parent link="hull"/><child link="arm"/>
<origin xyz="0.1 0.2 0" rpy="0.3 0.2 0.1"/><axis xyz="0 1 0"/>
<limit lower="-1.2" upper="1.2" effort="30" velocity="50"/></joint>
<joint name="reach" type="prismatic"><parent link="arm"/><child link="boom"/>
<origin xyz="0.4 0 0" rpy="0 1 0"/><axis xyz="0.6 0 0.8"/>
<limit lower="-0.5" upper="0.5" effort="60" velocity="50"/></joint>
<joint name="grip" type="fixed"><parent link="boom"/><child link="tool"/>
<origin xyz="0 0 0.2"/></joint>
</robot>"""
DT, STEPS = 1e-3, 400
START = {
    "joint_angles": np.array([0.4, -0.1]),
    "joint_velocities": np.array([1.0, 0.3]),
    "base_position_world_m": np.array([0.3, 0.2, 1.0]),
    "base_orientation_world": np.array([0.8, 0.0, 0.6, 0.0]),
    "base_twist_world": np.array([0.4, -0.2, 0.1, 1.0, -2.0, 1.5]),
}
GRAVITY = np.array([1.0, -0.5, -9.0])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("robot") / "satellite.urdf"
    file.write_text(URDF)
    return parse_urdf(file, base="floating")


@pytest.fixture(scope="module")
def hull(tmp_path_factory):
    """The base alone: a tree without joints."""
    file = tmp_path_factory.mktemp("robot") / "hull.urdf"
    file.write_text(URDF[: URDF.index('<link name="arm">')] + "</robot>")
    return parse_urdf(file, base="floating")


def arm_of(tree, **options):
    options = {"gravity_world": (0.0, 0.0, 0.0)} | options
    return RobotArmNode("arm", DT, tree, "arm", **options)


def simulation(tree, *inputs, **options):
    graph = GraphManager()
    graph.add_node(arm_of(tree, **options))
    for name in inputs:
        graph.add_external_input("arm", name)
    return graph.compile()


@pytest.fixture(scope="module")
def free(tree):
    """One program for all tests of the plain arm."""
    names = ("commanded_joint_torques", "base_wrench_world", "external_wrenches_per_link")
    return simulation(tree, *names, gravity_world=jnp.zeros(3))


def momenta(tree, arm, sample):
    """P, L about the centre of mass, and that, in the world: from the poses of links alone.

    Velocities are central differences of poses that the base and the joints reach at their rates,
    with a step whose error, h²/6 of the third derivative, is below 1e-11.
    """
    q, qd = np.asarray(arm["joint_angles"])[sample], np.asarray(arm["joint_velocities"])[sample]
    p, twist = (
        np.asarray(arm[f"base_{name}"])[sample] for name in ("position_world_m", "twist_world")
    )
    quat = np.asarray(arm["base_orientation_world"])[sample]
    R = quaternion_matrix(quat)

    def bodies(h):
        speed = np.linalg.norm(twist[3:])
        turn = rotation(twist[3:] / speed, h * speed) @ R
        base = np.block([[turn, (p + h * twist[:3])[:, None]], [np.zeros(3), np.ones(1)]])
        return base, *(base @ T for T in link_poses(tree, q + h * qd))

    masses = [float(tree.root_body.mass), *tree.masses]
    coms = [tree.root_body.com, *tree.coms]
    inertias = [tree.root_body.inertia, *tree.inertias]
    h, here = 1e-4, bodies(0.0)
    centres = [T[:3, :3] @ c + T[:3, 3] for T, c in zip(here, coms, strict=True)]
    ahead, further = [
        [(A - B) / (2 * k * h) for A, B in zip(bodies(k * h), bodies(-k * h), strict=True)]
        for k in (1, 2)
    ]
    rates = [(4 * A - B) / 3 for A, B in zip(ahead, further, strict=True)]
    total = sum(masses)
    centre = sum(m * c for m, c in zip(masses, centres, strict=True)) / total
    P, L = np.zeros(3), np.zeros(3)
    for m, com, I, T, V, c in zip(masses, coms, inertias, here, rates, centres, strict=True):
        W = V[:3, :3] @ T[:3, :3].T
        w, v = np.array([W[2, 1], W[0, 2], W[1, 0]]), V[:3, :3] @ com + V[:3, 3]
        P += m * v
        L += T[:3, :3] @ I @ T[:3, :3].T @ w + m * np.cross(c - centre, v)
    return P, L, centre


def quaternion_matrix(q):
    w, u = q[0], q[1:]
    K = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


BY_DIFFERENCES = 1e-10
"""What the differences of `momenta` leave, besides rounding of 1e-16 over the step of 1e-4."""


def pushed(torques=(0.0, 0.0), base=(0.0,) * 6, link=((0.0,) * 6,) * 2):
    """The inputs of the plain arm: all of them, so that every run is the same program."""
    given = {
        "commanded_joint_torques": np.array(torques),
        "base_wrench_world": np.array(base),
        "external_wrenches_per_link": np.array(link),
    }
    return {"arm": given}


RECORD = [f"arm.{name}" for name in [*START, "link_poses_world"]]


def run(compiled, steps=STEPS, start=START, **options):
    start = {"arm": start}
    return compiled.run(steps=steps, initial_state=start, record=RECORD, **options)["arm"]


def test_momentum_stays_and_the_centre_of_mass_goes_straight_on(tree, free):
    arm = run(free, inputs=pushed(torques=(0.3, -2.0)))
    assert free.backend.native
    assert np.ptp(arm["joint_angles"], axis=0).min() > 0.05  # the arm does move
    P, L, c = momenta(tree, {name: x[None] for name, x in START.items()}, 0)
    for sample in (0, 100, STEPS - 1):
        P_now, L_now, c_now = momenta(tree, arm, sample)
        np.testing.assert_allclose(P_now, P, rtol=0, atol=BY_DIFFERENCES)
        np.testing.assert_allclose(L_now, L, rtol=0, atol=BY_DIFFERENCES)
        straight = c + (sample + 1) * DT * P / 7.2
        np.testing.assert_allclose(c_now, straight, rtol=0, atol=BY_DIFFERENCES)
    length = np.linalg.norm(arm["base_orientation_world"], axis=1)
    np.testing.assert_allclose(length, 1.0, rtol=0, atol=3e-16)


def test_it_falls_as_a_stone_does_step_by_step(tree, free):
    arm = run(free.with_parameters({"arm.gravity_world": GRAVITY}), inputs=pushed())
    _, L, c = momenta(tree, arm, 0)
    P, L_end, c_end = momenta(tree, arm, STEPS - 1)
    n = STEPS - 1
    fallen = c + n * DT * P / 7.2 - n * (n - 1) / 2 * DT**2 * GRAVITY
    np.testing.assert_allclose(c_end, fallen, rtol=0, atol=BY_DIFFERENCES)
    np.testing.assert_allclose(L_end, L, rtol=0, atol=BY_DIFFERENCES)


def test_wrenches_change_momentum_by_what_they_push(tree, free):
    base, link = np.array([1.0, 2.0, -3.0, 0.4, -0.5, 0.6]), np.zeros((2, 6))
    link[1] = [-2.0, 0.5, 1.0, 0.1, 0.2, -0.3]
    arm = run(free, steps=50, inputs=pushed(base=base, link=link))
    (P, L, c), (P_next, L_next, _) = (momenta(tree, arm, sample) for sample in (20, 21))
    np.testing.assert_allclose(P_next - P, DT * (base[:3] + link[1, :3]), atol=BY_DIFFERENCES)
    at, origin = arm["link_poses_world"][20, 1, :3], arm["base_position_world_m"][20]
    moment = base[3:] + link[1, 3:] + np.cross(origin - c, base[:3])
    moment = moment + np.cross(at - c, link[1, :3])
    np.testing.assert_allclose(L_next - L, DT * moment, atol=BY_DIFFERENCES)


DRIVEN = {
    "servo on springs, with a payload, into a stop": {
        "rotor_inertia_kg_m2": [2e-5, 2e-5],
        "gear_ratio": [50.0, 50.0],
        "joint_stiffness_n_m_per_rad": {"turn": 300.0},
        "joint_stiffness_damping_n_m_s": {"turn": 1.0},
        "servo": Servo(kp=400.0, kd=30.0, gravity_compensation=False, limit_torque=False),
        "payload": Payload("tool", 0.4, (0.0, 0.0, 0.1)),
        "joint_limit_override": [[-1.2, 0.4005], [-0.5, 0.5]],
    },
    "dry friction and a soft stop": {
        "friction": Coulomb([0.2, 1.0]),
        "joint_limits": "spring",
        "joint_limit_override": [[-1.2, 0.4005], [-0.5, 0.5]],
    },
}


@pytest.mark.small("servo on springs, with a payload, into a stop")
@pytest.mark.parametrize("case", DRIVEN)
@pytest.mark.filterwarnings("ignore:arm. the travel beyond the limit")
def test_what_acts_between_links_leaves_momentum_alone(tree, case):
    options = DRIVEN[case]
    arm = run(simulation(tree, **options), steps=300)
    loaded = tree if "payload" not in options else options["payload"].on(tree)
    P, L, _ = momenta(loaded, {name: x[None] for name, x in START.items()}, 0)
    for sample in (0, 20, 299):
        P_now, L_now, _ = momenta(loaded, arm, sample)
        np.testing.assert_allclose(P_now, P, rtol=0, atol=BY_DIFFERENCES)
        np.testing.assert_allclose(L_now, L, rtol=0, atol=BY_DIFFERENCES)
    angle = np.asarray(arm["joint_angles"])[:, 0]
    beyond = angle.max() - 0.4005  # it reaches its stop
    assert beyond == 0.0 if "servo" in options else 0.0 < beyond < 1e-2


@pytest.mark.soak("MIME-VER-165 has gauss4 on a floating base")
def test_gauss_keeps_momentum_and_energy_to_its_order(tree):
    one = tree.lock(reach=-0.1)
    start = {name: x[:1] if name.startswith("joint") else x for name, x in START.items()}
    arm = run(simulation(one, integrator="gauss4"), steps=100, start=start)
    before = momenta(one, {name: x[None] for name, x in start.items()}, 0)
    after = momenta(one, arm, 99)
    for k in (0, 1):  # the error of order 4 is below 1e-13 at 1 ms
        np.testing.assert_allclose(after[k], before[k], rtol=0, atol=BY_DIFFERENCES)


@pytest.mark.soak("tests/native/test_scenarios.py has the bits of batches")
def test_members_of_a_batch_have_the_bits_of_single_runs(free):
    gravity = np.array([GRAVITY, -GRAVITY, 0 * GRAVITY])
    starts = {name: np.stack([x, x, x]) for name, x in START.items()}
    batch = free.run_batch(
        steps=20,
        parameters={"arm.gravity_world": gravity},
        initial_state={"arm": starts},
        inputs=pushed(),
        record=RECORD,
    )
    for k, g in enumerate(gravity):
        alone = run(free.with_parameters({"arm.gravity_world": g}), steps=20, inputs=pushed())
        for name in START:
            np.testing.assert_array_equal(batch["arm"][name][k], alone[name])


def test_gradients_go_through_the_base(hull):
    arm = RobotArmNode("hull", DT, hull, "hull")
    start = {name: np.asarray(x) for name, x in arm.initial_state().items()}
    start |= {name: x for name, x in START.items() if not name.startswith("joint")}

    @jax.jit
    @jax.value_and_grad
    def reached(twist):
        state = arm.update(start | {"base_twist_world": twist}, {}, 0.05)
        weights = {name: np.arange(1.0, 1.0 + x.size) for name, x in state.items()}
        return sum(jnp.sum(weights[name] * x) for name, x in state.items())

    twist, direction = start["base_twist_world"], np.arange(6.0) - 2.0
    slope = np.asarray(reached(twist)[1]) @ direction
    h = 1e-4  # differences lose 1e-16 / h of the sum, and h² of the third derivative
    ahead, back = (reached(twist + s * h * direction)[0] for s in (1, -1))
    assert slope == pytest.approx(float((ahead - back) / (2 * h)), rel=1e-6)


def test_single_precision_stays_single(hull):
    with jax.enable_x64(False):
        arm = RobotArmNode("hull", DT, hull, "hull", gravity_world=GRAVITY)
        state = arm.update(arm.initial_state(), {}, DT)
        assert {x.dtype for x in state.values()} == {np.dtype("float32")}
    np.testing.assert_allclose(state["base_twist_world"][:3], DT * GRAVITY, rtol=1e-5)


SCENARIO = """[simulation]
timestep = 0.001
duration = 0.05
initial_state.sat.base_twist_world = [0, 0, 0, 0, 0, 1]
[nodes.sat]
type = "RobotArmNode"
urdf_path = "satellite.urdf"
end_effector_link_name = "tool"
base = "floating"
gravity_world = [0, 0, 0]
"""


def test_a_scenario_lets_it_float(tmp_path):
    (tmp_path / "satellite.urdf").write_text(URDF)
    (tmp_path / "run.toml").write_text(SCENARIO)
    scenario = load_scenario(tmp_path / "run.toml")
    assert scenario.simulation.nodes["sat"].base == "floating"
    start = scenario.initial_state["sat"]["base_twist_world"]
    np.testing.assert_array_equal(start, [0, 0, 0, 0, 0, 1])


def test_metadata_and_specs_agree(tree):
    assert arm_of(tree).validate_mime_consistency() == []


def test_a_body_without_joints_floats_too(hull):
    graph = GraphManager()
    graph.add_node(RobotArmNode("hull", DT, hull, "hull"))
    start = {"hull": {"base_twist_world": START["base_twist_world"]}}
    run_of_hull = graph.compile().run(steps=100, initial_state=start)["hull"]
    assert run_of_hull["joint_angles"].shape == (100, 0)
    assert run_of_hull["base_position_world_m"].shape == (100, 3)
    locked = hull.attach(hull, "hull", (1, 0, 0, 1, 0, 0, 0), "second_")
    assert float(locked.root_body.mass) == 10.0
    fixed = parse_urdf(hull.source)
    assert fixed.num_joints == 0
    with pytest.raises(ParameterError, match=r"no joint that moves.*Let it float"):
        RobotArmNode("hull", DT, fixed, "hull")


def test_files_written_and_read_again_float_as_before(tree, tmp_path, monkeypatch):
    loaded = tree.with_payload("hull", 1.0, (0.1, 0.2, 0.3))
    loaded.to_urdf(tmp_path / "out.urdf")
    loaded.to_mjcf(tmp_path / "out.xml")
    assert "read it with base='floating'" in (tmp_path / "out.urdf").read_text()
    assert "<freejoint" in (tmp_path / "out.xml").read_text()
    q = START["joint_angles"]
    monkeypatch.setenv("MIME_NATIVE", "off")  # Python computes: nothing compiles
    M = kin.floating_mass_matrix(loaded, q)
    again = parse_urdf(tmp_path / "out.urdf", base="floating"), parse_mjcf(tmp_path / "out.xml")
    for read in again:
        assert read.base == "floating"
        np.testing.assert_allclose(kin.floating_mass_matrix(read, q), M, rtol=0, atol=1e-14)
    assert parse_mjcf(tmp_path / "out.xml", base="fixed").base == "fixed"


def test_what_cannot_float_is_refused(tree, tmp_path):
    def refused(match, **options):
        with pytest.raises(ParameterError, match=match):
            arm_of(tree, **options)

    refused("one that floats has its pose in the state", base_pose_world=(1, 0, 0, 1, 0, 0, 0))
    refused("must be 'fixed' or 'floating', got 'flying'", base="flying")
    light = URDF.replace('<mass value="5"/>', '<mass value="0"/>')
    (tmp_path / "light.urdf").write_text(light)
    loaded = parse_robot(tmp_path / "light.urdf", base="floating")
    assert float(loaded.root_body.mass) == 0.0  # its own inertia is enough, with the links' masses
    assert arm_of(loaded).base == "floating"
    (tmp_path / "free.xml").write_text("<mujoco><worldbody/></mujoco>")
    with pytest.raises(kin.MjcfError, match="no free joint"):
        parse_robot(tmp_path / "free.xml", base="floating")
    for parse in (parse_urdf, parse_mjcf, parse_robot):
        with pytest.raises((TypeError, ValueError), match="'fixed' or 'floating'"):
            parse(tmp_path / "light.urdf", base="flying")
    still = tree.lock(turn=0.1, reach=0.1)
    assert still.num_joints == 0
    assert float(still.root_body.mass) == pytest.approx(7.2)
    with pytest.raises(ParameterError, match="on a fixed base nothing else does"):
        arm_of(still, base="fixed")
    assert arm_of(tree, base="fixed").base == "fixed"
    assert tree.subtree("arm").base == "fixed"
    assert "base_twist_world" not in arm_of(tree, base="fixed").state_spec()


def test_a_start_without_a_unit_quaternion_is_refused(free):
    with pytest.raises(InputError, match=r"base_orientation_world.*unit quaternion, got length 2"):
        run(free, steps=1, start=START | {"base_orientation_world": np.array([2.0, 0, 0, 0])})
