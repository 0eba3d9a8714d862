"""A joint with a spring, its torque known: what two encoders tell, and what one of them does."""

import numpy as np
import pytest

import mime
from fitting.motors import sampled

J, I, K, V = 0.02, 0.05, 60.0, 0.15
NAMES = {
    "joint.rotor_inertia_kg_m2": J,
    "joint.output_inertia_kg_m2": I,
    "joint.stiffness_n_m_per_rad": K,
    "joint.damping_n_m_s": V,
}
PERIOD, ROWS, NOISE = 2e-3, 601, 2e-4


@pytest.fixture(scope="module")
def log():
    """Two masses and a spring by the matrix exponential: rotor angle, its speed, output, ..."""
    A = np.array(
        [[0, 1, 0, 0], [-K / J, -V / J, K / J, V / J], [0, 0, 0, 1], [K / I, V / I, -K / I, -V / I]]
    )
    B = np.array([[0.0], [1 / J], [0.0], [0.0]])
    time = PERIOD * np.arange(ROWS)
    torque = 0.4 * np.sign(np.sin(40.0 * time + 6.0 * np.sin(5.0 * time)))
    states = sampled(A, B, torque, time, time)
    noise = NOISE * np.random.default_rng(5).normal(size=(2, ROWS))
    return {
        "time": time,
        "torque": torque,
        "rotor": states[:, 0] + noise[0],
        "load": states[:, 2] + noise[1],
    }


@pytest.fixture(scope="module")
def joint():
    values = {name.partition(".")[2]: 1.4 * value for name, value in NAMES.items()}
    graph = mime.GraphManager()
    graph.add_node(mime.ElasticJointNode("joint", PERIOD, **values))
    graph.add_external_input("joint", "motor_torque")
    return graph.compile()


def fitted(joint, log, *encoders):
    fields = {"rotor": "joint.rotor_angle", "load": "joint.output_angle"}
    columns = {"torque": "joint.motor_torque", **{name: fields[name] for name in encoders}}
    return mime.fit(joint, log, columns, list(NAMES), starts=1, progress=False)


def off(estimate, truth):
    return abs(estimate.value - truth) / (0.5 * (estimate.high - estimate.low))


@pytest.mark.small("encoders1")
@pytest.mark.parametrize("encoders", [("rotor", "load"), ("rotor",)])
def test_two_encoders_or_the_motors_alone_tell_both_inertias_and_the_spring(joint, log, encoders):
    fit = fitted(joint, log, *encoders)
    assert fit.is_explained
    for name, truth in NAMES.items():
        assert fit[name].is_known
        assert off(fit[name], truth) < 1.6
    assert fit["joint.stiffness_n_m_per_rad"].high / fit["joint.stiffness_n_m_per_rad"].low < 1.05


def test_the_load_alone_does_not_tell_which_inertia_is_whose(joint, log):
    """u to y: (v s + k) / (s² (J I s² + (J + I)(v s + k))) stays when J and I change places."""
    fit = fitted(joint, log, "load")
    both = (J + I) / (J * I)
    truth = {"J + I": J + I, "k (J + I)/(J I)": K * both, "v (J + I)/(J I)": V * both}
    assert fit.is_explained
    found = {c.name: c for c in fit.combinations}
    assert list(found) == list(truth)
    assert not set(fit.known) & set(list(NAMES)[:2])
    for name, value in truth.items():
        assert abs(np.log(found[name].value / value)) < 0.8 * np.log(
            found[name].high / found[name].low
        )
