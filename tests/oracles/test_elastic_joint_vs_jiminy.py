"""Elastic joint and armature against Jiminy, which runs in a process of its own.

Jiminy is there wherever its wheels are, by the soak extra's markers: where it is missing then, this
fails.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from mime.control.kinematics import forward_dynamics, parse_urdf
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.robot_arm import RobotArmNode

pytestmark = [
    pytest.mark.soak("python-control, Pinocchio and SciPy hold the same joint in `make test`"),
    pytest.mark.skipif(
        not (
            (sys.platform == "linux" and platform.machine() == "x86_64") or sys.platform == "darwin"
        ),
        reason="Jiminy has no wheels for this platform",
    ),
]

J, I, K, V, I_F, G = 0.1, 5.0, 20.0, 0.1, 1e-5, 9.81
GAINS = (100.0, 1.0)
POLE = """
  <link name="pole"><inertial>
    <origin xyz="0 0 -1"/><mass value="5"/>
    <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>"""
RIGID = f"""<robot name="pendulum"><link name="base"/>{POLE}
  <joint name="pivot" type="revolute"><parent link="base"/><child link="pole"/>
    <axis xyz="0 1 0"/><limit effort="1e3" lower="-100" upper="100" velocity="1e3"/></joint>
</robot>"""
FLEXIBILITY = {"stiffness": K, "damping": V, "inertia": I_F}
ELASTIC = {"armature": J, "flexibility": FLEXIBILITY, "start": (0.0, 0.0, 0.1, 0.0)}
CASES = {
    "plain": {"gravity": G, "start": (2.0, 0.0), "duration": 5.0},
    "armature": {"gravity": 0.0, "armature": J, "spring": 500.0, "start": (0.1, 0.0)},
    "free": {"gravity": 0.0, **ELASTIC},
    "controlled": {"gravity": 0.0, "gains": GAINS, "duration": 10.0, **ELASTIC},
    "hanging": {"gravity": G, "gains": GAINS, **ELASTIC, "start": (0.1, 0.8, 0.0, -1.0)},
}
SAMPLES = 200


@pytest.fixture(scope="module")
def jiminy(tmp_path_factory):
    """A function of a case's name that gives time, angles and speeds as Jiminy simulates them."""
    defaults = {"urdf": RIGID, "duration": 2.0, "samples": SAMPLES}
    script = Path(__file__).with_name("jiminy_pendulum.py")
    result = tmp_path_factory.mktemp("jiminy") / "result.npz"
    done = subprocess.run(
        [sys.executable, script, result],
        input=json.dumps({name: defaults | case for name, case in CASES.items()}),
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    arrays = np.load(result)
    return lambda name: tuple(arrays[f"{name}.{field}"] for field in ("t", "x", "v"))


def elastic_joint(timestep):
    return ElasticJointNode(
        "joint",
        timestep,
        rotor_inertia_kg_m2=J,
        output_inertia_kg_m2=I,
        stiffness_n_m_per_rad=K,
        damping_n_m_s=V,
        model="inserted_body",
        inserted_inertia_kg_m2=I_F,
        integrator="exact",
    )


@pytest.fixture
def agrees(record_figure):
    """Within 1e-9 rad and rad/s; Jiminy's Dormand-Prince runs at a tolerance of 1e-13."""

    def check(name, ours, theirs):
        error = float(np.max(np.abs(ours - theirs)))
        record_figure(name, error)
        assert error <= 1e-9

    return check


@pytest.fixture
def tree_of(tmp_path):
    def read(urdf):
        path = tmp_path / "pendulum.urdf"
        path.write_text(urdf)
        return parse_urdf(path)

    return read


def integrate(accelerations, start, times):
    """Our dynamics by SciPy's eighth-order Runge-Kutta: angles and speeds at `times`."""
    n = len(start) // 2

    @jax.jit
    def rhs(state):
        return jnp.concatenate([state[n:], accelerations(state[:n], state[n:])])

    solution = solve_ivp(
        lambda t, state: np.asarray(rhs(state)),
        (0.0, times[-1]),
        start,
        method="DOP853",
        t_eval=times,
        rtol=1e-12,
        atol=1e-13,
    )
    return solution.y[:n].T, solution.y[n:].T


def rigid(tree, armature, torque, gravity):
    """q'' of the pendulum without a spring."""
    return lambda q, qd: forward_dynamics(
        tree, q, qd, torque(q, qd), np.array([0.0, 0.0, -gravity]), diagonal=jnp.array([armature])
    )


def flexible(arm):
    """(x1'', x2'') of an arm of one elastic joint under the PD controller of its rotor."""

    def accelerations(x, v):
        state = {
            "joint_angles": x[:1] + x[1:],
            "joint_velocities": v[:1] + v[1:],
            "joint_deflections": x[:1],
            "joint_deflection_velocities": v[:1],
        }
        command = {"commanded_joint_torques": -GAINS[0] * x[1:] - GAINS[1] * v[1:]}
        qdd, xdd = arm.accelerations(state, command)
        return jnp.concatenate([xdd, qdd - xdd])

    return accelerations


def test_plain_pendulum(jiminy, agrees, tree_of):
    t, x, v = jiminy("plain")
    ours = integrate(rigid(tree_of(RIGID), 0.0, lambda q, qd: 0.0 * q, G), (2.0, 0.0), t)
    agrees("rad", ours[0], x)
    agrees("rad_s", ours[1], v)


def test_armature_is_the_diagonal_of_the_mass_matrix(jiminy, agrees, tree_of):
    """Also I + J on a spring of 500 N·m/rad, by the matrix exponential."""
    t, x, v = jiminy("armature")
    ours = integrate(rigid(tree_of(RIGID), J, lambda q, qd: -500.0 * q, 0.0), (0.1, 0.0), t)
    agrees("rad", ours[0], x)
    agrees("rad_s", ours[1], v)
    A = np.array([[0.0, 1.0], [-500.0 / (I + J), 0.0]])
    exact = np.array([expm(A * moment) @ [0.1, 0.0] for moment in t])
    agrees("matrix_exponential", exact, np.hstack([x, v]))


def test_a_free_flexible_pendulum_is_the_node_with_an_inserted_body(jiminy, agrees):
    _, x, v = jiminy("free")
    node = elastic_joint(2.0 / SAMPLES)
    start = node.initial_state() | {"deflection_velocity": jnp.asarray(0.1)}

    @jax.jit
    def states():
        step = lambda state, _: (node.update(state, {}, node.timestep),) * 2  # noqa: E731
        return jax.lax.scan(step, start, length=SAMPLES)[1]

    ours = {name: np.asarray(values) for name, values in states().items()}
    agrees("rad", np.stack([ours["deflection"], ours["rotor_angle"]], axis=1), x[1:])
    speeds = np.stack([ours["deflection_velocity"], ours["rotor_velocity"]], axis=1)
    agrees("rad_s", speeds, v[1:])


def test_under_pd_control_it_is_the_nodes_matrices_and_differs_from_the_exact_joint(jiminy, agrees):
    """The difference of the models that MIME-VER-138 states, from Jiminy's own trajectory."""
    t, x, v = jiminy("controlled")
    theirs = np.stack([x[:, 1], v[:, 1], x[:, 0], v[:, 0]], axis=1)
    gain = np.zeros((2, 4))
    gain[0, :2] = -np.asarray(GAINS)
    values = {"rotor_inertia_kg_m2": J, "output_inertia_kg_m2": I}
    exact = ElasticJointNode("joint", 1e-3, stiffness_n_m_per_rad=K, damping_n_m_s=V, **values)
    paths = []
    for node in (elastic_joint(1e-3), exact):
        A, B = (np.asarray(matrix) for matrix in node.state_space()[:2])
        paths.append(np.array([expm((A + B @ gain) * moment) @ [0, 0, 0, 0.1] for moment in t]))
    agrees("matrix_exponential", paths[0], theirs)
    difference = np.max(np.abs(theirs - paths[1]), axis=0)
    assert difference[2] == pytest.approx(4.667e-7, rel=1e-3)
    assert difference[0] == pytest.approx(9.20e-8, rel=1e-3)


def test_a_flexible_pendulum_under_gravity_is_the_arm_with_an_inserted_body(
    jiminy, agrees, tree_of
):
    t, x, v = jiminy("hanging")
    arm = RobotArmNode(
        "arm",
        1e-3,
        tree_of(RIGID),
        "pole",
        gravity_world=(0.0, 0.0, -G),
        rotor_inertia_kg_m2=[J],
        joint_stiffness_n_m_per_rad=[K],
        joint_stiffness_damping_n_m_s=[V],
        joint_model="inserted_body",
        inserted_inertia_kg_m2=[I_F],
    )
    ours = integrate(flexible(arm), CASES["hanging"]["start"], t)
    agrees("rad", ours[0], x)
    agrees("rad_s", ours[1], v)
    assert np.ptp(x[:, 0]) > 0.5  # gravity bends the spring: nothing here is small
