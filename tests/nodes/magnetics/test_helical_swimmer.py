"""The helical swimmer: its resistance against closed forms and quadratures, its swimming, step-out.

All step-out figures come from one compiled program: a body with a moment in a turning field.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from compiling import QUICK
from mime import HelicalSwimmerNode, InputError, MagneticBodyNode, ParameterError
from mime.core.node import traced_fluxes, traced_update
from mime.running.graph import GraphManager

HELIX = {
    "pitch_m": 2e-3, "helix_radius_m": 0.5e-3, "turns": 3.25, "filament_radius_m": 0.05e-3,
    "viscosity_pa_s": 1e-3,
}  # fmt: skip


def swimmer(**changes):
    return HelicalSwimmerNode("swimmer", 1e-4, **{**HELIX, **changes})


_resistance = jax.jit(HelicalSwimmerNode.resistance)


def resistance(**changes):
    """Compiled as a whole: operation by operation it is two dozen programs."""
    return np.array(_resistance(swimmer(**changes)))


def quadrature(theory, sign=1.0, pitch_m=2e-3, helix_radius_m=0.5e-3, turns=3.25):
    """R by adding up forces and moments along the filament, column by column."""
    a, mu = HELIX["filament_radius_m"], HELIX["viscosity_pa_s"]
    turn = np.hypot(pitch_m, 2 * np.pi * helix_radius_m)
    if theory == "lighthill":
        log = np.log(0.18 * turn / a)
        xi_t, xi_n = 2 * np.pi * mu / log, 4 * np.pi * mu / (log + 0.5)
    else:
        log = np.log(2 * pitch_m / a)
        xi_t, xi_n = 2 * np.pi * mu / (log - 0.5), 4 * np.pi * mu / (log + 0.5)

    def piece(phi):
        r = helix_radius_m
        x = np.array([r * np.cos(phi), sign * r * np.sin(phi), pitch_m * phi / (2 * np.pi)])
        t = np.array([-r * np.sin(phi), sign * r * np.cos(phi), pitch_m / (2 * np.pi)])
        ds, t = np.linalg.norm(t), t / np.linalg.norm(t)
        columns = []
        for twist in np.eye(6):
            u = twist[:3] + np.cross(twist[3:], x)
            f = xi_n * (u - (u @ t) * t) + xi_t * (u @ t) * t
            columns.append(np.concatenate([f, np.cross(x, f)]) * ds)
        return np.array(columns).T

    end = np.pi * turns
    return scipy.integrate.quad_vec(piece, -end, end, epsrel=1e-12, limit=2000)[0]


@pytest.mark.parametrize(("theory", "hand"), [("lighthill", "left"), ("gray_hancock", "right")])
def test_the_resistance_is_the_integral_along_the_filament(theory, hand):
    R = resistance(theory=theory, handedness=hand)
    expected = quadrature(theory, 1.0 if hand == "right" else -1.0)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.max(np.abs(R - expected) / size) < 1e-12  # what the quadrature is asked for
    assert np.max(np.abs(R - R.T) / size) < 1e-15
    assert np.linalg.eigvalsh(R / size).min() > 0.0  # drag dissipates


def test_a_straight_filament_is_a_rod_and_a_bare_head_a_sphere():
    rod = resistance(helix_radius_m=1e-9, theory="gray_hancock")
    length, log = 2e-3 * 3.25, np.log(2 * 2e-3 / 0.05e-3)
    xi_t, xi_n = 2e-3 * np.pi / (log - 0.5), 4e-3 * np.pi / (log + 0.5)
    assert rod[2, 2] == pytest.approx(xi_t * length, rel=1e-10)
    assert rod[0, 0] == pytest.approx(xi_n * length, rel=1e-10)
    assert rod[3, 3] == pytest.approx(xi_n * length**3 / 12, rel=1e-10)
    b = 0.8e-3
    head = resistance(head_radius_m=b) - resistance()
    z = length / 2 + b
    assert head[2, 2] == pytest.approx(6e-3 * np.pi * b, rel=1e-10)
    assert head[5, 5] == pytest.approx(8e-3 * np.pi * b**3, rel=1e-10)
    # Turning about the helix' centre moves the sphere: its drag acts z away.
    assert head[3, 3] == pytest.approx(8e-3 * np.pi * b**3 + 6e-3 * np.pi * b * z**2, rel=1e-10)
    assert head[0, 4] == pytest.approx(6e-3 * np.pi * b * z, rel=1e-10)


def speed_per_spin(**changes):
    """U / Omega of a helix that is turned about its axis and held on it."""
    R = resistance(**changes)
    return -R[2, 5] / R[2, 2]


def test_a_turning_helix_swims_as_in_closed_form():
    tangent = np.arctan2(2 * np.pi * 0.5e-3, 2e-3)  # the filament's angle to the axis
    log = np.log(2 * 2e-3 / 0.05e-3)  # Gray and Hancock: their coefficients know the pitch only
    xi_t, xi_n = 2 * np.pi / (log - 0.5), 4 * np.pi / (log + 0.5)
    s, c = np.sin(tangent), np.cos(tangent)
    expected = 0.5e-3 * (xi_n - xi_t) * s * c / (xi_t * c**2 + xi_n * s**2)
    assert float(speed_per_spin(theory="gray_hancock")) == pytest.approx(expected, rel=1e-12)
    # Taylor, small amplitude: U = Omega k b² (xi_n/xi_t - 1); the next term is (k b)².
    k, b = 2 * np.pi / 2e-3, 1e-6
    found = float(speed_per_spin(helix_radius_m=b, theory="gray_hancock"))
    assert found == pytest.approx(k * b**2 * (xi_n / xi_t - 1), rel=2 * (k * b) ** 2)
    assert float(speed_per_spin(handedness="left")) == -float(speed_per_spin())


def test_the_gradient_of_speed_by_pitch_is_that_of_differences():
    def speed(pitch_m):
        node = swimmer(pitch_m=pitch_m, head_radius_m=0.4e-3)
        wrench = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 1e-9])
        state = traced_update(node, node.initial_state(), {"wrench_world": wrench}, 1e-4)
        return state["twist_world"][2]

    speed_and_slope, h = jax.jit(jax.value_and_grad(speed), compiler_options=QUICK), 2e-7
    value, slope = map(float, speed_and_slope(2e-3))
    ahead, behind = (float(speed_and_slope(2e-3 + step)[0]) for step in (h, -h))
    expected = (ahead - behind) / (2 * h)
    assert slope == pytest.approx(expected, rel=1e-6)  # (h/pitch)² = 1e-8, roundings 1e-16/1e-4
    assert abs(slope) > 0.1 * value / 2e-3  # and it matters


BALL = {
    "pitch_m": 1e-6, "helix_radius_m": 1e-7, "turns": 1.0, "filament_radius_m": 1e-8,
    "head_radius_m": 0.5e-3, "viscosity_pa_s": 1e-9,
}  # fmt: skip
"""A sphere, its helix vanishes."""
ROD = {
    "pitch_m": 1e-2, "helix_radius_m": 1e-8, "turns": 1.0, "filament_radius_m": 1e-5,
    "viscosity_pa_s": 1e-2,
}  # fmt: skip
"""A rod. About its axis it has 1e-10 of the drag that c1 or c2 add; across it has ten times theirs:
with less, the moment follows the field by tumbling, which is easier then.
"""
MOMENT, FIELD = 1e-4, 1e-3


def turn(torque_n_m, c1, c2, rate, time_s, steps):
    """The mean spin over `time_s` and the last lag's sine, in a field that turns at `rate`."""
    dt = time_s / steps
    rod = HelicalSwimmerNode("rod", 1e-4, **ROD, linear_drag_n_m_s=c1, quadratic_drag_n_m_s2=c2)
    body = MagneticBodyNode(
        "body", 1e-4, moment_a_m2=torque_n_m / FIELD * jnp.array([1.0, 0.0, 0.0])
    )
    still = body.initial_state()

    def step(n, carry):
        state, total, _ = carry
        phase = rate * dt * n
        B = FIELD * jnp.stack([jnp.cos(phase), jnp.sin(phase), 0.0 * phase])
        given = {"body_pose_world": state["pose_world"], "field_world": B}
        wrench = traced_fluxes(body, still, given, dt)["wrench_world"]
        state = traced_update(rod, state, {"wrench_world": wrench}, dt)
        return state, total + state["twist_world"][5] * dt, wrench[5] / torque_n_m

    start = (rod.initial_state(), jnp.zeros(()), jnp.zeros(()))
    _, total, sine = jax.lax.fori_loop(0, steps, step, start)
    return total / time_s, sine


