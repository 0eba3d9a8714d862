"""The arm as a node: base, limits, friction, wrenches, gradients, refusals."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from compiling import QUICK
from mime import Coulomb, GraphManager, InputError, LimitWarning, ParameterError
from mime.control.kinematics import (
    forward_dynamics,
    frame_jacobian,
    mass_matrix,
    nonlinear_bias,
    parse_urdf,
)
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode

DT = 1e-3
GRAVITY = np.array([0.0, 0.0, -9.80665])
FREE = np.tile([-np.inf, np.inf], (3, 1))


@pytest.fixture(scope="module")
def planar():
    return parse_urdf(model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def desktop():
    return parse_urdf(model_path("desktop_arm_6axis"))


def arm(tree, **options):
    return RobotArmNode("arm", DT, tree, tree.link_names[-1], **options)


def state(q, qd=None):
    q = jnp.asarray(q, float)
    return {
        "joint_angles": q,
        "joint_velocities": jnp.zeros_like(q) if qd is None else jnp.asarray(qd),
    }


@pytest.mark.soak("test_every_node.py has an example of each node")
def test_metadata_is_whole(desktop):
    assert arm(desktop).validate_mime_consistency() == []


def test_the_fields_inputs_and_fluxes_are_those_of_mime_node_102(planar):
    node = arm(planar)
    assert list(node.initial_state()) == ["joint_angles", "joint_velocities"]
    spec = node.boundary_input_spec()
    assert (spec["commanded_joint_torques"].shape, spec["external_wrenches_per_link"].shape) == (
        (3,),
        (3, 6),
    )
    assert {entry.coupling for entry in spec.values()} == {"additive"}
    assert not any(np.any(entry.default_value()) for entry in spec.values())
    assert {name: flux.shape for name, flux in node.boundary_flux_spec().items()} == {
        "end_effector_pose_world": (7,),
        "end_effector_twist_world": (6,),
        "link_poses_world": (3, 7),
        "joint_angles": (3,),
        "joint_velocities": (3,),
        "joint_torques_actual": (3,),
    }
    identity = [0, 0, 0, 1, 0, 0, 0]
    assert node.params["end_effector_offset_in_link"].tolist() == identity
    assert node.params["base_pose_world"].tolist() == identity
    assert node.params["gravity_world"].tolist() == [0, 0, -9.80665]
    np.testing.assert_array_equal(node.params["joint_friction_n_m_s"], planar.joint_friction)
    # Without an override the URDF's limits hold.
    upper = planar.joint_limits[:, 1]
    after = node.update(state(upper, np.ones(3)), {}, DT)["joint_angles"]
    np.testing.assert_array_equal(after, upper)


def test_a_step_is_semi_implicit_euler_of_the_forward_dynamics(desktop):
    rng = np.random.default_rng(0)
    q, qd, tau = rng.uniform(-0.5, 0.5, 6), rng.normal(size=6), rng.normal(size=6)
    after = arm(desktop, joint_friction_n_m_s=np.zeros(6)).update(
        state(q, qd), {"commanded_joint_torques": tau}, DT
    )
    qdd = np.linalg.solve(mass_matrix(desktop, q), tau - nonlinear_bias(desktop, q, qd, GRAVITY))
    # The solve loses the condition of M (about 1e4) in eps.
    np.testing.assert_allclose(after["joint_velocities"], qd + DT * qdd, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(after["joint_angles"], q + DT * (qd + DT * qdd), rtol=1e-12)


def test_the_twist_of_the_tool_is_the_rate_of_its_pose(desktop):
    turned = np.array([0.3, -0.2, 0.5, 0.8, 0.0, 0.6, 0.0])  # the base is rolled
    offset = np.array([0.02, -0.01, 0.05, 1.0, 0.0, 0.0, 0.0])
    node = arm(desktop, base_pose_world=turned, end_effector_offset_in_link=offset)
    rng = np.random.default_rng(1)
    q, qd = rng.uniform(-0.5, 0.5, 6), rng.normal(size=6)

    def pose(q):
        fluxes = node.compute_boundary_fluxes(state(q), {}, DT)
        return np.asarray(fluxes["end_effector_pose_world"])

    h = 1e-6
    before, after = pose(q - h * qd), pose(q + h * qd)
    turn = (
        Rotation.from_quat(np.roll(after[3:], -1))
        * Rotation.from_quat(np.roll(before[3:], -1)).inv()
    )
    rate = np.concatenate([after[:3] - before[:3], turn.as_rotvec()]) / (2 * h)
    twist = node.compute_boundary_fluxes(state(q, qd), {}, DT)["end_effector_twist_world"]
    np.testing.assert_allclose(twist, rate, rtol=0, atol=1e-9)  # h² and 1e-16 / h


def test_implicit_friction_is_stable_where_explicit_friction_is_not(planar):
    friction = np.full(3, 500.0)
    swinging = state([0.3, 0.2, 0.1], [1.0, -1.0, 2.0])
    implicit = arm(planar, joint_friction_n_m_s=friction, joint_limit_override=FREE)
    explicit = arm(
        planar, joint_friction_n_m_s=friction, joint_limit_override=FREE, integrator="explicit"
    )
    calm, wild = swinging, swinging
    for _ in range(5):
        calm, wild = implicit.update(calm, {}, DT), explicit.update(wild, {}, DT)
    assert np.abs(calm["joint_velocities"]).max() < 0.1
    assert np.abs(wild["joint_velocities"]).max() > 1e3


def test_without_friction_implicit_and_explicit_are_the_same_bits(planar):
    start = state([0.3, 0.2, 0.1], [1.0, -1.0, 2.0])
    none = {"joint_friction_n_m_s": np.zeros(3)}
    implicit = arm(planar, **none).update(start, {}, DT)
    explicit = arm(planar, **none, integrator="explicit").update(start, {}, DT)
    for field, value in implicit.items():
        np.testing.assert_array_equal(value, explicit[field])


def test_a_base_rolled_by_90_degrees_falls_sideways(planar):
    """With the plane of motion turned horizontal, gravity is along every axis: nothing falls."""
    half = np.sqrt(0.5)
    upright, rolled = arm(planar), arm(planar, base_pose_world=(0, 0, 0, half, half, 0, 0))
    pitched = arm(planar, base_pose_world=(0, 0, 0, half, 0, half, 0))
    start = state([0.3, 0.2, 0.1])
    assert np.abs(upright.update(start, {}, DT)["joint_velocities"]).max() > 1e-3
    # sin and cos of a rounded half turn leave eps of gravity on the axis.
    assert np.abs(rolled.update(start, {}, DT)["joint_velocities"]).max() < 1e-15
    # Pitched by 90 degrees, world down is the base's +x: the arm is pulled along itself.
    expected = forward_dynamics(
        planar, start["joint_angles"], jnp.zeros(3), jnp.zeros(3), np.array([9.80665, 0.0, 0.0])
    )
    np.testing.assert_allclose(
        pitched.update(start, {}, DT)["joint_velocities"], DT * expected, rtol=1e-12
    )


def test_world_wrenches_are_rotated_into_a_turned_base(planar):
    half = np.sqrt(0.5)
    node = arm(planar, base_pose_world=(1, 2, 3, half, 0, half, 0), gravity_world=np.zeros(3))
    wrench = np.zeros((3, 6))
    wrench[2, :3] = [0.0, 0.0, -5.0]  # world down is base +x
    found = node.compute_boundary_fluxes(
        state([0.4, -0.3, 0.2]), {"external_wrenches_per_link": wrench}, DT
    )["joint_torques_actual"]
    J = frame_jacobian(planar, np.array([0.4, -0.3, 0.2]), 2)
    np.testing.assert_allclose(found, J.T @ [5.0, 0, 0, 0, 0, 0], rtol=1e-12, atol=1e-14)


def test_joint_torques_actual_is_the_whole_generalised_torque(desktop):
    rng = np.random.default_rng(1)
    q, qd, tau = rng.uniform(-0.5, 0.5, 6), rng.normal(size=6), rng.normal(size=6)
    wrenches = rng.normal(size=(6, 6))
    f = np.linspace(0.1, 0.6, 6)
    found = arm(desktop, joint_friction_n_m_s=f).compute_boundary_fluxes(
        state(q, qd), {"commanded_joint_torques": tau, "external_wrenches_per_link": wrenches}, DT
    )["joint_torques_actual"]
    pushed = sum(frame_jacobian(desktop, q, i).T @ wrenches[i] for i in range(6))
    np.testing.assert_allclose(found, tau - f * qd + pushed, rtol=1e-12, atol=1e-13)


def test_a_wrench_at_the_tool_is_the_same_as_one_moved_to_the_link(desktop):
    offset = (0.0, 0.0, 0.1, 1, 0, 0, 0)
    q = np.array([0.1, 0.2, -0.3, 0.4, 0.5, 0.6])
    node = arm(desktop, end_effector_offset_in_link=offset)
    force, moment = np.array([1.0, -2.0, 3.0]), np.array([0.1, 0.2, -0.3])
    fluxes = node.compute_boundary_fluxes(state(q), {}, DT)
    tip = np.asarray(fluxes["end_effector_pose_world"][:3])
    com = np.asarray(fluxes["link_poses_world"][-1, :3])
    moved = np.zeros((6, 6))
    moved[5] = [*force, *(moment + np.cross(tip - com, force))]
    update = jax.jit(
        lambda tool, links: node.update(
            state(q), {"end_effector_wrench_world": tool, "external_wrenches_per_link": links}, DT
        ),
        compiler_options=QUICK,
    )
    at_tool = update(np.array([*force, *moment]), np.zeros((6, 6)))
    at_link = update(np.zeros(6), moved)
    np.testing.assert_allclose(
        at_tool["joint_velocities"], at_link["joint_velocities"], rtol=1e-10, atol=1e-13
    )


class TestLimits:
    def falling(self, planar, mode, steps=400, **options):
        limits = np.array([[-0.5, 0.5], [-0.1, 0.1], [-0.1, 0.1]])
        node = arm(planar, joint_limits=mode, joint_limit_override=limits, **options)
        graph = GraphManager()
        graph.add_node(node)
        record = ["arm.joint_angles", "arm.joint_velocities"]
        run = graph.compile().run(steps=steps, record=record, watch=mode == "spring")
        return run["arm"]["joint_angles"], run["arm"]["joint_velocities"]

    def test_stop_clips_the_position_and_zeroes_the_velocity(self, planar):
        q, qd = self.falling(planar, "stop")
        assert q[-1, 0] == -0.5
        assert qd[-1, 0] == 0.0
        assert q[:, 0].min() == -0.5

    def test_clip_keeps_the_velocity(self, planar):
        q, qd = self.falling(planar, "clip")
        assert q[:, 0].min() == -0.5
        assert qd[-1, 0] < -0.5

    def test_spring_gives_way_by_load_over_stiffness(self, planar):
        with pytest.warns(LimitWarning, match="travel beyond the limit of joint"):
            q, qd = self.falling(planar, "spring", steps=4000, limit_stiffness_n_m_per_rad=1e3)
        assert np.abs(qd[-1]).max() < 1e-6
        load = nonlinear_bias(planar, q[-1], np.zeros(3), GRAVITY)
        np.testing.assert_allclose(q[-1] - [-0.5, -0.1, -0.1], -load / 1e3, rtol=1e-6)

    def test_a_very_stiff_spring_does_not_blow_up(self, planar):
        with pytest.warns(LimitWarning, match="travel beyond the limit of joint"):
            q, _ = self.falling(planar, "spring", limit_stiffness_n_m_per_rad=1e8)
        assert np.isfinite(q).all()
        assert q[:, 0].min() > -0.52


class TestDryFriction:
    def test_a_joint_at_rest_stays_until_pushed_harder_than_its_friction(self, planar):
        node = arm(planar, friction=Coulomb(np.full(3, 20.0)))
        rest = node.update(state([0.3, 0.2, 0.1]), {}, DT)
        np.testing.assert_array_equal(rest["joint_velocities"], np.zeros(3))
        push = {"commanded_joint_torques": np.array([60.0, 0.0, 0.0])}
        moved = node.update(state([0.3, 0.2, 0.1]), push, DT)
        assert moved["joint_velocities"][0] > 0
        np.testing.assert_array_equal(moved["joint_velocities"][1:], np.zeros(2))

    def test_a_sliding_joint_feels_exactly_its_friction(self, planar):
        tau_c = np.array([3.0, 2.0, 1.0])
        q, qd = np.array([0.3, 0.2, 0.1]), np.array([5.0, -6.0, 7.0])
        slid = arm(planar, friction=Coulomb(tau_c)).update(state(q, qd), {}, DT)
        expected = arm(planar).update(
            state(q, qd), {"commanded_joint_torques": -tau_c * np.sign(qd)}, DT
        )
        np.testing.assert_allclose(
            slid["joint_velocities"], expected["joint_velocities"], rtol=1e-12
        )

    def test_the_step_satisfies_the_friction_law(self, planar):
        """H (v - v_free) = -impulse, within the cone, opposed to v: checked, not assumed."""
        from mime.control.joint_friction import coulomb_step

        step = jax.jit(coulomb_step, compiler_options=QUICK)
        rng = np.random.default_rng(5)
        for _ in range(50):
            A = rng.normal(size=(6, 6))
            H, v_free = A @ A.T + 0.1 * np.eye(6), rng.normal(size=6)
            limit = rng.uniform(0, 2, 6)
            v = np.asarray(step(H, v_free, limit))
            impulse = -H @ (v - v_free)
            assert (np.abs(impulse) <= limit * (1 + 1e-9) + 1e-12).all()
            slides = v != 0
            np.testing.assert_allclose(
                impulse[slides], limit[slides] * np.sign(v[slides]), rtol=1e-9, atol=1e-12
            )

    def test_urdf_friction_is_used(self, planar):
        rough = eqx.tree_at(lambda t: t.joint_coulomb_friction, planar, np.full(3, 20.0))
        rest = arm(rough).update(state([0.3, 0.2, 0.1]), {}, DT)
        np.testing.assert_array_equal(rest["joint_velocities"], np.zeros(3))


def test_armature_adds_gear_squared_times_rotor_inertia(planar):
    node = arm(
        planar, rotor_inertia_kg_m2=np.full(3, 1e-4), gear_ratio=np.array([10.0, 20.0, 30.0])
    )
    q = np.array([0.1, 0.2, 0.3])
    difference = mass_matrix(node.tree, q) - mass_matrix(planar, q)
    np.testing.assert_allclose(difference, np.diag([0.01, 0.04, 0.09]), atol=1e-15)


def test_effort_saturation_is_a_switch(planar):
    command = {"commanded_joint_torques": np.array([1e3, 0.0, 0.0])}
    limited = {"commanded_joint_torques": np.array([60.0, 0.0, 0.0])}
    start = state([0.1, 0.2, 0.3])
    free, saturated = arm(planar), arm(planar, saturate_effort=True)
    np.testing.assert_array_equal(
        saturated.update(start, command, DT)["joint_velocities"],
        free.update(start, limited, DT)["joint_velocities"],
    )
    assert free.update(start, command, DT)["joint_velocities"][0] > 2.0
    assert saturated.compute_boundary_fluxes(start, command, DT)["joint_torques_actual"][0] == 60.0


@pytest.mark.parametrize("q", [np.zeros(6), np.array([np.pi, 0, 0, np.pi, 0, np.pi])])
def test_gradients_of_the_tool_pose_are_finite_at_zero_and_at_180_degrees(desktop, q):
    node = arm(desktop, joint_limit_override=np.tile([-10.0, 10.0], (6, 1)))

    def pose(q):
        return node.compute_boundary_fluxes(state(q), {}, DT)["end_effector_pose_world"]

    def everything(q):
        return pose(q), jax.jacfwd(pose)(q), jax.jacrev(pose)(q)

    # Jitted as a whole, so that the poses of the other links are not compiled.
    everything = jax.jit(everything, compiler_options=QUICK)
    _, jacobian, reverse = everything(q)
    assert np.isfinite(jacobian).all()
    assert np.isfinite(reverse).all()
    step = 1e-6
    for j in range(6):
        e = step * np.eye(6)[j]
        up, down = (np.asarray(everything(x)[0]) for x in (q + e, q - e))
        central = (up[:3] - down[:3]) / (2 * step)
        np.testing.assert_allclose(jacobian[:3, j], central, atol=1e-9)  # eps/step and step^2


def test_gradients_of_a_rollout_agree_with_central_differences(planar):
    graph = GraphManager()
    graph.add_node(arm(planar, joint_limit_override=FREE))
    graph.add_external_input("arm", "commanded_joint_torques")
    simulation = graph.compile()

    @partial(jax.jit, compiler_options=QUICK)
    @partial(jax.value_and_grad, argnums=(0, 1))
    def final(masses, torques):
        variant = simulation.with_parameters({"arm": {"tree.masses": masses}})
        end, _ = variant.rollout(
            variant.init_state({"arm": {"joint_angles": jnp.array([0.3, 0.2, 0.1])}}),
            {"arm": {"commanded_joint_torques": torques}},
            500,
            record=(),
            remat_every=50,
        )
        return jnp.sum(end.of("arm")["joint_angles"] ** 2)

    masses, torques = planar.masses, np.array([5.0, 1.0, -0.5])
    _, gradients = final(masses, torques)
    step = 1e-5
    for argument in range(2):
        for j in range(3):
            e = step * np.eye(3)[j]
            up = [masses, torques]
            down = [masses, torques]
            up[argument], down[argument] = up[argument] + e, down[argument] - e
            central = (final(*up)[0] - final(*down)[0]) / (2 * step)
            # Central differences: curvature times 1e-10, rounding eps/step = 2e-11 of the value.
            assert gradients[argument][j] == pytest.approx(float(central), rel=1e-6, abs=1e-8)


@pytest.mark.small("float32")
def test_single_precision_stays_single(planar, precision):
    node = arm(planar, friction=Coulomb(np.full(3, 0.1)))
    start = node.initial_state()
    after = node.update(start, {"commanded_joint_torques": [1.0, 0.0, 0.0]}, DT)
    fluxes = node.compute_boundary_fluxes(after, {}, DT)
    assert {x.dtype.name for x in (*after.values(), *fluxes.values())} == {precision}


def test_a_batch_of_masses_equals_single_runs(planar):
    graph = GraphManager()
    graph.add_node(arm(planar))
    simulation = graph.compile()
    masses = np.asarray(planar.masses) * np.linspace(0.5, 2.0, 300)[:, None]
    batch = simulation.run_batch(
        steps=50, parameters={"arm": {"tree.masses": masses}}, record=["arm.joint_angles"]
    )
    single = simulation.with_parameters({"arm": {"tree.masses": masses[123]}}).run(
        steps=50, record=["arm.joint_angles"]
    )
    np.testing.assert_allclose(
        batch["arm"]["joint_angles"][123], single["arm"]["joint_angles"], rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end_effector_link_name": "link_9"}, "end_effector_link_name names no link 'link_9'"),
        ({"joint_limits": "bounce"}, "joint_limits must be one of 'stop', 'clip', 'spring'"),
        ({"integrator": "euler"}, "integrator must be one of"),
        ({"joint_friction_n_m_s": [0.1, 0.1]}, r"joint_friction_n_m_s must have shape \(3,\)"),
        ({"joint_friction_n_m_s": [-0.1, 0.0, 0.0]}, "joint_friction_n_m_s must be >= 0"),
        ({"base_pose_world": (0, 0, 0, 2, 0, 0, 0)}, "unit quaternion"),
        ({"base_pose_world": (0, 0, 0)}, r"base_pose_world must have shape \(7,\)"),
        ({"gravity_world": (0, 0, np.nan)}, "gravity_world must be finite"),
        ({"joint_limit_override": [[1.0, -1.0]] * 3}, "lower limit of joint 'shoulder'"),
        ({"gear_ratio": [np.inf, 1.0, 1.0]}, "gear_ratio must be finite"),
    ],
)
def test_bad_parameters_are_refused(planar, options, message):
    arguments = {"end_effector_link_name": "link_3", **options}
    with pytest.raises(ParameterError, match=message):
        RobotArmNode("arm", DT, planar, **arguments)


def test_a_start_outside_the_limits_is_refused_with_what_it_is_in_degrees(desktop):
    graph = GraphManager()
    graph.add_node(arm(desktop))
    simulation = graph.compile()
    name = desktop.joint_names[1]
    with pytest.raises(InputError, match=f"joint '{name}' at 45 rad.*write 0.7854 rad") as error:
        simulation.init_state({"arm": {"joint_angles": [0.0, 45.0, 0.0, 0.0, 0.0, 0.0]}})
    assert error.value.problems[0].place == ("state", "arm", "joint_angles")
    at_the_limit = np.asarray(desktop.joint_limits)[:, 1]
    simulation.init_state({"arm": {"joint_angles": at_the_limit}})
    with pytest.raises(InputError, match="is not finite"):
        simulation.init_state({"arm": {"joint_angles": np.full(6, np.nan)}})


@pytest.mark.parametrize("leaf", ["masses", "coms", "inertias", "joint_limits", "gear_ratio"])
def test_nan_in_a_tree_is_refused_by_name(planar, leaf):
    broken = eqx.tree_at(lambda t: getattr(t, leaf), planar, np.nan * getattr(planar, leaf))
    with pytest.raises(ParameterError) as error:
        arm(broken)
    assert ("tree", leaf) in [problem.place for problem in error.value.problems]
