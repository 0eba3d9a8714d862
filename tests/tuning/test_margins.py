"""Margins of sampled loops against python-control on state-space models written here."""

import jax
import numpy as np
import pytest

import control
import mime
from mime.tuning.gains import Gains
from mime.tuning.loops import external_at, loops_of, scaled, step_matrix
from mime.tuning.margins import margin_of

DT = 1e-3
J, B, KP, KI = 1e-4, 3e-4, 0.05, 6.0


def matrix_of(simulation, gains, at=0, state=None, inputs=None):
    loop = loops_of(simulation, Gains(simulation, gains).entries)[at]
    state = simulation.init_state() if state is None else state
    outside = external_at(simulation, inputs, 1)(state)

    @jax.jit
    def matrix(g):
        changed = simulation.with_parameters(scaled(simulation, loop, g, {}))
        return step_matrix(changed, state, outside)

    return loop, lambda g: np.asarray(matrix(g))


def motor(**options):
    graph = mime.GraphManager()
    constants = {"r_ohm": 1.0, "l_henry": 1e-3, "kt_n_m_per_a": 0.05, "damping_n_m_s": B}
    gains = {"velocity_kp": KP, "velocity_ki": KI, "command_mode": "velocity"}
    graph.add_node(mime.MotorNode("motor", DT, inertia_kg_m2=J, **constants, **gains, **options))
    graph.add_external_input("motor", "commanded_velocity")
    return graph.compile()


def test_the_pi_of_a_motor():
    loop, matrix = matrix_of(motor(), ["motor.velocity_kp"])
    assert loop.addresses == ("motor.velocity_kp", "motor.velocity_ki")  # both are opened
    found = margin_of(matrix, DT)
    a = 1.0 / (1.0 + DT * B / J)  # w' = a (w + dt tau / J): friction is implicit
    plant = control.ss([[a]], [[a * DT / J]], [[1.0]], [[0.0]], DT)
    pi = control.ss([[1.0]], [[DT]], [[KI]], [[KP + KI * DT]], DT)
    open_loop = control.series(pi, plant)
    _, phase, _, crossover = control.margin(open_loop)
    assert found.phase_deg == pytest.approx(phase, rel=1e-9)
    assert found.crossover_hz == pytest.approx(crossover / (2 * np.pi), rel=1e-9)
    assert found.delay_s == pytest.approx(np.radians(phase) / crossover, rel=1e-9)
    # At Nyquist's frequency the loop is nearest to -1, too; python-control's grid ends before it.
    at_nyquist = abs(1 + open_loop(-1.0 + 0j))
    assert 1 / found.sensitivity == pytest.approx(at_nyquist, rel=1e-9)
    # At Nyquist's frequency, where python-control looks for no margin, the poles say it.
    g = 10 ** (found.gain_db / 20)
    poles = control.feedback(g * open_loop, 1).poles()
    assert np.max(np.abs(poles)) == pytest.approx(1.0, abs=1e-9)


def pendulum(kp, kd, tmp_path):
    """A link under a PD that knows it a step late, and whose torque comes a step late."""
    file = tmp_path / "link.urdf"
    file.write_text(
        '<robot name="r"><link name="base"/><link name="link"><inertial>'
        '<origin xyz="0 0 -0.3"/><mass value="2"/>'
        '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="link"/>'
        '<axis xyz="0 1 0"/></joint></robot>'
    )
    graph = mime.GraphManager()
    graph.add_node(mime.RobotArmNode("arm", 5e-3, file, end_effector_link_name="link"))
    graph.add_node(mime.JointPDNode("pd", 5e-3, file, kp, kd, gravity_compensation=False))
    graph.add_edge("arm", "pd", "joint_angles", "joint_angles", delay=True)
    graph.add_edge("arm", "pd", "joint_velocities", "joint_velocities", delay=True)
    graph.add_edge("pd", "arm", "joint_torques", "commanded_joint_torques", delay=True)
    graph.add_external_input("pd", "desired_joint_angles")
    return graph.compile()


