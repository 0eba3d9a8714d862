"""In, out and in again: URDF and MJCF of a tree as it is now."""

import dataclasses
import math
from xml.etree import ElementTree

import equinox as eqx
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from mime import GraphManager, RobotArmNode, parse_mjcf, parse_urdf
from mime.control.kinematics.physical_inertia import nearest_physical_inertia
from mime.core.problem import InputError
from mime.models import model_path
from mjcf_files import write_everything
from tree_dynamics import link_poses, mass_and_bias

MIMIC = """<robot name="grip"><link name="base"/>
<link name="hand"><inertial><mass value="1"/><origin xyz="0 0 0.1"/><inertia ixx="0.01" iyy="0.02"
izz="0.015" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<link name="finger"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/>
</inertial></link><link name="tip"/>
<joint name="wrist" type="revolute"><parent link="base"/><child link="hand"/><axis xyz="1 2 2"/>
<limit lower="-1" upper="2" effort="9" velocity="3"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<joint name="close" type="prismatic"><parent link="hand"/><child link="finger"/>
<axis xyz="0 1 0"/><origin xyz="0 0 0.2" rpy="0.1 0.2 0.3"/><limit lower="0" upper="0.1" effort="1"
velocity="1"/><mimic joint="wrist" multiplier="0.05" offset="0.01"/></joint>
<joint name="tip_fixed" type="fixed"><parent link="finger"/><child link="tip"/>
<origin xyz="0 0 0.3" rpy="0.3 1.5707963267948966 -2"/></joint>
<transmission name="t"><joint name="wrist"/><actuator name="m"><mechanicalReduction>50
</mechanicalReduction><rotorInertia>1e-5</rotorInertia></actuator></transmission></robot>"""


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("robots")
    (folder / "grip.urdf").write_text(MIMIC)
    return {
        "everything": parse_mjcf(write_everything(folder / "mjcf")),
        "desktop_arm": parse_urdf(model_path("desktop_arm_6axis")),
        "planar_arm": parse_urdf(model_path("planar_arm_3link")),
        "grip": parse_urdf(folder / "grip.urdf"),
    }


def dynamics(tree, q, qd):
    return mass_and_bias(tree, q, qd, np.array([0.5, -1.0, -9.81]))


def assert_same(again, tree, named=True):
    """The same dynamics to 1e-12, the same frames, the same numbers of the joints."""
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1, 1, (2, tree.num_joints))
    for ours, theirs in zip(dynamics(again, q, qd), dynamics(tree, q, qd), strict=True):
        scale = np.max(np.abs(theirs))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale)
    assert again.joint_names == tree.joint_names
    between = {"torso/rootx", "torso/roota"}  # of joints that share a body: turned by `ref` or not
    assert set(tree.frame_names) - set(again.frame_names) <= between
    poses, before = ([*link_poses(t, q), np.eye(4)] for t in (again, tree))
    for name in set(tree.frame_names) & set(again.frame_names) - between:
        (i, T), (j, T0) = again.frame(name), tree.frame(name)
        np.testing.assert_allclose(poses[i] @ T, before[j] @ T0, rtol=0, atol=1e-12, err_msg=name)
    for field in ("joint_friction", "joint_coulomb_friction", "gear_ratio", "rotor_inertia"):
        np.testing.assert_allclose(getattr(again, field), getattr(tree, field), rtol=1e-15)
    bounded = np.isfinite(tree.joint_limits)
    np.testing.assert_array_equal(again.joint_limits[bounded], tree.joint_limits[bounded])
    finite = np.isfinite(tree.effort_limits)
    np.testing.assert_array_equal(again.effort_limits[finite], tree.effort_limits[finite])
    if named:
        assert again.link_names == tree.link_names


