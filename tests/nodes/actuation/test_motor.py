"""MotorNode as a node: names, modes, step order, refusals, transforms, precision, graph."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime.core.problem import InputError, ParameterError
from mime.nodes.actuation.friction import LoadFriction
from mime.nodes.actuation.motor import (
    Cogging,
    Coulomb,
    Gear,
    Limits,
    MotorMeta,
    MotorNode,
    Saturation,
    Stribeck,
    Winding,
    _quat_from_axis_angle,
    compose_pose,
)
from mime.running.graph import GraphManager

REFERENCE = {
    "inertia_kg_m2": 1e-4,
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 5e-4,
}
COGGING = Cogging(torque_n_m=1e-3, periods_per_turn=7.0)
WINDING = Winding(10.0, 5.0, max_temperature_c=125.0)
EFFECTS = {
    "gear": Gear(ratio=10.0, efficiency=0.8, output_inertia_kg_m2=1e-3),
    "friction": Stribeck(coulomb_torque_n_m=1e-3, static_torque_n_m=2e-3, velocity_rad_per_s=1.0),
    "cogging": COGGING,
    "saturation": Saturation(current_a=5.0),
    "winding": WINDING,
    "limits": Limits(supply_voltage_v=12.0, current_a=4.0, torque_n_m=0.15),
}
LINEAR_EFFECTS = EFFECTS | {
    "gear": Gear(ratio=10.0, output_inertia_kg_m2=1e-3),
    "friction": None,
    "limits": None,
}
COMMANDS = [
    {},
    {"commanded_torque": 0.01},
    {"commanded_voltage": 2.0},
    {"commanded_velocity": 10.0},
    {"commanded_torque": 0.01, "commanded_voltage": 2.0, "commanded_velocity": 3.0},
    {"commanded_voltage": -2.0, "commanded_velocity": 3.0, "load_torque": 0.003},
]
MODES = [("torque", 0.01), ("voltage", 2.0), ("velocity", 10.0)]


def motor(timestep=1e-4, **changes):
    return MotorNode("motor", timestep, **(REFERENCE | changes))


def final(node, inputs, steps, state=None):
    """The state after `steps` steps with constant inputs."""

    def step(state, _):
        return node.update(state, inputs, node.timestep), None

    return jax.lax.scan(step, node.initial_state() if state is None else state, length=steps)[0]


def _update(node, state, inputs, dt):
    return node.update(state, inputs, dt)


quick_update = jax.jit(_update, compiler_options=QUICK)


def written_out(state, inputs, dt, J, kt, R, L, b, kp=1e-3, ki=1e-2):
    """MIME-NODE-100's formulas, written out."""
    u = {name: inputs.get(name, 0.0) for name in ("commanded_torque", "commanded_voltage")}
    w_des, load = inputs.get("commanded_velocity", 0.0), inputs.get("load_torque", 0.0)
    theta, w, i = state["angle"], state["angular_velocity"], state["current"]
    integral = state["velocity_integral_error"]
    torque = u["commanded_torque"] != 0
    voltage = jnp.logical_not(torque) & (u["commanded_voltage"] != 0)
    velocity = jnp.logical_not(torque | voltage) & (w_des != 0)
    integral = jnp.where(velocity, integral + (w_des - w) * dt, integral)
    tau_pi = kp * (w_des - w) + ki * integral
    i = jnp.where(voltage, (i + dt / L * (u["commanded_voltage"] - kt * w)) / (1 + dt * R / L), 0.0)
    tau_cmd = jnp.where(velocity, tau_pi, jnp.where(voltage, 0.0, u["commanded_torque"]))
    tau_drive = tau_cmd + kt * i + load
    w = (J * w + dt * tau_drive) / (J + dt * b)
    return {
        "angle": theta + w * dt,
        "angular_velocity": w,
        "current": i,
        "velocity_integral_error": integral,
    }


AS_FOR_USERS = {"xla_backend_optimization_level": 3}


