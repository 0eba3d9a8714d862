"""Friction that grows with the load, learnt from logs that other code has made."""

import numpy as np
import pinocchio as pin
import pytest

import mime
from fitting.arms import Rig, columns, graph_of
from fitting.motors import NAMES, PERIOD, TRUE
from fitting.test_missing import LOADED, log_with
from mime.fitting.bounded import Region
from mime.models import model_path

URDF = str(model_path("planar_arm_3link"))
DRY, SHARE = np.array([0.3, 0.2, 0.1]), np.array([0.25, 0.2, 0.15])


class Rubbing(Rig):
    """Joints whose friction is DRY and SHARE of the motor's torque: tau = r + k |tau| sign(q̇)."""

    def read(self, seed, time, q, felt, dry=0.0):
        clean = Rig(self.model, self.friction, self.middle, *self.noise)
        clean.noise = (self.noise[0], 0.0)
        log = clean.read(seed, time, q, felt, DRY)
        random = np.random.default_rng(seed)
        for j in range(3):
            r, way = log[f"tau{j}"], np.sign(felt[1][:, j])
            tau = r / (1.0 - SHARE[j] * np.sign(r) * way)
            log[f"tau{j}"] = tau + self.noise[1] * random.normal(size=len(tau))
        return log


@pytest.mark.parametrize("reach", [1.0, 4.0])
def test_inverse_dynamics_learns_friction_by_the_motors_torque(reach, monkeypatch):
    """Whether a round's step is right or four times too long, of which a part must be taken."""
    least = Region.least

    def beyond(region, W, aim, at=None):
        before = region.start if at is None else at
        step = reach * (least(region, W, aim, at) - before)
        return np.clip(before + step, region.low, region.high)

    monkeypatch.setattr(Region, "least", beyond)
    arm = Rubbing(pin.buildModelFromUrdf(URDF), 0.3, angle_noise=1e-5)
    tree = mime.parse_urdf(URDF)
    simulation = graph_of(
        tree, friction=mime.LoadFriction(0.1, 0.1), joint_friction_n_m_s=np.full(3, 0.2)
    )
    unknowns = [
        "arm.friction.motor_load", "arm.friction.coulomb_torque_n_m", "arm.joint_friction_n_m_s"
    ]  # fmt: skip
    fit = mime.fit(
        simulation, mime.Log(arm.log(0, 400), name="a"), columns(3, delay=0), unknowns,
        by="inverse_dynamics", progress=False,
    )  # fmt: skip
    for name, true in (("motor_load", SHARE), ("coulomb_torque_n_m", DRY)):
        for j, value in enumerate(true):
            estimate = fit[f"arm.friction.{name}[{j}]"]
            # noise of 0.02 N·m in 400 rows; beyond four deviations of six values: once in 3000
            std = 0.5 * (estimate.high - estimate.low) / 1.96
            assert abs(estimate.value - value) < 4.0 * std
            assert std < 0.1 * value


def test_a_simulation_learns_friction_by_the_load():
    log = log_with(dry=lambda load: 0.01 + 0.3 * abs(load))
    values = dict(zip(NAMES, TRUE.values(), strict=True))
    graph = mime.GraphManager()
    friction = mime.LoadFriction(0.02, 0.0, external_load=0.1)
    graph.add_node(
        mime.MotorNode("motor", PERIOD, **values, command_mode="voltage", friction=friction)
    )
    for field in ("commanded_voltage", "load_torque"):
        graph.add_external_input("motor", field)
    unknowns = ["motor.friction.external_load", "motor.friction.coulomb_torque_n_m"]
    fit = mime.fit(graph.compile(), log, LOADED, unknowns, starts=1, progress=False)
    # the log's own steps of 20 µs leave a few per cent of each event
    assert fit["motor.friction.external_load"].value == pytest.approx(0.3, rel=0.03)
    assert fit["motor.friction.coulomb_torque_n_m"].value == pytest.approx(0.01, rel=0.03)
