"""A sampled controller in the graph: it keeps its rate, whatever steps the physics around takes."""

from typing import ClassVar

import numpy as np
import pytest

import mime
from fitting.motors import TRUE, discrete, motor_matrices, sampled
from mime.core.node import Node, Scalar
from mime.core.spec import Input, Output, parameter
from mime.fitting.rates import first_fineness, sampled_nodes, undeclared_nodes, with_timestep

KP, KI, SAMPLE = 0.05, 2.0, 5e-3
"""5 ms, longer than the motor's electrical time: a continuous PI would be another loop."""


class SampledPI(Node):
    """u = Kp e + Ki I', I' = I + e Ts."""

    is_sampled: ClassVar[bool | None] = True
    kp: Scalar = parameter("V·s/rad", above=0.0)
    ki: Scalar = parameter("V/rad", above=0.0)

    def boundary_input_spec(self):
        return {"wanted": Input((), "rad/s"), "speed": Input((), "rad/s")}

    def boundary_flux_spec(self):
        return {"volts": Output((), "V")}

    def state_spec(self):
        return {"integral": Output((), "rad")}

    def update(self, state, boundary_inputs, dt):
        error = boundary_inputs["wanted"] - boundary_inputs["speed"]
        return {"integral": state["integral"] + error * dt}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        error = boundary_inputs["wanted"] - boundary_inputs["speed"]
        return {"volts": self.kp * error + self.ki * state["integral"]}


class SilentPI(SampledPI):
    """The same, and its class does not say."""

    is_sampled: ClassVar[bool | None] = None


def loop(kind=SampledPI, late_command=False, wrong=1.0, sample=SAMPLE, step=SAMPLE):
    names = ("r_ohm", "l_henry", "kt_n_m_per_a", "inertia_kg_m2", "damping_n_m_s")
    motor = dict(zip(names, TRUE.values(), strict=True))
    motor["inertia_kg_m2"] *= wrong
    graph = mime.GraphManager()
    graph.add_node(kind("pi", sample, kp=KP * wrong, ki=KI * wrong))
    graph.add_node(
        mime.MotorNode("motor", step, **motor, command_mode="voltage", integrator="exact")
    )
    graph.add_edge("motor", "pi", "rotor_angular_velocity", "speed", delay=not late_command)
    graph.add_edge("pi", "motor", "volts", "commanded_voltage", delay=late_command)
    graph.add_external_input("pi", "wanted")
    return graph.compile()


def closed_loop(rows=121):
    """What was wanted, and the volts of a PI every 5 ms, by the motor's matrix exponential."""
    log = closed_loop_log(rows)
    return log["wanted"], log["volts"]


def closed_loop_log(rows=121):
    """The loop by hand: a PI every 5 ms, and the motor's matrix exponential in between."""
    F, G = discrete(*motor_matrices(**TRUE), SAMPLE)
    wanted = np.where(np.arange(rows) % 40 < 20, 50.0, -20.0)
    x, integral, volts, found = np.zeros(2), 0.0, [], []
    for k in range(rows):
        found.append(x)
        error = wanted[k] - x[0]
        integral += error * SAMPLE
        volts.append(KP * error + KI * integral)
        x = F @ x + G[:, 0] * volts[-1]
    time = SAMPLE * np.arange(rows)
    again = sampled(*motor_matrices(**TRUE), np.array(volts), time, time)
    np.testing.assert_allclose(again, found, atol=1e-9)
    readings = np.array(found) + [0.1, 0.02] * np.random.default_rng(0).normal(size=(rows, 2))
    table = {"time": time, "wanted": wanted, "volts": np.array(volts)}
    return {**table, "speed": readings[:, 0], "current": readings[:, 1]}


COLUMNS = {
    "wanted": "pi.wanted",
    "speed": mime.Channel("motor.rotor_angular_velocity", delay=0),
    "current": mime.Channel("motor.current", delay=0),
}