@pytest.fixture(scope="module")
def turned():
    """Rates and lags of many members by name, extrapolated from 2,000 and 4,000 steps."""
    mB = MOMENT * FIELD
    members = {}
    w_so = 2 * np.pi * 100
    c1, c2 = mB / w_so, mB / w_so**2
    for ratio in (1.2, 2.0):
        slip = 2 * np.pi / (w_so * np.sqrt(ratio**2 - 1))
        members["adler", ratio] = (mB, c1, 0.0, ratio * w_so, slip)
    for ratio in (0.5, 0.9):
        members["linear", ratio] = (mB, c1, 0.0, ratio * w_so, 60 / w_so)
        members["quadratic", ratio] = (mB, 0.0, c2, ratio * w_so, 60 / w_so)
    for ratio in (0.8, 1.5):
        members["mixed", ratio] = (mB, 0.6 * c1, 0.4 * c2, ratio * w_so, 20 / w_so)
    for figures in PUBLISHED:
        c2 = mB / (2 * np.pi * figures[0]) ** 2  # one coefficient a diameter, by its first figure
        for n, figure in enumerate(figures, 1):
            for ratio in (0.99, 1.01):
                rate = ratio * 2 * np.pi * figure
                members["published", figure, ratio] = (n * mB, 0.0, c2, rate, 100 / rate)
    run = jax.jit(jax.vmap(turn, in_axes=(0, 0, 0, 0, 0, None)), compiler_options=QUICK)
    given = [jnp.array(column) for column in zip(*members.values(), strict=True)]
    coarse, fine = run(*given, 2000), run(*given, 4000)
    rates, sines = (2 * np.array(f) - np.array(c) for c, f in zip(coarse, fine, strict=True))
    return {name: (rates[k], sines[k], members[name]) for k, name in enumerate(members)}