@pytest.mark.parametrize("name", ["everything", "desktop_arm", "planar_arm"])
def test_an_mjcf_reads_back_with_the_same_dynamics(trees, name, tmp_path):
    tree = trees[name]
    tree.to_mjcf(tmp_path / "out.xml")
    again = parse_mjcf(tmp_path / "out.xml")
    assert_same(again, tree)
    if tree.actuators:
        assert again.actuators == tree.actuators
        assert again.keyframes == tree.keyframes
        np.testing.assert_array_equal(
            again.spring_stiffness_n_m_per_rad, tree.spring_stiffness_n_m_per_rad
        )
        sprung = tree.spring_stiffness_n_m_per_rad > 0
        reference = tree.spring_reference_rad[sprung]
        np.testing.assert_array_equal(again.spring_reference_rad[sprung], reference)
        assert again.gravity_m_per_s2 == tree.gravity_m_per_s2
    again.to_mjcf(tmp_path / "twice.xml")
    assert_same(parse_mjcf(tmp_path / "twice.xml"), tree)


@pytest.mark.parametrize("name", ["everything", "desktop_arm", "planar_arm", "grip"])
def test_a_urdf_reads_back_with_the_same_dynamics(trees, name, tmp_path):
    tree = trees[name]
    tree.to_urdf(tmp_path / "out.urdf")
    again = parse_urdf(tmp_path / "out.urdf")
    assert_same(again, tree, named=name != "everything")
    text = (tmp_path / "out.urdf").read_text()
    if name == "everything":
        assert "joint 'elbow' has a spring of 4.0 N·m/rad" in text
        assert "position 'hold' on joint 'elbow'" in text
        assert "gravity 0.3 -0.5 -9.7 m/s²" in text
    else:
        np.testing.assert_array_equal(again.inertias, tree.inertias)
        np.testing.assert_array_equal(again.velocity_limits, tree.velocity_limits)


