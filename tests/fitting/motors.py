"""Logs of machines that MIME did not simulate: matrix exponentials and small steps in NumPy."""

import numpy as np
from scipy.linalg import expm

from mime import GraphManager, MotorNode

TRUE = {"R": 1.3, "L": 5e-3, "K": 0.042, "J": 1e-4, "b": 3e-4}
NAMES = ("r_ohm", "l_henry", "kt_n_m_per_a", "inertia_kg_m2", "damping_n_m_s")
UNKNOWNS = [f"motor.{name}" for name in NAMES]
COLUMNS = {
    "volts": "motor.commanded_voltage",
    "speed": "motor.rotor_angular_velocity",
    "current": "motor.current",
}
NOISE = np.array([0.5, 0.05])
PERIOD = 1e-3


def bench(wrong=1.5, **options):
    """The motor on its bench, every parameter `wrong` times the truth."""
    values = {name: wrong * value for name, value in zip(NAMES, TRUE.values(), strict=True)}
    graph = GraphManager()
    options = {"integrator": "exact", **options}
    graph.add_node(MotorNode("motor", PERIOD, **values, command_mode="voltage", **options))
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def volts_of(time):
    return np.where(time % 0.5 < 0.25, 6.0, -3.0)


def discrete(A, B, dt):
    """x(t + dt) = F x(t) + G u, u held."""
    n, m = B.shape
    block = np.zeros((n + m, n + m))
    block[:n, :n], block[:n, n:] = A, B
    exponential = expm(block * dt)
    return exponential[:n, :n], exponential[:n, n:]


def sampled(A, B, u, times, switch_times, late=0.0, x0=None):
    """The state at times - late; u[k] holds from switch_times[k] on. Exact at every time."""
    u, gaps = np.reshape(u, (len(u), -1)), np.round(np.diff(switch_times), 12)
    exact = {gap: _cached(A, B, gap) for gap in set(gaps)}
    states = np.zeros((len(u), len(A)))
    states[0] = 0.0 if x0 is None else x0
    pushes = np.zeros((len(gaps), len(A)))
    for gap, (_, G) in exact.items():
        pushes[gaps == gap] = u[:-1][gaps == gap] @ G.T
    for k, gap in enumerate(gaps):
        states[k + 1] = exact[gap][0] @ states[k] + pushes[k]
    asked = np.asarray(times) - late
    row = np.searchsorted(switch_times, asked + 1e-12, side="right") - 1
    found = np.zeros((len(asked), len(A)))
    after = np.round(asked - switch_times[row], 12)
    for dt in np.unique(after[row >= 0]):
        F, G = _cached(A, B, dt)
        here = (after == dt) & (row >= 0)
        found[here] = states[row[here]] @ F.T + u[row[here]] @ G.T
    return found


_kept = {}


def _cached(A, B, dt):
    key = A.tobytes(), B.tobytes(), round(dt, 12)
    if key not in _kept:
        _kept[key] = discrete(A, B, dt)
    return _kept[key]


def motor_matrices(R, L, K, J, b):
    return np.array([[-b / J, K / J], [-K / L, -R / L]]), np.array([[0.0], [1.0 / L]])


def clean_motor(rows=1001, late=(0.0, 0.0), time=None, parameters=None):
    """Time, volts, and speed and current as sensors that are late by so many rows see them."""
    time = PERIOD * np.arange(rows) if time is None else time
    volts = volts_of(time)
    A, B = motor_matrices(**(parameters or TRUE))
    each = [sampled(A, B, volts, time, time, PERIOD * d)[:, i] for i, d in enumerate(late)]
    return time, volts, np.stack(each, axis=1)


def motor_log(seed=0, rows=1001, late=(0.0, 0.0), time=None):
    time, volts, readings = clean_motor(rows, late, time)
    readings = readings + NOISE * np.random.default_rng(seed).normal(size=readings.shape)
    return {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}


def sticking_motor_log(seed=0, rows=1001, dry=0.02):
    """The same with dry friction, which sticks; explicit steps of 10 microseconds."""
    p, fine = TRUE, 100
    time = PERIOD * np.arange(rows)
    volts, dt = volts_of(time), PERIOD / fine
    w = i = 0.0
    readings = np.zeros((rows, 2))
    for k in range(rows - 1):
        for _ in range(fine):
            i += dt / p["L"] * (volts[k] - p["R"] * i - p["K"] * w)
            free = w + dt / p["J"] * (p["K"] * i - p["b"] * w)
            slowed = abs(free) - dt * dry / p["J"]
            w = np.sign(free) * slowed if slowed > 0 else 0.0
        readings[k + 1] = w, i
    readings += NOISE * np.random.default_rng(seed).normal(size=readings.shape)
    return {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}
