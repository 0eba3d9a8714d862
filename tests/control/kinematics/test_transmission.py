"""Drives that move several joints: theta = T q, in every function of a tree."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mime
import mime.control.kinematics as kin
from mime.core.problem import InputError
from mime.models import model_path
from pinocchio_tree import GRAVITY, Reference
from tree_dynamics import mass_and_bias

WRIST = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
WRIST[5, 4] = 32.0
"""The sixth motor turns with joints 5 and 6, as in a Stäubli TX40."""
ROTORS = np.array([3.5e-4, 3e-4, 5e-5, 1.4e-5, 2.3e-5, 1e-5])
DENSE = WRIST + np.random.default_rng(3).uniform(-20, 20, (6, 6))
ARM = mime.parse_urdf(model_path("desktop_arm_6axis")).with_drives(np.zeros(6), np.ones(6))
Q, QD, QDD = np.random.default_rng(0).normal(size=(3, 6))


def armed(T=WRIST, rotors=ROTORS):
    return ARM.with_drives(rotors, T)


@pytest.mark.parametrize("T", [WRIST, DENSE, np.diag(WRIST)], ids=["wrist", "dense", "diagonal"])
def test_mass_matrix_is_pinocchios_rigid_one_and_the_reflected_rotors(T):
    tree = armed(T)
    full = T if T.ndim == 2 else np.diag(T)
    M = Reference(ARM).mass_matrix(Q) + full.T @ np.diag(ROTORS) @ full
    # some twenty products, of 1e-16 each
    np.testing.assert_allclose(kin.mass_matrix(tree, Q), M, rtol=0, atol=1e-14 * np.abs(M).max())
    np.testing.assert_allclose(tree.transmission, full, rtol=2e-16, atol=0)  # a quotient, a product
    np.testing.assert_allclose(np.diag(tree.reflected_inertia), tree.armature, rtol=1e-15)


def test_a_diagonal_transmission_is_the_gear_ratios_to_the_last_bit():
    by_matrix, by_vector = armed(np.diag(np.diag(WRIST))), armed(np.diag(WRIST))
    assert by_matrix.drive_coupling is None
    np.testing.assert_array_equal(kin.mass_matrix(by_matrix, Q), kin.mass_matrix(by_vector, Q))


@pytest.mark.parametrize("T", [WRIST, DENSE], ids=["wrist", "dense"])
def test_inverse_dynamics_are_pinocchios_and_forward_dynamics_their_inverse(T):
    tree = armed(T)
    tau = kin.rnea(tree, Q, QD, QDD, GRAVITY)
    expected = Reference(ARM).rnea(Q, QD, QDD) + T.T @ (ROTORS * (T @ QDD))
    # a hundred products, of 1e-16 each
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-14 * np.abs(expected).max())
    # cond(M) is below 100
    np.testing.assert_allclose(
        kin.forward_dynamics(tree, Q, QD, tau, GRAVITY), QDD, rtol=0, atol=1e-13
    )
    with jax.enable_x64(True):
        compiled = jax.jit(lambda *x: kin.forward_dynamics(tree, *x, GRAVITY))
        np.testing.assert_allclose(
            compiled(*map(jnp.asarray, (Q, QD, tau))), QDD, rtol=0, atol=1e-13
        )


def test_rotors_on_rods_held_by_the_constraint_of_their_angles_move_the_arm_alike():
    """[M 0 -Tᵀ; 0 J 1; T -1 0] [q̈; theta̋; lambda] = [tau - c - g; 0; 0]: T is never multiplied."""
    n, tau = 6, np.array([3.0, -2.0, 1.0, 0.5, -0.4, 0.3])
    M, bias = mass_and_bias(ARM, Q, QD, GRAVITY)
    one, none = np.eye(n), np.zeros((n, n))
    system = np.block([[M, none, -WRIST.T], [none, np.diag(ROTORS), one], [WRIST, -one, none]])
    right = np.concatenate([tau - bias, np.zeros(2 * n)])
    scale = np.sqrt(np.concatenate([np.ones(n), ROTORS, np.ones(n)]))  # J is 1e-5
    expected = (np.linalg.solve(system / scale[:, None], right / scale))[:n]
    found = kin.forward_dynamics(armed(), Q, QD, tau, GRAVITY)
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # the system's condition is 1e7


def test_kinetic_energy_is_that_of_the_mass_matrix():
    tree = armed(DENSE)
    expected = 0.5 * QD @ kin.mass_matrix(tree, Q) @ QD
    np.testing.assert_allclose(kin.kinetic_energy(tree, Q, QD), expected, rtol=1e-14)


def test_single_precision_stays_single():
    found = kin.forward_dynamics(armed(), *map(np.float32, (Q, QD, QDD, GRAVITY)))
    exact = kin.forward_dynamics(armed(), Q, QD, QDD, GRAVITY)
    q, qd, tau = (jnp.asarray(x, jnp.float32) for x in (Q, QD, QDD))
    traced = kin.forward_dynamics(armed(), q, qd, tau, GRAVITY)
    assert found.dtype == traced.dtype == np.float32
    np.testing.assert_allclose(traced, exact, rtol=1e-4, atol=1e-4)  # cond(M) of 2**-24


def test_gradients_by_rotor_inertia_and_coupling_are_central_differences():
    def of(J, T):
        return jnp.sum(kin.forward_dynamics(ARM.with_drives(J, T), q, qd, tau, GRAVITY) * weight)

    with jax.enable_x64(True):
        q, qd, tau, weight = map(jnp.asarray, (Q, QD, QDD, np.arange(1.0, 7.0)))
        J, T = jnp.asarray(ROTORS), jnp.asarray(DENSE)
        by_J, by_T = jax.grad(of, argnums=(0, 1))(J, T)
        for i, j in ((0, 0), (5, 4), (2, 1)):
            h = 1e-5 * np.abs(DENSE[i, j])
            step = jnp.zeros((6, 6)).at[i, j].set(h)
            slope = (of(J, T + step) - of(J, T - step)) / (2 * h)
            np.testing.assert_allclose(by_T[i, j], slope, rtol=1e-6)  # h² and rounding over h
        step = jnp.zeros(6).at[4].set(1e-10)
        slope = (of(J + step, T) - of(J - step, T)) / 2e-10
        np.testing.assert_allclose(by_J[4], slope, rtol=1e-5)  # rounding over the step


def test_a_long_chain_with_shared_drives_has_the_same_equations(tmp_path):
    link = """<link name="l{0}"><inertial><mass value="1"/><origin xyz="0.1 0.02 0"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
    <joint name="j{0}" type="continuous"><parent link="{1}"/><child link="l{0}"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 0 1"/></joint>"""
    links = "".join(link.format(i, f"l{i - 1}" if i else "base") for i in range(50))
    (tmp_path / "chain.urdf").write_text(f'<robot name="c"><link name="base"/>{links}</robot>')
    rotors = np.full(50, 1e-3)
    chain = mime.parse_urdf(tmp_path / "chain.urdf").with_drives(rotors)
    tree = chain.with_drives(transmission={"j30": {"j3": 5.0, "j30": 7.0}})
    q, qd, tau = np.random.default_rng(1).normal(size=(3, 50))
    T = np.eye(50)
    T[30, [3, 30]] = 5.0, 7.0
    M, bias = mass_and_bias(chain.with_drives(0 * rotors), q, qd, GRAVITY)
    M = M + 1e-3 * T.T @ T
    with jax.enable_x64(True):
        found = kin.forward_dynamics(tree, *map(jnp.asarray, (q, qd, tau)), GRAVITY)
    residual = M @ np.asarray(found) - (tau - bias)
    assert np.abs(residual).max() < 1e-11 * np.abs(M).max() * np.abs(found).max()  # 50 links