@pytest.mark.small(
    "commanded_torque", "commanded_voltage+commanded_velocity+load_torque", "commanded_velocity"
)
@pytest.mark.parametrize("inputs", COMMANDS, ids=lambda u: "+".join(u) or "none")
def test_without_effects_the_result_is_the_formulas_to_the_last_bit(inputs):
    node = motor()
    leaves = [jnp.asarray(value) for value in REFERENCE.values()]
    arrays = {name: jnp.asarray(value) for name, value in inputs.items()}
    literal = jax.jit(
        lambda state, u, *p: written_out(state, u, 1e-4, *p), compiler_options=AS_FOR_USERS
    )
    update = jax.jit(node.update, compiler_options=AS_FOR_USERS)
    state = expected = node.initial_state() | {"angular_velocity": jnp.asarray(3.0)}
    for _ in range(200):
        state = update(state, arrays, 1e-4)
        expected = literal(expected, arrays, *leaves)
    assert {name: float(v) for name, v in state.items()} == {
        n: float(v) for n, v in expected.items()
    }


def test_the_fields_inputs_and_fluxes_are_those_of_mime_node_100():
    node = motor()
    assert (
        node.state_fields() == node.observable_fields() == ["angle", "angular_velocity", "current"]
    )
    assert list(node.initial_state()) == [*node.state_fields(), "velocity_integral_error"]
    spec = node.boundary_input_spec()
    assert {name: (entry.shape, entry.coupling) for name, entry in spec.items()} == {
        "commanded_torque": ((), "additive"),
        "commanded_voltage": ((), "replacive"),
        "commanded_velocity": ((), "replacive"),
        "parent_pose_world": ((7,), "replacive"),
        "load_torque": ((), "additive"),
    }
    assert spec["parent_pose_world"].default_value().tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert {"rotor_angle", "rotor_angular_velocity", "rotor_pose_world"} <= set(
        node.boundary_flux_spec()
    )
    positional = MotorNode("m", 1e-3, 1e-4, 0.05, 1.0, 1e-3, 5e-4, 0.05, (0, 1, 0))
    assert positional.params["axis_in_parent_frame"].tolist() == [0, 1, 0]
    assert float(node.ke_v_s_per_rad) == float(node.kt_n_m_per_a)
    assert (float(node.velocity_kp), float(node.velocity_ki)) == (1e-3, 1e-2)


@pytest.mark.parametrize("options", [{}, EFFECTS], ids=["plain", "effects"])
def test_metadata_is_whole_and_agrees_with_the_node(options):
    node = motor(**options)
    assert node.validate_mime_consistency() == []
    assert isinstance(node.meta, MotorMeta)
    assert node.meta.id == "MIME-NODE-100"
    assert not node.meta.has_cogging
    assert not node.meta.has_imbalance_vibration
    assert node.effective_meta().has_cogging == bool(options)


def test_an_eager_loop_gives_the_same_as_a_scan():
    node, inputs = MotorNode("motor", 1e-4, **REFERENCE), {"commanded_torque": 0.01}

    def step(state, _):
        state = node.update(state, inputs, 1e-4)
        return state, state["angular_velocity"]

    state, speeds = node.initial_state(), []
    for _ in range(300):
        state, speed = step(state, None)
        speeds.append(float(speed))
    _, scanned = jax.lax.scan(step, node.initial_state(), length=300)
    np.testing.assert_allclose(speeds, scanned, rtol=1e-14)  # compiled apart: not to the last bit


def test_torque_wins_over_voltage_and_voltage_over_velocity():
    node = motor()
    for inputs, same_as in (
        ({"commanded_torque": 0.01, "commanded_voltage": 9.0, "commanded_velocity": 9.0}, "torque"),
        ({"commanded_voltage": 2.0, "commanded_velocity": 9.0}, "voltage"),
    ):
        alone = {f"commanded_{same_as}": inputs[f"commanded_{same_as}"]}
        assert float(final(node, inputs, 10)["angle"]) == float(final(node, alone, 10)["angle"])


