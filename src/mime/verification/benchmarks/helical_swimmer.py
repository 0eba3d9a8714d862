"""MIME-VER-184 and 185: the resistance of a helical swimmer, and its step-out."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mime.core.node import traced_fluxes, traced_update
from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
from mime.nodes.magnetics.magnetic_body import MagneticBodyNode
from mime.verification.benchmark import Measurement, benchmark, replaced, scaled
from mime.verification.programs import quick_jit


@benchmark(
    184,
    "Resistance of a helical swimmer",
    HelicalSwimmerNode,
    replaced("the helix is left-handed", handedness="left"),
)
def swimmer_resistance(
    Swimmer, *, pitch_m=2e-3, helix_radius_m=0.5e-3, turns=3.25, filament_radius_m=0.05e-3,
    head_radius_m=0.8e-3, viscosity_pa_s=1e-3,
):  # fmt: skip
    r"""$R = \int \xi_n J^\top J + (\xi_t - \xi_n)\,\mathbf w\mathbf w^\top\,ds + R_\text{head}$

    The 6x6 resistance of a right-handed helix with a spherical head, about the helix' centre.

    Reference: Forces and moments of six motions, summed along the filament by SciPy's `quad_vec`;
    Stokes' sphere.
    Procedure:
    1. Take the resistance for the coefficients of Lighthill and of Gray and Hancock.
    2. Compare each entry, in units of the diagonal entries of its row and column.
    3. Compare how far a turn carries the free swimmer along its axis.
    Covers: resistive-force theory, head, handedness
    Excludes: how well resistive-force theory describes a real helix; c1, c2 (MIME-VER-185)
    """
    given = {
        "pitch_m": pitch_m, "helix_radius_m": helix_radius_m, "turns": turns,
        "filament_radius_m": filament_radius_m, "head_radius_m": head_radius_m,
        "viscosity_pa_s": viscosity_pa_s,
    }  # fmt: skip
    turn, mu = math.hypot(pitch_m, 2.0 * math.pi * helix_radius_m), viscosity_pa_s
    logs = {
        "lighthill": (math.log(0.18 * turn / filament_radius_m),) * 2,
        "gray_hancock": (
            math.log(2.0 * pitch_m / filament_radius_m) - 0.5,
            math.log(2.0 * pitch_m / filament_radius_m),
        ),
    }
    z = 0.5 * turns * pitch_m + head_radius_m
    for theory, (along, across) in logs.items():
        xi_t, xi_n = 2.0 * math.pi * mu / along, 4.0 * math.pi * mu / (across + 0.5)

        def piece(phi: float, xi_t: float = xi_t, xi_n: float = xi_n) -> np.ndarray:
            rise, cos, sin = pitch_m / (2.0 * math.pi), math.cos(phi), math.sin(phi)
            x = np.array([helix_radius_m * cos, helix_radius_m * sin, rise * phi])
            slope = np.array([-helix_radius_m * sin, helix_radius_m * cos, rise])
            t = slope / np.linalg.norm(slope)
            motion = np.hstack([np.eye(3), -_cross(x)])
            K = xi_n * np.eye(3) + (xi_t - xi_n) * np.outer(t, t)
            piece: np.ndarray = motion.T @ K @ motion * np.linalg.norm(slope)
            return piece

        end = math.pi * turns
        helix = scipy.integrate.quad_vec(piece, -end, end, epsrel=1e-12, limit=2000)[0]
        motion = np.hstack([np.eye(3), -_cross(np.array([0.0, 0.0, z]))])
        expected = helix + 6.0 * math.pi * mu * head_radius_m * motion.T @ motion
        expected[3:, 3:] += 8.0 * math.pi * mu * head_radius_m**3 * np.eye(3)
        R = np.array(Swimmer("swimmer", 1e-3, theory=theory, **given).resistance())
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        error = float(np.max(np.abs(R - expected) / scale))
        why = "what is asked of the quadrature"
        yield Measurement(f"largest error of R, {theory}", error, 1e-11, why=why)
        advance, right = -R[2, 5] / R[2, 2], -expected[2, 5] / expected[2, 2]
        off = float(abs(advance / right - 1.0))
        yield Measurement(f"error of the way of a turn, {theory}", off, 1e-11, why=why)


_ROD = {"pitch_m": 1e-2, "helix_radius_m": 1e-8, "turns": 1.0, "filament_radius_m": 1e-5}
"""Its own drag about its axis is 1e-10 of what is added, and it does not tumble."""


@benchmark(185, "Step-out of a swimmer", HelicalSwimmerNode, scaled("quadratic_drag_n_m_s2", 2.0))
def swimmer_step_out(
    Swimmer, *, torque_n_m=1e-7, step_out_hz=100.0, slipping=(1.2, 2.0), locked=(0.5, 0.8),
    published_hz=((128.0, 181.0, 222.0), (144.0, 204.0, 250.0)), steps=2000,
):  # fmt: skip
    r"""$\bar\Omega = \omega - \sqrt{\omega^2 - \omega_\text{so}^2}$,
    $\omega_\text{so} = mB/c_1$; $\sin\delta = (\omega/\omega_\text{so})^2$,
    $\omega_\text{so} = \sqrt{n\,mB/c_2}$

    A body with a moment across its axis in a field that turns about that axis.

    Reference: Adler's equation for linear drag; the balance of torques for quadratic drag; the
    step-outs of de Boer et al. (2025) for one, two and three magnets in two diameters.
    Procedure:
    1. With c1 alone, beyond step-out, turn for one slip: the mean rate.
    2. With c2 alone, below step-out, wait: the sine of the lag.
    3. With one c2 for each diameter, from its first figure, turn at 0.99 and 1.01 of each of the
       six published rates for 100 rad: behind by less than a quarter turn, and by more than half.
    4. Extrapolate each from `steps` and twice as many.
    Covers: both drags, spin, integration of the pose, the torque of a magnetic body
    Excludes: swimming (MIME-VER-184), wobble
    """
    w_so = 2.0 * math.pi * step_out_hz
    c1, c2 = torque_n_m / w_so, torque_n_m / w_so**2
    members: list[tuple[float, ...]] = []
    for ratio in slipping:
        slip = 2.0 * math.pi / (w_so * math.sqrt(ratio**2 - 1.0))
        members.append((torque_n_m, c1, 0.0, ratio * w_so, slip))
    members += [(torque_n_m, 0.0, c2, ratio * w_so, 60.0 / w_so) for ratio in locked]
    for figures in published_hz:
        c2 = torque_n_m / (2.0 * math.pi * figures[0]) ** 2
        for n, figure in enumerate(figures, 1):
            for ratio in (0.99, 1.01):
                rate = 2.0 * math.pi * ratio * figure
                members.append((n * torque_n_m, 0.0, c2, rate, 100.0 / rate))

    def turn(*member: Any) -> tuple[Any, Any]:
        return _turn(Swimmer, *member)

    run = quick_jit(jax.vmap(turn, in_axes=(0, 0, 0, 0, 0, None)))
    columns = [jnp.array(column) for column in zip(*members, strict=True)]
    coarse, fine = run(*columns, steps), run(*columns, 2 * steps)
    rates, sines = (2.0 * np.array(f) - np.array(c) for c, f in zip(coarse, fine, strict=True))
    for k, ratio in enumerate(slipping):
        expected = w_so * (ratio - math.sqrt(ratio**2 - 1.0))
        error = abs(rates[k] / expected - 1.0)
        why = "the square of a step in units of a slip, after extrapolation"
        yield Measurement(f"Adler's rate at {ratio:g} of step-out", float(error), 3e-5, why=why)
    for k, ratio in enumerate(locked, len(slipping)):
        error = abs(sines[k] / ratio**2 - 1.0)
        why = "what is left of the transient"
        yield Measurement(f"quadratic lag at {ratio:g} of step-out", float(error), 1e-8, why=why)
    field = np.array([member[3] for member in members])
    behind = (100.0 * (1.0 - rates / field))[len(slipping) + len(locked) :]
    why = "0.99 of each published step-out: locked, less than a quarter turn behind"
    worst = float(behind[::2].max())
    yield Measurement("largest lag below the six figures", worst, math.pi / 2.0, "rad", why=why)
    why = "1.01 of each: it has lost half a turn and more (the inverse of the lag is limited)"
    least = float(1.0 / behind[1::2].min())
    yield Measurement("inverse of the lag above them", least, 1.0 / math.pi, "1/rad", why=why)


def _turn(
    Swimmer: Any, torque_n_m: Any, c1: Any, c2: Any, rate: Any, time_s: Any, steps: Any
) -> tuple[Any, Any]:
    """The mean spin, and the last sine of the lag."""
    dt, field_t = time_s / steps, 1e-3
    drag = {"linear_drag_n_m_s": c1, "quadratic_drag_n_m_s2": c2}
    rod = Swimmer("rod", 1e-4, **_ROD, viscosity_pa_s=1e-2, **drag)
    moment = torque_n_m / field_t * jnp.array([1.0, 0.0, 0.0])
    body = MagneticBodyNode("body", 1e-4, moment_a_m2=moment)

    def step(n: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        state, total, _ = carry
        phase = rate * dt * n
        field = field_t * jnp.stack([jnp.cos(phase), jnp.sin(phase), jnp.zeros_like(phase)])
        given = {"body_pose_world": state["pose_world"], "field_world": field}
        wrench = traced_fluxes(body, body.initial_state(), given, dt)["wrench_world"]
        state = traced_update(rod, state, {"wrench_world": wrench}, dt)
        return state, total + dt * state["twist_world"][5], wrench[5] / torque_n_m

    start = (rod.initial_state(), jnp.zeros(()), jnp.zeros(()))
    _, total, sine = jax.lax.fori_loop(0, steps, step, start)
    return total / time_s, sine


def _cross(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
