"""Every URDF of `example-robot-data` against Pinocchio: it loads and agrees, or is refused for a
stated reason.

MIME is called with NumPy arrays here, so that the very code that JAX traces is evaluated by
Python in double precision: no compilation, hence sixty robots in a minute.
`test_compiled_code_agrees_with_the_same_code_in_numpy` closes the gap. Mimic joints: Pinocchio's
model of all joints is projected with q_all = G q + offset, M = Gᵀ M_all G. `pytest -s` shows the
table.
"""

import dataclasses
import re
import sys
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from pinocchio_tree import GRAVITY, Reference

# The package has functions of the same names.
forward_dynamics = sys.modules["mime.control.kinematics.forward_dynamics"]
recursion = sys.modules["mime.control.kinematics.recursion"]

# Both sides sum some hundred products in double precision (1e-16 each, and up to 1e3 of
# cancellation).
RTOL = 1e-10

ROBOTS = {
    f"{Path(str(file)).parts[-3].removesuffix('_description')}/{Path(str(file)).stem}": file
    for file in metadata.files("example-robot-data")
    if str(file).endswith(".urdf")
}
REFUSED = {
    "ur/ur3": "has no <link>",
    "alex/alex_psyonic_hands": "mimics 'index_q1', which does not exist",
    "romeo/romeo_laas_small": "principal moments of inertia -",
}
STANDS = ("hector/quadrotor_base", "iris/iris_simple")
"""Without a joint that moves."""


def load(name: str, **options) -> kin.KinematicTree:
    return kin.parse_urdf(ROBOTS[name].locate(), **options)


def configurations(tree: kin.KinematicTree) -> dict[str, np.ndarray]:
    """Where a joint can stand: zero, its stops, turned around, many turns on, anywhere."""
    rng = np.random.default_rng(len(tree.link_names))
    lower, upper = np.clip(tree.joint_limits, -np.pi, np.pi).T
    return {
        "zero": np.zeros(tree.num_joints),
        "lower stops": lower,
        "upper stops": upper,
        "half turn": np.full(tree.num_joints, np.pi),
        "far": rng.uniform(-100.0, 100.0, tree.num_joints),
        "random 1": rng.uniform(lower, upper),
        "random 2": rng.uniform(lower, upper),
    }


def error(ours, theirs) -> float:
    """Largest deviation, relative to the largest entry."""
    return float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-300))


