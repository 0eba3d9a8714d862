"""A motor whose rotor is part of the mechanism: against the free motor, closed forms, energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elements import Rotor
from mime.core.problem import InputError, ParameterError
from mime.nodes.actuation.motor import Cogging, Coulomb, Gear, Limits, MotorNode, Winding
from mime.running.graph import GraphManager

MOTOR = {
    "inertia_kg_m2": 1e-4,
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 0.0,
}
DAMPING = 5e-4
COMMANDS = [("torque", 0.01), ("voltage", 2.0), ("velocity", 10.0)]
GEAR = {"gear": Gear(ratio=20.0, output_inertia_kg_m2=2e-2)}
SUPPLY = {"limits": Limits(supply_voltage_v=12.0, current_a=1.5, torque_n_m=0.06)}


def motor(timestep=1e-4, shaft="driven", **changes):
    return MotorNode("motor", timestep, shaft=shaft, **(MOTOR | changes))


def driven_rotor(node, damping, iterated=False):
    """The motor on a plain inertia, J w' = tau - b w: the rotor's own, seen at the shaft."""
    graph = GraphManager()
    graph.add_node(node)
    graph.add_node(Rotor("load", node.timestep, node.reflected_inertia(), damping))
    graph.add_edge("load", "motor", "speed", "shaft_velocity", delay=not iterated)
    graph.add_edge("motor", "load", "shaft_torque", "torque")
    if iterated:
        graph.add_coupling_group(["motor", "load"], tolerance=1e-13)
    graph.add_external_input("motor", f"commanded_{node.command_mode}")
    return graph.compile()


def free(node, inputs, steps):
    """The states of a motor alone after each step."""

    @jax.jit
    def states():
        step = lambda state, _: (node.update(state, inputs, node.timestep),) * 2  # noqa: E731
        return jax.lax.scan(step, node.initial_state(), length=steps)[1]

    return states()


def speed_after_a_step_of_2_v(t):
    """The two exponentials of (w, i)' = A (w, i) + (0, V/L)."""
    A = np.array([[-DAMPING / 1e-4, 0.05 / 1e-4], [-0.05 / 1e-3, -1.0 / 1e-3]])
    rest = np.linalg.solve(A, [0.0, -2.0 / 1e-3])
    poles, modes = np.linalg.eig(A)
    amplitudes = modes[0] * np.linalg.solve(modes, -rest)
    return rest[0] + np.exp(np.outer(t, poles)) @ amplitudes


@pytest.mark.small("torque-0.01-plain", "voltage-2.0-gear", "velocity-10.0-limits")
@pytest.mark.parametrize("extras", [{}, GEAR, SUPPLY], ids=["plain", "gear", "limits"])
@pytest.mark.parametrize(("mode", "value"), COMMANDS)
def test_on_a_plain_inertia_it_is_the_free_motor(mode, value, extras):
    """The same arithmetic, but for the gear's N and a limiting supply, which is explicit here."""
    options = {"command_mode": mode, **extras}
    if "limits" in extras:
        value *= 20
    N = float(extras["gear"].ratio) if "gear" in extras else 1.0
    run = driven_rotor(motor(**options), DAMPING * N**2).run(
        steps=500, inputs={"motor": {f"commanded_{mode}": value}}
    )
    alone = motor(shaft="free", **(options | {"damping_n_m_s": DAMPING}))
    states = free(alone, {f"commanded_{mode}": jnp.asarray(value)}, 500)
    held = mode != "voltage" and "limits" in extras  # dt kt ke / (J R) = 0.0025
    np.testing.assert_allclose(
        run["load"]["speed"] * N, states["angular_velocity"], rtol=5e-3 if held else 1e-12
    )
    np.testing.assert_allclose(run["motor"]["current"], states["current"], rtol=1e-11, atol=1e-15)
    # The motor turns by the speed that it was given: it is one step behind the mechanism.
    np.testing.assert_allclose(run["motor"]["angle"][1:], run["load"]["angle"][:-1] * N, rtol=1e-12)


