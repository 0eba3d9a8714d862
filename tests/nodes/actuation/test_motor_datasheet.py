"""From data sheets to motors, and sheets that contradict themselves."""

import dataclasses
import warnings

import jax
import numpy as np
import pytest

from mime.core.node import ParameterError
from mime.nodes.actuation.motor import (
    CATALOGUE,
    Datasheet,
    DatasheetWarning,
    Gear,
    MotorNode,
    Winding,
)

RE40 = CATALOGUE["maxon_re40_148877"]


@pytest.mark.parametrize("key", CATALOGUE)
def test_a_catalogue_motor_agrees_with_its_own_sheet(key):
    sheet = CATALOGUE[key]
    assert sheet.source
    with warnings.catch_warnings():
        warnings.simplefilter("error", DatasheetWarning)
        # 4 %: the 1331T's mechanical time constant is printed with one digit (7 ms for 6.9 to 7.1).
        node = MotorNode.from_datasheet("m", 1e-4, sheet, tolerance=0.04, command_mode="voltage")
    speed = float(node.frequency_response(np.zeros(1))[0].real) * sheet.nominal_voltage_v
    assert speed == pytest.approx(sheet.no_load_speed, rel=0.01)  # kt is printed with three digits


@pytest.mark.parametrize("kind", ["viscous", "coulomb"])
def test_a_motor_from_a_sheet_runs_at_its_no_load_point(kind):
    sheet = dataclasses.replace(RE40, kt_n_m_per_a=None)
    node = MotorNode.from_datasheet("m", 1e-4, sheet, no_load_friction=kind, command_mode="voltage")

    def step(state, _):
        return node.update(state, {"commanded_voltage": 48.0}, 1e-4), None

    state, _ = jax.jit(lambda s: jax.lax.scan(step, s, length=2000))(node.initial_state())
    # The time constant is 4.3 ms; after 0.2 s nothing is left but the printed R's rounding.
    assert float(state["angular_velocity"]) == pytest.approx(7590 * np.pi / 30, rel=1e-6)
    assert float(state["current"]) == pytest.approx(0.0686, rel=1e-4)


def test_figures_may_be_given_one_by_one_in_rpm_or_rad_per_s():
    figures = {
        "nominal_voltage_v": 12.0,
        "no_load_current_a": 0.1,
        "stall_current_a": 2.0,
        "stall_torque_n_m": 0.1,
        "rotor_inertia_kg_m2": 1e-6,
        "l_henry": 1e-3,
    }
    by_rpm = MotorNode.from_datasheet("m", 1e-4, no_load_speed_rpm=2180.0, **figures)
    by_rad_per_s = MotorNode.from_datasheet(
        "m", 1e-4, no_load_speed_rad_per_s=2180 * np.pi / 30, **figures
    )
    assert float(by_rpm.kt_n_m_per_a) == pytest.approx(float(by_rad_per_s.kt_n_m_per_a), rel=1e-15)
    assert float(by_rpm.r_ohm) == 6.0
    with pytest.raises(
        ParameterError, match="no_load_speed_rad_per_s or no_load_speed_rpm must be given"
    ):
        MotorNode.from_datasheet("m", 1e-4, **figures)


def test_contradicting_figures_are_named_with_by_how_much():
    odd = dataclasses.replace(RE40, stall_torque_n_m=2.0)
    with pytest.warns(
        DatasheetWarning, match=r"kt_n_m_per_a = 0.0603 N·m/A, but stall_torque_n_m.*-21"
    ):
        MotorNode.from_datasheet("m", 1e-4, odd)
    with pytest.raises(ParameterError, match=r"r_ohm = 2 Ω.*stall_current_a = 1.132 Ω: -43.4%"):
        MotorNode.from_datasheet("m", 1e-4, RE40, r_ohm=2.0, on_contradiction="raise")
    with pytest.raises(ParameterError, match="on_contradiction must be one of"):
        MotorNode.from_datasheet("m", 1e-4, RE40, on_contradiction="rais")


def test_a_sheet_without_inductance_is_refused_in_voltage_use_only():
    bare = dataclasses.replace(RE40, l_henry=None)
    with pytest.raises(
        ParameterError, match="l_henry must be given where a voltage can be commanded"
    ):
        MotorNode.from_datasheet("m", 1e-4, bare)
    MotorNode.from_datasheet("m", 1e-4, bare, command_mode="velocity")


def test_a_negative_or_missing_figure_is_refused():
    with pytest.raises(ParameterError, match="no_load_current_a must be > 0, got -1"):
        dataclasses.replace(RE40, no_load_current_a=-1.0)
    with pytest.raises(ParameterError, match=r"'nominal_voltage_v', .* must be given"):
        MotorNode.from_datasheet("m", 1e-4, r_ohm=1.0)
    with pytest.raises(ParameterError, match="r_ohm or stall_current_a must be given"):
        Datasheet(12.0, 0.1, 1e-6, no_load_speed_rpm=1000.0)


def test_effects_go_to_the_motor_and_a_winding_takes_the_sheets_temperature():
    sheet = CATALOGUE["faulhaber_1524t012sr"]
    node = MotorNode.from_datasheet("m", 1e-4, sheet, gear=Gear(20.0), winding=Winding(10.0, 5.0))
    assert float(node.gear.ratio) == 20.0
    assert float(node.winding.reference_temperature_c) == sheet.reference_temperature_c == 22.0
