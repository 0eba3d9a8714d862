"""An arm with springs in its joints: against one elastic joint and SciPy; stops, friction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from compiling import QUICK
from mime import Coulomb, GraphManager, ParameterError
from mime.control.kinematics import gravity_vector, mass_matrix, parse_urdf
from mime.models import model_path
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmarks.elastic_arm import pendulum
from mime.verification.programs import final_state

pytestmark = pytest.mark.slow

DT = 1e-3
FREE = np.tile([-np.inf, np.inf], (3, 1))
WEIGHTLESS = np.zeros(3)


@pytest.fixture(scope="module")
def planar():
    return parse_urdf(model_path("planar_arm_3link"))


def arm(tree, **options):
    n = tree.num_joints
    options = {
        "rotor_inertia_kg_m2": np.full(n, 0.02),
        "joint_limit_override": FREE[:n],
        "joint_friction_n_m_s": np.zeros(n),
    } | options
    return RobotArmNode("arm", options.pop("timestep", DT), tree, tree.link_names[-1], **options)


def state(node, **values):
    return node.initial_state() | {name: jnp.asarray(value) for name, value in values.items()}


def rollout(node, start, steps, torques=None, dt=None):
    n = node.num_joints
    torques = jnp.zeros(n) if torques is None else jnp.asarray(torques)

    @jax.jit
    def run(start):
        def step(s, _):
            s = node.update(s, {"commanded_joint_torques": torques}, dt or node.timestep)
            return s, s

        return jax.lax.scan(step, start, length=steps)[1]

    return jax.tree.map(np.asarray, run(start))


@pytest.mark.small("midpoint-sea", "backward_euler-inserted_body")
@pytest.mark.parametrize("model", ["sea", "inserted_body"])
@pytest.mark.parametrize("rule", ["midpoint", "backward_euler"])
def test_an_arm_of_one_joint_is_the_elastic_joint(model, rule):
    body = {} if model == "sea" else {"inserted_inertia_kg_m2": [1e-3]}
    node = arm(
        pendulum(),
        gravity_world=WEIGHTLESS,
        rotor_inertia_kg_m2=[1e-3],
        gear_ratio=[10.0],
        joint_stiffness_n_m_per_rad=[20.0],
        joint_stiffness_damping_n_m_s=[0.1],
        joint_model=model,
        spring_integrator=rule,
        **body,
    )
    joint = ElasticJointNode(
        "joint",
        DT,
        rotor_inertia_kg_m2=0.1,
        output_inertia_kg_m2=5.0,
        stiffness_n_m_per_rad=20.0,
        damping_n_m_s=0.1,
        model=model,
        inserted_inertia_kg_m2=None if model == "sea" else 1e-3,
        integrator="implicit" if rule == "midpoint" else rule,
    )
    single = joint.initial_state() | {
        "deflection": jnp.array(0.2),
        "deflection_velocity": jnp.array(0.1),
        "rotor_velocity": jnp.array(0.3),
    }
    run = jax.jit(
        lambda s: jax.lax.scan(lambda s, _: (joint.update(s, {}, DT),) * 2, s, length=2000)[1]
    )
    expected = run(single)
    ours = rollout(
        node,
        state(
            node,
            joint_angles=[0.2],
            joint_velocities=[0.4],
            joint_deflections=[0.2],
            joint_deflection_velocities=[0.1],
        ),
        2000,
    )
    # 2,000 steps of rounding at angles up to 1 rad.
    tolerance = 1e-12
    np.testing.assert_allclose(
        ours["joint_deflections"][:, 0], expected["deflection"], atol=tolerance
    )
    rotor = ours["joint_angles"][:, 0] - ours["joint_deflections"][:, 0]
    np.testing.assert_allclose(rotor, expected["rotor_angle"], atol=10 * tolerance)


@pytest.mark.small("inserted_body")
@pytest.mark.parametrize("model", ["sea", "inserted_body"])
def test_steps_converge_to_the_continuous_equations_at_first_order(planar, model):
    body = {} if model == "sea" else {"inserted_inertia_kg_m2": np.full(3, 1e-2)}
    node = arm(
        planar,
        joint_stiffness_n_m_per_rad=[50.0, np.inf, 30.0],
        joint_stiffness_damping_n_m_s=np.full(3, 0.05),
        joint_friction_n_m_s=np.full(3, 0.1),
        joint_model=model,
        **body,
    )
    start = state(
        node,
        joint_angles=[0.4, -0.3, 0.5],
        joint_deflections=[0.02, -0.03],
        joint_velocities=[0.5, -0.2, 0.1],
    )
    torques = {"commanded_joint_torques": np.array([3.0, 1.0, 0.5])}
    parts = ("joint_angles", "joint_deflections", "joint_velocities", "joint_deflection_velocities")

    def rates(y):
        s = dict(zip(parts, jnp.split(y, [3, 5, 8]), strict=True))
        return jnp.concatenate([y[5:], *node.accelerations(s, torques)])

    slope = jax.jit(rates, compiler_options=QUICK)
    y = np.concatenate([start[name] for name in parts])
    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
    solution = scipy.integrate.solve_ivp(lambda _, y: slope(y), (0.0, 0.4), y, **options)
    exact = solution.y[:5, -1]
    errors = []
    for steps in (800, 1600, 3200):
        end = final_state(node, torques, steps, dt=0.4 / steps, start=start)
        ours = np.concatenate([end[name] for name in parts[:2]])
        errors.append(np.abs(ours - exact).max())
    # First order: halving the step halves the error, to its own second order (1 % here).
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 1.0, atol=0.05)


def test_without_springs_nothing_changed(planar):
    start = state(arm(planar), joint_angles=[0.4, -0.3, 0.5], joint_velocities=[1.0, -2.0, 0.5])
    rigid = arm(planar, joint_stiffness_n_m_per_rad=np.full(3, np.inf))
    assert rigid.state_spec() == arm(planar).state_spec()
    assert rigid.boundary_flux_spec() == arm(planar).boundary_flux_spec()
    for key, value in rollout(rigid, start, 50).items():
        np.testing.assert_array_equal(value, rollout(arm(planar), start, 50)[key])


def test_rotor_inertia_without_a_spring_is_armature_on_the_diagonal(planar):
    node = arm(planar, rotor_inertia_kg_m2=np.full(3, 0.02), gear_ratio=[3.0, 2.0, 1.0])
    q = np.array([0.1, 0.2, 0.3])
    added = mass_matrix(node.tree, q) - mass_matrix(planar, q)
    np.testing.assert_allclose(added, 0.02 * np.diag([9.0, 4.0, 1.0]), atol=1e-15)


def test_state_holding_holds_still_under_the_torque_of_gravity(planar):
    node = arm(planar, joint_stiffness_n_m_per_rad=[200.0, np.inf, 50.0])
    q = np.array([0.4, -0.3, 0.5])
    start = node.state_holding(jnp.asarray(q))
    g = gravity_vector(planar, q, np.array([0.0, 0.0, -9.80665]))
    run = rollout(node, start, 2000, g)
    np.testing.assert_allclose(run["joint_angles"], np.tile(q, (2000, 1)), atol=1e-12)
    fluxes = node.compute_boundary_fluxes(start, {"commanded_joint_torques": g}, DT)
    np.testing.assert_allclose(fluxes["spring_torques"], g[[0, 2]], rtol=1e-12)
    np.testing.assert_allclose(fluxes["rotor_angles"][1], q[1])


@pytest.mark.small("inserted_body")
@pytest.mark.parametrize("model", ["sea", "inserted_body"])
def test_dry_friction_holds_the_rotor_and_not_the_link(planar, model):
    body = {} if model == "sea" else {"inserted_inertia_kg_m2": np.full(3, 1e-3)}
    node = arm(
        planar,
        gravity_world=WEIGHTLESS,
        friction=Coulomb(np.full(3, 40.0)),
        joint_stiffness_n_m_per_rad=[50.0, 50.0, np.inf],
        joint_model=model,
        **body,
    )
    start = state(node, joint_deflections=[0.1, -0.05], joint_angles=[0.1, -0.05, 0.0])
    run = rollout(node, start, 300)
    rotor = run["joint_angles"][:, :2] - run["joint_deflections"]
    np.testing.assert_allclose(rotor, 0.0, atol=1e-12)
    assert np.ptp(run["joint_angles"][:, 0]) > 0.05  # the link swings on its spring
    np.testing.assert_allclose(run["joint_angles"][:, 2], 0.0, atol=1e-12)


@pytest.mark.parametrize("limits", ["stop", "spring"])
def test_a_stop_holds_the_link_while_the_rotor_winds_the_spring(planar, limits):
    node = arm(
        planar,
        gravity_world=WEIGHTLESS,
        joint_stiffness_n_m_per_rad={"shoulder": 50.0},
        joint_stiffness_damping_n_m_s={"shoulder": 2.0},
        joint_limit_override=np.array([[-1.0, 0.2], [-1.0, 1.0], [-1.0, 1.0]]),
        joint_limits=limits,
    )
    run = rollout(node, state(node), 8000, [5.0, 0.0, 0.0])
    # At rest the spring carries the motor's 5 N·m: x = -0.1 rad; a soft stop gives by 5/1e4.
    assert run["joint_deflections"][-1, 0] == pytest.approx(-0.1, abs=1e-3)
    assert run["joint_angles"][-1, 0] == pytest.approx(0.2, abs=1e-3)


def test_gradients_with_respect_to_stiffness_and_damping(planar):
    node = arm(
        planar,
        joint_stiffness_n_m_per_rad=[50.0, np.inf, 30.0],
        joint_stiffness_damping_n_m_s=np.full(3, 0.5),
    )
    start = state(node, joint_deflections=[0.05, -0.05])

    def final(k, v):
        changed = node.with_params(joint_stiffness_n_m_per_rad=k, joint_stiffness_damping_n_m_s=v)

        def step(s, _):
            return changed.update(s, {}, DT), None

        end = jax.lax.scan(step, start, length=200)[0]
        return jnp.sum(end["joint_angles"] * jnp.array([1.0, 2.0, 3.0]))

    k, v = np.array([50.0, 30.0]), np.array([0.5, 0.5])
    both = jax.jit(jax.value_and_grad(final, argnums=(0, 1)), compiler_options=QUICK)
    for of, mine in enumerate(both(k, v)[1]):
        for e in range(2):
            step = 1e-4 * np.eye(2)[e]
            high, _ = both(*((k + step, v) if of == 0 else (k, v + step)))
            low, _ = both(*((k - step, v) if of == 0 else (k, v - step)))
            # Central differences: 1e-8 of curvature, and 1e-16 / 1e-4 of rounding.
            assert float(mine[e]) == pytest.approx(float(high - low) / 2e-4, rel=1e-5, abs=1e-9)


@pytest.mark.small("float32")
def test_single_precision_keeps_its_dtype_and_its_stiff_spring(planar, precision):
    node = arm(planar, joint_stiffness_n_m_per_rad=np.full(3, 1e5))
    run = rollout(node, node.state_holding(jnp.array([0.4, -0.3, 0.5])), 200)
    assert all(np.all(np.isfinite(value)) for value in run.values())
    assert run["joint_deflections"].dtype == run["joint_angles"].dtype == jnp.result_type(float)


def test_a_batch_of_stiffnesses_runs_in_one_graph(planar):
    graph = GraphManager()
    graph.add_node(arm(planar, joint_stiffness_n_m_per_rad=np.full(3, 50.0)))
    stiffness = np.array([[50.0] * 3, [500.0] * 3])
    batch = graph.compile().run_batch(
        duration=0.1, parameters={"arm": {"joint_stiffness_n_m_per_rad": stiffness}}
    )
    for member, k in enumerate(stiffness):
        alone = rollout(
            arm(planar, joint_stiffness_n_m_per_rad=k),
            arm(planar, joint_stiffness_n_m_per_rad=k).initial_state(),
            100,
        )
        np.testing.assert_allclose(
            batch["arm"]["joint_angles"][member, -1], alone["joint_angles"][-1], rtol=1e-10
        )


REFUSALS = {
    "negative stiffness": (
        {"joint_stiffness_n_m_per_rad": [-1.0, 1.0, 1.0]},
        "joint_stiffness_n_m_per_rad must be > 0 N·m/rad",
    ),
    "no such joint": (
        {"joint_stiffness_n_m_per_rad": {"sholder": 1.0}},
        "names no joint 'sholder' \\(did you mean 'shoulder'",
    ),
    "no rotor": (
        {"joint_stiffness_n_m_per_rad": np.ones(3), "rotor_inertia_kg_m2": [0.1, 0.0, 0.1]},
        "rotor_inertia_kg_m2 must be > 0 at elastic joint 'elbow'",
    ),
    "damping of a rigid joint": (
        {"joint_stiffness_damping_n_m_s": np.ones(3)},
        "needs joint_stiffness_n_m_per_rad as well",
    ),
    "ball missing": (
        {"joint_stiffness_n_m_per_rad": np.ones(3), "joint_model": "inserted_body"},
        "belongs to joint_model='inserted_body', which needs it",
    ),
    "ball unwanted": (
        {"joint_stiffness_n_m_per_rad": np.ones(3), "inserted_inertia_kg_m2": np.ones(3)},
        "belongs to joint_model='inserted_body'",
    ),
    "unknown model": ({"joint_model": "rubber"}, "joint_model must be one of 'sea'"),
    "soft stops": (
        {
            "joint_stiffness_n_m_per_rad": np.ones(3),
            "joint_model": "inserted_body",
            "inserted_inertia_kg_m2": np.ones(3),
            "joint_limits": "spring",
        },
        "goes with joint_model='sea' only",
    ),
    "not a number": ({"joint_stiffness_n_m_per_rad": [np.nan, 1.0, 1.0]}, "must be finite"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refuses(planar, case):
    options, message = REFUSALS[case]
    with pytest.raises(ParameterError, match=message):
        arm(planar, **options)


def test_a_joint_that_slides_takes_the_exact_model_only(tmp_path):
    body = '<mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    file = tmp_path / "slide.urdf"
    file.write_text(
        f'<robot name="r"><link name="b"/><link name="l"><inertial>{body}</inertial></link>'
        '<joint name="j" type="prismatic"><parent link="b"/><child link="l"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    spring = {"gravity_world": WEIGHTLESS, "joint_stiffness_n_m_per_rad": [20.0]}
    tree = parse_urdf(file)
    start = {"joint_angles": [0.1], "joint_deflections": [0.1]}
    sliding, turning = arm(tree, **spring), arm(pendulum(), **spring)  # 5 kg, 5 kg·m²
    ours = rollout(sliding, state(sliding, **start), 100)
    theirs = rollout(turning, state(turning, **start), 100)
    np.testing.assert_allclose(ours["joint_angles"], theirs["joint_angles"], atol=1e-15)
    with pytest.raises(ParameterError, match="is not for joint 'j': it slides"):
        arm(tree, joint_model="inserted_body", inserted_inertia_kg_m2=[1e-3], **spring)


@pytest.mark.soak("test_every_node.py has an example of each node")
def test_metadata_is_whole(planar):
    node = arm(planar, joint_stiffness_n_m_per_rad=np.ones(3))
    assert node.validate_mime_consistency() == []


ENTRIES = {
    "link[link_2].mass_kg": ("tree.masses", 1, 1.7),
    "link[link_3].com_m": ("tree.coms", 2, [0.2, 0.01, 0.0]),
    "link[link_1].inertia_kg_m2": ("tree.inertias", 0, np.diag([0.01, 0.02, 0.03])),
    "joint[elbow].friction_n_m_s": ("joint_friction_n_m_s", 1, 0.3),
    "joint[shoulder].friction.torque_n_m": ("friction.torque_n_m", 0, 0.2),
    "joint[wrist].rotor_inertia_kg_m2": ("tree.rotor_inertia", 2, 0.05),
    "joint[elbow].gear_ratio": ("tree.gear_ratio", 1, 3.0),
    "joint[shoulder].stiffness_n_m_per_rad": ("joint_stiffness_n_m_per_rad", 0, 70.0),
    "joint[wrist].damping_n_m_s": ("joint_stiffness_damping_n_m_s", 1, 0.4),
}
"""Address, array, entry of it, another value. The elbow is rigid."""


@pytest.fixture(scope="module")
def half_elastic(planar):
    graph = GraphManager()
    springs = {"shoulder": 50.0, "wrist": 80.0}
    node = arm(
        planar,
        joint_stiffness_n_m_per_rad=springs,
        joint_stiffness_damping_n_m_s=dict.fromkeys(springs, 0.1),
        friction=Coulomb(np.full(3, 0.01)),
    )
    graph.add_node(node)
    return graph.compile()


@pytest.mark.small(
    "link[link_3].com_m", "joint[elbow].gear_ratio", "joint[shoulder].stiffness_n_m_per_rad"
)
@pytest.mark.parametrize("address", ENTRIES)
def test_an_entry_of_a_link_or_joint_has_an_address(half_elastic, address):
    whole, index, value = ENTRIES[address]
    array = half_elastic.nodes["arm"]
    for part in whole.split("."):
        array = getattr(array, part)
    expected = np.array(array)
    assert not np.allclose(expected[index], value)
    expected[index] = value
    by_name = half_elastic.with_parameters({f"arm.{address}": value})
    at_once = half_elastic.with_parameters({f"arm.{whole}": expected})
    start = half_elastic.init_state({"arm": {"joint_velocities": np.array([0.3, -0.2, 0.1])}})
    moved = [s.step(start)[0].of("arm") for s in (by_name, at_once)]
    for name in moved[0]:
        np.testing.assert_array_equal(moved[0][name], moved[1][name])
    unchanged = half_elastic.step(start)[0].of("arm")
    assert any(np.any(moved[0][name] != unchanged[name]) for name in unchanged)


@pytest.mark.soak("tests/running sweeps and differentiates by name")
def test_entries_are_swept_and_differentiated_by_name(half_elastic):
    masses, stiffness = np.array([0.5, 1.0, 2.0]), np.array([40.0, 50.0, 60.0])
    names = "arm.link[link_2].mass_kg", "arm.joint[wrist].stiffness_n_m_per_rad"
    batch = half_elastic.run_batch(
        steps=20, parameters=dict(zip(names, (masses, stiffness), strict=True)), progress=False
    )

    def swing(m, k):
        changed = half_elastic.with_parameters({names[0]: m, names[1]: k})
        end, _ = changed.rollout(changed.init_state(), steps=20, record=())
        return end.of("arm")["joint_angles"][2]

    quick = jax.jit(jax.value_and_grad(swing, argnums=(0, 1)), compiler_options=QUICK)
    for n, (m, k) in enumerate(zip(masses, stiffness, strict=True)):
        assert batch["arm"]["joint_angles"][n, -1, 2] == pytest.approx(float(quick(m, k)[0]), 1e-10)
    _, gradient = quick(1.0, 50.0)
    for slope, h in zip(gradient, np.diag([1e-5, 5e-4]), strict=True):
        high, low = (float(quick(1.0 + sign * h[0], 50.0 + sign * h[1])[0]) for sign in (1, -1))
        # Central differences: h² = 1e-10 of curvature, eps / h = 2e-11 of rounding.
        assert float(slope) == pytest.approx((high - low) / (2 * h.sum()), rel=1e-5)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("joint[elbow].stiffness_n_m_per_rad", "no joint 'elbow'.*'shoulder', 'wrist'"),
        ("joint[elbo].gear_ratio", "no joint 'elbo' .did you mean 'elbow'"),
        ("joint[elbow].inserted_inertia_kg_m2", "a joint with no 'inserted_inertia_kg_m2'"),
        ("link[link_2].mass", "a link with no 'mass' .did you mean 'mass_kg'"),
    ],
)
def test_an_entry_that_the_arm_does_not_have_is_refused(half_elastic, address, says):
    with pytest.raises(ParameterError, match=says):
        half_elastic.with_parameters({f"arm.{address}": 1.0})


def test_a_negative_mass_is_refused(half_elastic):
    with pytest.raises(ParameterError, match=r"tree\.masses must be >= 0"):
        half_elastic.with_parameters({"arm.link[link_2].mass_kg": -1.0})
