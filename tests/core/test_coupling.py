"""Coupling groups: the right fixed point, reported honestly, with the right gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elements import Rotor, Spring
from mime import ConvergenceWarning, GraphManager
from sizes import sized

J, B, DT = 0.01, 0.1, 1e-3


def coupled(k=3.0, **options):
    graph = GraphManager()
    graph.add_node(Rotor("rotor", DT, J, B))
    graph.add_node(Spring("spring", DT, k))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque")
    graph.add_external_input("rotor", "torque")
    graph.add_coupling_group(["rotor", "spring"], name="joint", **options)
    return graph.compile()


def implicit_spring(k, steps, torque=1.0):
    """The fixed point in closed form: the spring's torque at the step's end."""
    angle = speed = 0.0
    angles = []
    for _ in range(steps):
        speed = (J * speed + DT * (torque - k * angle)) / (J + DT * B + DT**2 * k)
        angle += DT * speed
        angles.append(angle)
    return np.array(angles)


@pytest.mark.parametrize("method", ["gauss_seidel", "jacobi"])
@pytest.mark.parametrize("acceleration", ["none", "aitken"])
def test_a_coupled_spring_is_integrated_implicitly(method, acceleration):
    simulation = coupled(method=method, acceleration=acceleration, tolerance=1e-14)
    run = simulation.run(steps=300, inputs={"rotor": {"torque": 1.0}})
    # Tolerance 1e-14 a step on fluxes of order one, contracted by DT^2 k/J = 3e-4 a step.
    np.testing.assert_allclose(run["rotor"]["angle"], implicit_spring(3.0, 300), rtol=1e-11)
    assert run["joint"]["residual"].max() <= 1e-14
    assert run["joint"]["iterations"].max() < 16


def test_aitken_converges_where_the_plain_iteration_diverges():
    k = 3e4  # DT^2 k/(J + DT B) = 2.97 > 1
    options = {"tolerance": 1e-12, "max_iterations": 60}
    run = coupled(k, acceleration="aitken", **options).run(
        steps=100, inputs={"rotor": {"torque": 1.0}}
    )
    np.testing.assert_allclose(run["rotor"]["angle"], implicit_spring(k, 100), rtol=1e-8)
    with pytest.warns(ConvergenceWarning):
        coupled(k, **options).run(steps=3, inputs={"rotor": {"torque": 1e-9}})


def test_not_converging_is_reported_with_group_time_and_residual():
    simulation = coupled(3e4, max_iterations=3, tolerance=1e-12)
    with pytest.warns(
        ConvergenceWarning, match=r"'joint' did not converge in 5 step\(s\).*t = 0 s"
    ):
        run = simulation.run(steps=5, inputs={"rotor": {"torque": 1e-6}})
    report = run.final_state.coupling["joint"]
    assert (report.failures, report.first_failure) == (5, 0)
    with pytest.warns(ConvergenceWarning):
        simulation.step(simulation.init_state(), {"rotor": {"torque": 1.0}})
    with pytest.warns(ConvergenceWarning, match="2 of 3 members, first member 1"):
        simulation.run_batch(steps=5, inputs={"rotor": {"torque": np.array([[0.0], [1.0], [2.0]])}})


def test_gradients_are_those_of_the_converged_solution():
    """By the implicit function theorem: the iteration leaves no trace in them."""

    def final_angle(k, method):
        simulation = coupled(method=method, tolerance=1e-13)
        simulation = simulation.with_parameters({"spring": {"stiffness_n_m_per_rad": k}})
        state, _ = simulation.rollout(
            simulation.init_state(), {"rotor": {"torque": 1.0}}, 100, record=()
        )
        return state.of("rotor")["angle"]

    def closed(k):
        def body(carry, _):
            angle, speed = carry
            speed = (J * speed + DT * (1.0 - k * angle)) / (J + DT * B + DT**2 * k)
            return (angle + DT * speed, speed), None

        return jax.lax.scan(body, (jnp.zeros(()), jnp.zeros(())), length=100)[0][0]

    expected = jax.grad(closed)(3.0)
    for method in sized(("gauss_seidel", "jacobi"), small=("jacobi",)):
        assert jax.grad(final_angle)(3.0, method) == pytest.approx(float(expected), rel=1e-9)
        forward = jax.jvp(lambda k: final_angle(k, method), (3.0,), (1.0,))[1]  # noqa: B023
        assert forward == pytest.approx(float(expected), rel=1e-9)


def test_single_precision_converges_with_the_default_tolerance(precision):
    run = coupled().run(steps=50, inputs={"rotor": {"torque": 1.0}})
    assert run["rotor"]["angle"].dtype.name == precision
    rtol = 1e-8 if precision == "float64" else 1e-4  # 1e-9 and 1e-5 a step, 50 steps, contracting
    np.testing.assert_allclose(run["rotor"]["angle"], implicit_spring(3.0, 50), rtol=rtol)


def test_a_slow_group_holds_between_its_firings():
    graph = GraphManager()
    graph.add_node(Rotor("fast", DT / 2, J, B))
    graph.add_node(Rotor("rotor", DT, J, B))
    graph.add_node(Spring("spring", DT, 3.0))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque")
    graph.add_external_input("rotor", "torque")
    graph.add_coupling_group(["rotor", "spring"], tolerance=1e-14)
    run = graph.compile().run(steps=40, inputs={"rotor": {"torque": 1.0}})
    np.testing.assert_allclose(run["rotor"]["angle"][::2], implicit_spring(3.0, 20), rtol=1e-11)
    np.testing.assert_array_equal(run["rotor"]["angle"][::2], run["rotor"]["angle"][1::2])