def errors(reference: Reference, q: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    tree = reference.tree
    n, tip = tree.num_joints, tree.num_links - 1
    # Fast motion, so that Coriolis torques are not lost beside gravity.
    qd, qdd, tau = 10.0 * rng.normal(size=(3, n))
    F_ext = 10.0 * rng.normal(size=(tree.num_links, 6))
    T = kin.joint_to_world_transforms(tree, q)
    frames = np.array(
        [
            (np.eye(4) if link_idx < 0 else T[link_idx]) @ offset
            for link_idx, offset in map(tree.frame, tree.frame_names)
        ]
    )
    zero = np.zeros(n)
    # Solving M x = b loses log10(cond M) digits, whoever does it, so count the loss beyond that.
    # It matters where links without inertia line up: human at its stops (cond M 1e13), icub at
    # q = 0 and half a turn (1e17: singular, its forward dynamics is in effect not compared there).
    M = reference.mass_matrix(q)
    weightless = kin.joints_without_inertia(tree)
    solving = max(1.0, 100.0 * np.finfo(float).eps * np.linalg.cond(M) / RTOL)
    return {
        "fk": error(frames, reference.frame_transforms(q)),
        "jacobian": error(kin.frame_jacobian(tree, q, tip), reference.link_jacobian(q, tip)),
        "mass": error(kin.mass_matrix(tree, q), M),
        "bias": error(kin.nonlinear_bias(tree, q, qd, GRAVITY), reference.rnea(q, qd, zero)),
        "inverse": error(
            kin.rnea(tree, q, qd, qdd, GRAVITY, F_ext), reference.rnea(q, qd, qdd, F_ext)
        ),
        "forward": 0.0
        if weightless
        else error(
            kin.forward_dynamics(tree, q, qd, tau, GRAVITY, F_ext),
            reference.forward_dynamics(q, qd, tau, F_ext),
        )
        / solving,
    }


def show(name: str, text: str) -> None:
    print(f"\n{name:32s} {text}", end="")


# Joints without inertia, no joint, mimic joints, wheels, a lift, four legs, links without inertia;
# and all that are refused.
MIXED = [
    "romeo/romeo",
    *STANDS,
    "panda/panda",
    "pr2/pr2",
    "tiago/tiago_no_hand",
    "a1/a1",
    "human/human",
]


@pytest.mark.small(*MIXED, *REFUSED)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_published_robot_agrees_or_is_refused_for_a_reason(name, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")  # Python computes: kernels of all robots take minutes
    if name in REFUSED:
        with pytest.raises(kin.UrdfError) as refusal:
            load(name)
        message = str(refusal.value).removeprefix(str(ROBOTS[name].locate()))
        show(name, f"refused{message}")
        assert REFUSED[name] in message
        return
    tree = load(name)
    assert (tree.num_joints == 0) == (name in STANDS)
    if name in STANDS:
        return
    reference = Reference(tree)
    rng = np.random.default_rng(0)
    worst: dict[str, float] = {}
    for q in configurations(tree).values():
        for what, value in errors(reference, q, rng).items():
            worst[what] = max(worst.get(what, 0.0), value)
    figures = "  ".join(f"{what} {value:.0e}" for what, value in worst.items())
    show(name, f"{tree.num_joints:3d} joints {tree.num_links:3d} links  {figures}")
    assert max(worst.values()) < RTOL, worst


def test_the_package_holds_the_robots_that_this_comparison_is_about():
    assert len(ROBOTS) == 69
    assert len(ROBOTS) - len(REFUSED) >= 20


@pytest.mark.small("romeo/romeo_small")
@pytest.mark.parametrize("name", ["romeo/romeo", "romeo/romeo_small", "romeo/romeo_laas_small"])
def test_a_mended_robot_differs_from_pinocchios_by_what_its_report_says(name, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    tree = load(name, on_problem="mend")
    reference = Reference(tree)
    words = " ".join(finding.what for finding in tree.report if "is held at" in finding.effect)
    held = re.findall(r"moves by joint '([^']*)'", words)
    mimicked = re.findall(r"<mimic[^>]*\bjoint=[\"']([^\"']*)", Path(tree.source).read_text())
    # Pinocchio moves joints that mimic a held one by themselves.
    removed = len(held) + sum(joint in held for joint in mimicked)
    assert reference.model.nv - tree.num_links == removed
    for i, joint in enumerate(reference.joints):
        ours = pin.Inertia(float(tree.masses[i]), tree.coms[i], tree.inertias[i])
        mended = any(
            finding.what.startswith(f"link {tree.link_names[i]!r} ") and "nearest" in finding.effect
            for finding in tree.report
        )
        if mended:
            reference.model.inertias[joint] = ours
        else:
            assert error(ours.matrix(), reference.model.inertias[joint].matrix()) < RTOL
    q = configurations(tree)["random 1"]
    assert error(kin.mass_matrix(tree, q), reference.mass_matrix(q)) < RTOL


@pytest.mark.small("tiago/tiago_no_hand")
@pytest.mark.parametrize("name", ["panda/panda", "tiago/tiago_no_hand", "talos_data/talos_full_v2"])
def test_jacobian_rates_and_energies_agree(name):
    tree = load(name)
    reference = Reference(tree)
    rng = np.random.default_rng(1)
    q, qd = configurations(tree)["random 1"], rng.normal(size=tree.num_joints)
    # Of every link as Python computes it; machine code, which is compiled for each, of the last.
    jacobian, dot_qd = kin.frame_jacobian.__wrapped__, kin.frame_jacobian_dot_qd_at.__wrapped__
    for i, link in enumerate(tree.link_names):
        if i == tree.num_links - 1:
            jacobian, dot_qd = kin.frame_jacobian, kin.frame_jacobian_dot_qd_at
        assert error(jacobian(tree, q, i), reference.link_jacobian(q, i)) < RTOL
        rate = dot_qd(tree, q, qd, link)
        # The first links have no such acceleration at all: compare with the scale of qd².
        assert np.max(np.abs(rate - reference.origin_acceleration(q, qd, i))) < RTOL * (qd @ qd)
    model, data = reference.model, reference.data
    T = pin.computeKineticEnergy(model, data, reference.q(q), reference.G @ qd)
    assert kin.kinetic_energy(tree, q, qd) == pytest.approx(T, rel=RTOL)
    other = configurations(tree)["random 2"]
    V = [pin.computePotentialEnergy(model, data, reference.q(x)) for x in (q, other)]
    ours = [kin.potential_energy(tree, x, GRAVITY) for x in (q, other)]
    assert ours[0] - ours[1] == pytest.approx(V[0] - V[1], rel=RTOL)


@pytest.mark.small("pr2/pr2")
@pytest.mark.parametrize("name", ["panda/panda", "baxter/baxter", "pr2/pr2"])
def test_mimic_joints_agree_with_pinocchios_own_mimic_model(name):
    tree = load(name)
    model = pin.buildModelFromUrdf(tree.source, mimic=True)
    assert model.nv == tree.num_joints < tree.num_links
    q = configurations(tree)["random 1"]
    full, order = pin.neutral(model), []
    for c, joint in enumerate(map(model.getJointId, tree.joint_names)):
        j = model.joints[joint]
        full[j.idx_q : j.idx_q + j.nq] = q[c] if j.nq == 1 else (np.cos(q[c]), np.sin(q[c]))
        order.append(j.idx_v)
    M = pin.crba(model, model.createData(), full)
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(order, order)]
    assert error(kin.mass_matrix(tree, q), M) < RTOL


def test_armature_agrees_in_all_three_algorithms():
    tree = load("ur/ur5_robot")
    gear, rotor = np.full(6, 100.0), np.linspace(1e-5, 6e-5, 6)
    tree = dataclasses.replace(tree, gear_ratio=gear, rotor_inertia=rotor)
    reference = Reference(tree)
    reference.model.armature = gear**2 * rotor
    q = configurations(tree)["random 1"]
    found = errors_with(tree, reference, q)
    assert max(found) < RTOL


def errors_with(tree, reference, q):
    rng = np.random.default_rng(2)
    qd, qdd, tau = rng.normal(size=(3, tree.num_joints))
    no_wrench = np.zeros((tree.num_links, 6))
    return (
        error(kin.mass_matrix(tree, q), reference.mass_matrix(q)),
        error(kin.rnea(tree, q, qd, qdd, GRAVITY), reference.rnea(q, qd, qdd)),
        error(
            kin.forward_dynamics(tree, q, qd, tau, GRAVITY),
            reference.forward_dynamics(q, qd, tau, no_wrench),
        ),
    )


@pytest.mark.small("panda/panda")
@pytest.mark.parametrize("name", ["ur/ur5_robot", "panda/panda", "a1/a1"])
def test_compiled_code_agrees_with_the_same_code_in_numpy(name):
    tree = load(name)
    rng = np.random.default_rng(3)
    q = configurations(tree)["random 1"]
    qd, tau = rng.normal(size=(2, tree.num_joints))

    @jax.jit
    def compiled(q, qd, tau):
        return kin.forward_dynamics(tree, q, qd, tau, GRAVITY), kin.mass_matrix(tree, q)

    qdd, M = compiled(*map(jnp.asarray, (q, qd, tau)))
    assert error(qdd, kin.forward_dynamics(tree, q, qd, tau, GRAVITY)) < RTOL
    assert error(M, kin.mass_matrix(tree, q)) < RTOL


# An arm, four legs, a lift under an arm and a head.
@pytest.mark.small("a1/a1")
@pytest.mark.parametrize("name", ["ur/ur5_robot", "a1/a1", "tiago/tiago_no_hand"])
def test_articulated_bodies_agree_on_real_robots(name, monkeypatch):
    check_articulated_bodies(load(name), monkeypatch, kin.forward_dynamics)


def test_articulated_bodies_agree_on_a_chain_of_30_joints(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    parts = ['<robot name="snake"><link name="l0"/>']
    for i in range(1, 31):
        x, y, z = rng.normal(0, 0.1, 3)
        roll, pitch, yaw = rng.normal(0, 1, 3)
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="{x} {y} {z}"/><mass value="1"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0.001" iyz="0"/></inertial>'
            f'</link><joint name="j{i}" type="{"prismatic" if i % 7 == 0 else "revolute"}">'
            f'<parent link="l{i - 1}"/><child link="l{i}"/><limit effort="1" velocity="1"/>'
            f'<origin xyz="{z} {x} 0.2" rpy="{roll} {pitch} {yaw}"/><axis xyz="0 0.6 0.8"/></joint>'
        )
    path = tmp_path / "snake.urdf"
    path.write_text("".join(parts) + "</robot>")
    in_python = kin.forward_dynamics.__wrapped__  # machine code of so long a chain takes its time
    check_articulated_bodies(kin.parse_urdf(path), monkeypatch, in_python)


def check_articulated_bodies(tree, monkeypatch, accelerations):
    monkeypatch.setattr(
        forward_dynamics, "articulated_bodies_are_fewer_operations", lambda tree: True
    )
    reference, n = Reference(tree), tree.num_joints
    rng = np.random.default_rng(4)
    qd, tau = 10.0 * rng.normal(size=(2, n))
    F_ext = 10.0 * rng.normal(size=(tree.num_links, 6))
    for q in configurations(tree).values():
        theirs = reference.forward_dynamics(q, qd, tau, F_ext)
        allowed = RTOL * max(1.0, 1e-4 * np.linalg.cond(reference.mass_matrix(q)))
        assert error(accelerations(tree, q, qd, tau, GRAVITY, F_ext), theirs) < allowed


# A humanoid of 29 joints in five runs; wheels, a lift that slides, a head and an arm, with a hand
# and without.
@pytest.mark.small("tiago/tiago_no_hand")
@pytest.mark.parametrize("name", ["g1/g1_29dof_rev_1_0", "tiago/tiago", "tiago/tiago_no_hand"])
def test_a_branching_tree_in_loops_agrees(name, monkeypatch):
    in_loops, make = [], recursion.Loops.__init__

    def counted(self, *given):
        in_loops.append(self)
        make(self, *given)

    monkeypatch.setattr(recursion, "WORTH_LOOPS", -1000)
    monkeypatch.setattr(recursion.Loops, "__init__", counted)
    tree = load(name)
    reference, n = Reference(tree), tree.num_joints
    rng = np.random.default_rng(5)
    q, tip = configurations(tree)["random 1"], n - 1
    qd, qdd, tau = 10.0 * rng.normal(size=(3, n))
    F_ext = 10.0 * rng.normal(size=(n, 6))
    # As machine code, which is made of the same loops.
    frames = kin.joint_to_world_transforms(tree, q)
    jacobian = kin.frame_jacobian(tree, q, tip)
    rate = kin.frame_jacobian_dot_qd_at(tree, q, qd, tree.link_names[tip])
    mass = kin.mass_matrix(tree, q)
    inverse = kin.rnea(tree, q, qd, qdd, GRAVITY, F_ext)
    forward = kin.forward_dynamics(tree, q, qd, tau, GRAVITY, F_ext)
    assert len(in_loops) >= 6  # one or more a function
    named = dict(zip(tree.frame_names, reference.frame_transforms(q), strict=True))
    assert error(frames, np.array([named[x] for x in tree.link_names])) < RTOL
    assert error(jacobian, reference.link_jacobian(q, tip)) < RTOL
    assert np.max(np.abs(rate - reference.origin_acceleration(q, qd, tip))) < RTOL * qd @ qd
    np.testing.assert_array_equal(mass, mass.T)
    M = reference.mass_matrix(q)
    assert error(mass, M) < RTOL
    assert error(inverse, reference.rnea(q, qd, qdd, F_ext)) < RTOL
    allowed = RTOL * max(1.0, 1e-4 * np.linalg.cond(M))
    assert error(forward, reference.forward_dynamics(q, qd, tau, F_ext)) < allowed