def test_power_at_motors_is_power_at_joints():
    tree, tau = armed(), np.arange(1.0, 7.0)
    motors = tree.motor_torques(tau)
    np.testing.assert_allclose(tree.joint_torques(motors), tau, rtol=1e-14)
    np.testing.assert_allclose(motors @ tree.motor_angles(QD), tau @ QD, rtol=1e-13)
    rows = np.stack([Q, QD])
    np.testing.assert_allclose(tree.joint_angles(tree.motor_angles(rows)), rows, rtol=1e-13)
    np.testing.assert_allclose(tree.motor_angles(Q), WRIST @ Q, rtol=1e-14)


def test_rows_by_name_leave_the_others_as_they_are():
    tree = armed(np.diag(WRIST)).with_drives(
        transmission={"joint_6": {"joint_5": 32, "joint_6": 32}}
    )
    np.testing.assert_array_equal(tree.transmission, WRIST)
    tree = tree.with_drives({"joint_5": 1e-3}, {"joint_6": 3.0})
    assert tree.drive_coupling is None
    assert tree.gear_ratio[5] == 3.0
    np.testing.assert_array_equal(tree.rotor_inertia, [*ROTORS[:4], 1e-3, ROTORS[5]])


ALIKE = {"joint_5": {"joint_5": 45, "joint_6": 45}, "joint_6": {"joint_5": -2, "joint_6": -2}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"transmission": {"joint_9": 2.0}}, "names no motor 'joint_9'"),
        ({"transmission": {"joint_6": {"elbow": 1.0}}}, "transmission.joint_6 names no joint"),
        ({"transmission": ALIKE}, "the motors 'joint_5', 'joint_6' turn alike"),
        (
            {"transmission": {"joint_6": {"joint_5": 45.0}}},
            "a joint that no motor moves: 'joint_6'",
        ),
        ({"transmission": np.zeros((6, 6))}, "a motor that moves no joint: 'joint_1'"),
        ({"transmission": np.ones((2, 6))}, "a matrix (6, 6), motors by joints; got shape (2, 6)"),
        ({"transmission": np.full((6, 6), np.nan)}, "must be finite"),
        ({"transmission": "wrist"}, "must be 6 gear ratios or a matrix"),
        ({"rotor_inertia_kg_m2": -ROTORS}, ">= 0 kg·m², got -0.00035 for motor 'joint_1'"),
        ({"rotor_inertia_kg_m2": {"joint_7": 1.0}}, "names no motor 'joint_7'"),
    ],
)
def test_drives_that_cannot_be_are_refused(given, words):
    with pytest.raises(InputError) as refusal:
        armed(np.diag(WRIST)).with_drives(**given)
    assert words in str(refusal.value)


