"""Trees read from MJCF against MuJoCo, which reads the same files by itself; constraints are off.

Each file of gymnasium and dm_control that loads is compared by equations in plain NumPy, which
need no compiling, and so is one file of ours with everything that MIME reads. An arm then runs.
"""

import platform
import sys
from typing import NamedTuple

import mujoco
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import load_scenario
from mime.control.kinematics.floating import at_base, with_base_joints
from mjcf_files import of_package, write_everything
from tree_dynamics import link_poses, mass_and_bias

# MuJoCo and we add the same numbers in another order, and solve with matrices whose condition goes
# up to 1e4: accelerations differ by up to 2e-13 of the largest.
RTOL = 1e-11
PACKAGES = ("gymnasium", "dm_control")
HEAVY = ("fruitfly", "drosophila", "dog")
"""Files that MIME refuses (two free bodies, a fluid) and whose meshes take seconds to read."""
HAS_WHEELS = (
    sys.version_info < (3, 13) and sys.platform == "linux" and platform.machine() == "x86_64"
)
"""Where pyproject.toml asks for dm_control."""


def loaded(file):
    """The tree, and MuJoCo's model without constraints; None when one of them refuses the file."""
    try:
        tree = kin.parse_mjcf(file)
    except kin.MjcfError as error:
        return None, error
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:  # a mesh that is not there, which MIME draws as a box
        return None, error
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.density = model.opt.viscosity = 0.0  # reported: MIME has no fluids
    model.tendon_stiffness[:] = model.tendon_damping[:] = 0.0  # reported: nor tendons
    if len(tree.actuators) < model.nu:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    return tree, model


def passive_torques(tree, q, qd):
    tau = -tree.joint_friction * qd
    if tree.spring_stiffness_n_m_per_rad is not None:
        tau = tau - tree.spring_stiffness_n_m_per_rad * (q - tree.spring_reference_rad)
    return tau


class Base(NamedTuple):
    """Where MuJoCo has a free body, and how it moves: [v; w] in its own axes."""

    pose: np.ndarray
    twist: np.ndarray


def coordinates(tree, data):
    """q, q̇ and the base; None for one that is fixed."""
    n = tree.num_joints
    q, qd = np.array(data.qpos)[-n:], np.array(data.qvel)[-n:]
    if tree.base == "fixed":
        return q, qd, None
    pose = np.eye(4)
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, data.qpos[3:7])
    pose[:3, :3], pose[:3, 3] = R.reshape(3, 3), data.qpos[:3]
    return q, qd, Base(pose, np.concatenate([pose[:3, :3].T @ data.qvel[:3], data.qvel[3:6]]))


def equations(tree, q, qd, base):
    """M and the bias as MuJoCo has them: of a free body v is in world axes, w in the body's."""
    gravity = np.array(tree.gravity_m_per_s2)
    if base is None:
        return mass_and_bias(tree, q, qd, gravity)
    R, (x, y, z) = base.pose[:3, :3], base.twist[3:]
    u = np.concatenate([base.twist, qd])
    M, bias = mass_and_bias(with_base_joints(tree), at_base(q), u, R.T @ gravity)
    # ẇ = 0 of the body where the three hinges of `with_base_joints` turn one another
    bias = bias - M[:, 3:6] @ np.array([y * z, -x * z, x * y])
    G = np.eye(len(u))
    G[:3, :3] = R
    return G @ M @ G.T, G @ bias


def forward(model, seed):
    """MuJoCo's data at a random state, and its mass matrix."""
    data, n, rng = mujoco.MjData(model), model.nv, np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = rng.uniform(-1.0, 1.0, model.nq), rng.uniform(-1.0, 1.0, n)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qfrc_applied[:] = rng.uniform(-1.0, 1.0, n)
    data.ctrl[:] = rng.uniform(-1.0, 1.0, model.nu)
    mujoco.mj_forward(model, data)
    M = np.zeros((n, n))
    for k in range(n):
        mujoco.mj_mulM(model, data, M[k], np.eye(n)[k])
    return data, M


def close(ours, theirs, what):
    scale = max(float(np.max(np.abs(theirs))), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=RTOL * scale, err_msg=what)


