"""The servo of an arm: within its limits at any gain, and at the goal."""

import warnings
from importlib import metadata

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import mime.control.kinematics as kin
from mime import Coulomb, GraphManager, JointPDNode, Payload, RobotArmNode, Servo, model_path
from mime.core.problem import ParameterError, StabilityWarning

DT = 1e-3
GOAL = np.array([0.6, -0.8, 0.9])
LIMITS = {"torque_limits_n_m": [30.0, 12.0, 2.0]}
SPEEDS = {"velocity_limits_rad_per_s": [1.0, 1.5, 2.0]}
SPRINGS = {
    "rotor_inertia_kg_m2": [5e-6] * 3,
    "gear_ratio": [50.0] * 3,
    "joint_stiffness_n_m_per_rad": {"elbow": 400.0},
    "joint_stiffness_damping_n_m_s": {"elbow": 2.0},
}


@pytest.fixture(scope="module")
def tree():
    return kin.parse_urdf(model_path("planar_arm_3link"))


def simulation(tree, **options):
    arm = RobotArmNode("arm", DT, tree, "tool", **options)
    graph = GraphManager()
    graph.add_node(arm)
    for name in ("desired_joint_angles", "desired_joint_velocities", "commanded_joint_torques"):
        graph.add_external_input("arm", name)
    return graph.compile()


@pytest.fixture(scope="module")
def run(tree):
    """One compiled arm for all gains."""
    compiled = simulation(tree, servo=Servo(jnp.ones(3), jnp.ones(3), **LIMITS, **SPEEDS))

    def go(kp, kd, steps=2000):
        changed = compiled.with_parameters({"arm.servo.kp": [kp] * 3, "arm.servo.kd": [kd] * 3})
        return changed.run(steps=steps, inputs={"arm": {"desired_joint_angles": GOAL}})["arm"]

    go.compiled = compiled
    return go


def test_it_is_machine_code(run):
    assert run.compiled.backend.native


@pytest.mark.parametrize("kp", [1e1, 1e3, 1e5, 1e7])
def test_no_gain_leaves_its_limits_and_large_ones_reach_the_goal(run, kp):
    arm = run(kp, kp / 10)
    torque, speed = (np.abs(arm[name]).max(0) for name in ("servo_torques", "joint_velocities"))
    assert np.all(torque <= LIMITS["torque_limits_n_m"])
    assert np.all(speed <= SPEEDS["velocity_limits_rad_per_s"])
    assert np.any(torque == LIMITS["torque_limits_n_m"]) or kp < 1e3
    if kp >= 1e3:  # kd / kp is 0.1 s: e⁻²⁰ after the last second and more
        np.testing.assert_allclose(arm["joint_angles"][-1], GOAL, atol=1e-4)


def test_a_step_without_limits_solves_the_implicit_equation(tree):
    """(M + dt kd + dt² kp) v' = M v + dt (kp (q_des - q) + kd v_des - c): NumPy's solution."""
    kp, kd = np.linspace(50, 300, 3), np.linspace(1, 20, 3)
    servo = Servo(kp, kd, gravity_compensation=False, limit_torque=False, limit_speed=False)
    bare = RobotArmNode("arm", DT, tree, "tool", servo=servo)
    rng = np.random.default_rng(1)
    q, v, q_des, v_des = rng.uniform(-0.5, 0.5, (4, 3))
    state = bare.initial_state() | {
        "joint_angles": jnp.asarray(q),
        "joint_velocities": jnp.asarray(v),
    }
    inputs = {"desired_joint_angles": q_des, "desired_joint_velocities": v_des}
    new = bare.update(state, inputs, DT)
    M = kin.mass_matrix(tree, q)
    c = kin.nonlinear_bias(tree, q, v, np.array([0.0, 0.0, -9.80665]))
    rest = M @ v + DT * (kp * (q_des - q) + kd * v_des - c)
    expected = np.linalg.solve(M + np.diag(DT * kd + DT**2 * kp), rest)
    np.testing.assert_allclose(new["joint_velocities"], expected, rtol=1e-10)
    there = q + DT * expected
    torque = kp * (q_des - there) + kd * (v_des - expected)
    np.testing.assert_allclose(new["servo_torques"], torque, rtol=1e-9)
    np.testing.assert_allclose(new["joint_angles"], there, rtol=1e-12)


