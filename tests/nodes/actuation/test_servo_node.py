"""A servo's firmware: its law, its bridge before a motor, gradients, precisions, batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime import (
    Coulomb,
    Gear,
    GraphManager,
    MotorNode,
    ParameterError,
    PendulumLoadNode,
    ScenarioError,
    ServoNode,
    load_scenario,
)
from mime.nodes.actuation.servo_datasheet import SERVOS, ServoDatasheet
from mime.verification.benchmarks.servo_firmware import servo_graph

TICK = 2 * np.pi / 4096
MOTOR = (2e-8, 1.2e-3, 3.4, 1e-3, 1e-7)


def servo(**options):
    return ServoNode("servo", **{"timestep": 1e-3, "kp": 400.0, "duty_per_kp": 2.9e-3, **options})


def sampled(node, angles, dt=1e-3, **inputs):
    """Duties of the samples at these angles."""
    state, duties = node.initial_state(), []
    for angle in angles:
        state = node.update(state, {"angle": angle, **inputs}, dt)
        duties.append(float(state["duty"]))
    return np.array(duties)


@pytest.mark.parametrize(
    "options", [{}, {"supply_voltage_v": 5.0}, {"ki": 1.0, "kd": 2.0, "delay_samples": 2}]
)
def test_metadata_is_whole(options):
    assert servo(**options).validate_mime_consistency() == []


def test_the_duty_is_gain_times_error_within_its_limit():
    duties = sampled(servo(duty_limit=0.9), [0.0, 0.1, 0.5, 2.0, -2.0], goal_angle=0.3)
    law = np.clip(2.9e-3 * 400.0 * (0.3 - np.array([0.0, 0.1, 0.5, 2.0, -2.0])), -0.9, 0.9)
    np.testing.assert_allclose(duties, law, atol=1e-15)  # a rounding


def test_an_error_within_the_dead_band_has_no_effect_and_beyond_it_counts_whole():
    duties = sampled(servo(dead_band_rad=0.05), [0.26, 0.24, 0.36], goal_angle=0.3)
    np.testing.assert_allclose(duties, 1.16 * np.array([0.0, 0.06, -0.06]), atol=1e-15)


def test_goal_and_angle_are_whole_ticks():
    node = servo(ticks_per_turn=4096, kp=1.0, duty_per_kp=1.0)
    duties = sampled(node, [0.4 * TICK, 0.6 * TICK, -1.6 * TICK], goal_angle=5.3 * TICK)
    np.testing.assert_allclose(duties / TICK, [5.0, 4.0, 7.0], atol=1e-12)  # roundings over 1.5e-3


def test_the_first_sample_has_no_speed():
    duties = sampled(servo(kp=0.0, kd=2.0, duty_per_kd=0.01), [0.5, 0.5, 0.51])
    np.testing.assert_allclose(duties, [0.0, 0.0, -0.2], atol=1e-13)  # 1e-16 over dt


def test_the_integral_stands_still_at_the_limit_and_is_dropped_without_torque():
    node = servo(kp=0.0, ki=1.0, duty_per_ki=100.0, duty_limit=0.5)
    state = node.initial_state()
    for _ in range(100):  # gains 0.1 a sample
        state = node.update(state, {"goal_angle": 1.0}, 1e-3)
    # It stops one sample before it would pass the limit, within a rounding.
    assert 0.4 - 1e-12 <= float(state["duty"]) <= 0.5 + 1e-12
    back = node.update(state, {"goal_angle": -1.0}, 1e-3)
    assert float(back["duty"]) == pytest.approx(float(state["duty"]) - 0.1, abs=1e-12)
    off = node.update(state, {"goal_angle": 1.0, "torque_enabled": 0.0}, 1e-3)
    assert float(off["integral_error"]) == float(off["duty"]) == 0.0


def test_a_delay_shifts_the_duties_by_whole_samples():
    angles = np.linspace(0.0, 0.5, 9)
    now, late = sampled(servo(), angles), sampled(servo(delay_samples=2), angles)
    np.testing.assert_array_equal(late, [0.0, 0.0, *now[:-2]])


def test_the_voltage_is_the_duty_of_the_supply_whether_known_or_measured():
    for node, inputs in ((servo(supply_voltage_v=7.4), {}), (servo(), {"supply_voltage": 7.4})):
        inputs |= {"goal_angle": 0.25}
        state = node.update(node.initial_state(), inputs, 1e-3)
        fluxes = node.compute_boundary_fluxes(state, inputs, 1e-3)
        assert float(fluxes["terminal_voltage"]) == pytest.approx(0.29 * 7.4, rel=1e-15)
    with pytest.raises(ValueError, match="no input 'supply_voltage'"):
        servo(supply_voltage_v=7.4).update(state, {"supply_voltage": 7.0}, 1e-3)


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="delay_samples must be a whole number >= 0, got -1"):
        servo(delay_samples=-1)
    with pytest.raises(ParameterError, match=r"kp must be >= 0, got -1"):
        servo(kp=-1.0)
    with pytest.raises(ParameterError, match="duty_limit must be > 0 and <= 1"):
        servo(duty_limit=1.5)
    with pytest.raises(ParameterError, match="when_disabled must be one of 'open', 'brake'"):
        servo(when_disabled="coast")


@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
@pytest.mark.parametrize("when_disabled", ["open", "brake"])
def test_a_bridge_that_is_off_lets_the_motor_coast_or_brakes_it(integrator, when_disabled):
    """J dw/dt = -(b + kt²/(R + R_b)) w behind a brake, -b w when open; L/R is 0.3 ms."""
    dt, w, steps = 1e-5, 100.0, 2000
    motor = MotorNode("motor", dt, *MOTOR, command_mode="voltage", integrator=integrator)
    node = servo(timestep=dt, supply_voltage_v=5.0, when_disabled=when_disabled,
                 bridge_resistance_ohm=0.6)  # fmt: skip
    graph = GraphManager()
    graph.add_node(node)
    graph.add_node(motor)
    graph.add_edge("servo", "motor", "terminal_voltage", "commanded_voltage")
    graph.add_edge("servo", "motor", "series_resistance", "series_resistance")
    graph.add_external_input("servo", "torque_enabled")
    run = graph.compile().run(
        steps=steps,
        inputs={"servo": {"torque_enabled": 0.0}},
        initial_state={"motor": {"angular_velocity": w}},
    )
    J, k, R, L, b = MOTOR
    A = np.array([[-b / J, k / J], [-k / L, -(R + 0.6) / L]])
    if when_disabled == "open":
        A = np.diag([-b / J, 0.0])
    poles, modes = np.linalg.eig(A)
    law = (modes * np.exp(poles * steps * dt)) @ np.linalg.solve(modes, [w, 0.0])
    # Semi-implicit steps are of first order; 1 MΩ adds kt²/(R b) = 1.4e-5 to b over 0.1 J/b.
    tolerance = 2e-3 if integrator == "semi_implicit" else 1e-5
    assert float(run["motor"]["rotor_angular_velocity"][-1]) == pytest.approx(law[0], rel=tolerance)


@pytest.mark.parametrize("friction", [None, Coulomb(1e-4)])
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
def test_resistance_in_the_circuit_is_as_if_the_winding_had_it(integrator, friction):
    J, k, R, L, b = MOTOR
    for shaft in ("free",) if friction else ("free", "driven"):
        plain, more = (
            MotorNode("m", 1e-4, J, k, r, L, b, command_mode="voltage", integrator=integrator,
                      shaft=shaft, friction=friction)
            for r in (R, R + 0.5)
        )  # fmt: skip
        start = plain.initial_state() | {"current": jnp.asarray(0.3)}
        given = {"commanded_voltage": 5.0}
        given |= {"shaft_velocity": 50.0} if shaft == "driven" else {"load_torque": 1e-4}
        outside = plain.update(start, given | {"series_resistance": 0.5}, 1e-4)
        inside = more.update(start, given, 1e-4)
        for name, value in inside.items():  # roundings of R + 0.5
            np.testing.assert_allclose(outside[name], value, rtol=1e-13, err_msg=name)


def closed_loop(dt=1e-3, **options):
    """Servo, geared motor and pendulum."""
    gear = Gear(288.0, output_inertia_kg_m2=5e-3)
    motor = MotorNode("motor", dt, *MOTOR, gear=gear, command_mode="voltage")
    load = PendulumLoadNode("load", dt, 0.5, 0.1)
    return servo_graph(servo(supply_voltage_v=5.0, timestep=dt, **options), motor, load).compile()


def final_angle(simulation, kp):
    with_gain = simulation.with_parameters({"servo": {"kp": kp}})
    inputs = {"servo": {"goal_angle": 0.5}}
    final, _ = with_gain.rollout(with_gain.init_state(), inputs, steps=200, record=())
    return final.nodes["motor"]["angle"] / 288.0


def test_the_gradient_by_a_gain_is_that_of_central_differences():
    simulation = closed_loop()
    slope = jax.grad(lambda kp: final_angle(simulation, kp))(100.0)
    differences = (final_angle(simulation, 100.1) - final_angle(simulation, 99.9)) / 0.2
    # The third derivative times 0.1²/6, of a slope that halves over 100: below 1e-6.
    assert float(slope) == pytest.approx(float(differences), rel=1e-6)


def test_straight_through_the_feedback_has_the_gradient_of_the_unrounded_one():
    smooth, cut, through = (
        float(jax.grad(lambda kp, s=s: final_angle(s, kp))(100.0))
        for s in (
            closed_loop(),
            closed_loop(ticks_per_turn=4096),
            closed_loop(ticks_per_turn=4096, straight_through=True),
        )
    )
    assert through == pytest.approx(smooth, rel=0.01)  # a tick of 326 that the goal is away
    assert abs(cut / smooth - 1) > 0.05


def test_a_batch_of_gains_is_each_of_them_alone():
    simulation = closed_loop()
    gains = np.array([50.0, 100.0, 400.0])
    inputs = {"servo": {"goal_angle": 0.5}}
    batch = simulation.run_batch(
        steps=100, inputs=inputs, parameters={"servo.kp": gains}, progress=False
    )
    for member, kp in enumerate(gains):
        alone = simulation.with_parameters({"servo": {"kp": kp}}).run(
            steps=100, inputs=inputs, progress=False
        )
        # Blocks of members add up in another order.
        np.testing.assert_allclose(
            batch["motor"]["output_angle"][member], alone["motor"]["output_angle"], rtol=1e-12
        )


def test_single_precision_stays_single_and_near():
    double = closed_loop(ki=10.0, duty_per_ki=1e-3, kd=1.0, duty_per_kd=1e-3)
    inputs = {"servo": {"goal_angle": 0.5}}
    exact = np.asarray(double.run(steps=300, inputs=inputs)["motor"]["output_angle"])
    with jax.enable_x64(False):
        single = closed_loop(ki=10.0, duty_per_ki=1e-3, kd=1.0, duty_per_kd=1e-3)
        run = single.run(steps=300, inputs=inputs)
        angle = np.asarray(run["motor"]["output_angle"])
    assert angle.dtype == np.float32
    # 300 roundings of a rotor's angle of 100 rad, 6e-6 each at most, over the gear of 288.
    np.testing.assert_allclose(angle, exact, atol=300 * 6e-6 / 288)


def test_a_pendulum_hangs_at_its_rest_angle_and_weighs_most_a_quarter_turn_away():
    load = PendulumLoadNode("load", 1e-3, 0.5, 0.1, rest_angle_rad=0.3)
    angles = (0.3, 0.3 + np.pi / 2, 0.3 + np.pi, 0.3 - np.pi / 6)
    torques = [
        float(load.compute_boundary_fluxes({}, {"angle": q}, 1e-3)["load_torque"]) for q in angles
    ]
    weight = 0.5 * 9.80665 * 0.1
    np.testing.assert_allclose(torques, [0.0, -weight, 0.0, weight / 2], atol=1e-15)


@pytest.mark.parametrize("name", SERVOS)
def test_a_servo_of_the_catalogue_is_a_node_and_says_where_it_is_from(name):
    sheet = SERVOS[name]
    node = ServoNode.from_datasheet("servo", 1e-3, sheet, kp=7.0, supply_voltage_v=5.0)
    assert float(node.kp) == 7.0
    assert float(node.duty_per_kp) == pytest.approx(sheet.duty_per_kp)
    assert node.validate_mime_consistency() == []
    assert sheet.source
    assert sheet.gain_source
    for word in ("rotor inertia", "friction", f"{sheet.stall_torque_n_m:g} N·m", sheet.source):
        assert word in repr(sheet)
    # A motor's constant is as at stall where the gear keeps some of the torque, and at no load
    # where friction costs some of the volts: they are on either side of it.
    no_load = sheet.nominal_voltage_v / (sheet.no_load_speed_rpm * np.pi / 30 * sheet.gear_ratio)
    assert 0.5 * no_load < sheet.kt_n_m_per_a < no_load


def test_gains_of_dynamixels_are_those_of_their_tables():
    """Ticks times kp/128 (256 as measured of the XL330) in units of 1/885, to four digits."""
    ticks_per_rad = 4096 / (2 * np.pi)
    assert SERVOS["mx64"].duty_per_kp == pytest.approx(ticks_per_rad / 128 / 885, rel=2e-4)
    assert SERVOS["xl330_m288"].duty_per_kp == pytest.approx(ticks_per_rad / 256 / 885, rel=2e-4)


def test_figures_of_a_servo_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="stall_current_a must be > 0, got -1"):
        ServoDatasheet(32.0, 0.1, 4096.0, 300.0, 6.0, 50.0, 1.0, -1.0)


def test_the_bundled_servo_holds_its_pendulum_as_a_p_loop_with_friction_does():
    scenario = load_scenario("servo_pendulum")
    run = scenario.run()
    assert [figure.ok for figure in scenario.figures(run)] == [True, True]
    angle = run["motor"]["output_angle"]
    fallen = float(angle[int(1.6 / 5e-3) - 1])  # let go for 0.6 s
    assert abs(fallen) < 0.4 * float(angle[int(1.0 / 5e-3) - 1])


def test_a_scenario_takes_a_servo_by_name_and_refuses_another(tmp_path):
    text = """
    [simulation]
    duration = 0.01
    timestep = 1e-3
    [nodes.servo]
    type = "ServoNode"
    supply_voltage_v = 5.0
    """
    file = tmp_path / "s.toml"
    file.write_text(text + 'datasheet = "sts3215_c001"\nkp = 16\n')
    node = load_scenario(file).simulation.nodes["servo"]
    assert (float(node.kp), float(node.duty_limit)) == (16.0, 0.97)
    file.write_text(text + 'datasheet = "sts3215"\n')
    with pytest.raises(ScenarioError, match=r"no servo 'sts3215' .did you mean 'sts3215_c001'"):
        load_scenario(file)