@pytest.mark.small("gymnasium")
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore:compiler attribute")
def test_every_file_that_loads_has_mujocos_dynamics(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings into the current folder
    files = [file for file in of_package(package) if not file.stem.startswith(HEAVY)]
    if package == "dm_control" and not HAS_WHEELS:
        pytest.skip("dm_control has no wheels for this Python or platform")
    assert files, f"{package} is not installed"
    compared = floating = 0
    for file in files:
        tree, model = loaded(file)
        if tree is None or not model.nv:
            continue
        data, M = forward(model, 7)
        names = [model.joint(j).name or f"joint_{j}" for j in range(model.njnt)]
        assert names[tree.base == "floating" :] == [*tree.joint_names]
        floating += tree.base == "floating"
        q, qd, base = coordinates(tree, data)
        ours, bias = equations(tree, q, qd, base)
        close(ours, M, f"{file.name}: mass matrix")
        close(bias, data.qfrc_bias, f"{file.name}: bias")
        tau = np.array(data.qfrc_applied)
        tau[-len(q) :] += passive_torques(tree, q, qd)
        if len(tree.actuators) == model.nu:
            tau[-len(q) :] += kin.actuator_torques(tree, data.ctrl, q, qd)
        close(np.linalg.solve(ours, tau - bias), data.qacc_smooth, f"{file.name}: acceleration")
        root = np.eye(4) if base is None else base.pose
        poses = [*(root @ T for T in link_poses(tree, q)), root]  # -1 is the root
        for body in range(model.nbody):
            name = model.body(body).name
            if name in tree.frame_names:
                link, offset = tree.frame(name)
                close((poses[link] @ offset)[:3, 3], data.xpos[body], f"{file.name}: {name}")
        compared += 1
    assert compared >= {"gymnasium": 13, "dm_control": 23}[package]
    assert floating == {"gymnasium": 3, "dm_control": 5}[package]


@pytest.mark.filterwarnings("ignore:compiler attribute")
def test_a_base_that_is_held_stands_where_mujoco_puts_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (file,) = [file for file in of_package("gymnasium") if file.name == "ant.xml"]
    tree = kin.parse_mjcf(file, base="fixed")
    spec = mujoco.MjSpec.from_file(str(file))
    spec.delete(spec.joints[0])
    model = spec.compile()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, M = forward(model, 3)
    ours, bias = equations(tree, *coordinates(tree, data))
    close(ours, M, "mass matrix")
    close(bias, data.qfrc_bias, "bias")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    file = write_everything(tmp_path_factory.mktemp("mjcf") / "robot")
    return loaded(file)


def test_a_file_with_everything_has_mujocos_dynamics(everything):
    tree, model = everything
    assert tree.num_joints == 6
    for seed in range(3):
        data, M = forward(model, seed)
        q, qd, g = np.array(data.qpos), np.array(data.qvel), np.array(tree.gravity_m_per_s2)
        ours, bias = mass_and_bias(tree, q, qd, g)
        close(ours, M, "mass matrix")
        close(bias, data.qfrc_bias, "bias")
        drives = kin.actuator_torques(tree, data.ctrl, q, qd)
        close(drives, data.qfrc_actuator, "actuators")
        tau = data.qfrc_applied + passive_torques(tree, q, qd) + drives
        close(np.linalg.solve(ours, tau - bias), data.qacc_smooth, "acceleration")
        for name, at, xpos, xmat in (
            ("torso", model.body("torso").id, data.xpos, data.xmat),
            ("arm", model.body("arm").id, data.xpos, data.xmat),
            ("flange", model.body("flange").id, data.xpos, data.xmat),
            ("tool", model.site("tool").id, data.site_xpos, data.site_xmat),
            ("site/arm", model.site("arm").id, data.site_xpos, data.site_xmat),
            ("origin_mark", model.site("origin_mark").id, data.site_xpos, data.site_xmat),
        ):
            link, offset = tree.frame(name)
            T = [*link_poses(tree, q), np.eye(4)][link] @ offset
            close(T[:3, 3], xpos[at], name)
            close(T[:3, :3].ravel(), xmat[at], name)


HOPPER = """<mujoco><option gravity="1 0 -9"/><worldbody><body name="leg">
<joint name="slide" type="slide" axis="0 0 1" damping="2"/>
<joint name="knee" axis="0 1 0" pos="0 0 0.1" stiffness="4" springref="30" damping="0.2"
       armature="0.01" ref="10" range="-170 170"/>
<inertial mass="1" pos="0.1 0 0.2" diaginertia="0.02 0.02 0.01"/><site name="foot" pos="0 0 1"/>
</body></worldbody></mujoco>"""
SCENARIO = """[simulation]
timestep = 0.001
duration = 0.2
initial_state.arm.joint_angles = [0.1, 0.5]
[nodes.arm]
type = "RobotArmNode"
urdf_path = "hopper.xml"
end_effector_link_name = "foot"
on_problem = "refuse"
"""


def test_a_scenario_runs_an_arm_from_an_mjcf_as_mujoco_does(tmp_path):
    # Both are semi-implicit Euler with implicit damping: what is left is rounding, grown over the
    # swing.
    (tmp_path / "hopper.xml").write_text(HOPPER)
    (tmp_path / "run.toml").write_text(SCENARIO)
    scenario = load_scenario(tmp_path / "run.toml")
    final = scenario.simulation.run(
        0.2, progress=False, initial_state=scenario.initial_state, record=["arm.joint_angles"]
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "hopper.xml"))
    model.opt.timestep = 1e-3
    data = mujoco.MjData(model)
    data.qpos[:] = 0.1, 0.5
    for _ in range(200):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(final["arm"]["joint_angles"][-1], data.qpos, rtol=0, atol=1e-11)
    assert abs(data.qpos[1] - 0.5) > 0.05
