"""MIME-VER-100 to 119: the motor against closed forms.

Each test records what it measured (`--junitxml` keeps it); docs/algorithm_guide/nodes/motor.md
tabulates the figures.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson, solve_ivp
from scipy.linalg import expm
from scipy.special import ellipk

from mime.nodes.actuation.motor import MotorNode, compose_pose
from mime.nodes.actuation.pwm_drive import PwmDriveNode

REFERENCE = {
    "inertia_kg_m2": 1e-4,
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 5e-4,
}
SMARTMOUSE = {
    "inertia_kg_m2": 6.58e-4,
    "kt_n_m_per_a": 0.0787,
    "r_ohm": 5.0,
    "l_henry": 0.58,
    "damping_n_m_s": 1.2615e-6,
}
MODES = [("torque", 0.01), ("voltage", 2.0), ("velocity", 10.0)]


def motor(timestep=1e-4, **changes):
    return MotorNode("motor", timestep, **(REFERENCE | changes))


def run(node, inputs, steps, **initial):
    """The state after each of `steps` steps with constant inputs, as NumPy arrays."""
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}

    @jax.jit
    def scan(node, state):
        def step(state, _):
            state = node.update(state, inputs, node.timestep)
            return state, state

        return jax.lax.scan(step, state, length=steps)[1]

    return {name: np.asarray(value) for name, value in scan(node, state).items()}


def voltage_step(J, k, R, L, b, V, t):
    """w = w_inf [1 + (s2 e^{s1 t} - s1 e^{s2 t}) / (s1 - s2)]."""
    s1, s2 = np.roots([J * L, J * R + L * b, R * b + k * k]).astype(complex)
    w_inf = k * V / (k * k + R * b)
    return np.real(w_inf * (1 + (s2 * np.exp(s1 * t) - s1 * np.exp(s2 * t)) / (s1 - s2)))


def test_ver100_torque_step_response(record_figure):
    tau, b, J, dt, steps = 0.01, 5e-4, 1e-4, 1e-4, 10_000
    omega = run(motor(), {"commanded_torque": tau}, steps)["angular_velocity"]
    n = np.arange(1, steps + 1)  # the trajectory holds the speed after each step
    reference = tau / b * (1 - np.exp(-b * n * dt / J))
    rms = np.sqrt(np.mean((omega - reference) ** 2)) / (tau / b)
    record_figure("relative_rms", rms)
    assert rms <= 6e-5  # 5.58e-5 expected: half of dt b/J times the mean of (t/T) e^{-t/T}
    discrete = tau / b * (1 - (1 + b * dt / J) ** -n.astype(float))
    error = np.max(np.abs(omega - discrete) / discrete)
    record_figure("discrete_closed_form", error)
    assert error <= 1e-12  # 1e4 roundings of 1e-16


def test_ver100_eager_loop_gives_the_same_as_the_scan():
    node, inputs = motor(), {"commanded_torque": 0.01}
    state, speeds = node.initial_state(), []
    for _ in range(300):
        state = node.update(state, inputs, 1e-4)
        speeds.append(float(state["angular_velocity"]))
    np.testing.assert_allclose(
        speeds, run(node, inputs, 300)["angular_velocity"], rtol=1e-14, atol=0
    )  # compiled apart, so not to the last bit


@pytest.mark.parametrize(("mode", "command"), MODES)
def test_ver100_semi_implicit_euler_is_of_first_order(mode, command, record_figure):
    errors = []
    steps = np.array([1e-4, 5e-5, 2.5e-5, 1.25e-5])
    inputs = {f"commanded_{mode}": command}
    exact = run(motor(0.05, integrator="exact"), inputs, 1)["angular_velocity"][-1]
    for dt in steps:
        omega = run(motor(dt), inputs, round(0.05 / dt))["angular_velocity"][-1]
        errors.append(abs(omega - exact))
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    record_figure("order", order)
    assert abs(order - 1) < 0.02  # the second-order term at the coarsest step


@pytest.mark.parametrize(("mode", "command"), MODES)
def test_ver117_exact_integrator_gives_the_same_for_any_step(mode, command, record_figure):
    node, worst = motor(1e-4, integrator="exact", command_mode=mode), 0.0
    inputs = {f"commanded_{mode}": command, "load_torque": -0.002}
    fine = run(node, inputs, 10_000)
    for dt, steps in ((1e-2, 100), (1.0, 1)):
        coarse = node.initial_state()
        for _ in range(steps):
            coarse = node.update(coarse, inputs, dt)
        for name in fine:
            scale = np.max(np.abs(fine[name])) + 1e-30
            worst = max(worst, abs(coarse[name] - fine[name][-1]) / scale)
    record_figure("relative", worst)
    assert worst < 1e-11  # 1e4 roundings, accumulating at worst linearly to 1e-12
    forever = node.update(node.initial_state(), inputs, 1e5)
    at_rest = node.state_space(mode, load_input=True)
    steady = -np.linalg.solve(at_rest.A, at_rest.B @ np.array([command, -0.002]))[0]
    assert float(forever["angular_velocity"]) == pytest.approx(steady, rel=1e-13)


@pytest.mark.parametrize("parameters", [REFERENCE, SMARTMOUSE, REFERENCE | {"l_henry": 0.2}])
def test_ver101_voltage_step_matches_the_two_pole_closed_form(parameters, record_figure):
    V, dt, steps = 5.0, 1e-3, 1000
    J, k, R, L, b = parameters.values()
    t = dt * np.arange(1, steps + 1)
    reference = voltage_step(J, k, R, L, b, V, t)
    node = MotorNode("motor", dt, **parameters, integrator="exact", command_mode="voltage")
    omega = run(node, {"commanded_voltage": V}, steps)["angular_velocity"]
    error = np.max(np.abs(omega - reference)) / np.max(np.abs(reference))
    record_figure("exact", error)
    assert error < 1e-12
    response = np.asarray(node.step_response(t, amplitude=V))
    np.testing.assert_allclose(response, reference, atol=1e-12 * np.max(reference))


def test_ver102_steady_state_speed_and_current(record_figure):
    V, load = 6.0, -0.01
    node = motor(1e-3, integrator="exact", command_mode="voltage")
    final = run(node, {"commanded_voltage": V, "load_torque": load}, 3000)
    D = 1.0 * 5e-4 + 0.05**2
    omega, current = (0.05 * V + 1.0 * load) / D, (5e-4 * V - 0.05 * load) / D
    error = max(
        abs(final["angular_velocity"][-1] / omega - 1), abs(final["current"][-1] / current - 1)
    )
    record_figure("relative", error)
    assert error < 1e-12
    euler = run(
        motor(command_mode="voltage"), {"commanded_voltage": V, "load_torque": load}, 30_000
    )
    assert euler["angular_velocity"][-1] == pytest.approx(omega, rel=1e-11)  # Euler's rest is exact


@pytest.mark.parametrize(("integrator", "tolerance"), [("exact", 1e-11), ("semi_implicit", 2e-3)])
def test_ver103_locked_rotor_current(integrator, tolerance, record_figure):
    # A rotor of 1e6 kg m2 does not move: w stays below 1e-9 rad/s.
    node = motor(1e-5, inertia_kg_m2=1e6, integrator=integrator, command_mode="voltage")
    current = run(node, {"commanded_voltage": 2.0}, 500)["current"]
    t = 1e-5 * np.arange(1, 501)
    reference = 2.0 * (1 - np.exp(-1000.0 * t))
    error = np.max(np.abs(current - reference)) / 2.0
    record_figure(integrator, error)
    assert error < tolerance  # Euler: dt R/L / (2 e) = 1.8e-3; exact: what w < 1e-9 leaves


def test_ver104_coast_and_short_circuit_brake(record_figure):
    w0, dt, steps = 99.0, 1e-4, 1000
    t = dt * np.arange(1, steps + 1)
    coast = run(motor(command_mode="torque", integrator="exact"), {}, steps, angular_velocity=w0)
    error = np.max(np.abs(coast["angular_velocity"] - w0 * np.exp(-5.0 * t))) / w0
    record_figure("coast", error)
    assert error < 1e-12
    node = motor(command_mode="voltage", integrator="exact")
    brake = run(node, {"commanded_voltage": 0.0}, steps, angular_velocity=w0)
    A = np.asarray(node.state_space().A)
    reference = np.array([expm(A * time) @ [w0, 0.0] for time in t[::100]])
    error = np.max(np.abs(brake["angular_velocity"][::100] - reference[:, 0])) / w0
    record_figure("brake", error)
    assert error < 1e-12
    auto = run(motor(), {"commanded_voltage": 0.0}, steps, angular_velocity=w0)
    assert auto["angular_velocity"][-1] > 0.6 * w0  # in auto mode zero volts is no command
    assert brake["angular_velocity"][-1] < 0.1 * w0


@pytest.mark.parametrize(("saturation", "tolerance"), [(None, 1e-12), (2.0, 1e-5)])
def test_ver105_energy_balance(saturation, tolerance, record_figure):
    """int V i = int R i^2 + L i^2/2 + J w^2/2 + int b w^2"""
    V, dt, steps = 5.0, 2e-6, 50_000
    exact = {"integrator": "exact"} if saturation is None else {}
    node = motor(dt, command_mode="voltage", saturation_current_a=saturation, **exact)
    states = run(node, {"commanded_voltage": V}, steps)
    i = np.concatenate([[0.0], states["current"]])
    w = np.concatenate([[0.0], states["angular_velocity"]])
    supplied = V * simpson(i, dx=dt)
    lost = simpson(1.0 * i**2 + 5e-4 * w**2, dx=dt)
    stored = 0.5 * 1e-3 * i[-1] ** 2 + 0.5 * 1e-4 * w[-1] ** 2
    error = abs(supplied - lost - stored) / supplied
    record_figure("relative", error)
    assert error < tolerance  # quadrature of an exact solution; or first order in dt = 2e-6


def test_ver106_velocity_pi_settles_and_has_the_closed_loop_poles(record_figure):
    node = motor(1e-3, damping_n_m_s=0.01)
    omega = run(node, {"commanded_velocity": 10.0}, 5000)["angular_velocity"]
    settled = np.flatnonzero(np.abs(omega - 10.0) > 0.1)[-1] + 2
    record_figure("error_after_5_s", abs(omega[-1] - 10) / 10)
    record_figure("settling_time", settled * 1e-3)
    assert abs(omega[-1] - 10.0) < 0.1
    assert omega[999] == pytest.approx(6.34, abs=0.005)
    assert settled * 1e-3 == pytest.approx(4.93, abs=0.01)
    poles = np.asarray(node.poles("velocity"))
    np.testing.assert_allclose(poles, [-0.917, -109.0], rtol=2e-3)  # as printed, three digits
    wn, zeta = np.sqrt(1e-2 / 1e-4), (1e-3 + 0.01) / (2 * np.sqrt(1e-2 * 1e-4))
    np.testing.assert_allclose(np.prod(poles), wn**2, rtol=1e-12)
    np.testing.assert_allclose(-np.sum(poles) / (2 * wn), zeta, rtol=1e-12)
    exact = run(
        motor(1e-2, damping_n_m_s=0.01, integrator="exact"), {"commanded_velocity": 10.0}, 500
    )
    t = 1e-2 * np.arange(1, 501)
    A, B, C, _ = (np.asarray(matrix) for matrix in node.state_space("velocity"))
    rest = -np.linalg.solve(A, B[:, 0] * 10.0)
    reference = [(C @ (rest - expm(A * time) @ rest)).item() for time in t[::50]]
    error = np.max(np.abs(exact["angular_velocity"][::50] - reference)) / 10
    record_figure("exact", error)
    assert error < 1e-12


def test_ver107_pose_composition_of_a_quarter_turn(record_figure):
    half = np.sqrt(0.5)
    pose = compose_pose((1, 2, 3, 1, 0, 0, 0), (0, 0, 2), np.pi / 2, (0.1, 0, 0, 1, 0, 0, 0))
    expected = [1.0, 2.1, 3.0, half, 0.0, 0.0, half]
    error = np.max(np.abs(pose - np.array(expected)))
    record_figure("absolute", error)
    assert error < 1e-15 * 4  # a few roundings of numbers near 3
    node = motor(tool_offset_in_rotor_frame=(0.1, 0, 0, 1, 0, 0, 0))
    state = node.initial_state() | {"angle": jnp.asarray(np.pi / 2)}
    parent = {"parent_pose_world": (0.0, 0.0, 0.0, half, half, 0.0, 0.0)}  # rolled: y is up
    flux = node.compute_boundary_fluxes(state, parent, 1e-4)["rotor_pose_world"]
    np.testing.assert_allclose(flux, [0, 0, 0.1, 0.5, 0.5, -0.5, 0.5], atol=1e-15)


def test_ver108_smartmouse_motor_has_its_published_figures(record_figure):
    node = MotorNode("wheel", 0.1, **SMARTMOUSE, integrator="exact", command_mode="voltage")
    states = run(node, {"commanded_voltage": 5.0}, 10)["angular_velocity"]
    figures = states[[0, 4, 9]]
    record_figure("speeds", figures.tolist())
    np.testing.assert_allclose(figures, [3.89509, 36.41864, 56.12780], atol=5e-6)  # as printed
    np.testing.assert_allclose(node.poles(), [-2.781, -5.842], atol=5e-4)
    steady = node.frequency_response(np.zeros(1))[0].real * 5.0
    assert float(steady) == pytest.approx(63.468, abs=5e-4)
    A, B, C, D = node.state_space()
    J, K, R, L, b = SMARTMOUSE.values()
    np.testing.assert_allclose(A, [[-b / J, K / J], [-K / L, -R / L]], rtol=1e-15)
    np.testing.assert_allclose(B, [[0], [1 / L]], rtol=1e-15)
    assert C.tolist() == [[1, 0]]
    assert D.tolist() == [[0]]


@pytest.mark.parametrize("efficiency", [None, 0.7])
def test_ver109_gear_reflects_inertia_and_loses_power(efficiency, record_figure):
    N, Jo, tau, steps = 20.0, 0.02, 0.01, 2000
    gear = {"gear_ratio": N, "output_inertia_kg_m2": Jo, "gear_efficiency": efficiency}
    node = motor(command_mode="torque", **gear)
    omega = run(node, {"commanded_torque": tau}, steps)["angular_velocity"]
    J = 1e-4 + Jo / (N**2 * (efficiency or 1.0))
    n = np.arange(1, steps + 1, dtype=float)
    reference = tau / 5e-4 * (1 - (1 + 5e-4 * 1e-4 / J) ** -n)
    error = np.max(np.abs(omega - reference)) / reference[-1]
    record_figure("spin_up", error)
    assert error < 1e-12
    if efficiency:
        # Lifting 0.5 N m at constant speed takes 0.5 / (N eta); lowering it takes 0.5 eta / N.
        for w0, needed in ((50.0, 0.5 / (N * efficiency)), (-50.0, 0.5 * efficiency / N)):
            inputs = {"commanded_torque": needed + 5e-4 * w0, "load_torque": -0.5}
            held = run(node, inputs, 100, angular_velocity=w0)["angular_velocity"]
            np.testing.assert_allclose(held, w0, rtol=1e-12)
        # Between the two the gear holds the load at rest, without motion in either direction.
        inputs = {"commanded_torque": 0.5 / N, "load_torque": -0.5}
        stuck = run(node, inputs, 200, angular_velocity=-0.01)["angular_velocity"]
        assert np.all(stuck[-100:] == 0.0)


def test_ver110_coulomb_friction_stops_the_motor_at_the_closed_form_time(record_figure):
    w0, tau_c, dt = 50.0, 0.003, 1e-5
    node = motor(dt, command_mode="torque", coulomb_torque_n_m=tau_c)
    omega = run(node, {}, 60_000, angular_velocity=w0)["angular_velocity"]
    stop = (np.argmax(omega == 0) + 1) * dt
    expected = 1e-4 / 5e-4 * np.log(1 + 5e-4 * w0 / tau_c)
    record_figure("stop_error_s", abs(stop - expected))
    assert abs(stop - expected) < 2 * dt  # the stop falls on a step; Euler's error is another
    assert np.all(omega[np.argmax(omega == 0) :] == 0.0)  # and it stays stopped
    slow = motor(0.05, command_mode="torque", coulomb_torque_n_m=tau_c)
    coarse = run(slow, {}, 100, angular_velocity=w0)["angular_velocity"]
    assert np.all(coarse >= 0)
    assert coarse[-1] == 0.0


def test_ver110_stribeck_motor_breaks_away_at_the_static_torque(record_figure):
    friction = {
        "coulomb_torque_n_m": 0.003,
        "static_torque_n_m": 0.005,
        "stribeck_velocity_rad_s": 2.0,
    }
    node = motor(1e-5, command_mode="torque", **friction)
    below, above = (
        run(node, {"commanded_torque": tau}, 20_000)["angular_velocity"]
        for tau in (0.00499, 0.00501)
    )
    assert np.all(below == 0.0)
    assert np.all(above > 0.0)

    def slope(_, w):
        return (0.006 - 5e-4 * w - 0.003 - 0.002 * np.exp(-((w / 2.0) ** 2))) / 1e-4

    reference = solve_ivp(slope, (0, 0.2), [0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    omega = run(node, {"commanded_torque": 0.006}, 20_000)["angular_velocity"][-1]
    record_figure("slip", abs(omega / reference - 1))
    assert omega == pytest.approx(reference, rel=1e-4)  # first order at dt = 1e-5


@pytest.mark.parametrize("amplitude_deg", [0.01, 20.0])
def test_ver111_cogging_swings_at_the_pendulums_period(amplitude_deg, record_figure):
    """J theta'' = A sin(n theta + pi): a pendulum in n theta, period 4 K(m) / sqrt(A n / J)."""
    A, n, dt = 0.002, 7.0, 1e-5
    node = motor(
        dt,
        damping_n_m_s=0.0,
        command_mode="torque",
        cogging_torque_n_m=A,
        cogging_periods_per_turn=n,
        cogging_phase_rad=np.pi,
    )
    theta0 = np.deg2rad(amplitude_deg)
    theta = run(node, {}, 300_000, angle=theta0)["angle"]
    crossings = np.flatnonzero((theta[:-1] > 0) & (theta[1:] <= 0))
    exact_crossings = crossings + theta[crossings] / (theta[crossings] - theta[crossings + 1])
    period = dt * np.mean(np.diff(exact_crossings))
    expected = 4 * ellipk(np.sin(0.5 * n * theta0) ** 2) / np.sqrt(A * n / 1e-4)
    record_figure("period", abs(period / expected - 1))
    assert period == pytest.approx(expected, rel=1e-8)  # second order: (w dt)^2 / 24 = 6e-10
    assert np.max(np.abs(theta)) == pytest.approx(theta0, rel=1e-3)  # symplectic: no drift


def test_ver112_winding_temperature_follows_its_closed_form(record_figure):
    tau, R, alpha, Rth, Cth = 0.1, 1.0, 0.00393, 10.0, 3.0
    node = motor(
        0.5,
        command_mode="torque",
        thermal_resistance_k_per_w=Rth,
        thermal_capacitance_j_per_k=Cth,
        max_winding_temperature_c=60.0,
    )
    T = run(node, {"commanded_torque": tau}, 200)["winding_temperature"]
    i2 = (tau / 0.05) ** 2
    s = (1 / Rth - R * alpha * i2) / Cth
    rise = R * i2 / Cth / s
    reference = 25.0 + rise * (1 - np.exp(-s * 0.5 * np.arange(1, 201)))
    error = np.max(np.abs(T - reference))
    record_figure("absolute_k", error)
    assert error < 1e-11
    state = node.initial_state()
    for temperature, flag in ((59.9, 0.0), (60.1, 1.0)):
        hot = state | {"winding_temperature": jnp.asarray(temperature)}
        flux = node.compute_boundary_fluxes(hot, {}, 0.5)
        assert flux["overload"] == flag
        assert flux["winding_resistance"] == pytest.approx(R * (1 + alpha * (temperature - 25)))


def test_ver113_saturated_stall_torque(record_figure):
    limit, V, R, kt = 2.0, 6.0, 1.0, 0.05
    node = motor(1e-4, inertia_kg_m2=1e6, command_mode="voltage", saturation_current_a=limit)
    inputs = {"commanded_voltage": V}
    states = run(node, inputs, 500)
    final = {name: jnp.asarray(value[-1]) for name, value in states.items()}
    torque = float(node.compute_boundary_fluxes(final, inputs, 1e-4)["motor_torque"])
    expected = kt * limit * np.tanh(V / (R * limit))
    record_figure("relative", abs(torque / expected - 1))
    assert torque == pytest.approx(expected, rel=1e-9)  # e^{-R t/L} = e^-50 is still to come
    weak = motor(command_mode="voltage", saturation_current_a=1e6)
    plain = motor(command_mode="voltage")
    np.testing.assert_allclose(
        run(weak, inputs, 500)["angular_velocity"],
        run(plain, inputs, 500)["angular_velocity"],
        rtol=1e-11,
    )


def test_ver114_limits_hold_and_the_integral_does_not_wind_up(record_figure):
    supply = motor(command_mode="voltage", supply_voltage_v=3.0, current_limit_a=1.5)
    states = run(supply, {"commanded_voltage": 50.0}, 30_000)
    assert np.max(states["current"]) == 1.5
    assert states["angular_velocity"][-1] == pytest.approx(0.05 * 3.0 / (5e-4 + 0.05**2), rel=1e-9)
    # Torque mode: the speed-torque line of a 3 V supply, stable at steps beyond J R / kt^2 = 40 ms.
    for dt in (1e-4, 1e-2, 0.2):
        node = motor(dt, command_mode="torque", supply_voltage_v=3.0)
        omega = run(node, {"commanded_torque": 10.0}, int(6 / dt))["angular_velocity"]
        assert omega[-1] == pytest.approx(0.05 * 3.0 / (5e-4 + 0.05**2), rel=1e-9)
        assert np.all(np.diff(omega) >= -1e-12)
    gains = {"velocity_kp": 5e-3, "velocity_ki": 0.2, "command_mode": "velocity"}
    limited = run(motor(1e-3, **gains, torque_limit_n_m=0.02), {"commanded_velocity": 20.0}, 2000)
    overshoot = limited["angular_velocity"].max() / 20.0 - 1
    free = run(motor(1e-3, **gains), {"commanded_velocity": 20.0}, 2000)["angular_velocity"]
    record_figure("overshoot", overshoot)
    record_figure("overshoot_without_limit", free.max() / 20.0 - 1)
    assert overshoot < free.max() / 20.0 - 1  # winding up would make it several times larger
    assert np.max(np.diff(limited["angular_velocity"])) <= 0.02 / 1e-4 * 1e-3 * (1 + 1e-9)
    assert limited["angular_velocity"][-1] == pytest.approx(20.0, rel=1e-6)


@pytest.mark.parametrize(("switching", "swing"), [("unipolar", 1.0), ("bipolar", 2.0)])
def test_ver115_pwm_ripple_matches_its_closed_form(switching, swing, record_figure):
    """di = swing (V/R) (1 - e^{-D T/tau}) (1 - e^{-(1-D) T/tau}) / (1 - e^{-T/tau})"""
    V, R, tau, T, on = 24.0, 1.0, 1e-3, 5e-5, 0.25
    dt = T / 40
    drive = PwmDriveNode("drive", dt, V, 1 / T, switching=switching)
    node = motor(dt, inertia_kg_m2=1e6, integrator="exact", command_mode="voltage")
    duty = on if switching == "unipolar" else 2 * on - 1

    def step(carry, _):
        phase, state = carry
        phase = drive.update(phase, {"commanded_duty": duty}, dt)
        V = drive.compute_boundary_fluxes(phase, {"commanded_duty": duty}, dt)["terminal_voltage"]
        state = node.update(state, {"commanded_voltage": V}, dt)
        return (phase, state), (state["current"], V)

    start = drive.initial_state(), node.initial_state()
    _, (current, voltage) = jax.jit(lambda: jax.lax.scan(step, start, length=40 * 600))()
    last = np.asarray(current[-400:])
    e_on, e_off, e_all = (np.exp(-part * T / tau) for part in (on, 1 - on, 1.0))
    expected = swing * V / R * (1 - e_on) * (1 - e_off) / (1 - e_all)
    ripple = last.max() - last.min()
    record_figure("ripple", abs(ripple / expected - 1))
    assert ripple == pytest.approx(expected, rel=1e-8)  # the phase adds up 24000 roundings
    assert np.mean(voltage[-400:]) == pytest.approx(duty * V, rel=1e-9)


@pytest.mark.parametrize(("mode", "command"), [("torque", 0.01), ("voltage", 2.0)])
@pytest.mark.parametrize("gear", [{}, {"gear_ratio": 20.0, "output_inertia_kg_m2": 0.02}])
def test_ver118_reaction_on_the_parent_balances_momentum(mode, command, gear, record_figure):
    node = motor(1e-3, command_mode=mode, **gear)
    inputs = {f"commanded_{mode}": command, "load_torque": 0.004}
    states = run(node, inputs, 500)
    fluxes = jax.vmap(lambda s: node.compute_boundary_fluxes(s, inputs, 1e-3))(states)
    ratio = gear.get("gear_ratio", 1.0)
    momentum = (1e-4 + gear.get("output_inertia_kg_m2", 0.0) / ratio) * states["angular_velocity"][
        -1
    ]
    impulse = 1e-3 * np.sum(0.004 - np.asarray(fluxes["reaction_torque"]))
    record_figure("relative", abs(impulse / momentum - 1))
    assert impulse == pytest.approx(momentum, rel=1e-12)
    np.testing.assert_allclose(
        fluxes["reaction_wrench_world"][:, 5], fluxes["reaction_torque"], rtol=1e-15
    )
