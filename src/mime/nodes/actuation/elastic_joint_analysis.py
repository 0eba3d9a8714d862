"""Resonances, damping and transfer functions of an elastic joint; how wrong an inserted body is.

J rotor (reflected through the gear), I output body, k stiffness, v damping, I_f inserted body (0
for the exact model), mu = I J / (I + J). Angles in rad, frequencies in rad/s. All functions are
pure; all but `largest_deflection_error` can be differentiated.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Number = float | Float[Array, ""] | np.floating


def reduced_inertia(J: Number, I: Number) -> Any:
    """mu = I J / (I + J), the inertia that the spring swings."""
    return I * J / (I + J)


def resonance(J: Number, I: Number, k: Number, I_f: Number = 0.0) -> Any:
    """sqrt(k / (mu + I_f)): both bodies free."""
    return jnp.sqrt(k / (reduced_inertia(J, I) + I_f))


def anti_resonance(I: Number, k: Number, I_f: Number = 0.0) -> Any:
    """sqrt(k / (I + I_f)): the motor torque that moves the output leaves the rotor at rest."""
    return jnp.sqrt(k / (I + I_f))


def locked_output_resonance(J: Number, k: Number, I_f: Number = 0.0) -> Any:
    """sqrt(k / (J + I_f)): the output held fast."""
    return jnp.sqrt(k / (J + I_f))


def critical_damping(J: Number, I: Number, k: Number, I_f: Number = 0.0) -> Any:
    """v_c = 2 sqrt(k (mu + I_f)): the least damping with which a free deflection never swings."""
    return 2.0 * jnp.sqrt(k * (reduced_inertia(J, I) + I_f))


def damping_ratio(J: Number, I: Number, k: Number, v: Number, I_f: Number = 0.0) -> Any:
    """zeta = v / v_c."""
    return v / critical_damping(J, I, k, I_f)


def transfer_function(
    J: Number,
    I: Number,
    k: Number,
    v: Number,
    I_f: Number = 0.0,
    *,
    output: str = "rotor",
    source: str = "motor",
) -> tuple[Float[Array, " 3"], Float[Array, " 5"]]:
    """(numerator, denominator) from a torque to an angle, highest power of s first.

    rotor / motor       ((I + I_f) s² + v s + k) / D
    output / motor      (I_f s² + v s + k) / D        (rotor / external is the same)
    output / external   ((J + I_f) s² + v s + k) / D
    D = (I + J) s² [(mu + I_f) s² + v s + k]
    """
    carried = {
        ("rotor", "motor"): I + I_f,
        ("output", "motor"): I_f,
        ("rotor", "external"): I_f,
        ("output", "external"): J + I_f,
    }
    if (output, source) not in carried:
        raise ValueError(
            f"output must be 'rotor' or 'output' and source 'motor' or 'external', "
            f"got {output!r} and {source!r}"
        )
    total = I + J
    numerator = [carried[output, source], v, k]
    denominator = [I * J + total * I_f, total * v, total * k, 0.0, 0.0]
    return jnp.stack([jnp.asarray(c, float) for c in numerator]), jnp.stack(
        [jnp.asarray(c, float) for c in denominator]
    )


class InsertedBodyError(NamedTuple):
    """What an inserted body of inertia I_f changes; all relative to the exact joint."""

    eps: Any
    """I_f / mu = (I_f / I)(1 + I / J). Not I_f / I, which a light rotor makes far too small."""
    frequency_error: Any
    """(1 + eps)^(-1/2) - 1, of the resonance."""
    damping_ratio_error: Any
    """The same number, of the damping ratio."""
    deflection_error: Any
    """eps / (2 e zeta) of the static deflection: the step response's largest error, to first
    order in eps, of a lightly damped joint. None without a damping ratio."""


def inserted_body_error(
    J: Number, I: Number, I_f: Number, damping_ratio: Number | None = None
) -> InsertedBodyError:
    """How far `model="inserted_body"` is from the exact joint: its only effect is mu -> mu + I_f.

    Statics, momentum and the rigid motion stay exact.
    """
    _require("J", J, above=True)
    _require("I", I, above=True)
    _require("I_f", I_f, above=False)
    eps = I_f / reduced_inertia(J, I)
    shift = jnp.expm1(-0.5 * jnp.log1p(eps))
    deflection = None
    if damping_ratio is not None:
        _require("damping_ratio", damping_ratio, above=True)
        deflection = eps / (2.0 * np.e * damping_ratio)
    return InsertedBodyError(eps, shift, shift, deflection)


def largest_deflection_error(eps: float, damping_ratio: float, per_period: int = 400) -> float:
    """max_t |x_f(t) - x(t)| / x_static of the two step responses, for any eps; 0 < zeta < 1.

    Both are 1 - e^(-zeta w t) (cos w_d t + (zeta w / w_d) sin w_d t), with w and zeta scaled by
    (1 + eps)^(-1/2) in x_f. Sampled `per_period` times per period: right to about 1e-4 of itself.
    """
    _require("eps", eps, above=False)
    if not 0.0 < damping_ratio < 1.0:
        raise ValueError(f"damping_ratio must be > 0 and < 1, got {damping_ratio!r}")
    end = 8.0 * (1.0 + eps) / damping_ratio  # the slower envelope has fallen to e^-8
    t = np.linspace(0.0, end, int(per_period * (1.0 + end / (2.0 * np.pi))))
    scale = (1.0 + eps) ** -0.5

    def step(w: float, zeta: float) -> np.ndarray:
        w_d = w * np.sqrt(1.0 - zeta**2)
        swing = np.cos(w_d * t) + zeta * w / w_d * np.sin(w_d * t)
        return 1.0 - np.exp(-zeta * w * t) * swing

    return float(np.max(np.abs(step(scale, scale * damping_ratio) - step(1.0, damping_ratio))))


def _require(name: str, value: Any, *, above: bool) -> None:
    """Refuse what is out of range; what is being traced cannot be looked at."""
    if isinstance(value, jax.core.Tracer):
        return
    if not (np.isfinite(value) and (value > 0 if above else value >= 0)):
        raise ValueError(f"{name} must be {'>' if above else '>='} 0 and finite, got {value!r}")