@pytest.mark.small("inserted_body")
@pytest.mark.filterwarnings("ignore::mime.LimitWarning")  # of links, which swing on their springs
@pytest.mark.parametrize("model", ["sea", "inserted_body"])
def test_on_a_spring_it_holds_the_rotor_at_the_goal(tree, model):
    options = dict(SPRINGS, joint_model=model)
    if model == "inserted_body":
        options["inserted_inertia_kg_m2"] = {"elbow": 1e-3}
    servo = Servo(1e4, 1e2, **LIMITS, **SPEEDS)
    compiled = simulation(tree, servo=servo, **options)
    arm = compiled.run(steps=3000, inputs={"arm": {"desired_joint_angles": GOAL}})["arm"]
    assert np.all(np.abs(arm["servo_torques"]) <= LIMITS["torque_limits_n_m"])
    rotors = np.abs(arm["rotor_velocities"])
    np.testing.assert_array_less(
        rotors.max(0), np.array(SPEEDS["velocity_limits_rad_per_s"]) + 1e-9
    )
    np.testing.assert_allclose(arm["rotor_angles"][-1], GOAL, atol=1e-3)
    g = kin.gravity_vector(tree, np.asarray(arm["joint_angles"][-1]), np.array([0, 0, -9.80665]))
    sag = -g[[1]] / 400.0
    np.testing.assert_allclose(arm["joint_deflections"][-1], sag, atol=1e-3)


NINE = np.random.default_rng(1)
STARTS = NINE.uniform(-0.6, 0.6, (9, 3))
GAINS = {
    "arm.servo.kp": 10.0 ** NINE.uniform(1, 6, (9, 3)),
    "arm.servo.kd": 10.0 ** NINE.uniform(0, 4, (9, 3)),
}


@pytest.fixture(scope="module")
def batch(run):
    """A batch of those of nine servos that it names: at limits, giving way and free."""

    def go(which, **options):
        found = run.compiled.run_batch(
            steps=200,
            inputs={"arm": {"desired_joint_angles": GOAL}},
            parameters={name: values[which] for name, values in GAINS.items()},
            initial_state={"arm": {"joint_angles": STARTS[which]}},
            **{"progress": False, **options},
        )
        return {name: np.asarray(found["arm"][name]) for name in found["arm"]}

    go.nine = go(np.arange(9))
    return go


def test_any_batch_order_and_number_of_threads_gives_a_member_the_same_bits(batch):
    """Servos that pivot more often than their neighbours do not change them."""
    at_limit = np.abs(batch.nine["servo_torques"]) == LIMITS["torque_limits_n_m"]
    assert 0 < np.mean(np.any(at_limit, (1, 2))) <= 1
    assert 0 < np.mean(at_limit) < 1
    for which, options in (
        (np.arange(1), {}),
        (np.arange(5), {"threads": 1}),
        (np.arange(9)[::-1], {"threads": 3}),
        (np.array([7, 2, 2, 5, 0]), {"progress": lambda *_: None}),
    ):
        for name, found in batch(which, **options).items():
            assert found.tobytes() == batch.nine[name][which].tobytes(), name


def test_a_run_alone_and_one_that_goes_on_have_the_bits_of_the_batch(run, batch):
    alone = run.compiled.with_parameters({name: values[4] for name, values in GAINS.items()})
    inputs, state = {"arm": {"desired_joint_angles": GOAL}}, {"arm": {"joint_angles": STARTS[4]}}
    parts = []
    for steps in (7, 1, 192):
        parts.append(alone.run(steps=steps, inputs=inputs, initial_state=state, progress=False))
        state = parts[-1].final_state
    for name, nine in batch.nine.items():
        joined = np.concatenate([part["arm"][name] for part in parts])
        assert joined.tobytes() == nine[4].tobytes(), name


@pytest.mark.soak("tests/running and tests/scenarios resume runs")
def test_a_run_that_was_interrupted_resumes_with_the_same_bits(run, tmp_path):
    inputs, file = {"arm": {"desired_joint_angles": GOAL}}, tmp_path / "run.checkpoint"
    stiff = run.compiled.with_parameters({"arm.servo.kp": [2e4] * 3, "arm.servo.kd": [50.0] * 3})
    steps, state = 5000, {"arm": {"joint_angles": STARTS[2]}}

    def stop(done, total):
        if 0 < done < total:
            raise KeyboardInterrupt

    options = {"steps": steps, "inputs": inputs, "initial_state": state}
    with pytest.raises(KeyboardInterrupt, match="resume from"):
        stiff.run(**options, checkpoint=file, progress=stop)
    resumed = stiff.run(**options, checkpoint=file, resume=True, progress=False)
    plain = stiff.run(**options, progress=False)
    for name in plain["arm"]:
        assert resumed["arm"][name].tobytes() == plain["arm"][name].tobytes(), name


