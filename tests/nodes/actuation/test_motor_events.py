"""Dry friction in exact steps: against SciPy's events, gradients, precision, machine code."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from fitting.event_motor import EventMotor
from mime import Coulomb, Gear, GraphManager, Limits, MotorNode, StabilityWarning, Stribeck
from mime.control.linear_flow import Matrix2, response_integral
from mime.verification.benchmarks.motor_events import SMALL, with_events

TAU_C = 8e-4
NAMES = ("r_ohm", "l_henry", "kt_n_m_per_a", "inertia_kg_m2", "damping_n_m_s")
FRICTIONS = pytest.mark.parametrize(
    "friction",
    [partial(Coulomb, TAU_C), partial(Stribeck, TAU_C, 1.5e-3, 25.0)],  # in today's precision
    ids=["Coulomb", "Stribeck"],
)
FIELDS = ("angle", "angular_velocity", "current")


def motor(timestep=1e-3, **changes):
    options = {"command_mode": "voltage", "integrator": "exact", "friction": Coulomb(TAU_C)}
    return MotorNode("motor", timestep, **{**SMALL, **options, **changes})


def compiled(**changes):
    graph = GraphManager()
    graph.add_node(motor(**changes))
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def swinging(steps, dt=1e-3):
    """Volts at which the motor stops, sticks and turns back."""
    t = dt * np.arange(steps)
    return 1.2 * np.sin(2 * np.pi * 3 * t) + 0.5 * np.sin(40 * t)


def run(simulation, volts, factors=None):
    """Angle, speed and current after each step, with parameters times factors."""
    if factors is not None:
        node = simulation.nodes["motor"]
        values = {name: node.params[name] for name in NAMES}
        values |= {f"friction.{name}": x for name, x in node.friction.params.items()}
        if node.limits is not None:
            values["limits.current_a"] = node.limits.current_a
        pairs = zip(values.items(), factors, strict=True)
        simulation = simulation.with_parameters({f"motor.{n}": v * f for (n, v), f in pairs})
    inputs = {"motor": {"commanded_voltage": jnp.asarray(volts)}}
    _, found = simulation.rollout(
        simulation.init_state({}), inputs, steps=len(volts), record={"motor": list(FIELDS)}
    )
    return jnp.stack([found["motor"][name] for name in FIELDS])


def test_a_run_is_that_of_scipy_from_event_to_event():
    volts = swinging(60, 0.01)
    found = np.asarray(run(compiled(timestep=0.01), volts))
    x, changes, wanted = np.zeros(3), 0, []
    for V in volts:
        x, more = with_events(SMALL, TAU_C, "voltage", V, 0.0, x, 0.01)
        wanted.append(x)
        changes += more
    assert changes >= 4  # stops, and breaks away
    # 60 steps of the reference, each to 1e-12 but for events found in its dense output
    np.testing.assert_allclose(found.T, wanted, atol=1e-8)


def test_ten_short_steps_are_one_long_one():
    volts = np.array([1.0, -0.9, 0.05, -0.05, 0.6, 0.0])
    once = np.asarray(run(compiled(timestep=0.1), volts))
    tenth = np.asarray(run(compiled(timestep=0.01), np.repeat(volts, 10)))[:, 9::10]
    assert (once[1] == 0).any()  # it stands at times
    np.testing.assert_allclose(once, tenth, rtol=1e-11, atol=1e-12)  # some hundred roundings


def test_stribeck_friction_is_of_second_order():
    friction, volts = Stribeck(TAU_C, 1.5e-3, 25.0), swinging(300)
    x, changes, wanted = np.zeros(3), 0, []
    for V in volts:
        x, more = with_events(SMALL, friction_of(friction), "voltage", V, 0.0, x, 1e-3)
        wanted.append(x)
        changes += more
    assert changes >= 3  # breaks away, stops and breaks away
    errors = []
    for parts in (1, 2, 4, 8):
        simulation = compiled(timestep=1e-3 / parts, friction=friction)
        found = np.asarray(run(simulation, np.repeat(volts, parts)))[:, parts - 1 :: parts]
        errors.append(np.abs(found.T - wanted).max(axis=0))
    # Speeds of 60 rad/s in steps of 1 ms; about a quarter for each half of the step, as the error
    # hangs on where a stop falls in it.
    assert errors[0][1] < 0.5
    assert np.all(errors[-1] < errors[0] / 25)


@pytest.mark.parametrize("i_max", [0.05, 0.5, 1.5])
def test_a_current_reaches_and_leaves_its_limit_within_a_step(i_max):
    volts = np.repeat(np.random.default_rng(0).normal(0.0, 6.0, 40), 4)
    machine = EventMotor(*list(SMALL.values())[:5], lambda w: TAU_C, i_max)
    angle, current = machine.log(volts, 1e-3)
    assert machine.changes["limit"] >= 15
    assert machine.changes["release"] >= (5 if i_max == 1.5 else 0)
    found = np.asarray(run(compiled(limits=Limits(current_a=i_max)), volts))
    # The reference to 1e-11, but for events found in its dense output
    np.testing.assert_allclose(found[0][:-1], angle[1:], atol=1e-9)
    np.testing.assert_allclose(found[2][:-1], current[1:], atol=1e-9)


def test_a_limit_of_current_without_friction_is_that_of_no_friction_torque():
    volts, limits = 4 * swinging(200), Limits(torque_n_m=0.005)
    with_none = run(compiled(friction=None, limits=limits), volts)
    with_zero = run(compiled(friction=Coulomb(0.0), limits=limits), volts)
    np.testing.assert_allclose(with_zero, with_none, rtol=1e-11, atol=1e-12)  # roundings
    assert np.abs(with_none[2]).max() == pytest.approx(0.005 / SMALL["kt_n_m_per_a"])
    short = run(compiled(friction=None, limits=limits, timestep=1e-4), np.repeat(volts, 10))
    np.testing.assert_allclose(short[:, 9::10], with_none, rtol=1e-9, atol=1e-9)


def test_gradients_by_a_limit_of_current_are_central_differences():
    simulation, volts = compiled(limits=Limits(current_a=0.5)), 8 * swinging(100)

    def of_logs(logs):
        return run(simulation, volts, jnp.exp(logs))

    start = np.zeros(len(NAMES) + 2)  # friction and limit
    forward = np.asarray(jax.jit(jax.jacfwd(of_logs))(start))
    program, h = jax.jit(of_logs), 1e-6
    central = np.stack(
        [(program(h * e) - program(-h * e)) / (2 * h) for e in np.eye(len(start))], axis=-1
    )
    assert (np.abs(program(start)[2]) > 0.4999).any()
    # As above; where an event falls on the end of a step, differences see both of its sides.
    sizes = np.abs(central).max(axis=1)
    np.testing.assert_array_less(np.abs(forward - central).max(axis=1), 1e-5 * sizes)


def friction_of(stribeck):
    """tau_f of the speed, in NumPy."""
    tau_c, tau_s, w_s = (float(x) for x in stribeck.params.values())
    return lambda w: tau_c + (tau_s - tau_c) * np.exp(-((w / w_s) ** 2))


def test_the_integral_of_a_response_is_that_of_the_matrix_exponential():
    random = np.random.default_rng(0)
    kinds = {
        "any": random.normal(size=(40, 2, 2)) * 10 ** random.uniform(-3, 1, (40, 1, 1)),
        "stiff": np.array([[-1e-3, 1.0], [-50.0, -6000.0]])
        * 10 ** random.uniform(-6, -1, (40, 1, 1)),
    }
    kinds["singular"] = kinds["any"].copy()
    kinds["singular"][:, 1] = 0.3 * kinds["singular"][:, 0]
    for kind, matrices in kinds.items():
        for A in matrices:
            if np.linalg.eigvals(A).real.max() > 10:
                continue
            v, both = random.normal(size=2), np.zeros((4, 4))
            both[:2, :2], both[:2, 2], both[2, 3] = A, v, 1.0
            found = response_integral(Matrix2(*A.ravel()), *v, 1.0)
            wanted = expm(both)[0, 3]  # of the system with x_0's rate and time as states
            # some hundred roundings; of a small one over what it cancels from
            assert abs(found - wanted) < 1e-10 * max(abs(wanted), np.linalg.norm(v)), kind


def test_without_friction_torque_it_is_the_frictionless_step():
    volts = swinging(200)
    with_none = run(compiled(friction=None), volts)
    with_zero = run(compiled(friction=Coulomb(0.0)), volts)
    np.testing.assert_allclose(with_zero, with_none, rtol=1e-11, atol=1e-12)  # roundings


def count(friction):
    """Of the parameters that `run` varies."""
    return len(NAMES) + len(friction.params)


@FRICTIONS
def test_gradients_are_central_differences_both_ways(friction):
    simulation, volts = compiled(friction=friction()), swinging(200)

    def of_logs(logs):
        return run(simulation, volts, jnp.exp(logs))

    start = np.zeros(count(friction()))
    forward = np.asarray(jax.jit(jax.jacfwd(of_logs))(start))
    program, h = jax.jit(of_logs), 1e-6
    central = np.stack(
        [(program(h * e) - program(-h * e)) / (2 * h) for e in np.eye(len(start))], axis=-1
    )
    assert (np.asarray(program(start))[1] == 0).any()
    sizes = np.abs(central).max(axis=1)
    # 1e-16 / 1e-6 of the value over its sensitivity, which is 1e-3 of it for the inductance
    np.testing.assert_array_less(np.abs(forward - central).max(axis=1), 1e-5 * sizes)
    weights = np.random.default_rng(0).normal(size=forward.shape[:2])
    reverse = jax.jit(jax.grad(lambda logs: jnp.sum(weights * of_logs(logs))))(start)
    np.testing.assert_allclose(reverse, np.einsum("ij,ijk->k", weights, forward), rtol=1e-9)


@FRICTIONS
def test_a_batch_and_xla_give_what_machine_code_gives_alone(friction, monkeypatch):
    volts = swinging(100)
    simulation = compiled(friction=friction())
    assert simulation.backend.native
    factors = np.exp(0.3 * np.random.default_rng(0).normal(size=(5, count(friction()))))
    factors[:, len(NAMES) :] = factors[:, [-1]]  # the static torque stays above the other
    batch = jax.jit(jax.vmap(lambda f: run(simulation, volts, f)))(factors)
    alone = [run(simulation, volts, f) for f in factors]
    np.testing.assert_allclose(batch, alone, rtol=1e-12, atol=1e-14)  # the same operations
    monkeypatch.setenv("MIME_NATIVE", "off")
    other = compiled(friction=friction())
    assert not other.backend.native
    np.testing.assert_allclose(
        run(other, volts, factors[0]), alone[0], rtol=1e-9, atol=1e-11
    )  # roundings of other elementary functions, kept by an unstable stop here and there


@FRICTIONS
def test_single_precision_follows_double(friction, precision):
    volts = swinging(300).astype(precision)
    found = np.asarray(run(compiled(friction=friction()), volts))
    assert found.dtype == precision
    with jax.enable_x64(True):
        wanted = np.asarray(run(compiled(friction=friction()), volts.astype(float)))
    # 300 steps of some roundings of 6e-8 of a speed of 60 rad/s and an angle of some turns
    tolerance = 3e-4 if precision == "float32" else 1e-5
    np.testing.assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize(
    "changes",
    [
        {"gear": Gear(ratio=10.0, output_inertia_kg_m2=1e-5)},
        {"limits": Limits(supply_voltage_v=0.8)},
        {"command_mode": "auto"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_with_other_effects_it_is_the_limit_of_short_semi_implicit_steps(changes):
    inputs = {"commanded_voltage": 1.0, "load_torque": -1e-3}
    errors = []
    exact = motor(0.02, **changes)
    end = exact.update(exact.initial_state(), inputs, 0.02)
    for steps in (200, 400):
        node = motor(0.02 / steps, **changes, integrator="semi_implicit")
        update = jax.jit(lambda state, node=node: node.update(state, inputs, node.timestep))
        state = node.initial_state()
        for _ in range(steps):
            state = update(state)
        errors.append(abs(float(state["angular_velocity"] - end["angular_velocity"])))
    assert errors[1] < 0.02 * abs(float(end["angular_velocity"]))
    assert 1.7 < errors[0] / errors[1] < 2.3  # first order


def test_a_step_beyond_half_a_period_warns():
    slow = {"l_henry": 0.1, "r_ohm": 0.1}  # complex poles: half a period is 57 ms
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motor(0.05, **slow)
        motor(0.06, **slow, friction=None)
    with pytest.warns(StabilityWarning, match="half a period .* in voltage mode: .* 4 times"):
        motor(0.06, **slow)