@pytest.mark.small("exact")
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
def test_a_fixed_mode_equals_auto_while_its_command_is_not_zero(integrator):
    auto, start = motor(integrator=integrator), {"angular_velocity": jnp.asarray(3.0)}
    for mode, value in MODES:
        inputs = dict.fromkeys(("commanded_torque", "commanded_voltage", "commanded_velocity"), 0.0)
        inputs |= {f"commanded_{mode}": value, "load_torque": 0.001}
        fixed = motor(command_mode=mode, integrator=integrator)
        state = expected = auto.initial_state() | start
        for _ in range(20):
            expected = quick_update(auto, expected, inputs, 1e-3)
            state = quick_update(fixed, state, inputs, 1e-3)
        for name, value in expected.items():
            np.testing.assert_allclose(state[name], value, rtol=1e-13, atol=1e-300)


def test_a_fixed_mode_obeys_a_command_of_zero():
    state = motor().initial_state() | {"angular_velocity": jnp.asarray(50.0)}
    brake = final(motor(command_mode="voltage"), {"commanded_voltage": 0.0}, 1000, state)
    hold = final(motor(command_mode="velocity", velocity_kp=0.01), {}, 1000, state)
    coast = final(motor(), {"commanded_voltage": 0.0}, 1000, state)
    assert brake["angular_velocity"] < 5
    assert hold["angular_velocity"] < 5
    assert coast["angular_velocity"] > 30


def test_the_integral_is_frozen_and_the_current_zero_outside_their_modes():
    node = motor()
    state = final(node, {"commanded_velocity": 10.0}, 100)
    integral = float(state["velocity_integral_error"])
    state = final(node, {"commanded_voltage": 2.0}, 100, state)
    assert float(state["velocity_integral_error"]) == integral
    assert state["current"] > 0
    state = node.update(state, {"commanded_torque": 0.01}, 1e-4)
    assert state["current"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inertia_kg_m2": -1e-4}, "inertia_kg_m2 must be > 0 kg·m², got -0.0001"),
        ({"l_henry": 0.0}, "l_henry must be > 0 H where a voltage can be commanded"),
        ({"axis_in_parent_frame": (0, 0, 0)}, "axis_in_parent_frame must have a length > 0"),
        ({"axis_in_parent_frame": (0, 1)}, r"axis_in_parent_frame must have shape \(3,\), got"),
        (
            {"tool_offset_in_rotor_frame": (0, 0, 0, 0, 0, 0, 0)},
            "tool_offset_in_rotor_frame must have a quaternion of length > 0",
        ),
        ({"ke_v_s_per_rad": 0.06}, "ke_v_s_per_rad must equal kt_n_m_per_a = 0.05 within 1%.*0.06"),
        ({"command_mode": "speed"}, "command_mode must be one of 'auto', 'torque', 'voltage', 'v"),
        (
            {"integrator": "euler"},
            "integrator must be one of 'semi_implicit', 'exact', got 'euler'",
        ),
        (
            {"friction": LoadFriction(0.1, 0.2), "integrator": "exact"},
            "friction must be Coulomb, Stribeck or None with integrator 'exact', got a LoadFric",
        ),
        (
            {"gear": EFFECTS["gear"], "integrator": "exact"},
            "gear.efficiency must be None with integrator 'exact'",
        ),
        (
            {"limits": Limits(5.0), "integrator": "exact", "command_mode": "velocity"},
            "limits must be None with integrator 'exact'",
        ),
        (
            {"limits": Limits(5.0), "r_ohm": 0.0, "command_mode": "velocity"},
            "r_ohm must be > 0 Ω with limits.supply_voltage_v",
        ),
        ({"r_ohm": float("nan")}, "r_ohm must be >= 0 Ω, got nan"),
        ({"timestep": 0.0}, "timestep must be > 0 s, got 0"),
    ],
)
def test_bad_parameters_are_refused_by_name_value_and_range(changes, message):
    with pytest.raises(ParameterError, match=message):
        motor(**changes)


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        (lambda: Gear(0.0), "Gear: ratio must be > 0, got 0"),
        (lambda: Gear(2.0, efficiency=1.2), "Gear: efficiency must be > 0 and <= 1, got 1.2"),
        (lambda: Stribeck(0.2, 0.1, 1.0), "static_torque_n_m must be >= coulomb_torque_n_m = 0.2"),
        (lambda: Coulomb("much"), r"torque_n_m must be a number \[N·m\], got 'much'"),
        (Limits, "Limits: needs at least one of supply_voltage_v, current_a, torque_n_m"),
    ],
)
def test_an_effect_is_refused_by_itself(effect, message):
    with pytest.raises(ParameterError, match=message):
        effect()


