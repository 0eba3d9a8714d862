"""MIME-VER-186: which axis a swimmer turns about near a spinning magnet, and how it wobbles."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.node import traced_fluxes, traced_update
from mime.core.pose import quat_from_axis_angle, quat_to_matrix
from mime.nodes.magnetics.dipole_field import MU_0
from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
from mime.nodes.magnetics.magnetic_body import MagneticBodyNode
from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode
from mime.verification.benchmark import Measurement, benchmark, scaled

_ROD = {"pitch_m": 1e-2, "helix_radius_m": 1e-13, "turns": 1.0, "filament_radius_m": 1e-5}
"""No coupling of turning and moving, and no drag about its axis but c1."""


@benchmark(
    186, "Tilt and wobble of a swimmer", HelicalSwimmerNode, scaled("linear_drag_n_m_s", 0.5)
)
def swimmer_tilt(
    Swimmer, *, magnet_moment_a_m2=18.89, distance_m=0.15, off_axis_deg=(0.0, 25.0, 50.0),
    misaligned_deg=(2.0, 4.0), body_moment_a_m2=1e-4, viscosity_pa_s=1e-2, rate_of_step_out=0.3,
    drag_ratio=0.3, turns=80, steps_per_turn=100,
):  # fmt: skip
    r"""$\hat{\boldsymbol\omega} \propto H^{-1}\hat{\boldsymbol\Omega}$,
    $H^{-1} = \tfrac32\hat{\mathbf r}\hat{\mathbf r}^\top - 1$; and
    $\sin 2\psi = 2 m B_\parallel / (\omega (c_\perp - c_\parallel))$

    A magnet spins about an axis; its moment is across that axis. Off the axis the field turns about
    another one, which the swimmer takes for its own. Where the magnet's moment is not quite across
    the axis, a constant field along it stays, and the swimmer's axis goes round a cone.

    Reference: the dipole's tensor; the balance of torques on a body that turns steadily about the
    field's axis, whose drag is c_parallel about its own axis and c_perp across it.
    Procedure:
    1. Spin the magnet with the swimmer at an angle to the spin axis, held in its place; start it
       5 degrees off. Compare its mean axis in the last turn with that of the field.
    2. On the spin axis, misalign the magnet. Compare the half-angle of the swimmer's cone.
    Covers: field of a turning dipole, tilt, wobble, orientation in six degrees of freedom
    Excludes: step-out (MIME-VER-185), swimming (MIME-VER-184)
    """
    # c_perp of the rod from its length; c_parallel is a part of that; both balance m B at step-out.
    across = float(Swimmer("rod", 1e-3, **_ROD, viscosity_pa_s=viscosity_pa_s).resistance()[3, 3])
    about = drag_ratio * across
    field = MU_0 / (4.0 * math.pi) * magnet_moment_a_m2 / distance_m**3
    omega = rate_of_step_out * body_moment_a_m2 * field / about
    dt = 2.0 * math.pi / omega / steps_per_turn
    given = {"linear_drag_n_m_s": about, "viscosity_pa_s": viscosity_pa_s}
    body = MagneticBodyNode("body", 1e-3, moment_a_m2=jnp.array([body_moment_a_m2, 0.0, 0.0]))

    def spin(off: Any, misaligned: Any) -> Any:
        """Mean of the axis in the last turn."""
        swimmer = Swimmer("rod", 1e-3, **_ROD, **given)
        axis = jnp.stack([jnp.cos(misaligned), jnp.zeros_like(off), jnp.sin(misaligned)])
        magnet = PermanentMagnetNode(
            "magnet", 1e-3, moment_a_m2=magnet_moment_a_m2, magnetisation_axis=axis
        )
        place = distance_m * jnp.stack([jnp.sin(off), jnp.zeros_like(off), jnp.cos(off)])
        lean = jnp.arctan2(1.5 * jnp.sin(off) * jnp.cos(off), 1.5 * jnp.cos(off) ** 2 - 1.0)
        upright = quat_from_axis_angle((0.0, 1.0, 0.0), lean + math.radians(5.0))
        state = swimmer.initial_state()
        state["pose_world"] = jnp.concatenate([place, upright])

        def step(n: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, last = carry
            turn = quat_from_axis_angle((0.0, 0.0, 1.0), omega * dt * n)
            pose = jnp.concatenate([jnp.zeros(3), turn])
            seen = {"magnet_pose_world": pose, "points_world": place}
            B = traced_fluxes(magnet, {}, seen, dt)["field_world"]
            at = {"body_pose_world": state["pose_world"], "field_world": B}
            wrench = traced_fluxes(body, body.initial_state(), at, dt)["wrench_world"]
            torque = jnp.concatenate([jnp.zeros(3), wrench[3:]])
            state = traced_update(swimmer, state, {"wrench_world": torque}, dt)
            now = quat_to_matrix(state["pose_world"][3:])[:, 2]
            counts = n >= (turns - 1) * steps_per_turn
            return state, last + jnp.where(counts, now, 0.0)

        start = (state, jnp.zeros(3))
        return jax.lax.fori_loop(0, turns * steps_per_turn, step, start)[1] / steps_per_turn

    members = [(math.radians(off), 0.0) for off in off_axis_deg]
    members += [(0.0, math.radians(angle)) for angle in misaligned_deg]
    columns = [jnp.array(column) for column in zip(*members, strict=True)]
    means = np.array(jax.jit(jax.vmap(spin))(*columns))
    for off, mean in zip(off_axis_deg, means, strict=False):
        r = np.array([math.sin(math.radians(off)), 0.0, math.cos(math.radians(off))])
        wanted = 1.5 * r * r[2] - np.array([0.0, 0.0, 1.0])
        cosine = mean @ wanted / np.linalg.norm(mean) / np.linalg.norm(wanted)
        error = math.degrees(math.acos(min(1.0, float(cosine))))
        lean = math.degrees(math.acos(float(wanted[2] / np.linalg.norm(wanted))))
        words = f"axis of the swimmer {off:g}° off, {lean:.1f}° from the spin axis"
        why = "what is left of the 5 degrees that it started off by, and an acos near 1"
        yield Measurement(words, error, 1e-4, "°", why=why)
    for k, angle in enumerate(misaligned_deg, len(off_axis_deg)):
        constant = 2.0 * field * math.sin(math.radians(angle))
        cone = 0.5 * math.asin(2.0 * body_moment_a_m2 * constant / (omega * (across - about)))
        error = float(abs(np.linalg.norm(means[k]) / math.cos(cone) - 1.0))
        words = (
            f"cosine of the wobble's half-angle, {math.degrees(cone):.2f}°, magnet {angle:g}° off"
        )
        yield Measurement(words, error, 1e-8, why="a steady turn is exact; what is left to settle")