PUBLISHED = [(128.0, 181.0, 222.0), (144.0, 204.0, 250.0)]
"""Step-out, Hz, of one, two and three magnets; a row for each diameter (de Boer 2025)."""


@pytest.mark.parametrize("ratio", [1.2, 2.0])
def test_beyond_step_out_it_turns_at_adlers_rate(turned, ratio):
    rate, _, (*_, field_rate, _) = turned["adler", ratio]
    w_so = 2 * np.pi * 100
    expected = field_rate - np.sqrt(field_rate**2 - w_so**2)
    # Two steps extrapolated: (dt w_so)² of it, dt a 2,000th of a slip.
    assert rate == pytest.approx(expected, rel=3e-5)


@pytest.mark.parametrize("ratio", [0.5, 0.9])
def test_below_step_out_the_lag_is_that_of_the_drag(turned, ratio):
    # An explicit step is exact where the spin is constant. What is left of the transient: e^-19.
    assert turned["linear", ratio][1] == pytest.approx(ratio, rel=1e-9)
    assert turned["quadratic", ratio][1] == pytest.approx(ratio**2, rel=1e-8)


@pytest.mark.parametrize("ratio", [0.8, 1.5])
def test_mixed_drag_is_that_of_scipy(turned, ratio):
    rate, _, (mB, c1, c2, field_rate, time_s) = turned["mixed", ratio]

    def slope(t, angle):
        pull = mB * np.sin(field_rate * t - angle)  # c1 w + c2 |w| w = pull
        return np.sign(pull) * (np.sqrt(c1**2 + 4 * c2 * np.abs(pull)) - c1) / (2 * c2)

    run = scipy.integrate.solve_ivp(slope, (0, time_s), [0.0], rtol=1e-10, atol=1e-10)
    assert rate == pytest.approx(run.y[0, -1] / time_s, rel=3e-5)


def test_the_six_published_step_outs_come_from_one_coefficient_a_diameter(turned):
    for figure in np.ravel(PUBLISHED):
        locked, lost = turned["published", figure, 0.99], turned["published", figure, 1.01]
        # The field turned by 100 rad. Locked, the body is less than a quarter turn behind.
        assert 100 * (1 - locked[0] / locked[2][3]) == pytest.approx(np.arcsin(locked[1]), rel=1e-3)
        assert 0.9 < locked[1] < 1.0
        assert 100 * (1 - lost[0] / lost[2][3]) > np.pi


def test_weight_and_flow_move_it():
    node = swimmer(**BALL, net_weight_n=1e-12)
    graph = GraphManager()
    graph.add_node(node)
    graph.add_external_input("swimmer", "flow_velocity_world")
    flow = np.array([1e-3, 0.0, 2e-3])
    run = graph.compile().run(0.01, inputs={"swimmer": {"flow_velocity_world": flow}})
    # Stokes: the weight over 6 pi mu b; the vanishing helix has 1e-3 of the head's drag.
    sinking = 1e-12 / (6 * np.pi * 1e-9 * 0.5e-3)
    last = run["swimmer"]["pose_world"][-1]
    np.testing.assert_allclose(last[:3], 0.01 * (flow - [0, 0, sinking]), rtol=2e-3, atol=1e-12)
    with pytest.raises(InputError, match="another length than 1"):
        graph.compile().run(0.01, initial_state={"swimmer": {"pose_world": np.ones(7)}})


@pytest.mark.parametrize(("given", "words"), [
    ({"pitch_m": 0.0}, "> 0 m"),
    ({"filament_radius_m": 0.5e-3}, "must be < 0.000407 m for lighthill"),
    ({"theory": "slender"}, "lighthill"),
    ({"handedness": "both"}, "right"),
    ({"linear_drag_n_m_s": -1.0}, ">= 0 N·m·s"),
])  # fmt: skip
def test_bad_swimmers_are_refused_by_name(given, words):
    with pytest.raises(ParameterError, match=words):
        swimmer(**given)


def test_metadata_is_whole():
    assert swimmer(head_radius_m=1e-3).validate_mime_consistency() == []


def test_single_precision():
    with jax.enable_x64(False):
        node = swimmer(head_radius_m=0.4e-3)
        wrench = np.array([1e-9, 0, 2e-9, 0, 1e-12, 3e-12], np.float32)
        single = node.update(node.initial_state(), {"wrench_world": wrench}, 1e-4)
    assert single["twist_world"].dtype == np.float32
    node = swimmer(head_radius_m=0.4e-3)
    double = node.update(node.initial_state(), {"wrench_world": wrench.astype(float)}, 1e-4)
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(double["twist_world"][part])
        error = np.abs(np.array(single["twist_world"][part]) - double["twist_world"][part])
        assert error.max() < 1e-4 * size  # the inverses lose some hundred roundings
