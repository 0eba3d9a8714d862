"""Hard stops of an arm: energy never rises, several stops at once, elastic joints, MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from mime import GraphManager, RobotArmNode, model_path, parse_urdf
from mime.control.kinematics import kinetic_energy, potential_energy
from mime.nodes.actuation.robot_arm import stops

TREE = parse_urdf(model_path("planar_arm_3link"))
N = TREE.num_joints
LOWER, UPPER = np.array([-1.0, -0.8, -0.6]), np.array([0.9, 0.7, 1.1])
STATES = 10_000


def arm(**options):
    options = {"gravity_world": (0.0, 0.0, 0.0), **options}
    override = np.stack([LOWER, UPPER], 1)
    return RobotArmNode(
        "arm", 1e-3, TREE, TREE.frame_names[-1], joint_limit_override=override, **options
    )


ELASTIC = {
    "joint_stiffness_n_m_per_rad": {"shoulder": 300.0, "wrist": 200.0},
    "joint_stiffness_damping_n_m_s": {"shoulder": 0.1},
    "rotor_inertia_kg_m2": [1e-4, 1e-4, 1e-4],
    "gear_ratio": [50.0, 50.0, 50.0],
}


def random_states(node, seed=0):
    """States on stops (one, several or all joints), at random velocities and deflections."""
    rng = np.random.default_rng(seed)
    where = rng.integers(0, 3, size=(STATES, N))
    q = np.where(where == 0, LOWER, np.where(where == 1, UPPER, rng.uniform(LOWER, UPPER)))
    state = {"joint_angles": q, "joint_velocities": rng.normal(size=(STATES, N))}
    if e := len(node.elastic_joints):
        state["joint_deflections"] = 0.1 * rng.normal(size=(STATES, e))
        state["joint_deflection_velocities"] = rng.normal(size=(STATES, e))
    return {name: jnp.asarray(x) for name, x in state.items()}


def energy_of_elastic(node, state):
    """Links, rotors behind their springs, springs."""
    q, qd = state["joint_angles"], state["joint_velocities"]
    joints = jnp.array(node.elastic_joints)
    x, xd = state["joint_deflections"], state["joint_deflection_velocities"]
    J = jnp.asarray(node.tree.armature)
    bare = node.with_params(**{"tree.rotor_inertia": jnp.zeros(N)}).tree
    rotor = qd.at[joints].add(-xd)
    springs = 0.5 * jnp.sum(jnp.asarray(node.joint_stiffness_n_m_per_rad) * x**2)
    return kinetic_energy(bare, q, qd) + 0.5 * jnp.sum(J * rotor**2) + springs


@pytest.mark.soak("MIME-VER-162 has the rigid arm")
@pytest.mark.small("0.7")
@pytest.mark.parametrize("e", [0.0, 0.7])
def test_a_stop_never_raises_the_energy_of_a_rigid_arm(e):
    node = arm(stop_restitution=e)
    before = random_states(node)
    after = jax.jit(jax.vmap(lambda s: stops.stopped(node, s)))(before)
    energy = jax.vmap(lambda s: kinetic_energy(TREE, s["joint_angles"], s["joint_velocities"]))
    # A few roundings of the largest energy.
    assert np.max(energy(after) - energy(before)) <= 1e-13 * np.max(energy(before))
    assert np.mean(energy(after) < 0.999 * energy(before)) > 0.5  # most of them were hits


@pytest.mark.small("0.0")
@pytest.mark.parametrize("e", [0.0, 0.7])
def test_a_stop_never_raises_the_energy_of_an_elastic_arm(e):
    node = arm(stop_restitution=e, **ELASTIC)
    before = random_states(node)
    after = jax.jit(jax.vmap(lambda s: stops.stopped(node, s)))(before)
    energy = jax.jit(jax.vmap(lambda s: energy_of_elastic(node, s)))
    assert np.max(energy(after) - energy(before)) <= 1e-13 * np.max(energy(before))


def test_a_stop_never_raises_the_energy_with_inserted_bodies():
    node = arm(joint_model="inserted_body", inserted_inertia_kg_m2=[1e-3] * N, **ELASTIC)
    before = random_states(node, seed=1)
    after = jax.jit(jax.vmap(lambda s: stops.stopped(node, s)))(before)
    for state in (before, after):
        assert np.isfinite(state["joint_velocities"]).all()
    tree = stops.with_inserted_bodies(node.tree, node.elastic_joints, node.inserted_inertia_kg_m2)

    def energy(s):
        motors = {
            name: stops.rotor_motion(node, s[f"joint_{name}"], s[f"joint_{spring}"])
            for name, spring in (("angles", "deflections"), ("velocities", "deflection_velocities"))
        }
        springs = s["joint_deflections"], s["joint_deflection_velocities"]
        z, zd = (
            stops.interleaved(x, motor, node.elastic_joints)
            for x, motor in zip(springs, motors.values(), strict=True)
        )
        return kinetic_energy(tree, z, zd)

    energies = [np.asarray(e) for e in map(jax.jit(jax.vmap(energy)), (before, after))]
    assert np.max(energies[1] - energies[0]) <= 1e-13 * np.max(energies[0])


def test_the_frictionless_arm_loses_energy_at_its_stops_and_gains_none():
    node = arm(gravity_world=(0.0, 0.0, -9.80665))
    graph = GraphManager()
    graph.add_node(node)
    start = {"arm": {"joint_angles": [0.5, 0.3, 0.2]}}
    run = graph.compile().run(5.0, initial_state=start, watch=False)  # it falls faster than it may
    q, qd = run["arm"]["joint_angles"], run["arm"]["joint_velocities"]
    gravity = np.array([0.0, 0.0, -9.80665])

    def energy(q, qd):
        return kinetic_energy(TREE, q, qd) + potential_energy(TREE, q, gravity)

    energies = np.asarray(jax.vmap(energy)(q, qd))
    # Between hits semi-implicit Euler swings by its own first-order error, about 0.05 J here.
    assert np.max(np.maximum.accumulate(energies[::-1])[::-1] - energies) < 0.3
    assert energies[-1] < energies[0]


@pytest.mark.small("q0-qd0", "q3-qd3")
@pytest.mark.parametrize(
    ("q", "qd"),
    [
        ([UPPER[0], 0.1, 0.2], [1.0, -3.0, 0.5]),
        ([0.3, LOWER[1], 0.2], [0.5, -2.0, 1.0]),
        ([UPPER[0], LOWER[1], 0.2], [1.0, -0.5, 0.3]),
        ([UPPER[0], UPPER[1], UPPER[2]], [0.1, 0.2, 0.3]),
    ],
)
def test_a_hit_agrees_with_mujoco_at_an_inelastic_limit(q, qd):
    """MuJoCo's limits are springs and dampers; dampers alone, without a spring, do not rebound."""
    dt = 1e-8
    model = mujoco.MjModel.from_xml_path(str(model_path("planar_arm_3link")))
    model.opt.gravity[:] = 0
    model.opt.timestep = dt
    model.jnt_range[:, 0], model.jnt_range[:, 1] = LOWER, UPPER
    model.jnt_limited[:] = 1
    model.jnt_solref[:] = (-1e-9, -0.5 / dt)
    model.jnt_solimp[:] = (0.9999, 0.9999, 1e-6, 0.5, 2.0)
    data = mujoco.MjData(model)
    data.qpos[:] = np.array(q) + 1e-9 * (np.array(q) == UPPER) - 1e-9 * (np.array(q) == LOWER)
    data.qvel[:] = qd
    for _ in range(40):  # the speed into a stop halves in each
        mujoco.mj_step(model, data)
    state = {"joint_angles": jnp.asarray(q), "joint_velocities": jnp.asarray(qd)}
    after = stops.stopped(arm(), state)["joint_velocities"]
    # In these 0.4 µs the arm turns by 1e-6 rad; MuJoCo's impedance of 0.9999 leaves 1e-4.
    np.testing.assert_allclose(after, data.qvel, atol=5e-4)


def test_an_arm_without_limits_has_no_stop_in_its_program():
    node = arm()
    endless = node.with_params()
    assert stops.has_limits(node)
    free = RobotArmNode(
        "arm",
        1e-3,
        TREE,
        TREE.frame_names[-1],
        joint_limit_override=np.full((N, 2), [-np.inf, np.inf]),
    )
    assert not stops.has_limits(free)
    assert stops.has_limits(endless)
    text = str(jax.make_jaxpr(lambda s: free.update(s, {}, 1e-3))(free.initial_state()))
    assert "cond[" not in text


def test_the_gradient_through_a_hit_is_finite_and_right():
    node = arm()

    def speed(v0):
        state = {
            "joint_angles": jnp.asarray([UPPER[0], 0.1, 0.2]),
            "joint_velocities": jnp.stack([v0, jnp.asarray(-3.0), jnp.asarray(0.5)]),
        }
        return node.update(state, {}, 1e-3)["joint_velocities"][1]

    step = 1e-6
    slope = (speed(1.0 + step) - speed(1.0 - step)) / (2 * step)
    assert float(jax.grad(speed)(1.0)) == pytest.approx(float(slope), rel=1e-7)