def held(tree, **joints):
    """The tree with joints locked, and M of the whole one for those that are left."""
    left = [c for c, name in enumerate(tree.joint_names) if name not in joints]
    q = np.array([joints.get(name, x) for name, x in zip(tree.joint_names, Q, strict=True)])
    return tree.lock(joints), q[left], kin.mass_matrix(tree, q)[np.ix_(left, left)]


@pytest.mark.parametrize("joint", ["joint_5", "joint_6", "joint_2"])
def test_locking_leaves_the_inertia_of_the_motors_that_still_turn(joint):
    tree = dataclasses.replace(
        armed(),
        joint_friction=np.arange(1.0, 7.0),
        joint_coulomb_friction=np.arange(1.0, 7.0),
        effort_limits=np.arange(1.0, 7.0),
        velocity_limits=np.full(6, 4.0),
    )
    part, q, M = held(tree, **{joint: 0.1})
    np.testing.assert_allclose(kin.mass_matrix(part, q), M, rtol=0, atol=1e-14)  # of 0.4 kg·m²
    C = tree.drive_coupling[:, 4]
    if joint == "joint_6":  # motors 5 and 6 turn with joint 5
        assert part.drive_coupling is None
        assert part.joint_friction[4] == 5.0 * C[4] ** 2 + 6.0 * C[5] ** 2
        assert part.joint_coulomb_friction[4] == 5.0 * abs(C[4]) + 6.0 * abs(C[5])
        assert part.effort_limits[4] == 11.0
        assert part.velocity_limits[4] == 4.0
    elif joint == "joint_5":
        assert part.drive_coupling is None
        assert part.joint_friction[4] == 6.0
    else:
        np.testing.assert_array_equal(part.transmission, np.delete(np.delete(WRIST, 1, 0), 1, 1))


def test_a_part_of_drives_that_more_joints_share_is_refused_by_name():
    T = np.diag(np.full(6, 10.0))
    T[3, 4] = T[4, 5] = T[5, 3] = 10.0
    with pytest.raises(InputError, match=r"leaves 3 motors on 2 joints: .*'joint_6' share"):
        armed(T).lock(joint_5=0.1)
    assert armed(T).lock(joint_4=0.0, joint_5=0.1, joint_6=0.2).drive_coupling is None


def test_attached_robots_keep_their_drives_and_a_subtree_its_own():
    tree = armed()
    both = tree.attach(tree, tree.link_names[-1], prefix="b_")
    T = np.kron(np.eye(2), WRIST)
    np.testing.assert_array_equal(both.transmission, T)
    part = tree.subtree(tree.link_names[2])
    np.testing.assert_array_equal(part.transmission, WRIST[3:, 3:])
    loaded = tree.with_payload(tree.link_names[-1], 1.0)
    np.testing.assert_array_equal(loaded.transmission, WRIST)


MASSLESS = """<robot name="d"><link name="base"/><link name="a"/><link name="b">{}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="k" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
{}</robot>"""
BODY = (
    '<inertial><origin xyz="0.1 0.05 0"/><mass value="2"/><inertia ixx="0.1" iyy="0.2" izz="0.3"/>'
)
BODY += "</inertial>"


def test_rotors_that_joints_share_resist_where_links_do_not(tmp_path):
    (tmp_path / "d.urdf").write_text(MASSLESS.format("", ""))
    tree = mime.parse_urdf(tmp_path / "d.urdf")
    T = [[5.0, 2.0], [5.0, -2.0]]
    assert kin.joints_without_inertia(tree.with_drives([1e-4, 1e-4], T)) == ()
    one = tree.with_drives([1e-4, 0.0], T)
    assert kin.joints_without_inertia(one) == ("j", "k")  # theta_1 can stand while both turn
    with pytest.raises(InputError, match="has no mass in any link that moves"):
        kin.forward_dynamics(one, *np.zeros((3, 2)), GRAVITY)