@pytest.mark.soak("the planar arm above and MIME-VER-164 have the same limits")
def test_a_panda_stays_within_its_limits_and_ends_at_the_goal():
    """Under a plain PD with these gains and this step it reaches 130,817 N·m."""
    path = next(
        file.locate()
        for file in metadata.files("example-robot-data")
        if str(file).endswith("/panda.urdf")
    )
    panda = kin.parse_urdf(path).lock(panda_finger_joint1=0.0)
    lower, upper = np.asarray(panda.joint_limits).T
    start = np.clip(np.zeros(7), lower + 0.1, upper - 0.1)
    goal = start + np.array([1.2, 0.9, -1.2, -0.9, 1.0, 0.8, -1.0])
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", DT, panda, "panda_hand", servo=Servo(600.0, 50.0)))
    graph.add_external_input("arm", "desired_joint_angles")
    arm = graph.compile().run(
        steps=3000,
        inputs={"arm": {"desired_joint_angles": goal}},
        initial_state={"arm": {"joint_angles": start}},
    )["arm"]
    torque, speed = (np.abs(arm[name]).max(0) for name in ("servo_torques", "joint_velocities"))
    np.testing.assert_array_equal(panda.effort_limits, [87.0] * 4 + [12.0] * 3)
    assert np.all(torque <= panda.effort_limits)
    assert np.all(speed <= [2.2] * 4 + [2.62] * 3)
    assert np.all(speed <= panda.velocity_limits)
    assert np.any(torque == panda.effort_limits)  # the limits were in the way, and
    assert np.any(speed == panda.velocity_limits)
    # kd / kp is 1/12 s: of 1.2 rad e⁻²⁴ is left 2 s after the joints left their limits.
    np.testing.assert_allclose(arm["joint_angles"][-1], goal, rtol=0, atol=1e-6)


def test_on_a_spring_it_acts_on_the_rotor(tree):
    """M q̈ = -k x - v ẋ,  J θ̈ = k x + v ẋ + kp (θ_d - θ) + kd (θ̇_d - θ̇):  exp(A t) by SciPy."""
    one = tree.lock(dict.fromkeys(tree.joint_names[:2], 0.0))
    kp, kd, k, v, J, speed, seconds = 40.0, 0.8, 15.0, 0.02, 0.012, 0.5, 0.4
    servo = Servo(kp, kd, gravity_compensation=False, limit_torque=False, limit_speed=False)
    angle = 0.7

    def moved(dt):
        arm = RobotArmNode(
            "arm",
            dt,
            one,
            "tool",
            servo=servo,
            rotor_inertia_kg_m2=[J],
            gear_ratio=[1.0],
            joint_stiffness_n_m_per_rad=[k],
            joint_stiffness_damping_n_m_s=[v],
            gravity_world=(0.0, 0.0, 0.0),
        )
        graph = GraphManager()
        graph.add_node(arm)
        for name in ("desired_joint_angles", "desired_joint_velocities"):
            graph.add_external_input("arm", name)
        inputs = {"desired_joint_angles": [angle], "desired_joint_velocities": [speed]}
        run = graph.compile().run(seconds, {"arm": inputs}, watch=False)
        return np.concatenate([run["arm"][name][-1] for name in ("joint_angles", "rotor_angles")])

    M = float(kin.mass_matrix(one, np.zeros(1))[0, 0]) - float(one.armature[0])
    A = np.zeros((5, 5))  # q, θ, q̇, θ̇, 1
    A[0, 2] = A[1, 3] = 1
    A[2, :4] = np.array([-k, k, -v, v]) / M
    A[3] = np.array([k, -k - kp, v, -v - kd, kp * angle + kd * speed]) / J
    expected = (scipy.linalg.expm(A * seconds) @ np.eye(5)[4])[:2]
    whole, half = moved(2e-4), moved(1e-4)
    assert np.all(np.abs(half - expected) < 2e-3)
    # Of first order: extrapolated to a step of zero, second order is left.
    np.testing.assert_allclose(2 * half - whole, expected, rtol=0, atol=7e-6)


def test_with_dry_friction_a_joint_sticks_where_the_servo_pulls_less_than_it(tree):
    servo = Servo(10.0, 1.0)
    arm = RobotArmNode("arm", DT, tree, "tool", servo=servo, friction=Coulomb(np.full(3, 1.0)))
    state = arm.update(arm.initial_state(), {"desired_joint_angles": np.full(3, 0.05)}, DT)
    np.testing.assert_array_equal(state["joint_velocities"], 0.0)
    g = kin.gravity_vector(tree, np.asarray(state["joint_angles"]), np.array([0, 0, -9.80665]))
    np.testing.assert_allclose(state["servo_torques"], 0.5 + g, rtol=1e-12)
    moved = arm.update(arm.initial_state(), {"desired_joint_angles": np.full(3, 0.5)}, DT)
    assert np.all(np.asarray(moved["joint_velocities"]) != 0)


