"""MIME-VER-130 to 139, 160, 161: the elastic joint against matrix exponential and closed forms.

Each test records what it measured; docs/algorithm_guide/nodes/elastic_joint.md tabulates it.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson, solve_ivp
from scipy.linalg import expm
from scipy.special import ellipj, ellipk

import control
from mime.control.kinematics import forward_dynamics, parse_urdf
from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_joint import ElasticJointNode

JOINT = {
    "rotor_inertia_kg_m2": 0.1,
    "output_inertia_kg_m2": 5.0,
    "stiffness_n_m_per_rad": 20.0,
    "damping_n_m_s": 0.1,
}
FIELDS = ("rotor_angle", "rotor_velocity", "deflection", "deflection_velocity")
LONGEST = 20_000
QUICK = {"xla_backend_optimization_level": 0}
"""Compiles large programs that run once in half the time."""


def joint(timestep=1e-3, **changes):
    return ElasticJointNode("joint", timestep, **(JOINT | changes))


def inserted(I_f, timestep=1e-3, **changes):
    return joint(timestep, model="inserted_body", inserted_inertia_kg_m2=I_f, **changes)


@partial(jax.jit, compiler_options=QUICK)
def scan(node, dt, state, torques):
    def step(state, pair):
        inputs = {"motor_torque": pair[0], "external_torque": pair[1]}
        state = node.update(state, inputs, dt)
        return state, (state, node.compute_boundary_fluxes(state, inputs, dt))

    return jax.lax.scan(step, state, torques)[1]


def run(node, torques, **initial):
    """States and fluxes after each step; `torques` is (steps, 2): motor and external."""
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}
    # One program for all timesteps and lengths: dt is an argument, the torques end in zeros.
    node, dt, steps = dataclasses.replace(node, timestep=1.0), node.timestep, len(torques)
    padded = jnp.asarray(np.concatenate([torques, np.zeros((LONGEST - steps, 2))]))
    results = scan(node, jnp.asarray(dt), state, padded)
    return jax.tree.map(lambda values: np.asarray(values)[:steps], results)


def equations_1_to_5(J, I, k, v, I_f):
    """A, B of (x2, x2', x1, x1') from the mass matrix of equation 5; equation 2 has I_f = 0."""
    M = np.array([[I + I_f, I], [I, I + J]])  # of (x1, x2)
    by_state = np.linalg.solve(M, np.array([[0, 0, -k, -v], [0, 0, 0, 0]]))
    by_torque = np.linalg.solve(M, np.array([[0, 1], [1, 1]]))
    A, B = np.zeros((4, 4)), np.zeros((4, 2))
    A[0, 1] = A[2, 3] = 1
    A[1], A[3], B[1], B[3] = by_state[1], by_state[0], by_torque[1], by_torque[0]
    return A, B


@pytest.mark.parametrize("I_f", [None, 1e-5])
@pytest.mark.parametrize(
    ("dt", "changes"),
    [
        (1e-3, {}),
        (0.1, {}),
        (1e-2, {"damping_n_m_s": 0.0}),
        (1e-2, {"damping_n_m_s": 50.0}),
        (1e-4, {"rotor_inertia_kg_m2": 1e-3, "stiffness_n_m_per_rad": 1e3}),
        (1e-2, {"rotor_inertia_kg_m2": 1e-5, "gear_ratio": 100.0}),
    ],
)
def test_ver130_exact_equals_the_matrix_exponential(I_f, dt, changes, record_figure):
    node = joint(dt, **changes) if I_f is None else inserted(I_f, dt, **changes)
    values, N = JOINT | changes, changes.get("gear_ratio", 1.0)
    A, B = equations_1_to_5(
        N**2 * values["rotor_inertia_kg_m2"],
        values["output_inertia_kg_m2"],
        values["stiffness_n_m_per_rad"],
        values["damping_n_m_s"],
        I_f or 0.0,
    )
    B[:, 0] *= N
    torques = np.random.default_rng(0).normal(size=(200, 2))
    start = [0.3, -0.2, 0.05, 0.4]
    states, _ = run(node, torques, **dict(zip(FIELDS, start)))
    step = expm(np.block([[A, B], [np.zeros((2, 6))]]) * dt)
    x, theirs = np.array(start), []
    for pair in torques:
        x = step[:4, :4] @ x + step[:4, 4:] @ pair
        theirs.append(x)
    theirs = np.array(theirs)
    ours = np.stack([states[name] for name in FIELDS], axis=1)
    error = np.max(np.abs(ours - theirs) / np.max(np.abs(theirs), axis=0))
    record_figure("relative_to_the_largest", error)
    assert error <= 1e-10


TABLE = [  # J/I, I_f/I, eps, frequency error, largest deflection error at zeta 0.05
    (1.0, 1e-2, "2.00e-02", "-9.85e-03", "7.31e-02"),
    (1.0, 1e-4, "2.00e-04", "-1.00e-04", "7.36e-04"),
    (0.1, 1e-3, "1.10e-02", "-5.46e-03", "4.03e-02"),
    (0.01, 1e-3, "1.01e-01", "-4.70e-02", "3.48e-01"),
]


@pytest.mark.parametrize(("J", "I_f", "eps", "frequency", "deflection"), TABLE)
def test_ver131_the_inserted_bodys_error(J, I_f, eps, frequency, deflection, record_figure):
    error = analysis.inserted_body_error(J, 1.0, I_f, 0.05)
    assert f"{float(error.eps):.2e}" == eps
    assert f"{float(error.frequency_error):.2e}" == frequency
    assert f"{analysis.largest_deflection_error(float(error.eps), 0.05):.2e}" == deflection
    assert float(error.deflection_error) == pytest.approx(float(deflection), rel=0.07)

    k = float(analysis.reduced_inertia(J, 1.0))  # resonance at 1 rad/s
    v = 0.05 * float(analysis.critical_damping(J, 1.0, k))
    values = {
        "rotor_inertia_kg_m2": J,
        "output_inertia_kg_m2": 1.0,
        "stiffness_n_m_per_rad": k,
        "damping_n_m_s": v,
    }
    torques = np.tile([1.0, 0.0], (20_000, 1))  # 200 s, 10 time constants
    exact = run(joint(0.01, **values), torques)[0]["deflection"]
    with_body = run(inserted(I_f, 0.01, **values), torques)[0]["deflection"]
    static = 1.0 / (1.0 + J) / k
    largest = np.max(np.abs(with_body - exact)) / static
    record_figure("largest_deflection_error", largest)
    assert f"{largest:.2e}" == deflection


def test_ver132_convergence_in_the_inserted_inertia_is_of_first_order(record_figure):
    torques = np.tile([1.0, 0.0], (3000, 1))
    exact = run(joint(), torques)[0]["deflection"]
    inertias = np.array([1e-7, 1e-6, 1e-5])
    errors = [np.max(np.abs(run(inserted(b), torques)[0]["deflection"] - exact)) for b in inertias]
    slopes = np.diff(np.log(errors)) / np.diff(np.log(inertias))
    record_figure("slopes", slopes)
    np.testing.assert_allclose(slopes, 1.0, atol=0.01)


@pytest.mark.parametrize(("J", "I_f"), [(5.0, 5e-2), (0.05, 5e-3), (0.1, 1e-5)])
def test_ver133_frequency_law(J, I_f, record_figure):
    values = {"rotor_inertia_kg_m2": J, "damping_n_m_s": 0.0}
    law = 1.0 + float(analysis.inserted_body_error(J, 5.0, I_f).frequency_error)
    frequency = [
        np.max(np.abs(np.linalg.eigvals(np.asarray(node.state_space()[0]))))
        for node in (joint(**values), inserted(I_f, **values))
    ]
    error = abs(frequency[1] / frequency[0] / law - 1.0)
    period = 2 * np.pi / (law * float(analysis.resonance(J, 5.0, 20.0)))
    swing = run(inserted(I_f, period / 64, **values), np.zeros((640, 2)), deflection=0.1)[0]
    after = abs(swing["deflection"][-1] / 0.1 - 1.0) + abs(swing["deflection_velocity"][-1])
    record_figure("relative_frequency", error)
    record_figure("state_after_10_periods", after)
    assert error <= 1e-9
    assert after <= 1e-9


@pytest.mark.parametrize("I_f", [None, 1e-2])
def test_ver134_momentum_is_the_torques_integral(I_f, record_figure):
    node = joint() if I_f is None else inserted(I_f)
    torques = np.random.default_rng(1).normal(size=(2000, 2))
    states, _ = run(node, torques)
    output = states["rotor_velocity"] + states["deflection_velocity"]
    momentum = 5.0 * output + 0.1 * states["rotor_velocity"]
    error = np.max(np.abs(momentum - 1e-3 * np.cumsum(torques.sum(axis=1))))
    record_figure("momentum_n_m_s", error)
    assert error <= 1e-13


@pytest.mark.parametrize("I_f", [None, 1e-2])
def test_ver135_energy_balance(I_f, record_figure):
    """The midpoint rule keeps it to rounding, the exact solution by a quadrature of its power."""
    torques = np.tile([0.7, -0.4], (2000, 1))
    start = {"deflection": 0.1, "rotor_velocity": 0.3}
    for integrator, dt, tolerance in [("implicit", 1e-2, 1e-12), ("exact", 1e-3, 1e-9)]:
        make = joint if I_f is None else lambda *a, **b: inserted(I_f, *a, **b)
        node = make(dt, integrator=integrator)
        states, _ = run(node, torques, **start)
        first = node.initial_state() | start
        states = {n: np.concatenate([[float(first[n])], states[n]]) for n in FIELDS}
        energy = np.asarray(node.energy(jax.tree.map(jnp.asarray, states)))
        x2, x1, w1 = (states[n] for n in ("rotor_angle", "deflection", "deflection_velocity"))
        if integrator == "implicit":
            lost = dt * 0.1 * np.sum((0.5 * (w1[1:] + w1[:-1])) ** 2)
        else:
            lost = 0.1 * simpson(w1**2, dx=dt)
        work = 0.7 * (x2[-1] - x2[0]) - 0.4 * (x1 + x2 - x1[0] - x2[0])[-1]
        error = abs(energy[-1] - energy[0] - work + lost) / np.max(energy)
        record_figure(integrator, error)
        assert error <= tolerance


@pytest.mark.parametrize("I_f", [0.0, 1e-2])
@pytest.mark.parametrize("source", ["motor", "external"])
@pytest.mark.parametrize("output", ["rotor", "output"])
def test_ver136_transfer_functions_agree_with_python_control(I_f, source, output, record_figure):
    system = control.ss(*(np.asarray(matrix) for matrix in inserted(I_f).state_space()))
    w = np.logspace(-1, 3, 81)
    theirs = system(1j * w)[["rotor", "output"].index(output), ["motor", "external"].index(source)]
    numerator, denominator = analysis.transfer_function(
        0.1, 5.0, 20.0, 0.1, I_f, output=output, source=source
    )
    ours = control.tf(np.asarray(numerator), np.asarray(denominator))(1j * w)
    error = np.max(np.abs(ours / theirs - 1))
    record_figure("relative", error)
    assert error <= 1e-9


def test_ver137_resonance_and_anti_resonance_are_the_bode_plots():
    node = joint(damping_n_m_s=0.0)
    system = control.ss(*(np.asarray(matrix) for matrix in node.state_space()))[0, 0]
    poles, zeros = np.max(np.abs(system.poles())), np.max(np.abs(system.zeros()))
    assert poles == pytest.approx(float(analysis.resonance(0.1, 5.0, 20.0)), rel=1e-9)
    assert zeros == pytest.approx(float(analysis.anti_resonance(5.0, 20.0)), rel=1e-6)
    critical = float(analysis.critical_damping(0.1, 5.0, 20.0))
    for scale, swings in [(0.99, True), (1.01, False)]:
        A = np.asarray(joint(damping_n_m_s=scale * critical).state_space()[0])
        assert np.any(np.abs(np.linalg.eigvals(A).imag) > 1e-6) == swings
    heavy = joint(damping_n_m_s=0.0, output_inertia_kg_m2=1e9)  # as good as locked
    fastest = np.max(np.abs(np.linalg.eigvals(np.asarray(heavy.state_space()[0]))))
    assert fastest == pytest.approx(float(analysis.locked_output_resonance(0.1, 20.0)), rel=1e-8)


def test_ver138_flexible_pendulum_under_pd_control(record_figure):
    """k = 20, v = 0.1, J = 0.1, I = 5, I_f = 1e-5; u = -100 x2 - x2'; x1'(0) = 0.1; 10 s."""
    gain = np.array([[-100.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    trajectories = []
    for node in (joint(), inserted(1e-5)):
        A, B, _, _ = (np.asarray(matrix) for matrix in node.state_space())
        theirs = equations_1_to_5(0.1, 5.0, 20.0, 0.1, 0.0 if node.model == "sea" else 1e-5)
        np.testing.assert_allclose(A, theirs[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(B, theirs[1], rtol=1e-12, atol=1e-12)
        step, x, path = expm((A + B @ gain) * 1e-3), np.array([0, 0, 0, 0.1]), []
        for _ in range(10_000):
            x = step @ x
            path.append(x)
        trajectories.append(np.array(path))
    difference = np.max(np.abs(trajectories[1] - trajectories[0]), axis=0)
    record_figure("x1_rad", difference[2])
    record_figure("x2_rad", difference[0])
    assert f"{difference[2]:.3e}" == "4.667e-07"
    assert f"{difference[0]:.2e}" == "9.20e-08"


@pytest.mark.parametrize("integrator", ["exact", "implicit"])
@pytest.mark.parametrize("J", [0.1, 1e-6])
def test_ver139_a_stiff_joint_is_stable_and_right_in_the_mean(integrator, J, record_figure):
    """k = 1e6, I_f = 1e-5, dt = 1e-3: with J = 1e-6 a step is 48 periods of the spring."""
    u, steps = 3.0, 20_000
    node = inserted(
        1e-5,
        stiffness_n_m_per_rad=1e6,
        damping_n_m_s=0.01,
        rotor_inertia_kg_m2=J,
        integrator=integrator,
    )
    states, fluxes = run(node, np.tile([u, 0.0], (steps, 1)))
    t = 1e-3 * np.arange(1, steps + 1)
    rigid = 0.5 * u / (5.0 + J) * t**2
    static = -u * 5.0 / (5.0 + J) / 1e6
    error = np.max(np.abs(fluxes["output_angle"] - rigid))
    mean = np.mean(states["deflection"]) / static
    record_figure("from_the_rigid_motion_rad", error)
    record_figure("mean_deflection_over_static", mean)
    assert error <= 3 * abs(static)  # twice the static deflection is a free swing's largest
    assert mean == pytest.approx(1.0, abs=1e-2)


@pytest.fixture
def pendulum(tmp_path):
    """m = 5 kg at l = 1 m below a pivot: I = 5 kg·m²."""
    path = tmp_path / "pendulum.urdf"
    path.write_text(
        """<robot name="pendulum"><link name="base"/>
        <link name="pole"><inertial><origin xyz="0 0 -1"/><mass value="5"/>
          <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="pivot" type="continuous"><parent link="base"/><child link="pole"/>
          <axis xyz="0 1 0"/></joint></robot>"""
    )
    return parse_urdf(path)


def swing(tree, armature, stiffness, gravity, start, times):
    """(q, q') at `times`: our forward dynamics, integrated by SciPy to 1e-12."""

    @jax.jit
    def slope(x):
        tau, g = -stiffness * x[:1], jnp.array([0.0, 0.0, -gravity])
        q_acc = forward_dynamics(tree, x[:1], x[1:], tau, g, diagonal=jnp.full(1, armature))
        return jnp.concatenate([x[1:], q_acc])

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "t_eval": times}
    return solve_ivp(lambda t, x: np.asarray(slope(x)), times[[0, -1]], start, **options).y.T