def test_all_that_is_wrong_is_told_at_once_each_at_its_place():
    with pytest.raises(ParameterError) as caught:
        motor(
            l_henry=0.0, integrator="exact", friction=LoadFriction(0.1, 0.2), gear=EFFECTS["gear"]
        )
    places = {problem.place for problem in caught.value.problems}
    assert places == {("l_henry",), ("friction",), ("gear", "efficiency")}


def test_a_parameter_of_an_effect_has_an_address():
    node = motor(**EFFECTS).with_params(**{"gear.ratio": 7.0, "friction.static_torque_n_m": 3e-3})
    assert float(node.gear.ratio) == 7.0
    assert float(node.friction.static_torque_n_m) == 3e-3
    with pytest.raises(ParameterError, match=r"gear\.ratio must be > 0, got -1"):
        node.with_params(**{"gear.ratio": -1.0})
    with pytest.raises(ParameterError, match="has no gear"):
        motor().with_params(**{"gear.ratio": 7.0})


def test_a_trajectory_tells_the_parameters_of_effects():
    graph = GraphManager()
    graph.add_node(motor(gear=Gear(ratio=10.0)))
    told = graph.compile().run(steps=1, progress=False).parameters["motor"]
    assert float(told["gear.ratio"]) == 10.0
    assert "gear.efficiency" not in told


def test_zero_inductance_and_a_mismatched_ke_are_accepted_where_they_make_sense():
    motor(l_henry=0.0, command_mode="torque")
    motor(l_henry=0.0, command_mode="velocity", integrator="exact")
    motor(ke_v_s_per_rad=0.0503)
    odd = motor(ke_v_s_per_rad=0.08, allow_ke_kt_mismatch=True)
    assert float(odd.ke_v_s_per_rad) == 0.08


def test_a_new_kt_takes_ke_along_unless_ke_was_given():
    assert float(motor().with_params(kt_n_m_per_a=0.07).ke_v_s_per_rad) == pytest.approx(0.07)
    given = motor(ke_v_s_per_rad=0.05, allow_ke_kt_mismatch=True).with_params(kt_n_m_per_a=0.07)
    assert float(given.ke_v_s_per_rad) == pytest.approx(0.05)


def test_a_quaternion_is_scaled_to_unit_length_and_one_of_zero_refused():
    node = motor(tool_offset_in_rotor_frame=(0, 0, 0, 2, 0, 0, 0))
    assert node.tool_offset_in_rotor_frame.tolist() == [0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(ParameterError, match="axis must have a length > 0"):
        _quat_from_axis_angle((0.0, 0.0, 0.0), 1.0)
    with pytest.raises(ParameterError, match="parent_pose's quaternion must have a length > 0"):
        compose_pose((0, 0, 0, 0, 0, 0, 0), (0, 0, 1), 1.0, (0, 0, 0, 1, 0, 0, 0))


def test_an_unknown_input_is_refused_with_the_known_ones():
    node = motor()
    with pytest.raises(InputError, match="commanded_torque"):
        node.update(node.initial_state(), {"comanded_torque": 0.01}, 1e-4)


def test_a_batch_of_different_motors_is_one_vmap():
    nodes = [motor(r_ohm=R, kt_n_m_per_a=k) for R, k in ((1.0, 0.05), (2.0, 0.03), (0.5, 0.1))]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nodes)
    inputs = {"commanded_voltage": 2.0}
    together = jax.vmap(lambda node: final(node, inputs, 100))(batch)
    for n, node in enumerate(nodes):
        alone = final(node, inputs, 100)
        for name, value in alone.items():
            np.testing.assert_allclose(together[name][n], value, rtol=1e-13)