@pytest.mark.small("False-exact", "True-semi_implicit")
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
@pytest.mark.parametrize("iterated", [False, True])
def test_it_converges_to_the_free_motors_closed_form_with_first_order(integrator, iterated):
    errors = []
    for steps in (200, 400):
        node = motor(
            0.05 / steps, command_mode="voltage", integrator=integrator, damping_n_m_s=DAMPING
        )
        run = driven_rotor(node, 0.0, iterated).run(
            steps=steps, inputs={"motor": {"commanded_voltage": 2.0}}
        )
        expected = speed_after_a_step_of_2_v(run.time)
        errors.append(np.max(np.abs(run["load"]["speed"] - expected)))
        if iterated:
            np.testing.assert_allclose(run["motor"]["angle"], run["load"]["angle"], rtol=1e-10)
    assert errors[1] < 0.01 * expected[-1]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(("integrator", "tolerance"), [("exact", 1e-12), ("semi_implicit", 5e-3)])
def test_a_locked_rotor_draws_v_over_r_by_the_time_constant_l_over_r(integrator, tolerance):
    """i = V/R (1 - e^(-R t/L)); semi-implicit Euler errs by dt R / (2 e L) = 1.8e-3 of V/R."""
    node = motor(1e-5, command_mode="voltage", integrator=integrator)
    states = free(node, {"commanded_voltage": jnp.asarray(3.0)}, 500)
    t = 1e-5 * np.arange(1, 501)
    np.testing.assert_allclose(
        states["current"], 3.0 * (1 - np.exp(-t / 1e-3)), atol=3.0 * tolerance, rtol=0
    )
    assert np.all(np.asarray(states["angle"]) == 0.0)


def test_a_turning_shaft_takes_its_back_emf_from_the_voltage():
    """Steady state: R i = V - ke N w, tau_s = N (kt i - b N w)."""
    node = motor(1e-2, command_mode="voltage", integrator="exact", damping_n_m_s=1e-4, **GEAR)
    inputs = {"commanded_voltage": 6.0, "shaft_velocity": 3.0}
    state = node.initial_state()
    for _ in range(3):  # 30 time constants
        state = node.update(state, inputs, 1e-2)
    i = (6.0 - 0.05 * 20 * 3.0) / 1.0
    assert float(state["current"]) == pytest.approx(i, rel=1e-12)
    assert float(state["angle"]) == pytest.approx(20 * 3.0 * 3e-2)
    fluxes = node.compute_boundary_fluxes(state, inputs, 1e-2)
    assert float(fluxes["shaft_torque"]) == pytest.approx(20 * (0.05 * i - 1e-4 * 60), rel=1e-12)
    assert float(fluxes["output_angular_velocity"]) == pytest.approx(3.0)
    assert float(node.reflected_inertia()) == pytest.approx(20**2 * 1e-4 + 2e-2)


def test_electrical_power_is_heat_magnetic_energy_and_work_on_the_shaft():
    """∫ V i = ∫ R i² + L i²/2 + ∫ tau_s w_s: the mechanism holds the rotor's energy."""
    node = motor(1e-6, command_mode="voltage", integrator="exact", gear=Gear(5.0))
    t = 1e-6 * np.arange(1, 5001)
    speed = jnp.asarray(10.0 * np.sin(500 * t))

    @jax.jit
    def run():
        def step(state, w):
            inputs = {"commanded_voltage": 4.0, "shaft_velocity": w}
            state = node.update(state, inputs, 1e-6)
            fluxes = node.compute_boundary_fluxes(state, inputs, 1e-6)
            return state, (state["current"], fluxes["shaft_torque"])

        return jax.lax.scan(step, node.initial_state(), speed)[1]

    i, torque = (np.asarray(x) for x in run())
    electrical, heat = 4.0 * i, 1.0 * i**2
    balance = np.sum(electrical - heat - torque * np.asarray(speed)) * 1e-6 - 0.5e-3 * i[-1] ** 2
    assert abs(balance) < 1e-3 * np.sum(electrical) * 1e-6  # a rectangle rule, first order


