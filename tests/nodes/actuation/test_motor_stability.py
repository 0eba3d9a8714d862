"""A motor whose step is too long for semi-implicit Euler says so when it is built."""

import warnings

import jax
import numpy as np
import pytest

from mime import Gear, MotorNode, StabilityWarning

SMALL = {"inertia_kg_m2": 1e-7, "kt_n_m_per_a": 0.05, "r_ohm": 1.0, "l_henry": 1e-4}


def motor(timestep=1e-3, **options):
    return MotorNode("m", timestep, **{**SMALL, "damping_n_m_s": 0.0, **options})


@pytest.mark.parametrize("mode", ["voltage", "velocity"])
def test_a_step_that_is_too_long_warns_with_the_longest_and_what_to_do(mode):
    longest = motor(1e-9).largest_stable_timestep(mode)
    with pytest.warns(StabilityWarning) as caught:
        motor(1.01 * longest, command_mode=mode)
    (warning,) = caught
    assert warning.filename == __file__
    for words in (f"{longest:.3g} s", "integrator='exact'", "MotorNode 'm'", f"{mode} mode"):
        assert words in str(warning.message)


@pytest.mark.parametrize(
    "options",
    [
        {"integrator": "exact"},
        {"command_mode": "torque"},
        {"shaft": "driven", "command_mode": "voltage"},
        {"command_mode": "voltage", "timestep": 1e-6},
        {"command_mode": "voltage", "gear": Gear(ratio=1.0, output_inertia_kg_m2=1e-2)},
    ],
    ids=str,
)
def test_a_motor_that_is_stable_is_silent(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motor(**options)


def test_a_motor_for_any_command_warns_of_both_and_names_command_mode():
    with pytest.warns(StabilityWarning, match="another command_mode if no v") as caught:
        motor()
    assert len(caught) == 2


def test_other_values_warn_too_but_not_under_a_transform():
    sound = motor(1e-6, command_mode="voltage")
    with pytest.warns(StabilityWarning):
        sound.with_params(kt_n_m_per_a=50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.grad(lambda kt: sound.with_params(kt_n_m_per_a=kt).kt_n_m_per_a)(50.0)


@pytest.mark.parametrize(("mode", "command"), [("voltage", 5.0), ("velocity", 10.0)])
def test_the_longest_step_is_where_the_speed_stops_being_bounded(mode, command):
    node = motor(1e-9, command_mode=mode)
    longest = node.largest_stable_timestep(mode)

    def largest_speed(dt):
        state = node.initial_state()
        for _ in range(400):
            state = node.update(state, {f"commanded_{mode}": command}, dt)
        return abs(float(state["angular_velocity"]))

    assert largest_speed(0.98 * longest) < 1e3
    assert not largest_speed(1.05 * longest) < 1e4


def test_a_heavy_damping_needs_no_longest_step():
    assert motor(1e-9, damping_n_m_s=1.0).largest_stable_timestep("voltage") == np.inf
    assert motor(1e-9, velocity_kp=0.0, velocity_ki=0.0).largest_stable_timestep("velocity") == (
        np.inf
    )
