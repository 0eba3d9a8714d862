"""Friction that grows with the load of a gearbox."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime import (
    Gear,
    Limits,
    LoadFriction,
    MotorNode,
    ParameterError,
    RobotArmNode,
    Servo,
    Stribeck,
    load_scenario,
    model_path,
    parse_urdf,
)
from mime.nodes.actuation.friction import Load
from mime.nodes.actuation.robot_arm.inverse import commanded_torques
from mime.running.graph import GraphManager

J, B, DT = 1e-4, 5e-4, 1e-3
ALL = LoadFriction(
    coulomb_torque_n_m=1e-3,
    motor_load=0.2,
    external_load=0.1,
    motor_load_difference=-0.05,
    stribeck_torque_n_m=2e-3,
    stribeck_motor_load=0.1,
    stribeck_external_load=0.05,
    quadratic_motor_load_per_n_m=0.3,
    quadratic_external_load_per_n_m=0.2,
    velocity_rad_per_s=3.0,
    exponent=1.5,
)


def motor(**options):
    options = {"command_mode": "torque", "friction": ALL} | options
    return MotorNode("motor", options.pop("timestep", DT), J, 0.05, 1.0, 1e-3, B, **options)


def speeds(node, omega, steps=1, **inputs):
    """The speed after each step."""

    def step(state, _):
        state = node.update(state, inputs, node.timestep)
        return state, state["angular_velocity"]

    start = node.initial_state() | {"angular_velocity": jnp.asarray(omega, float)}
    return np.asarray(jax.lax.scan(step, start, length=steps)[1])


# What `Model.compute_frictions` of github.com/Rhoban/bam (commit 1b5a1cee) gives with its published
# parameters of a Dynamixel MX-106 (M3 to M6) and MX-64 (M6), at the torques and speeds below.
STATES = np.array(
    [[1.5, -2.0, 0.0], [2.0, -1.5, 0.0], [1.5, 0.8, -0.3], [-0.7, 0.0, 0.1], [0.9, -0.4, 4.0],
     [-1.0, 2.5, 0.6]]
)  # fmt: skip
M3 = LoadFriction(0.1133532996239035, 0.10824037267470683, 0.10824037267470683)
M4 = LoadFriction(
    6.653380436533205e-13, 0.009150334028953775, 0.009150334028953775, 0.0, 0.10491060771568866,
    0.22235912179095094, 0.22235912179095094, 0.0, 0.0, 1.6232949773728853, 1.323485668999259,
)  # fmt: skip
M5 = LoadFriction(
    1.8812712661235184e-10, 0.20763710226562626, 0.022684350817709906, 0.0, 0.12242747179820507,
    0.19519320110890795, 0.08490162305974122, 0.0, 0.0, 1.7457130513692263, 1.138313248724122,
)  # fmt: skip
M6 = LoadFriction(
    1.0232526438525893e-05, 0.19800553725822115, 0.022215529897348624, 0.0, 0.12195409579603411,
    0.19859970173941574, 0.08710328264676681, 0.009999930103371748, 7.326919843140997e-05,
    1.7463251741328727, 1.142827788004191,
)  # fmt: skip
MX64 = LoadFriction(
    6.217919698787649e-07, 0.3114720375111298, 2.0462014258729542e-08, 0.0, 0.12269525980968875,
    0.18774381222411038, 0.014065853481003015, 0.006908512882777861, 0.009999980627672081,
    2.575277366960116, 0.8409018066017007,
)  # fmt: skip


@pytest.mark.parametrize(
    ("friction", "published"),
    [
        (M3, [0.4921946039853774, 0.4921946039853774, 0.18912156049619827, 0.18912156049619827,
              0.25406578410102243, 0.4921946039853774]),
        (M4, [0.9151937030860205, 0.9151937030860205, 0.24051904575027866, 0.2605322264265319,
              0.026443601034038103, 0.7076539310840084]),
        (M5, [0.9418448748030358, 1.0894670395515773, 0.5968380197402648, 0.39460696254455463,
              0.22136787113902273, 0.6582648602717875]),
        (M6, [0.9580096546397452, 1.0793178808303903, 0.5856317243995965, 0.3898420581947783,
              0.2125688861879873, 0.6618079623927055]),
        (MX64, [0.9151955580768035, 1.164726348398927, 0.8008132731103603, 0.4561290581527428,
                0.35056691542704693, 0.5742563201692794]),
    ],
    ids=["M3", "M4", "M5", "M6", "M6 of an MX-64"],
)  # fmt: skip
def test_friction_is_that_of_the_published_models(friction, published):
    motor_torque, external, omega = STATES.T
    found = friction.largest(jnp.asarray(omega), 1.0, Load(motor_torque, external))
    np.testing.assert_allclose(found, published, rtol=1e-14)  # a few roundings of 1e-16
    unloaded = friction.torque(jnp.asarray(omega))
    none = jnp.zeros_like(unloaded)
    np.testing.assert_array_equal(unloaded, friction.largest(omega, 1.0, Load(none, none)))


@pytest.mark.parametrize("way", [1.0, -1.0])
@pytest.mark.parametrize("tau", [0.3, -0.3])
def test_a_difference_parts_driving_from_braking(tau, way):
    average, difference = 0.2, 0.05
    friction = LoadFriction(0.0, average, motor_load_difference=difference)
    found = friction.largest(jnp.asarray(way), way, Load(jnp.asarray(tau), jnp.asarray(0.0)))
    # MuJoCo's issue 3528 with z = sign(w): tau_f sign(w) = mu_avg |tau| z + mu_dif tau z²
    published = average * abs(tau) * way + difference * tau
    np.testing.assert_allclose(found * way, published, rtol=1e-14)  # a few roundings of 1e-16


@pytest.mark.parametrize("ratio", [1.0, 20.0])
def test_a_motor_lifts_lowers_and_holds_a_weight_by_the_torques_of_the_balance(ratio):
    tau_c, k_m, k_e, load, omega = 1e-3, 0.25, 0.15, 0.02, 4.0
    node = motor(friction=LoadFriction(tau_c, k_m, k_e), gear=Gear(ratio))
    lift = (load * (1 + k_e) + tau_c) / (1 - k_m)
    lower = (load * (1 - k_e) - tau_c) / (1 + k_m)
    weight = -load * ratio
    rising = speeds(
        node, omega, 50, load_torque=weight, commanded_torque=lift + B * omega / (1 - k_m)
    )
    falling = speeds(
        node, -omega, 50, load_torque=weight, commanded_torque=lower - B * omega / (1 + k_m)
    )
    np.testing.assert_allclose(rising, omega, rtol=1e-12)  # 50 steps' roundings of 1e-16
    np.testing.assert_allclose(falling, -omega, rtol=1e-12)
    for tau in (0.999 * lift, 1.001 * lower):
        np.testing.assert_array_equal(
            speeds(node, 0.0, 50, load_torque=weight, commanded_torque=tau), 0
        )
    assert speeds(node, 0.0, load_torque=weight, commanded_torque=1.001 * lift)[0] > 0
    assert speeds(node, 0.0, load_torque=weight, commanded_torque=0.999 * lower)[0] < 0


def test_a_worm_gear_holds_any_weight_and_is_turned_by_its_motor():
    node = motor(friction=LoadFriction(0.0, 0.3, external_load=1.2))
    for weight in (0.1, 10.0, -1e3):
        np.testing.assert_array_equal(speeds(node, 0.0, 20, load_torque=weight), 0)
        assert speeds(node, 1.0, 20, load_torque=weight)[-1] == 0
    assert speeds(node, 0.0, commanded_torque=1.01 * 2.2 / 0.7, load_torque=-1.0)[0] > 0


@pytest.mark.filterwarnings("ignore::mime.StabilityWarning")
def test_steps_of_any_length_do_not_grow_at_a_supplys_speed_torque_line():
    limits = Limits(supply_voltage_v=12.0)
    node = motor(friction=LoadFriction(0.0, 0.4), limits=limits, timestep=10.0, velocity_kp=1.0,
                 command_mode="velocity")  # fmt: skip
    omega = speeds(node, 1000.0, 60, commanded_velocity=500.0)
    # kt (V - ke w) / R (1 - k_m) = b w at the line's steady speed
    steady = 0.05 * 12.0 * 0.6 / (B + 0.05**2 * 0.6)
    np.testing.assert_allclose(omega[-1], steady, rtol=1e-9)  # steps contract by about k_m: 0.4^60


def test_gradients_agree_with_central_differences_and_are_finite_at_rest():
    names = list(ALL.params)

    def last(values, omega):
        node = motor().with_params(
            **{f"friction.{k}": v for k, v in zip(names, values, strict=True)}
        )
        state = node.initial_state() | {"angular_velocity": omega}
        for _ in range(4):
            inputs = {"commanded_torque": 0.04, "load_torque": -0.01}
            state = node.update(state, inputs, DT)
        return state["angular_velocity"]

    values = jnp.stack([jnp.asarray(x, float) for x in ALL.params.values()])
    gradient = jax.jit(jax.grad(last, argnums=(0, 1)), compiler_options=QUICK)
    final = jax.jit(last, compiler_options=QUICK)
    found = gradient(values, jnp.asarray(2.0))[0]
    for k, h in enumerate(1e-6 * np.asarray(values)):
        up, down = final(values.at[k].add(h), 2.0), final(values.at[k].add(-h), 2.0)
        # rounding of a speed of 2 is 1e-10 of h; the third derivative's 1e-12
        np.testing.assert_allclose(found[k], (up - down) / (2 * h), rtol=1e-6, atol=1e-9 / h * 1e-6)
    assert np.all(
        np.isfinite(jnp.concatenate([x.ravel() for x in gradient(values, jnp.asarray(0.0))]))
    )


def test_single_precision_stays_single():
    node = jax.tree.map(lambda x: x.astype(jnp.float32), motor())
    state = jax.tree.map(lambda x: x.astype(jnp.float32), node.initial_state())
    state["angular_velocity"] = jnp.float32(2.0)
    inputs = {"commanded_torque": np.float32(0.04), "load_torque": np.float32(-0.01)}
    after = node.update(state, inputs, DT)
    assert {x.dtype for x in after.values()} == {jnp.dtype("float32")}
    double = speeds(motor(), 2.0, commanded_torque=0.04, load_torque=-0.01)[0]
    np.testing.assert_allclose(after["angular_velocity"], double, rtol=1e-6)  # roundings of 6e-8


def test_a_batch_varies_friction_by_its_address_in_native_code():
    graph = GraphManager()
    graph.add_node(motor())
    for name in ("commanded_torque", "load_torque"):
        graph.add_external_input("motor", name)
    simulation = graph.compile()
    shares = np.array([0.0, 0.1, 0.4])
    inputs = {"commanded_torque": 0.04, "load_torque": -0.01}
    batch = simulation.run_batch(
        steps=50,
        inputs={"motor": inputs},
        parameters={"motor": {"friction.external_load": shares}},
        progress=False,
    )
    assert simulation.backend.native
    for k_e, last in zip(
        shares, np.asarray(batch["motor"]["rotor_angular_velocity"])[:, -1], strict=True
    ):
        alone = motor().with_params(**{"friction.external_load": k_e})
        # 50 steps; the machine's and XLA's powers and exponentials differ in the last bits
        np.testing.assert_allclose(last, speeds(alone, 0.0, 50, **inputs)[-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"motor_load": 1.0}, r"motor_load must be >= 0 and <= 0.95, got 1"),
        (
            {"motor_load": 0.6, "stribeck_motor_load": 0.5},
            r"motor_load plus .* must be < 1, got 1.1",
        ),
        (
            {"motor_load": 0.1, "motor_load_difference": -0.2},
            r"difference must be from -0.1 to 0.1 \(motor_load\), got -0.2",
        ),
        ({"motor_load": -0.1}, r"motor_load must be >= 0 and <= 0.95, got -0.1"),
        ({"motor_load": 0.1, "exponent": 0.0}, "exponent must be > 0, got 0"),
        ({"motor_load": None}, "motor_load must be a number"),
    ],
)  # fmt: skip
def test_what_no_gearbox_has_is_refused_by_name(values, words):
    with pytest.raises(ParameterError, match=words):
        LoadFriction(1e-3, **values)
    with pytest.raises(ParameterError, match=r"friction\.motor_load must be one number"):
        motor(friction=LoadFriction(1e-3, [0.1, 0.2]))
    with pytest.raises(ParameterError, match=r"with integrator 'exact', got a LoadFriction"):
        motor(integrator="exact")


PENDULUM = """<robot name="pendulum"><link name="base"/>
<link name="bar"><inertial><origin xyz="0.3 0 0"/><mass value="0.8"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pivot" type="continuous"><parent link="base"/><child link="bar"/>
<axis xyz="0 -1 0"/></joint></robot>"""
WEIGHT = 0.8 * 9.80665 * 0.3
INERTIA = 0.02 + 0.8 * 0.3**2
JOINT = dataclasses.replace(ALL, stribeck_torque_n_m=0.1, coulomb_torque_n_m=0.05)


def pendulum(tmp_path, **options):
    file = tmp_path / "pendulum.urdf"
    file.write_text(PENDULUM)
    return RobotArmNode("arm", DT, file, "bar", **{"friction": JOINT} | options)


def test_an_arm_of_one_joint_is_a_motor_with_its_weight_as_the_load(tmp_path):
    arm = pendulum(tmp_path)
    rotor = MotorNode(
        "motor", DT, INERTIA, 0.05, 1.0, 1e-3, 0.0, command_mode="torque", friction=JOINT
    )
    random = np.random.default_rng(3)
    q, tau = random.uniform(-3, 3, 300), random.uniform(-4, 4, 300)
    qd = random.choice([0.0, 0.01, 1.0], 300) * random.uniform(-2, 2, 300)

    def of_arm(q, qd, tau):
        state = {"joint_angles": q[None], "joint_velocities": qd[None]}
        return arm.update(state, {"commanded_joint_torques": tau[None]}, DT)["joint_velocities"][0]

    def of_motor(q, qd, tau):
        state = rotor.initial_state() | {"angular_velocity": qd}
        inputs = {"commanded_torque": tau, "load_torque": -WEIGHT * jnp.cos(q)}
        return rotor.update(state, inputs, DT)["angular_velocity"]

    found, expected = (
        jax.jit(jax.vmap(f), compiler_options=QUICK)(q, qd, tau) for f in (of_arm, of_motor)
    )
    assert 0.05 < np.mean(expected == 0) < 0.5
    np.testing.assert_array_equal(found == 0, expected == 0)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)  # roundings of M and g


@pytest.mark.parametrize("saturated", [False, True])
def test_a_servo_that_pulls_against_friction_by_load_breaks_away_at_the_torque_of_the_balance(
    tmp_path, saturated
):
    k_m, k_e, tau_c = 0.2, 0.1, 0.05
    lift = (WEIGHT * (1 + k_e) + tau_c) / (1 - k_m)
    friction = LoadFriction(tau_c, k_m, k_e)
    for part, moves in ((0.999, False), (1.001, True)):
        # a servo at its torque limit, or one whose pull is that torque
        servo = Servo(
            1e4 if saturated else 10.0, 0.5, gravity_compensation=False, limit_speed=False,
            torque_limits_n_m=part * lift if saturated else 1e3,
        )  # fmt: skip
        arm = pendulum(tmp_path, servo=servo, friction=friction)
        goal = np.array([1.0 if saturated else part * lift / 10.0])
        state = arm.initial_state()
        inputs = arm.complete_inputs({"desired_joint_angles": goal}, jnp.float64)
        state = jax.jit(arm.update, static_argnums=2, compiler_options=QUICK)(state, inputs, DT)
        assert bool(state["joint_velocities"][0] > 0) is moves


def planar(**options):
    tree = parse_urdf(model_path("planar_arm_3link"))
    friction = LoadFriction([0.3, 0.2, 0.1], [0.2, 0.3, 0.45], 0.1, [0.1, -0.1, 0.0], 0.1, 0.2, 0.1)
    step = options.pop("timestep", DT)
    return RobotArmNode("arm", step, tree, "link_3", **{"friction": friction} | options)


def test_inverse_dynamics_gives_the_torques_that_move_the_arm_so():
    arm = planar(timestep=1e-9, joint_friction_n_m_s=np.full(3, 0.1))
    random = np.random.default_rng(5)
    q, qd = random.uniform(-1, 1, (2, 60, 3))
    qdd = random.uniform(-20, 20, (60, 3))

    def accelerated(q, qd, qdd):
        tau = commanded_torques(arm, q, qd, qdd)
        state = {"joint_angles": q, "joint_velocities": qd}
        after = arm.update(state, {"commanded_joint_torques": tau}, 1e-9)
        return (after["joint_velocities"] - qd) / 1e-9

    found = jax.jit(jax.vmap(accelerated), compiler_options=QUICK)(q, qd, qdd)
    # a change of 1e-8 of a velocity of 1 has roundings of 1e-7; viscous friction is implicit
    np.testing.assert_allclose(found, qdd, rtol=1e-5, atol=1e-5)


def test_an_arm_in_single_precision_stays_single():
    arm = planar()
    state = arm.initial_state() | {"joint_velocities": jnp.array([0.4, -0.2, 0.0])}
    inputs = {"commanded_joint_torques": jnp.array([3.0, -2.0, 0.5])}
    double = jax.jit(arm.update, static_argnums=2, compiler_options=QUICK)(state, inputs, DT)
    arm, state, inputs = jax.tree.map(
        lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x,
        (arm, state, inputs),
    )
    single = jax.jit(arm.update, static_argnums=2, compiler_options=QUICK)(state, inputs, DT)
    assert {x.dtype.name for x in single.values()} == {"float32"}
    for name, value in double.items():
        # A step of 1e-3 s adds some 1e-2 to velocities of 0.4: roundings of 6e-8, and of M⁻¹.
        np.testing.assert_allclose(single[name], value, rtol=1e-5, atol=1e-6)


def test_a_batch_of_arms_is_the_same_as_machine_code_in_xla_and_one_by_one(monkeypatch):
    graph = GraphManager()
    graph.add_node(planar())
    graph.add_external_input("arm", "commanded_joint_torques")
    simulation = graph.compile()
    shares = np.array([[0.1, 0.1, 0.0], [0.2, 0.2, 0.3], [0.3, 0.4, 0.4]])
    inputs = {"arm": {"commanded_joint_torques": np.array([0.0, 3.0, 0.0])}}

    def moved(simulation, **options):
        run = simulation.run_batch if options else simulation.run
        return run(steps=40, inputs=inputs, progress=False, **options)["arm"]["joint_angles"]

    values = {"arm": {"friction.motor_load": shares}}
    native = moved(simulation, parameters=values)
    assert simulation.backend.native
    assert np.ptp(native[:, -1], axis=0).min() > 1e-3
    for share, member in zip(shares, native, strict=True):
        alone = moved(simulation.with_parameters({"arm": {"friction.motor_load": share}}))
        # Angles near 1; machine code of one member and of several rounds in another order.
        np.testing.assert_allclose(member, alone, rtol=1e-11, atol=1e-13)
    monkeypatch.setenv("MIME_NATIVE", "off")
    xla = moved(graph.compile(), parameters=values)
    np.testing.assert_allclose(native, xla, rtol=1e-11, atol=1e-13)


def test_slopes_of_inverse_dynamics_agree_with_central_differences():
    tree = parse_urdf(model_path("planar_arm_3link"))
    arm = RobotArmNode(
        "arm", DT, tree, "link_3", friction=LoadFriction(0.1, 0.3, 0.1, 0.05, 0.1, 0.1)
    )
    q, qd, qdd = jnp.asarray(np.random.default_rng(6).uniform(-1, 1, (3, 3)))
    names = ("motor_load", "external_load", "coulomb_torque_n_m", "stribeck_motor_load")

    def torques(x, q):
        values = {f"friction.{name}": jnp.full(3, x[k]) for k, name in enumerate(names)}
        return commanded_torques(arm.with_params(**values), q, qd, qdd)

    x = jnp.array([0.3, 0.1, 0.1, 0.1])
    slopes = jax.jit(jax.jacfwd(torques, argnums=(0, 1)), compiler_options=QUICK)(x, q)
    value = jax.jit(torques, compiler_options=QUICK)
    h = 1e-6
    for k, step in enumerate(h * np.eye(4)):
        numeric = (value(x + step, q) - value(x - step, q)) / (2 * h)
        np.testing.assert_allclose(slopes[0][:, k], numeric, rtol=1e-7, atol=1e-8)  # roundings / h
    for k, step in enumerate(h * np.eye(3)):
        numeric = (value(x, q + step) - value(x, q - step)) / (2 * h)
        np.testing.assert_allclose(slopes[1][:, k], numeric, rtol=1e-7, atol=1e-8)


STIFF = {
    "rotor_inertia_kg_m2": np.array([0.02]),
    "joint_stiffness_n_m_per_rad": np.array([2e4]),
    "joint_stiffness_damping_n_m_s": np.array([20.0]),
}


def test_a_rotor_before_a_spring_has_the_springs_torque_as_its_load(tmp_path):
    arm, h = pendulum(tmp_path, **STIFF), 1e-9
    rotor = MotorNode("motor", h, 0.02, 0.05, 1.0, 1e-3, 0.0, command_mode="torque", friction=JOINT)
    for x, speed in ((1e-4, 0.0), (2e-4, 1.0), (-1e-4, -0.3), (-3e-4, 0.2)):
        state = arm.initial_state() | {"joint_deflections": jnp.array([x])}
        state["joint_velocities"] = jnp.array([speed])
        after = arm.update(state, {"commanded_joint_torques": np.array([3.0])}, h)
        found = after["joint_velocities"] - after["joint_deflection_velocities"]
        load = {"commanded_torque": 3.0, "load_torque": 2e4 * x}
        # over 1 ns the spring's torque is what it was
        change = speeds(rotor, speed, **load)[0] - speed
        np.testing.assert_allclose(found[0] - speed, change, rtol=1e-5, atol=1e-15)


def test_a_joint_on_an_inserted_body_has_the_friction_of_a_rigid_one(tmp_path):
    inserted = STIFF | {"inserted_inertia_kg_m2": np.array([1e-4]), "joint_model": "inserted_body"}
    ends = []
    for options in ({"rotor_inertia_kg_m2": np.array([0.02])}, inserted):
        arm = pendulum(tmp_path, **options)
        inputs = arm.complete_inputs({"commanded_joint_torques": np.array([6.0])}, jnp.float64)

        @partial(jax.jit, compiler_options=QUICK)
        def run(state, arm=arm, inputs=inputs):
            def step(state, _):
                return arm.update(state, inputs, 1e-4), None

            return jax.lax.scan(step, state, length=1000)[0]

        state = run(arm.state_holding(np.array([0.3])))
        ends.append(np.concatenate([state[k] for k in ("joint_angles", "joint_velocities")]))
    assert ends[0][1] > 0.1
    # the spring gives by tau / k = 2e-4 rad
    np.testing.assert_allclose(ends[1], ends[0], rtol=0.02)


@pytest.mark.parametrize("friction", [Stribeck(0.05, 0.1, 1.0), JOINT])
def test_a_floating_arm_at_rest_has_friction_at_its_joints_only(tmp_path, friction):
    file = tmp_path / "pendulum.urdf"
    file.write_text(PENDULUM.replace('<link name="base"/>', '<link name="base"><inertial>'
        '<mass value="3"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>"))  # fmt: skip
    arm = RobotArmNode(
        "arm", DT, file, "bar", friction=friction, base="floating", gravity_world=np.zeros(3)
    )
    for tau, moves in ((0.05, False), (1.0, True)):
        inputs = arm.complete_inputs({"commanded_joint_torques": np.array([tau])}, jnp.float64)
        state = jax.jit(arm.update, static_argnums=2, compiler_options=QUICK)(
            arm.initial_state(), inputs, DT
        )
        assert all(np.all(np.isfinite(x)) for x in state.values())
        assert bool(state["joint_velocities"][0] > 0) is moves


def test_files_say_what_they_cannot_have_of_friction_by_load(tmp_path):
    graph = GraphManager()
    graph.add_node(pendulum(tmp_path, friction=LoadFriction(0.25, 0.2, 0.1)))
    graph.add_external_input("arm", "commanded_joint_torques")
    graph.compile().to_mjcf(tmp_path / "arm.xml")
    text = (tmp_path / "arm.xml").read_text()
    words = "joint 'pivot' has LoadFriction(coulomb_torque_n_m=0.25, motor_load=0.2"
    assert words in text
    assert 'frictionloss="0.25"' in text


def test_a_scenario_gives_joints_friction_by_load(tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text(
        "[simulation]\nduration = 0.01\ntimestep = 1e-3\n[nodes.arm]\ntype = 'RobotArmNode'\n"
        "urdf_path = 'model:planar_arm_3link'\nend_effector_link_name = 'tool'\n"
        "[nodes.arm.friction]\ntype = 'LoadFriction'\ncoulomb_torque_n_m = 0.1\n"
        "motor_load = { elbow = 0.2 }\n"
    )
    arm = load_scenario(file, ["arm.joint[wrist].friction.external_load=0.3"]).simulation.nodes[
        "arm"
    ]
    np.testing.assert_array_equal(arm.friction.motor_load, [0, 0.2, 0])
    np.testing.assert_array_equal(arm.friction.external_load, [0, 0, 0.3])