def test_the_pd_of_a_joint_with_its_delay(tmp_path):
    kp, kd, dt = 60.0, 6.0, 5e-3
    inertia, weight = 0.02 + 2 * 0.3**2, 2 * 9.80665 * 0.3
    loop, matrix = matrix_of(pendulum(kp, kd, tmp_path), ["pd.kp"])
    assert (loop.name, loop.addresses) == ("pd[j]", ("pd.kp", "pd.kd"))
    found = margin_of(matrix, dt)
    # v' = v + dt / I (tau_held - m g l q), q' = q + dt v', and tau' = -(kp q + kd v)
    k = dt / inertia
    A = np.array([[1 - dt * k * weight, dt, dt * k], [-k * weight, 1.0, k], [0.0, 0.0, 0.0]])
    open_loop = control.ss(A, [[0.0], [0.0], [1.0]], [[kp, kd, 0.0]], [[0.0]], dt)
    # All of them: the pendulum's own resonance, undamped, is an infinite gain and no margin.
    gains, phases, distances, _, crossovers, _ = control.stability_margins(
        open_loop, returnall=True
    )
    phase, crossover = phases[np.argmin(np.abs(phases))], crossovers[np.argmin(np.abs(phases))]
    assert found.gain_db == pytest.approx(20 * np.log10(min(gains[gains > 1])), rel=1e-6)
    assert found.phase_deg == pytest.approx(phase, rel=1e-6)
    assert found.crossover_hz == pytest.approx(crossover / (2 * np.pi), rel=1e-6)
    assert 1 / found.sensitivity == pytest.approx(min(distances), rel=1e-6)
    delays = np.radians(phases % 360) / crossovers  # by the slower crossing less is borne
    assert found.delay_s == pytest.approx(min(delays), rel=1e-6)


def test_an_unstable_loop_is_told_and_has_no_margins(tmp_path):
    with pytest.warns(mime.StabilityWarning):
        simulation = pendulum(60.0, 200.0, tmp_path)
    _, matrix = matrix_of(simulation, ["pd.kp"])
    found = margin_of(matrix, 5e-3)
    assert not found.is_stable
    assert np.isnan(found.gain_db)


def test_a_loop_inside_of_a_step_has_a_gain_margin_only():
    """The exact integrator has the PI in its matrix exponential: an analogue, stable loop."""
    _, matrix = matrix_of(motor(integrator="exact"), ["motor.velocity_kp"])
    found = margin_of(matrix, DT)
    assert found.is_stable
    assert np.isinf(found.gain_db)
    assert np.isnan(found.phase_deg)


def test_the_margin_of_factors_is_where_the_radius_is_one():
    def matrix(g):  # stable for g below 4, and not linear in it
        return np.diag([g**2 / 16.0, 0.5 / (0.25 + g**2) ** 0.5])

    found = margin_of(matrix, DT)
    assert found.gain_db == pytest.approx(20 * np.log10(4.0), abs=1e-6)
    assert np.isinf(found.gain_down_db)


def test_a_narrow_resonance_is_not_passed_by():
    """2 mHz wide at 37.3 Hz: between all frequencies of a grid, python-control's too."""
    s, w = control.tf("s"), 2 * np.pi * 37.3
    plant = control.ss(control.c2d(1e-4 * w**2 / (s**2 + 2e-5 * w * s + w**2) + 5 / (s + 40), DT))
    found = margin_of(lambda g: plant.A - g * plant.B @ plant.C, DT)
    fine = 37.3 + np.linspace(-0.02, 0.02, 40_001)
    L = plant(np.exp(2j * np.pi * fine * DT))
    assert found.sensitivity == pytest.approx(np.max(1 / np.abs(1 + L)), rel=1e-5)
    crossed = np.argmin(np.abs(fine - found.crossover_hz))
    assert abs(L[crossed]) == pytest.approx(1.0, abs=1e-2)
    assert found.phase_deg == pytest.approx(abs(np.degrees(np.angle(-L[crossed]))), abs=0.1)


def test_gains_on_two_signals_have_a_gain_margin_only():
    """det(z - A(g)) is of second order in g: two loops of one factor, each stable below 4."""
    found = margin_of(lambda g: np.diag([0.25 * g, 0.2 * g]), DT)
    assert found.gain_db == pytest.approx(20 * np.log10(4.0), abs=1e-6)
    assert np.isnan(found.phase_deg)
    assert np.isnan(found.sensitivity)


def test_a_loop_that_does_nothing_has_no_margins():
    """As at a limit of its drive: not infinite ones, which would be praise for nothing."""
    found = margin_of(lambda g: np.diag([0.5, 0.2]), DT)
    assert found.is_stable
    assert np.isnan(found.gain_db)


def test_a_drive_at_its_limit_has_no_loop():
    """Its torque is what the limit says, whatever the gains: half of them, too, but not none."""
    simulation = motor(limits=mime.Limits(torque_n_m=0.02))
    inputs = {"motor": {"commanded_velocity": 10.0}}
    _, matrix = matrix_of(simulation, ["motor.velocity_kp"], inputs=inputs)
    found = margin_of(matrix, DT)
    assert found.is_stable
    assert np.isnan(found.gain_db)
    assert np.isnan(found.phase_deg)