@pytest.mark.parametrize(("w", "e"), [(2.0, 0.8), (-2.0, 1 / 0.8), (0.0, 0.8)])
def test_gear_losses_oppose_the_flow_of_power(w, e):
    node = motor(command_mode="torque", gear=Gear(ratio=10.0, efficiency=0.8))
    inputs = {"commanded_torque": 0.02, "shaft_velocity": w}
    state = node.update(node.initial_state(), inputs, 1e-4)
    fluxes = node.compute_boundary_fluxes(state, inputs, 1e-4)
    assert float(fluxes["shaft_torque"]) == pytest.approx(e * 10 * 0.02, rel=1e-12)


def test_limits_and_cogging_are_in_the_shafts_torque():
    node = motor(
        command_mode="torque",
        limits=Limits(torque_n_m=0.015),
        cogging=Cogging(torque_n_m=2e-3, periods_per_turn=7.0, phase_rad=0.3),
        damping_n_m_s=1e-4,
    )
    inputs = {"commanded_torque": 0.02, "shaft_velocity": 4.0}
    state = node.update(node.initial_state(), inputs, 1e-4)
    torque = node.compute_boundary_fluxes(state, inputs, 1e-4)["shaft_torque"]
    cogging = 2e-3 * np.sin(7 * 4.0e-4 + 0.3)
    assert float(torque) == pytest.approx(0.015 - 1e-4 * 4.0 + cogging, rel=1e-12)


@pytest.mark.small("float64-False-exact", "float32-True-semi_implicit", "float32-False-exact")
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
@pytest.mark.parametrize("plain", [True, False])
def test_metadata_agrees_and_precision_is_kept(precision, integrator, plain):
    effects = {"gear": Gear(20.0, 0.9, 2e-2), "limits": Limits(12.0, 1.5, 0.06)}
    node = motor(integrator=integrator, **({} if plain else effects))
    assert node.validate_mime_consistency() == []
    inputs = {"commanded_voltage": 2.0, "shaft_velocity": 1.0}
    state = node.update(node.initial_state(), inputs, 1e-4)
    fluxes = node.compute_boundary_fluxes(state, inputs, 1e-4)
    assert {str(x.dtype) for x in (*state.values(), *fluxes.values())} == {precision}
    assert state.keys() == node.state_spec().keys()
    assert fluxes.keys() == node.boundary_flux_spec().keys()


def test_a_warm_winding_draws_less():
    hot = motor(1e-3, command_mode="voltage", winding=Winding(10.0, 5.0))
    states = free(hot, {"commanded_voltage": jnp.asarray(3.0)}, 20_000)
    T, i = (float(states[n][-1]) for n in ("winding_temperature", "current"))
    assert T > 40.0
    assert i == pytest.approx(3.0 / (1 + 0.00393 * (T - 25)), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"shaft": "loose"}, "shaft must be one of 'free', 'driven', got 'loose'"),
        ({"friction": Coulomb(1e-3)}, "must be None with shaft 'driven'.*got Coulomb. Give the"),
    ],
)
def test_what_the_mechanism_must_carry_is_refused(changes, says):
    with pytest.raises(ParameterError, match=says):
        motor(**changes)


def test_each_shaft_has_its_own_input():
    with pytest.raises(InputError, match=r"no input 'load_torque'.*'shaft_velocity'"):
        motor().update(motor().initial_state(), {"load_torque": 1.0}, 1e-4)
    with pytest.raises(InputError, match="no input 'shaft_velocity'"):
        motor(shaft="free").update(motor().initial_state(), {"shaft_velocity": 1.0}, 1e-4)
    assert "shaft_torque" not in motor(shaft="free").boundary_flux_spec()
    assert "reaction_torque" not in motor().boundary_flux_spec()  # the mechanism's own
