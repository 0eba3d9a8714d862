"""The motor side by side with MuJoCo's `dcmotor`.

MuJoCo integrates the current exactly (exponentially) and the joint by implicit Euler, so the two
differ by first order in the step; each tolerance is that of dt = 1e-5 s.
"""

import jax
import mujoco
import numpy as np
import pytest

from mime.nodes.actuation.motor import Cogging, Coulomb, Gear, Limits, MotorNode, Winding

DT = 1e-5
ELECTRICAL = 'motorconst="0.05" resistance="1" inductance="0.001"'


def theirs(attributes, duration, ctrl=0.0, inertia=1e-4, damping=5e-4, speed=0.0, dt=DT):
    """MuJoCo's joint speed after each step, its last angle, and the actuator's last activations."""
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option timestep="{dt}" gravity="0 0 0" integrator="implicitfast"/>
      <worldbody><body>
        <joint name="shaft" type="hinge" axis="0 0 1" damping="{damping}"/>
        <inertial mass="1" pos="0 0 0" diaginertia="{inertia} {inertia} {inertia}"/>
      </body></worldbody>
      <actuator><dcmotor joint="shaft" {attributes}/></actuator>
    </mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0] = speed
    data.ctrl[:] = ctrl
    speeds = []
    for _ in range(round(duration / dt)):
        mujoco.mj_step(model, data)
        speeds.append(data.qvel[0])
    return np.array(speeds), data.qpos[0], np.array(data.act)


def ours(duration, inputs, speed=0.0, dt=DT, inertia=1e-4, mode="voltage", **effects):
    """The state after each step."""
    node = MotorNode("motor", dt, inertia, 0.05, 1.0, 1e-3, 5e-4, command_mode=mode, **effects)
    start = node.initial_state()
    start["angular_velocity"] = start["angular_velocity"] + speed

    @jax.jit
    def scan(state):
        def step(state, _):
            state = node.update(state, inputs, dt)
            return state, state

        return jax.lax.scan(step, state, length=round(duration / dt))[1]

    return {name: np.asarray(value) for name, value in scan(start).items()}


def test_voltage_step():
    speeds, angle, act = theirs(ELECTRICAL, 0.2, ctrl=5.0)
    states = ours(0.2, {"commanded_voltage": 5.0})
    np.testing.assert_allclose(states["angular_velocity"], speeds, atol=2e-4 * speeds[-1])
    assert states["angle"][-1] == pytest.approx(angle, rel=1e-3)
    assert states["current"][-1] == pytest.approx(act[-1], rel=1e-3)


def test_gear_with_rotor_inertia_behind_it():
    # MuJoCo's joint is the output shaft; its armature is the rotor, reflected by N^2.
    N = 12.0
    gear = f'{ELECTRICAL} gear="{N}"'
    speeds, angle, _ = theirs(gear, 0.3, ctrl=5.0, inertia=2e-3 + 1e-4 * N**2, damping=5e-4 * N**2)
    states = ours(0.3, {"commanded_voltage": 5.0}, gear=Gear(N, output_inertia_kg_m2=2e-3))
    np.testing.assert_allclose(states["angular_velocity"] / N, speeds, atol=2e-4 * speeds[-1])
    assert states["angle"][-1] / N == pytest.approx(angle, rel=1e-3)


def test_cogging_torque():
    speeds, angle, _ = theirs(f'{ELECTRICAL} cogging="0.002 7 0.3"', 0.2, ctrl=1.0)
    states = ours(0.2, {"commanded_voltage": 1.0}, cogging=Cogging(0.002, 7.0, 0.3))
    # The ripple is 0.28 rad/s on 16.6; it has the same size and place.
    assert np.ptp(speeds[-5000:]) > 0.25
    np.testing.assert_allclose(states["angular_velocity"], speeds, atol=1e-3 * speeds[-1])
    assert states["angle"][-1] == pytest.approx(angle, rel=1e-3)


def test_winding_temperature_and_resistance():
    # A rotor of 1e4 kg m2 stands still. MuJoCo's activation is the rise above ambient.
    _, _, (rise, current) = theirs(
        f'{ELECTRICAL} thermal="10 3 0 0.00393 25 25"', 2.0, ctrl=5.0, inertia=1e4, dt=1e-3
    )
    winding = Winding(thermal_resistance_k_per_w=10.0, thermal_capacitance_j_per_k=3.0)
    states = ours(2.0, {"commanded_voltage": 5.0}, inertia=1e4, dt=1e-3, winding=winding)
    assert states["winding_temperature"][-1] - 25.0 == pytest.approx(rise, rel=1e-3)
    assert states["current"][-1] == pytest.approx(current, rel=1e-3)


def test_torque_limit():
    speeds, _, _ = theirs(f'{ELECTRICAL} saturation="0.05 0 0"', 0.3, ctrl=5.0)
    states = ours(0.3, {"commanded_voltage": 5.0}, limits=Limits(torque_n_m=0.05))
    # MuJoCo clips the torque and lets the current run on; we limit the current, as a drive does.
    # The two differ for a few L/R = 1 ms after the limit lets go.
    np.testing.assert_allclose(states["angular_velocity"], speeds, atol=5e-3 * speeds[-1])


def test_dry_friction_while_sliding_and_when_stopping():
    lugre = 'lugre="100 0.1 0.003 0.003 1"'
    speeds, _, _ = theirs(f"{ELECTRICAL} {lugre}", 0.3, ctrl=0.5)
    states = ours(0.3, {"commanded_voltage": 0.5}, friction=Coulomb(0.003))
    assert states["angular_velocity"][-1] == pytest.approx(speeds[-1], rel=1e-3)
    passive = f'motorconst="0" resistance="1" input="none" {lugre}'
    speeds, _, _ = theirs(passive, 0.6, speed=50.0)
    coasting = ours(0.6, {}, speed=50.0, mode="torque", friction=Coulomb(0.003))
    stop = np.argmax(coasting["angular_velocity"] == 0) * DT
    their_stop = np.argmax(np.abs(speeds) < 1e-2) * DT
    # LuGre's bristles give before they hold: 0.449 s against Coulomb's 0.4467 s, the closed form.
    assert their_stop == pytest.approx(stop, rel=0.01)
    assert coasting["angular_velocity"][-1] == 0.0