def test_mujoco_accelerates_as_the_tree_that_was_written(trees, tmp_path):
    tree = trees["desktop_arm"]
    tree = eqx.tree_at(lambda t: t.masses, tree, tree.masses * 1.3)
    tree.to_mjcf(tmp_path / "out.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, rng = mujoco.MjData(model), np.random.default_rng(2)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = rng.uniform(-1, 1, (3, 6))
    mujoco.mj_forward(model, data)
    M, bias = mass_and_bias(tree, data.qpos, data.qvel, np.array([0, 0, -9.80665]))
    qdd = np.linalg.solve(M, data.qfrc_applied - tree.joint_friction * data.qvel - bias)
    np.testing.assert_allclose(data.qacc, qdd, rtol=1e-11)


@pytest.fixture(scope="module")
def grip(trees, tmp_path_factory):
    """What was written of the gripper, MuJoCo's model of it, and its joints from the wrist's."""
    file = tmp_path_factory.mktemp("grip") / "out.xml"
    trees["grip"].to_mjcf(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.dof_frictionloss[:] = 0.0  # a constraint of its own
    return file.read_text(), model, np.array([1.0, 0.05])


def test_a_mimicking_joint_is_a_soft_equality_and_the_header_says_so(grip):
    text, model, _ = grip
    np.testing.assert_array_equal(model.eq_data[0, :2], [0.01, 0.05])
    assert "joint 'close' mimics 'wrist' rigidly: MuJoCo's equality is soft" in text
    assert "holds accelerations to about 1e-04 (solimp)" in text
    assert "set 'close' to 0.01 when all others are 0" in text
    assert "joint 'wrist' turns at 3.0 rad/s at most" in text


def test_without_the_equality_mujoco_has_the_dynamics_of_which_the_tree_is_the_part(trees, grip):
    """M = Gᵀ M_all G,  c = Gᵀ c_all,  with G the line of the mimicking joint: exact."""
    _, model, G = grip
    data, q, qd, gravity = mujoco.MjData(model), 0.7, -1.3, np.array([0, 0, -9.80665])
    data.qpos[:], data.qvel[:] = G * q + [0.0, 0.01], G * qd
    mujoco.mj_forward(model, data)
    whole = np.zeros((2, 2))
    for k in range(2):
        mujoco.mj_mulM(model, data, whole[k], np.eye(2)[k])
    M, bias = mass_and_bias(trees["grip"], np.array([q]), np.array([qd]), gravity)
    np.testing.assert_allclose(G @ whole @ G, M[0, 0], rtol=1e-12)
    np.testing.assert_allclose(G @ data.qfrc_bias, bias[0], rtol=1e-11)


def test_with_the_equality_mujoco_accelerates_as_the_tree_to_its_softness(trees, grip):
    _, model, G = grip
    data, q, qd, tau = mujoco.MjData(model), 0.7, -1.3, 2.0
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = G * q + [0.0, 0.01], G * qd, [tau, 0.0]
    mujoco.mj_forward(model, data)
    gravity = np.array([0, 0, -9.80665])
    M, bias = mass_and_bias(trees["grip"], np.array([q]), np.array([qd]), gravity)
    friction = float(trees["grip"].joint_friction[0])
    qdd = (tau - friction * qd - bias[0]) / M[0, 0]
    free = np.linalg.norm(data.qacc_smooth - G * qdd)
    assert free > 1.0
    # It lets 1e-4 of what it holds through, by an inertia that MuJoCo estimates at qpos = 0: 3e-4.
    assert np.linalg.norm(data.qacc - G * qdd) < 5e-4 * free


def test_the_equality_takes_the_mimicking_joint_to_its_line(grip):
    """From qpos = 0, which is off the line by the offset, in a few times solref's 0.02 s."""
    _, model, _ = grip
    data, apart = mujoco.MjData(model), []
    for _ in range(100):
        mujoco.mj_step(model, data)
        apart.append(abs(data.qpos[1] - 0.05 * data.qpos[0] - 0.01))
    assert apart[0] > 5e-3
    assert apart[-1] < 1e-4


BODIES = {
    "sound": (1.0, np.diag([1.0, 2.0, 3.0])),
    "light": (1e-15, 1e-15 * np.eye(3)),
    "too light": (9e-16, np.eye(3)),
    "no mass": (0.0, np.zeros((3, 3))),
    "inertia alone": (0.0, np.eye(3)),
    "point": (1.0, np.zeros((3, 3))),
    "planar": (1.0, np.diag([0.0, 0.0, 2.0])),
    "thin": (1.0, np.diag([5e-16, 1.0, 1.0])),
    "broken": (1.0, np.diag([1.0, 1.0, 3.0])),
    "turned": (1.0, 0.5 * np.array([[5.0, 1.0, 0.0], [1.0, 5.0, 0.0], [0.0, 0.0, 1.0]])),
    "rounded": (1.0, np.diag([1.0, 1.0, 2.0000001])),
}
READ = ("sound", "light", "rounded")


def one_body(trees, which):
    """The last link of the planar arm has this body; the other links are sound."""
    tree = trees["planar_arm"]
    masses, inertias = np.ones(3), np.stack([np.eye(3)] * 3)
    masses[2], inertias[2] = BODIES[which]
    return dataclasses.replace(tree, masses=masses, inertias=inertias)


@pytest.mark.parametrize("which", BODIES)
def test_mujoco_reads_what_is_not_refused_and_what_is_mended(trees, which, tmp_path):
    tree, file = one_body(trees, which), tmp_path / "out.xml"
    if which in READ:
        tree.to_mjcf(file)
    else:
        with pytest.raises(InputError, match=rf"mend=True.*: link '{tree.link_names[2]}' has "):
            tree.to_mjcf(file)
        assert not file.exists()
        tree.to_mjcf(file, mend=True)
    model, text = mujoco.MjModel.from_xml_path(str(file)), file.read_text()
    body = model.body(tree.link_names[2]).id
    mass, moments = BODIES[which][0], np.linalg.eigvalsh(BODIES[which][1])
    if which in ("sound", "light"):
        assert "are written" not in text
        assert model.body_mass[body] == mass
        np.testing.assert_array_equal(np.sort(model.body_inertia[body]), moments)
    else:
        assert f"link '{tree.link_names[2]}' has " in text
        assert "are written -->" in text
        assert model.body_mass[body] == max(mass, 1e-14 if mass < 1e-15 else 0.0)
        nearest = np.linalg.eigvalsh(nearest_physical_inertia(BODIES[which][1]))
        expected = np.where(nearest < 1e-15, 1e-14, nearest)
        # A moment that fails by rounding is cut to the sum of the others.
        np.testing.assert_allclose(np.sort(model.body_inertia[body]), expected, rtol=1e-7)


@pytest.mark.parametrize("which", sorted({*BODIES} - {*READ}))
def test_mujoco_does_not_read_what_is_refused(which):
    """The same numbers, written without a look at them."""
    mass, inertia = BODIES[which]
    entries = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    full = " ".join(repr(float(inertia[entry])) for entry in entries)
    xml = f"""<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="{mass!r}"
    fullinertia="{full}"/></body></worldbody></mujoco>"""
    with pytest.raises(ValueError, match=r"mass|inertia"):
        mujoco.MjModel.from_xml_string(xml)


def test_all_links_that_mujoco_does_not_read_are_named_at_once(trees, tmp_path):
    tree = trees["planar_arm"]
    first, second, third = tree.link_names
    masses = np.array([1.0, 0.0, 1.0])
    inertias = np.stack([np.diag([1.0, 1.0, 3.0]), 0.0 * np.eye(3), np.diag([0.0, 0.0, 1.0])])
    weak = dataclasses.replace(tree, masses=masses, inertias=inertias, visuals=())
    with pytest.raises(InputError) as refused:
        weak.to_mjcf(tmp_path / "out.xml")
    named = [problem.place for problem in refused.value.problems]
    # Without a frame or a shape of its own the massless link would pass its joint on.
    assert named == [("link", first), ("link", third)]
    weak = weak.with_frame("grip", second).with_base("floating")
    with pytest.raises(InputError) as refused:
        weak.to_mjcf(tmp_path / "out.xml")
    named = [problem.place for problem in refused.value.problems]
    assert named == [("link", name) for name in (weak.root_link_name, first, second, third)]
    weak.to_mjcf(tmp_path / "out.xml", mend=True)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    assert model.nv == 9
    assert (tmp_path / "out.xml").read_text().count("are written -->") == 6
    weak.to_urdf(tmp_path / "out.urdf")  # as it is
    assert '<inertia ixx="0.0" ixy="0.0" ixz="0.0" iyy="0.0"' in (tmp_path / "out.urdf").read_text()


def test_a_graph_with_such_an_arm_is_written_when_mended(trees, tmp_path):
    tree = one_body(trees, "planar")
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", 1e-3, tree, tree.link_names[-1]))
    simulation = graph.compile()
    with pytest.raises(InputError, match=r"none below 1e-15"):
        simulation.to_mjcf(tmp_path / "out.xml")
    simulation.to_mjcf(tmp_path / "out.xml", mend=True)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml")).nv == 3


def test_comments_tell_where_a_value_came_from_and_markup_stays_words(trees, tmp_path):
    tree = trees["planar_arm"]
    link, joint = tree.link_names[0], tree.joint_names[0]
    said = {
        "origins": {f"link[{link}].mass_kg": "fit -- of <May> & June --"},
        "uncertainties": {
            f"link[{link}].mass_kg": 0.02,
            f"joint[{joint}].friction_n_m_s": 0.1,
            f"joint[{joint}].friction.torque_n_m": 0.2,
        },
    }
    for write, file in ((tree.to_mjcf, "out.xml"), (tree.to_urdf, "out.urdf")):
        write(tmp_path / file, **said)
        text = (tmp_path / file).read_text()
        assert f"<!-- link[{link}].mass_kg: ± 0.02 (fit - - of <May> & June - -) -->" in text
        assert f"<!-- joint[{joint}].friction_n_m_s: ± 0.1 -->" in text
        assert f"<!-- joint[{joint}].friction.torque_n_m: ± 0.2 -->" in text
        ElementTree.fromstring(text)
    with pytest.raises(InputError, match=r"origins must be addresses such as .*got 'mass_kg'"):
        tree.to_mjcf(tmp_path / "out.xml", origins={"mass_kg": "fit"})


def test_names_with_markup_are_escaped_and_the_file_is_whole_or_not_there(trees, tmp_path):
    odd = '<a> & "b" -- '
    tree = dataclasses.replace(
        trees["planar_arm"],
        name=odd,
        joint_names=(odd, *trees["planar_arm"].joint_names[1:]),
        link_joint_names=(odd, *trees["planar_arm"].link_joint_names[1:]),
    )
    tree.to_urdf(tmp_path / "odd.urdf")
    tree.to_mjcf(tmp_path / "odd.xml")
    assert parse_urdf(tmp_path / "odd.urdf").joint_names == tree.joint_names
    assert parse_mjcf(tmp_path / "odd.xml").joint_names == tree.joint_names
    with pytest.raises(FileNotFoundError, match="does not exist"):
        tree.to_mjcf(tmp_path / "gone" / "out.xml")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["odd.urdf", "odd.xml"]


@pytest.mark.parametrize("model", ["sea", "inserted_body"])
def test_an_elastic_arm_accelerates_in_mujoco_as_it_does_here(trees, tmp_path, model):
    tree = trees["planar_arm"]
    first = tree.joint_names[0]
    ball = {"inserted_inertia_kg_m2": {first: 0.02}} if model == "inserted_body" else {}
    base = [0.1, 0.2, 0.3, math.cos(0.4), math.sin(0.4), 0.0, 0.0]
    arm = RobotArmNode(
        "arm",
        1e-3,
        tree,
        tree.link_names[-1],
        base_pose_world=base,
        rotor_inertia_kg_m2={first: 1e-3},
        gear_ratio={first: 10.0},
        joint_friction_n_m_s=[0.3, 0.2, 0.1],
        joint_stiffness_n_m_per_rad={first: 80.0},
        joint_stiffness_damping_n_m_s={first: 0.4},
        joint_model=model,
        **ball,
    )
    graph = GraphManager()
    graph.add_node(arm)
    graph.compile().to_mjcf(tmp_path / "out.xml")
    mj = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, rng = mujoco.MjData(mj), np.random.default_rng(1)
    q, qd, tau = rng.uniform(-1, 1, (3, 3))
    x, xd = rng.uniform(-0.1, 0.1, (2, 1))
    at = [mj.joint(name).qposadr[0] for name in tree.joint_names]
    spring = mj.joint(f"{first}_spring").qposadr[0]
    data.qpos[at], data.qvel[at] = q, qd
    data.qpos[at[0]] -= x[0]
    data.qvel[at[0]] -= xd[0]
    data.qpos[spring], data.qvel[spring], data.qfrc_applied[at] = x[0], xd[0], tau
    mujoco.mj_forward(mj, data)
    state = {
        "joint_angles": q,
        "joint_velocities": qd,
        "joint_deflections": x,
        "joint_deflection_velocities": xd,
    }
    state = {name: jnp.asarray(value) for name, value in state.items()}
    qdd, xdd = arm.accelerations(state, {"commanded_joint_torques": tau})
    expected = np.array(qdd)
    expected[0] -= float(xdd[0])
    np.testing.assert_allclose(data.qacc[at], expected, rtol=1e-10)
    np.testing.assert_allclose(data.qacc[spring], float(xdd[0]), rtol=1e-10)
    np.testing.assert_array_equal(mj.tendon_range[0], tree.joint_limits[0])
