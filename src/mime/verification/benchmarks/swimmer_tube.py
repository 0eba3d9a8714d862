"""MIME-VER-187: a swimmer in a tube."""

import math

import numpy as np
import scipy

from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
from mime.nodes.magnetics.tube import Tube
from mime.verification.benchmark import Measurement, benchmark, scaled
from mime.verification.programs import final_state

_TABLE = {0.1: 1.263, 0.2: 1.680, 0.3: 2.371, 0.4: 3.596, 0.5: 5.970, 0.6: 11.135}
"""Haberman and Sayre's: drag of a sphere along the axis over Stokes', by its part of the tube."""


@benchmark(187, "A swimmer in a tube", HelicalSwimmerNode, scaled("tube.friction", 0.5))
def swimmer_tube(
    Swimmer, *, tube_radius_m=2e-3, hull_m=0.5e-3, filament_radius_m=0.05e-3, viscosity_pa_s=1e-3,
    net_weight_n=1e-6, stiffness_n_per_m=10.0, soft_depth_m=1e-6, friction=0.3,
    creep_speed_m_s=1e-5, pushes_of_mu_n=(0.5, 0.9, 1.1, 4.0), stiff_n_per_m=1e6, timestep_s=1e-3,
):  # fmt: skip
    r"""$N = k g^2/2w$ for $g < w$, $\mathbf F = -\mu N\,\mathbf v/\sqrt{v^2 + v_0^2}$;
    drag of a sphere on the axis $6\pi\mu b\,K(b/R)$

    A swimmer that falls onto the wall of a tube, is pushed along it, creeps, slides and rolls.

    Reference: Haberman and Sayre's table; the weight; the balance of push, drag and friction for
    sliding and rolling, by SciPy's root finder.
    Procedure:
    1. Compare the drag of a sphere (its helix vanishes) along the axis with the table.
    2. Let a flat ring fall on the wall and rest, once on a wall that an explicit step of a
       hundred-millionth of this one would need. Compare its depth.
    3. Push the resting ring along the tube, below and above what friction can hold. Compare speed
       and spin.
    Covers: wall, friction, drag of a sphere in a tube
    Excludes: drag of a helix in a tube, of bodies off its axis and across it
    """
    given = {
        "pitch_m": 1e-13, "helix_radius_m": hull_m - filament_radius_m, "turns": 1.0,
        "filament_radius_m": filament_radius_m, "viscosity_pa_s": viscosity_pa_s,
        "net_weight_n": net_weight_n,
    }  # fmt: skip
    wall = {
        "radius_m": tube_radius_m, "stiffness_n_per_m": stiffness_n_per_m, "friction": friction,
        "soft_depth_m": soft_depth_m, "creep_speed_m_s": creep_speed_m_s,
    }  # fmt: skip
    thin = given | {"helix_radius_m": 1e-10, "filament_radius_m": 1e-11, "head_radius_m": hull_m}
    for ratio, exact in _TABLE.items():
        ball = Swimmer("ball", timestep_s, **thin, tube=Tube(radius_m=hull_m / ratio))
        stokes = 6.0 * math.pi * viscosity_pa_s * hull_m
        error = abs(float(ball.resistance()[2, 2]) / stokes / exact - 1.0)
        why = "their formula against their table, which has four digits"
        limit = 6e-4 if ratio < 0.35 else {0.4: 4.1e-3, 0.5: 0.017, 0.6: 0.049}[ratio]
        yield Measurement(f"drag of a sphere {ratio:g} as wide", error, limit, why=why)
    for stiffness in (stiffness_n_per_m, stiff_n_per_m):
        ring = Swimmer(
            "ring", timestep_s, **given, tube=Tube(**wall | {"stiffness_n_per_m": stiffness})
        )
        rest = final_state(ring, {}, 200)
        depth = hull_m - tube_radius_m - float(rest["pose_world"][2])
        error = abs(depth / math.sqrt(soft_depth_m * net_weight_n / stiffness) - 1.0)
        why = "two balls bear half of the weight each; a depth is a difference of millimetres"
        yield Measurement(f"depth at rest, {stiffness:g} N/m", error, 1e-7, why=why)
    ring = Swimmer("ring", timestep_s, **given, tube=Tube(**wall))
    R = np.array(ring.resistance())
    lying = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    lying[2] = hull_m - tube_radius_m
    lying[2] -= math.sqrt(soft_depth_m * net_weight_n / stiffness_n_per_m)
    start = {"pose_world": lying}
    for share in pushes_of_mu_n:
        push = share * friction * net_weight_n

        def braking(v: float) -> float:
            return friction * net_weight_n * v / math.hypot(v, creep_speed_m_s)

        def wrong(v: float, push: float = push) -> float:
            return (push - braking(v)) / R[0, 0] - braking(v) * hull_m**2 / R[4, 4] - v

        v = scipy.optimize.brentq(wrong, 0.0, push / R[0, 0], xtol=1e-18, rtol=1e-14)
        wrench = np.array([push, 0.0, 0.0, 0.0, 0.0, 0.0])
        twist = np.array(final_state(ring, {"wrench_world": wrench}, 1, start=start)["twist_world"])
        speed, spin = (push - braking(v)) / R[0, 0], braking(v) * hull_m / R[4, 4]
        error = max(abs(twist[0] / speed - 1.0), abs(twist[4] / spin - 1.0))
        why = "a rounding of the depth, in the force"
        yield Measurement(f"speed and spin, pushed by {share:g} mu N", float(error), 1e-7, why=why)