COUPLED = """<transmission name="t"><type>transmission_interface/{}</type>
<joint name="k"><role>joint2</role><mechanicalReduction>3</mechanicalReduction></joint>
<joint name="j"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>
<actuator name="one"><role>actuator1</role><mechanicalReduction>50</mechanicalReduction>
<rotorInertia>1e-5</rotorInertia></actuator>
<actuator name="two"><role>actuator2</role><mechanicalReduction>-40</mechanicalReduction>
<rotorInertia>2e-5</rotorInertia></actuator></transmission>"""


@pytest.fixture
def parse(tmp_path):
    def parsed(kind, change=lambda text: text):
        path = tmp_path / "t.urdf"
        path.write_text(change(MASSLESS.format(BODY, COUPLED.format(kind))))
        return mime.parse_urdf(path)

    return parsed


TYPES = {
    # angles of the actuators as control.ros.org gives them, n_a = (50, -40), n_j = (2, 3)
    "DifferentialTransmission": [[50 * 2, 50 * 3], [-40 * 2, 40 * 3]],
    "FourBarLinkageTransmission": [[50 * 2, 0], [-40, -40 * 3]],
}


@pytest.mark.parametrize("kind", TYPES)
def test_transmissions_of_ros2_control_are_read_and_written(parse, kind, tmp_path):
    tree = parse(kind)
    assert tree.joint_names == ("j", "k")
    np.testing.assert_allclose(tree.transmission, TYPES[kind], rtol=2e-16)
    np.testing.assert_array_equal(tree.rotor_inertia, [1e-5, 2e-5])
    assert [f.rule for f in tree.report] == ["drives"]
    assert "transmission 't' moves 'j' and 'k' together" in str(tree.report[0])
    tree.to_urdf(tmp_path / "again.urdf")
    again = mime.parse_urdf(tmp_path / "again.urdf")
    np.testing.assert_allclose(again.transmission, TYPES[kind], rtol=4e-16)  # two quotients
    np.testing.assert_array_equal(again.rotor_inertia, tree.rotor_inertia)


def test_without_a_rotor_such_a_transmission_changes_nothing(parse):
    tree = parse("DifferentialTransmission", lambda text: text.replace("rotorInertia", "note"))
    assert tree.drive_coupling is None
    assert "two on two of a differential" in str(tree)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1e-5", "-1e-5", "inertias of 0 or more"),
        (">50<", ">0<", "ratios other than 0"),
        ('joint name="k"><role', 'joint name="m"><role', "drives joint 'm', which does not exist"),
        ('<actuator name="one"', '<motor name="one"', "has 1 actuators on 2 joints"),
    ],
)
@pytest.mark.filterwarnings("ignore::mime.control.kinematics.RobotFileWarning")
def test_a_transmission_that_cannot_be_is_told_with_its_line(parse, old, new, words):
    def change(text):
        text = text.replace(old, new)
        return text.replace("</actuator>", "</motor>", 1) if "motor" in new else text

    try:
        said = str(parse("DifferentialTransmission", change))
    except kin.UrdfError as error:
        said = str(error)
    assert words in said


def test_a_urdf_says_in_its_header_which_drives_it_cannot_hold(tmp_path):
    armed(DENSE).to_urdf(tmp_path / "dense.urdf")
    header = (tmp_path / "dense.urdf").read_text()
    assert "motor 'joint_6' turns by" in header
    armed().to_urdf(tmp_path / "wrist.urdf")
    again = mime.parse_urdf(tmp_path / "wrist.urdf")
    np.testing.assert_allclose(again.transmission, WRIST, rtol=4e-16)


@pytest.mark.parametrize("T", [WRIST, DENSE], ids=["wrist", "dense"])
def test_mujoco_moves_the_written_arm_alike(T, tmp_path):
    f = np.linspace(0.2, 0.7, 6)
    tree = dataclasses.replace(armed(T), joint_friction=f, joint_coulomb_friction=np.zeros(6))
    tree.to_mjcf(tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.opt.gravity[:] = GRAVITY
    data = mujoco.MjData(model)
    u = np.array([0.3, -0.2, 0.1, 0.05, -0.04, 0.03])
    data.qpos[:], data.qvel[:], data.ctrl[:] = Q, QD, u
    mujoco.mj_forward(model, data)
    M = np.zeros((6, 6))
    mujoco.mj_fullM(model, data, M)
    ours = kin.mass_matrix(tree, Q)
    np.testing.assert_allclose(M, ours, rtol=0, atol=1e-13 * np.abs(ours).max())
    C = tree.drive_coupling
    tau = tree.joint_torques(u) - C.T @ (f * (C @ QD))
    qdd = kin.forward_dynamics(tree, Q, QD, tau, GRAVITY)
    np.testing.assert_allclose(data.qacc, qdd, rtol=0, atol=1e-11 * np.abs(qdd).max())  # cond(M)