def test_others_give_way_where_a_small_joint_would_be_whipped_beyond_its_speed(tree):
    """The wrist has little to brake with, and the others throw it about."""
    weak = Servo(600.0, 50.0, torque_limits_n_m=[60, 25, 0.8], velocity_limits_rad_per_s=1.0)
    quick = RobotArmNode("arm", DT, tree, "tool", servo=weak)
    # Of NumPy's arrays a step is a call of machine code, and nothing is compiled for XLA.
    state, fastest = jax.tree.map(np.asarray, quick.initial_state()), 0.0
    for k in range(300):
        goal = GOAL if k < 150 else -GOAL
        state = quick.update(state, {"desired_joint_angles": goal}, DT)
        state = jax.tree.map(np.asarray, state)
        fastest = max(fastest, np.abs(state["joint_velocities"]).max())
        assert np.all(np.abs(state["servo_torques"]) <= np.asarray(quick.servo.torque_limits_n_m))
    # In steps that no torques could keep, the limit is missed by the least that is possible.
    assert fastest <= 1.0 + 1e-3


def test_gradients_of_a_saturated_step_are_those_of_the_step(tree):
    servo = Servo(600.0, 50.0, **LIMITS, **SPEEDS)
    arm = RobotArmNode("arm", DT, tree, "tool", servo=servo)
    v = np.array([0.999, -0.3, 0.2])
    state = arm.initial_state() | {"joint_velocities": jnp.asarray(v)}

    @jax.jit
    @jax.value_and_grad
    def speed(kp):
        changed = arm.with_params(**{"servo.kp": kp * np.linspace(1, 2, 3)})
        new = changed.update(state, {"desired_joint_angles": 0.02 * GOAL}, DT)
        return jnp.sum(new["joint_velocities"] * np.arange(1.0, 4.0))

    h = 1e-3
    central = (speed(600.0 + h)[0] - speed(600.0 - h)[0]) / (2 * h)
    assert abs(float(central)) > 0
    assert float(speed(600.0)[1]) == pytest.approx(float(central), rel=1e-5)


@pytest.mark.soak("test_robot_arm.py has an arm in single precision")
def test_single_precision_holds_its_limits_too(tree):
    with jax.enable_x64(False):
        arm = RobotArmNode("arm", DT, tree, "tool", servo=Servo(1e3, 1e2, **LIMITS, **SPEEDS))
        state = arm.initial_state()
        for _ in range(50):
            state = arm.update(state, {"desired_joint_angles": GOAL}, DT)
        assert state["servo_torques"].dtype == jnp.float32
        assert np.all(np.abs(state["servo_torques"]) <= np.float32(LIMITS["torque_limits_n_m"]))
        assert np.all(
            np.abs(state["joint_velocities"])
            <= np.float32(SPEEDS["velocity_limits_rad_per_s"]) * (1 + 1e-6)
        )


def test_a_payload_is_carried_and_its_mass_can_be_varied(tree):
    """The servo compensates it; a gradient goes through its mass."""
    light = RobotArmNode("arm", DT, tree, "tool", payload=Payload("tool", 0.3, [0, 0, 0.05]))
    loaded = RobotArmNode("arm", DT, tree.with_payload("tool", 0.3, [0, 0, 0.05]), "tool")
    inputs = {"commanded_joint_torques": np.linspace(-1, 1, 3)}
    first, second = (a.update(a.initial_state(), inputs, DT) for a in (light, loaded))
    np.testing.assert_array_equal(first["joint_velocities"], second["joint_velocities"])

    @jax.jit
    @jax.value_and_grad
    def speed(mass):
        arm = light.with_params(**{"payload.mass_kg": mass})
        return arm.update(arm.initial_state(), inputs, DT)["joint_velocities"][1]

    central = (speed(0.301)[0] - speed(0.299)[0]) / 0.002
    assert float(speed(0.3)[1]) == pytest.approx(float(central), rel=1e-4)