def test_ver160_armature_adds_to_the_pendulums_inertia(pendulum, record_figure):
    """J = 0.1 on the diagonal of M, a spring of 500 N·m/rad, no gravity, x(0) = 0.1 rad; 2 s."""
    times = np.linspace(0.0, 2.0, 201)
    A = np.array([[0.0, 1.0], [-500.0 / (5.0 + 0.1), 0.0]])
    exact = np.array([expm(A * t) @ [0.1, 0.0] for t in times])
    error = np.max(np.abs(swing(pendulum, 0.1, 500.0, 0.0, [0.1, 0.0], times) - exact))
    record_figure("rad_and_rad_s", error)
    assert error <= 1e-10


def test_ver161_a_plain_pendulum_swings_by_elliptic_functions(pendulum, record_figure):
    """sin(q/2) = k sn(K(k²) - w t, k²), k = sin(q(0)/2), w = sqrt(g / l), from rest at 2 rad."""
    times, k, w = np.linspace(0.0, 5.0, 201), np.sin(1.0), np.sqrt(9.81)
    exact = 2.0 * np.arcsin(k * ellipj(ellipk(k**2) - w * times, k**2)[0])
    error = np.max(np.abs(swing(pendulum, 0.0, 0.0, 9.81, [2.0, 0.0], times)[:, 0] - exact))
    record_figure("rad", error)
    assert error <= 1e-10
