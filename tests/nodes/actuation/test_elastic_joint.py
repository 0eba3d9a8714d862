"""The elastic joint: springs, gear, fluxes, gradients, precision, refusals, identification."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from compiling import QUICK
from mime.core.problem import InputError, ParameterError
from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.running.graph import GraphManager

JOINT = {
    "rotor_inertia_kg_m2": 0.1,
    "output_inertia_kg_m2": 0.5,
    "stiffness_n_m_per_rad": 20.0,
    "damping_n_m_s": 0.1,
}
NONLINEAR = {
    "hardening": {"hardening_n_m_per_rad3": 3000.0},
    "backlash": {"backlash_rad": 0.02},
    "both": {"hardening_n_m_per_rad3": 3000.0, "backlash_rad": 0.02},
}
INSERTED = {"model": "inserted_body", "inserted_inertia_kg_m2": 1e-2}
FIELDS = ("rotor_angle", "rotor_velocity", "deflection", "deflection_velocity")
TORQUES = {"motor_torque": 1.5, "external_torque": -0.4}


def joint(timestep=1e-3, **changes):
    return ElasticJointNode("joint", timestep, **(JOINT | changes))


LONGEST = 2000
"""All runs are as long and take dt as an argument: one program for each kind of node."""


def scan(node, inputs, dt, steps=LONGEST):
    def step(state, _):
        state = node.update(state, inputs, dt)
        return state, state

    return jax.lax.scan(step, node.initial_state(), length=steps)[1]


compiled_scan = jax.jit(scan, compiler_options=QUICK)


def run(node, steps, inputs=TORQUES):
    """The state after each step."""
    every = {name: jnp.asarray(inputs.get(name, 0.0)) for name in TORQUES}
    node, dt = dataclasses.replace(node, timestep=1.0), jnp.asarray(node.timestep)
    states = compiled_scan(node, every, dt)
    return {name: np.asarray(values[:steps]) for name, values in states.items()}


@pytest.mark.parametrize("model", [{}, INSERTED, {"gear_ratio": 50.0}])
@pytest.mark.parametrize("spring", [{}, NONLINEAR["both"]])
def test_metadata_is_whole(model, spring):
    assert joint(integrator="implicit", **model, **spring).validate_mime_consistency() == []


@pytest.mark.small("both")
@pytest.mark.parametrize(
    ("spring", "model"), list(zip(NONLINEAR.values(), [{}, {}, INSERTED])), ids=list(NONLINEAR)
)
def test_nonlinear_springs_agree_with_an_adaptive_solver(spring, model):
    k3, beta = spring.get("hardening_n_m_per_rad3", 0.0), spring.get("backlash_rad", 0.0)
    M = np.array([[0.5 + model.get("inserted_inertia_kg_m2", 0.0), 0.5], [0.5, 0.6]])

    def slope(_, x):
        d = x[2] - np.clip(x[2], -beta, beta)
        torque = -20.0 * d - k3 * d**3 - 0.1 * x[3]
        x1_acc, x2_acc = np.linalg.solve(M, [torque - 0.4, 1.5 - 0.4])
        return [x[1], x2_acc, x[3], x1_acc]

    theirs = solve_ivp(slope, (0, 1), np.zeros(4), rtol=1e-9, atol=1e-11, max_step=5e-3).y[:, -1]
    errors = []
    for steps in (500, 1000):
        states = run(joint(1.0 / steps, integrator="implicit", **spring, **model), steps)
        errors.append(np.max(np.abs([float(states[n][-1]) for n in FIELDS] - theirs)))
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)  # second order


def test_implicit_converges_to_exact_with_second_order():
    errors = []
    for steps in (100, 200):
        exact, implicit = (
            run(joint(1.0 / steps, integrator=name), steps) for name in ("exact", "implicit")
        )
        errors.append(max(np.max(np.abs(exact[n] - implicit[n])) for n in exact))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize("spring", NONLINEAR.values(), ids=list(NONLINEAR))
def test_nonlinear_springs_never_limit_the_step(spring):
    """k = 1e6 at dt = 1e-2: backward Euler settles at the static deflection, adding no energy."""
    node = joint(1e-2, integrator="backward_euler", **(spring | {"stiffness_n_m_per_rad": 1e6}))
    states = run(node, 2000, {"motor_torque": 1.0})
    static = -(0.5 / 0.6 * 1e-6 + spring.get("backlash_rad", 0.0))
    np.testing.assert_allclose(states["deflection"][-100:], static, rtol=1e-6)
    x1, w1 = (np.asarray(states[n]) for n in ("deflection", "deflection_velocity"))
    d = x1 - np.clip(x1, *(spring.get("backlash_rad", 0.0) * np.array([-1, 1])))
    potential = 0.5e6 * d**2 + 0.25 * spring.get("hardening_n_m_per_rad3", 0.0) * d**4
    energy = 0.05 / 0.6 * w1**2 / 2 + potential + 0.5 / 0.6 * x1  # of the oscillator
    assert np.all(np.diff(energy) <= 1e-15)
    t = 1e-2 * np.arange(1, 2001)
    output = np.asarray(states["deflection"] + states["rotor_angle"])
    np.testing.assert_allclose(
        output, 0.5 / 0.6 * t**2, rtol=1e-12, atol=0.1 / 0.6 * np.max(np.abs(x1)) * 1.01
    )


def test_backward_euler_converges_to_exact_with_first_order():
    errors = []
    for steps in (1000, 2000):
        exact, euler = (
            run(joint(1.0 / steps, integrator=name), steps) for name in ("exact", "backward_euler")
        )
        errors.append(max(np.max(np.abs(exact[n] - euler[n])) for n in exact))
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)


def test_a_tiny_hardening_and_a_zero_backlash_change_nothing():
    plain = run(joint(integrator="implicit"), 500)
    tiny = run(joint(integrator="implicit", hardening_n_m_per_rad3=1e-12, backlash_rad=0.0), 500)
    for name, values in plain.items():
        np.testing.assert_allclose(tiny[name], values, rtol=1e-9, atol=1e-13)


def test_inside_the_backlash_the_spring_is_slack():
    node = joint(backlash_rad=0.05, integrator="implicit")
    slack = node.initial_state() | {"deflection": jnp.asarray(-0.04)}
    taut = node.initial_state() | {"deflection": jnp.asarray(-0.06)}
    torque = [
        float(node.compute_boundary_fluxes(s, {}, 1e-3)["spring_torque"]) for s in (slack, taut)
    ]
    np.testing.assert_allclose(torque, [0.0, 20.0 * 0.01], atol=1e-15)


def test_a_gear_is_a_reflected_inertia_and_a_multiplied_torque():
    N = 50.0
    geared = joint(rotor_inertia_kg_m2=0.1 / N**2, gear_ratio=N)
    ours = run(geared, 300, TORQUES | {"motor_torque": 1.5 / N})
    for name, values in run(joint(), 300).items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-12)
    last = {name: values[-1] for name, values in ours.items()}
    fluxes = geared.compute_boundary_fluxes(last, {}, 1e-3)
    assert float(fluxes["motor_velocity"]) == pytest.approx(N * float(fluxes["rotor_velocity"]))
    assert float(fluxes["motor_angle"]) == pytest.approx(N * float(fluxes["rotor_angle"]))


@pytest.mark.parametrize("model", [{}, INSERTED])
def test_the_transmission_torque_is_what_the_motor_does_not_spend_on_the_rotor(model):
    """u_o = u - J x2'', and by (3) I y'' = u_o + f."""
    node = joint(**model)
    A, B, _, _ = (np.asarray(matrix) for matrix in node.state_space())
    x = np.array([0.3, -0.2, 0.05, 0.4])
    acceleration = A @ x + B @ list(TORQUES.values())
    state = {name: jnp.asarray(value) for name, value in zip(node.state_spec(), x)}
    fluxes = node.compute_boundary_fluxes(state, TORQUES, 1e-3)
    u_o = float(fluxes["transmission_torque"])
    assert u_o == pytest.approx(1.5 - 0.1 * acceleration[1], rel=1e-12)
    assert 0.5 * (acceleration[1] + acceleration[3]) == pytest.approx(u_o - 0.4, rel=1e-12)
    assert float(fluxes["spring_torque"]) == pytest.approx(-20 * 0.05 - 0.1 * 0.4, rel=1e-12)
    assert float(fluxes["output_angle"]) == pytest.approx(0.35)
    assert float(fluxes["output_velocity"]) == pytest.approx(0.2)
    assert float(fluxes["deflection"]) == 0.05


@pytest.mark.small("changes3")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        INSERTED,
        *({"integrator": "implicit"} | s for s in (NONLINEAR["hardening"], NONLINEAR["both"])),
    ],
)
def test_gradients_agree_with_central_differences(changes):
    node = joint(**changes)

    @partial(jax.jit, compiler_options=QUICK)
    @jax.value_and_grad
    def loss(p):
        changed = node.with_params(stiffness_n_m_per_rad=p[0], damping_n_m_s=p[1])
        states = scan(changed, TORQUES, 1e-3, 400)
        return jnp.sum(states["deflection"] ** 2) + states["rotor_angle"][-1]

    p = np.array([20.0, 0.1])
    for h, gradient in zip(np.diag(1e-5 * p), loss(p)[1]):
        central = (float(loss(p + h)[0]) - float(loss(p - h)[0])) / (2 * h.sum())
        assert float(gradient) == pytest.approx(central, rel=1e-5)


def test_gradients_are_finite_at_rest():
    for changes in ({}, {"integrator": "implicit"} | NONLINEAR["both"]):
        node = joint(**changes)

        @partial(jax.jit, compiler_options=QUICK)
        @jax.grad
        def gradient(k, node=node):
            return scan(node.with_params(stiffness_n_m_per_rad=k), {}, 1e-3, 5)["deflection"][-1]

        assert np.isfinite(float(gradient(20.0)))


@pytest.mark.soak("tests/fitting recovers it by mime.fit")
def test_the_stiffness_is_recovered_from_a_noisy_step_response():
    """Gauss-Newton on k and v through the node; 30 % off to begin with."""
    node, steps = joint(1e-2), 300

    @partial(jax.jit, compiler_options=QUICK)
    @partial(jax.jacfwd, has_aux=True)
    def jacobian_and_response(p):
        changed = node.with_params(stiffness_n_m_per_rad=p[0], damping_n_m_s=p[1])
        deflection = scan(changed, TORQUES, 1e-2, steps)["deflection"]
        return deflection, deflection

    truth = np.array([20.0, 0.1])
    noise = 1e-3 * np.random.default_rng(0).normal(size=steps)
    measured = jacobian_and_response(truth)[1] + noise
    p = np.array([14.0, 0.3])
    for _ in range(25):
        J, response = (np.asarray(x) for x in jacobian_and_response(p))
        step = np.linalg.lstsq(J, measured - response)[0]
        p = p + np.clip(step, -0.1 * p, 0.1 * p)
    J = np.asarray(jacobian_and_response(p)[0])
    sigma = 1e-3 * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))  # Cramér-Rao
    assert np.all(np.abs(p - truth) <= 4 * sigma)
    assert sigma[0] / 20.0 < 2e-3


@pytest.mark.parametrize(
    "changes", [{}, INSERTED, {"integrator": "implicit"} | NONLINEAR["both"], {"gear_ratio": 5.0}]
)
def test_precision_is_kept(precision, changes):
    node = joint(**changes)
    state = node.update(node.initial_state(), TORQUES, 1e-3)
    fluxes = node.compute_boundary_fluxes(state, TORQUES, 1e-3)
    assert {str(x.dtype) for x in (*state.values(), *fluxes.values())} == {precision}


def test_single_precision_is_right_to_its_digits():
    double = {n: np.asarray(x) for n, x in run(joint(), 1000).items()}
    with jax.enable_x64(False):
        for name, values in run(joint(), 1000).items():
            scale = np.max(np.abs(double[name]))
            np.testing.assert_allclose(values, double[name], atol=1e-4 * scale, rtol=0)


def test_torques_add_up_in_a_graph():
    graph = GraphManager()
    graph.add_node(joint())
    graph.add_external_input("joint", "motor_torque")
    graph.add_external_input("joint", "external_torque")
    trajectory = graph.compile().run(duration=0.1, inputs={"joint": TORQUES})
    np.testing.assert_allclose(
        trajectory["joint"]["deflection"][-1], run(joint(), 100)["deflection"][-1], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stiffness_n_m_per_rad": 0.0}, "stiffness_n_m_per_rad must be > 0"),
        ({"rotor_inertia_kg_m2": -1.0}, "rotor_inertia_kg_m2 must be > 0"),
        ({"output_inertia_kg_m2": np.nan}, "output_inertia_kg_m2 must be > 0"),
        ({"damping_n_m_s": -0.1}, "damping_n_m_s must be >= 0"),
        ({"model": "spring"}, "model must be one of 'sea', 'inserted_body', got 'spring'"),
        (
            {"integrator": "euler"},
            "integrator must be one of 'exact', 'implicit', 'backward_euler', got 'euler'",
        ),
        ({"model": "inserted_body"}, "needs it; got None"),
        ({"inserted_inertia_kg_m2": 1e-5}, "belongs to model='inserted_body'"),
        ({"backlash_rad": 0.01}, "integrator 'exact' solves a linear .*Use integrator 'implicit'"),
        ({"hardening_n_m_per_rad3": 1.0}, "Use integrator 'implicit'"),
    ],
)
def test_bad_parameters_are_refused(changes, says):
    with pytest.raises(ParameterError, match=says):
        joint(**changes)


def test_an_unknown_input_is_refused():
    node = joint()
    with pytest.raises(InputError, match="motor_torque"):
        node.update(node.initial_state(), {"motor_torqe": 1.0}, 1e-3)


def test_analysis_refuses_what_no_joint_has():
    with pytest.raises(ValueError, match="I_f must be >= 0"):
        analysis.inserted_body_error(1.0, 1.0, -1e-3)
    with pytest.raises(ValueError, match="J must be > 0"):
        analysis.inserted_body_error(0.0, 1.0, 1e-3)
    with pytest.raises(ValueError, match="damping_ratio must be > 0 and < 1"):
        analysis.largest_deflection_error(0.1, 1.0)
    with pytest.raises(ValueError, match="got 'link'"):
        analysis.transfer_function(0.1, 5.0, 20.0, 0.1, output="link")


def test_a_light_rotor_is_what_makes_an_inserted_body_heavy():
    """The same I_f / I = 1e-3, a thousand times apart in eps."""
    heavy, light = (analysis.inserted_body_error(J, 1.0, 1e-3) for J in (1e3, 1e-3))
    assert float(heavy.eps) == pytest.approx(1.001e-3)
    assert float(light.eps) == pytest.approx(1.001)
    assert float(light.frequency_error) == pytest.approx(2.001**-0.5 - 1)
    assert light.deflection_error is None
    slope = jax.grad(lambda b: analysis.inserted_body_error(0.1, 1.0, b).frequency_error)(0.0)
    assert float(slope) == pytest.approx(-0.5 / analysis.reduced_inertia(0.1, 1.0))
    assert float(analysis.damping_ratio(0.1, 5.0, 20.0, 0.1)) == pytest.approx(
        0.1 / float(analysis.critical_damping(0.1, 5.0, 20.0))
    )