def test_wrenches_act_at_named_frames_and_points(tree):
    """Against the same force moved to the tool tip of an arm whose tool is there."""
    pose = [0.02, -0.03, 0.1, 1.0, 0.0, 0.0, 0.0]
    frames = {"corner": {"link": "link_2", "pose": pose}}
    arm = RobotArmNode("arm", DT, tree, "tool", frames=frames, wrench_frames=("corner", "link_3"))
    wrench = np.zeros((2, 6))
    wrench[0] = [1.0, 2.0, -3.0, 0.1, -0.2, 0.3]
    inputs = {"external_wrenches_at_frames": wrench}
    torque = arm.compute_boundary_fluxes(arm.initial_state(), inputs, DT)["joint_torques_actual"]
    other = RobotArmNode("arm", DT, tree, "link_2", end_effector_offset_in_link=pose)
    inputs = {"end_effector_wrench_world": wrench[0]}
    expected = other.compute_boundary_fluxes(other.initial_state(), inputs, DT)
    np.testing.assert_allclose(torque, expected["joint_torques_actual"], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"servo": Servo(1.0, 1.0), "integrator": "rk4"}, "servo does not go with integrator"),
        ({"servo": Servo([1.0, 2.0], 1.0)}, r"servo.kp must have shape \(3,\)"),
        ({"servo": Servo({"sholder": 1.0}, 1.0)}, "servo.kp names no joint 'sholder'"),
        ({"payload": Payload("tol", 1.0)}, "payload.link names no link 'tol'"),
        ({"lock": {"sholder": 0.1}}, "lock.sholder is no joint"),
        ({"lock": 3}, "lock must be a table"),
        ({"subtree": {"rot": "link_1"}}, "subtree.rot is no key of it"),
        ({"attach": {"link": "tool"}}, "attach.urdf_path is missing"),
        ({"frames": {"a": {"link": "nowhere"}}}, "frames.a.link names no link 'nowhere'"),
        ({"frames": 1}, "frames must be a table"),
        ({"wrench_frames": ("grip",)}, "wrench_frames names no link 'grip'"),
    ],
)
def test_what_an_arm_refuses(tree, options, words):
    with pytest.raises(ParameterError, match=words):
        RobotArmNode("arm", DT, tree, "tool", **options)


def test_a_servo_refuses_gains_below_zero():
    with pytest.raises(ParameterError, match="kp must be >= 0"):
        Servo(-1.0, 1.0)
    with pytest.raises(ParameterError, match="torque_limits_n_m must be > 0"):
        Servo(1.0, 1.0, torque_limits_n_m=0.0)


def test_a_pd_controller_warns_of_gains_that_its_step_does_not_hold(tree):
    with pytest.warns(StabilityWarning, match="joint 'wrist' has an inertia of .* 0.001 s"):
        JointPDNode("pd", DT, tree, 600.0, 50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        JointPDNode("pd", DT, tree, 10.0, 0.1)


def test_the_step_that_the_warning_names_is_where_a_joint_begins_to_shake(tree):
    """Locked to its last joint, the arm is linear: stable just below the named step only."""
    one = tree.lock(dict.fromkeys(tree.joint_names[:2], 0.0))
    with pytest.warns(StabilityWarning) as caught:
        JointPDNode("pd", 1e-2, one, 20.0, 2.0)
    longest = float(str(caught[0].message).split("Take at most ")[1].split(" s")[0])
    J = float(kin.mass_matrix(one, np.zeros(1))[0, 0])

    def grows(dt):
        step = np.array(
            [[1 - dt**2 * 20.0 / J, dt - dt**2 * 2.0 / J], [-dt * 20.0 / J, 1 - dt * 2.0 / J]]
        )
        return np.abs(np.linalg.eigvals(step)).max() > 1

    assert grows(1.01 * longest)
    assert not grows(0.99 * longest)


def test_members_of_a_batch_may_have_no_limit(run):
    """An infinite limit is one of a batch's values as it is one of a servo's; NaN is none."""
    inputs = {"arm": {"desired_joint_angles": GOAL}}
    limits = np.array([[5.0, 1.0, 0.5], [np.inf] * 3])
    batch = run.compiled.run_batch(
        steps=20, inputs=inputs, parameters={"arm.servo.torque_limits_n_m": limits}
    )
    torques = np.abs(batch["arm"]["servo_torques"]).max(axis=1)
    assert np.all(torques[0] <= limits[0])
    assert np.any(torques[1] > limits[0])
    with pytest.raises(ValueError, match="torque_limits_n_m"):
        run.compiled.with_parameters({"arm.servo.torque_limits_n_m": [np.nan] * 3})


def test_an_absurd_timestep_is_warned_of_and_not_an_overflow(tree):
    with pytest.warns(StabilityWarning, match="timestep of 1e[+]200 s"):
        JointPDNode("pd", 1e200, tree, kp=10.0, kd=1.0)