def test_gains_of_a_sampled_controller_are_found():
    truth = {"pi.kp": KP, "pi.ki": KI, "motor.inertia_kg_m2": TRUE["J"]}
    fit = mime.fit(
        loop(wrong=1.3), closed_loop_log(), COLUMNS, list(truth), starts=1, progress=False
    )
    assert fit.is_explained
    assert fit.timestep == pytest.approx(SAMPLE / 4)
    assert fit.step_error < 1e-9  # the controller is the same whatever the steps
    for name, value in truth.items():
        assert abs(fit[name].value - value) < 0.8 * (fit[name].high - fit[name].low), name
        assert fit[name].high / fit[name].low < 1.02, name
    assert "sampled at their own rate: pi" in str(fit)


def jittering(log_of_loop, period_s, jitter, seed=1):
    """The same loop as a logger without a clock has it: rows at any times, steps among them."""
    random = np.random.default_rng(seed)
    wanted, volts = log_of_loop
    end = SAMPLE * (len(wanted) - 1)
    time = np.arange(0.0, end, period_s)
    time[1:] += jitter * period_s * random.uniform(-1, 1, len(time) - 1)
    for step in np.arange(0.1, end, 0.1):
        time[np.argmin(np.abs(time - step))] = step
    states = sampled(*motor_matrices(**TRUE), volts, time, SAMPLE * np.arange(len(volts)))
    readings = states + [0.1, 0.02] * random.normal(size=states.shape)
    at = np.floor(time / SAMPLE + 1e-6).astype(int)
    return {"time": time, "wanted": wanted[at], "speed": readings[:, 0], "current": readings[:, 1]}


@pytest.mark.parametrize(("period_s", "jitter"), [(3.1e-3, 0.2), (3.137e-3, 0.0)])
def test_rows_at_any_times_fit_a_loop_of_its_own_rate(period_s, jitter):
    truth = {"pi.kp": KP, "pi.ki": KI, "motor.inertia_kg_m2": TRUE["J"]}
    log = jittering(closed_loop(), period_s, jitter)
    fit = mime.fit(loop(wrong=1.3), log, COLUMNS, list(truth), starts=1, progress=False)
    assert SAMPLE / fit.timestep == pytest.approx(round(SAMPLE / fit.timestep), abs=1e-9)
    for name, value in truth.items():
        assert abs(fit[name].value - value) < 0.8 * (fit[name].high - fit[name].low), name
        assert fit[name].high / fit[name].low < 1.02, name


def test_finer_steps_change_nothing_of_a_sampled_loop():
    simulation = loop()
    assert sampled_nodes(simulation) == ("pi",)
    wanted = np.where(np.arange(40) < 20, 50.0, -20.0)
    field, ends = "rotor_angular_velocity", []
    for times in (1, 8):
        finer = with_timestep(simulation, SAMPLE / times)
        run = finer.run(
            steps=40 * times, inputs={"pi": {"wanted": np.repeat(wanted, times)}}, progress=False
        )
        ends.append(run["motor"][field][times - 1 :: times])
    np.testing.assert_allclose(ends[0], ends[1], rtol=2e-5, atol=1e-4)  # single precision


def test_wirings_whose_meaning_depends_on_the_step_are_refused():
    with pytest.raises(mime.InputError, match=r"'pi' is sampled, and motor.commanded_vol.* late"):
        with_timestep(loop(late_command=True), SAMPLE / 4)
    assert with_timestep(loop(late_command=True), SAMPLE).timestep == SAMPLE  # as it is: fine


def test_who_does_not_say_is_sampled_if_slower_and_else_told():
    slow, same = loop(SilentPI, step=SAMPLE / 5), loop(SilentPI)
    assert sampled_nodes(slow) == ("pi",)
    assert sampled_nodes(same) == ()
    assert undeclared_nodes(same, SAMPLE / 4) == ("pi",)
    assert undeclared_nodes(same, SAMPLE) == ()


def test_steps_divide_what_is_sampled_or_the_log_is_refused():
    class Rows:
        period_s = 2e-3

    assert first_fineness(loop(), [Rows]) == 4  # 10 steps of 0.5 ms a sample
    Rows.period_s = 3e-3
    assert first_fineness(loop(), [Rows]) == 12  # 20 of 0.25 ms
    Rows.period_s = np.pi * 1e-3
    with pytest.raises(mime.InputError, match=r"every 0.00314159 s.*'pi' every 0.005 s"):
        first_fineness(loop(), [Rows])