@pytest.mark.small(
    "torque-0.01-True-semi_implicit", "voltage-2.0-True-exact", "velocity-10.0-False-exact"
)
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(("mode", "value"), MODES)
def test_single_precision_stays_single(extended, mode, value, integrator):
    effects = LINEAR_EFFECTS if integrator == "exact" else EFFECTS
    options = effects if extended else {}
    node = single(motor(**options, integrator=integrator))
    state = single(node.initial_state())
    for command in (value, np.float32(value)):
        inputs = {f"commanded_{mode}": command}
        new = jax.eval_shape(node.update, state, inputs, 1e-4)
        fluxes = jax.eval_shape(node.compute_boundary_fluxes, new, inputs, 1e-4)
        assert {v.dtype for v in (*new.values(), *fluxes.values())} == {jnp.dtype("float32")}


@pytest.mark.small("velocity-10.0")
@pytest.mark.parametrize(("mode", "value"), MODES)
def test_single_precision_agrees_with_double(mode, value):
    inputs = {f"commanded_{mode}": value}
    for integrator in ("semi_implicit", "exact"):
        node = motor(1e-3, integrator=integrator, command_mode=mode)
        run = jax.jit(lambda node, state: final(node, inputs, 100, state), compiler_options=QUICK)
        double = run(node, node.initial_state())
        floats = run(single(node), single(node.initial_state()))
        for name, v in floats.items():
            np.testing.assert_allclose(v, double[name], rtol=1e-5)  # 100 roundings of 6e-8


def single(tree):
    """The same leaves in single precision."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


PARAMETERS = ("inertia_kg_m2", "kt_n_m_per_a", "r_ohm", "l_henry", "damping_n_m_s")


@pytest.mark.small("torque-0.01-semi_implicit", "voltage-2.0-exact", "velocity-10.0-semi_implicit")
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
@pytest.mark.parametrize(("mode", "value"), MODES)
def test_gradients_of_the_final_speed_agree_with_central_differences(mode, value, integrator):
    names = (*PARAMETERS, "ke_v_s_per_rad", "velocity_kp", "velocity_ki")
    node = motor(1e-3, command_mode=mode, integrator=integrator, allow_ke_kt_mismatch=True)
    node = node.with_params(ke_v_s_per_rad=0.05)
    start = {"angle": 0.1, "angular_velocity": 1.0, "current": 0.2, "velocity_integral_error": 0.01}

    def final_speed(x):
        changed = node.with_params(**{name: x[name] for name in names})
        inputs = {f"commanded_{mode}": x["command"], "load_torque": x["load"]}
        state = {name: x[name] for name in start}
        return final(changed, inputs, 50, state)["angular_velocity"]

    x = {name: node.params[name] for name in names} | start | {"command": value, "load": -1e-3}
    x = {name: jnp.asarray(v, dtype=float) for name, v in x.items()}
    speed_and_gradient = jax.jit(jax.value_and_grad(final_speed), compiler_options=QUICK)
    speed, gradient = speed_and_gradient(x)
    for name, v in x.items():
        h = 1e-5 * abs(float(v))
        high, low = (speed_and_gradient(x | {name: v + d})[0] for d in (h, -h))
        # Central differences: h^2 of truncation, 1e-16 / 1e-5 of rounding, relative to w / v.
        scale = abs(float(speed) / float(v))
        difference = (high - low) / (2 * h)
        np.testing.assert_allclose(gradient[name], difference, rtol=1e-6, atol=1e-8 * scale)


def test_gradients_are_finite_with_every_effect_even_at_standstill():
    node = motor(**EFFECTS)
    state = node.initial_state()
    names = ("commanded_torque", "commanded_voltage", "commanded_velocity", "load_torque")

    def total(node, omega, inputs):
        inputs = dict(zip(names, inputs, strict=True))
        after = node.update(state | {"angular_velocity": omega}, inputs, 1e-4)
        fluxes = node.compute_boundary_fluxes(after, inputs, 1e-4)
        return sum(jnp.sum(value) for value in (*after.values(), *fluxes.values()))

    cases = [(w, *(u.get(name, 0.0) for name in names)) for w in (0.0, 3.0) for u in COMMANDS]
    omegas, inputs = np.array(cases)[:, 0], np.array(cases)[:, 1:]
    gradient = jax.vmap(jax.grad(total, argnums=(0, 1, 2)), in_axes=(None, 0, 0))
    gradients = jax.jit(gradient, compiler_options=QUICK)(node, omegas, inputs)
    for leaf in jax.tree.leaves(gradients):
        assert np.all(np.isfinite(leaf))


def test_exact_gradients_are_finite_at_equal_poles():
    J, L, R, b = 1e-4, 1e-3, 1.0, 5e-4
    k = float(np.sqrt(J * L) * abs(R / L - b / J) / 2)  # makes the two poles equal
    node = motor(1e-3, kt_n_m_per_a=k, integrator="exact", command_mode="voltage")

    @partial(jax.jit, compiler_options=QUICK)
    @jax.value_and_grad
    def speed(node):
        state = node.initial_state() | {"current": jnp.asarray(0.5)}
        return MotorNode.update(node, state, {"commanded_voltage": 1.0}, 3e-3)["angular_velocity"]

    h, (_, gradient) = 1e-6, speed(node)
    high, low = (speed(node.with_params(r_ohm=R + d))[0] for d in (h, -h))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    # Rounding of a speed near 1 over 2 h is 1e-10.
    assert float(gradient.r_ohm) == pytest.approx(float((high - low) / (2 * h)), rel=1e-6)


def test_a_graph_runs_the_motor_with_external_torque_and_parent_pose():
    node = motor(tool_offset_in_rotor_frame=(0.1, 0, 0, 1, 0, 0, 0))
    graph = GraphManager()
    graph.add_node(node)
    graph.add_external_input("motor", "commanded_torque")
    graph.add_external_input("motor", "parent_pose_world")
    simulation = graph.compile()
    pose = np.array([1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0])
    inputs = {"motor": {"commanded_torque": 0.01, "parent_pose_world": pose}}
    _state, fluxes = simulation.step(simulation.init_state(), inputs)
    alone = node.update(node.initial_state(), inputs["motor"], 1e-4)
    expected = node.compute_boundary_fluxes(alone, inputs["motor"], 1e-4)
    for name, value in expected.items():
        np.testing.assert_allclose(fluxes["motor"][name], value, rtol=1e-14, atol=1e-300)
    _final_state, recorded = simulation.rollout(simulation.init_state(), inputs, steps=200)
    reference = final(node, inputs["motor"], 200)
    speed = recorded["motor"]["rotor_angular_velocity"][-1]
    np.testing.assert_allclose(speed, reference["angular_velocity"], rtol=1e-13)


def test_a_batch_in_a_graph_equals_its_members_alone():
    graph = GraphManager()
    graph.add_node(motor(command_mode="voltage"))
    graph.add_external_input("motor", "commanded_voltage")
    simulation = graph.compile()
    kt = np.array([0.03, 0.05, 0.1])
    batch = simulation.run_batch(
        steps=100,
        inputs={"motor": {"commanded_voltage": 2.0}},
        parameters={"motor": {"kt_n_m_per_a": kt}},
        progress=False,
    )
    speeds = np.asarray(batch["motor"]["rotor_angular_velocity"])[:, -1]
    for k, speed in zip(kt, speeds, strict=True):  # ke follows kt in the batch as it does alone
        node = motor(command_mode="voltage", kt_n_m_per_a=k)
        alone = final(node, {"commanded_voltage": 2.0}, 100)["angular_velocity"]
        assert speed == pytest.approx(float(alone), rel=1e-13)
