"""MIME-NODE-105: a small magnetic body in the field of a magnet, and what it does to the magnet."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mime.core.drawing import Arrow, Drawing, Frame, Value
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
from mime.core.pose import IDENTITY_POSE, quat_to_matrix
from mime.core.problem import Problem
from mime.core.spec import (
    LABORATORY,
    Input,
    Mapped,
    NodeMeta,
    Output,
    ValidatedRange,
    effect,
    parameter,
)
from mime.nodes.magnetics.soft_ellipsoid import SoftEllipsoid

_HERE = "mime.nodes.magnetics.magnetic_body.MagneticBodyNode"
_MOMENT_RGBA = (0.85, 0.1, 0.1, 1.0)


class MagneticBodyNode(Node):
    """Body with a moment: force and torque on it, and the reaction on the magnet.

        m = R (m_0 + soft(Rᵀ B)),   B = B_magnet + B_0
        on the body, at its origin:    F = (dB/dp)ᵀ m,   tau = m x B
        on the magnet, at its centre:  -F,   -m x B_magnet - r x F,    r = p - c
        about the rotor's axis â:      load_torque = â . (torque on the magnet about the axis)

    `load_torque` has the sign of a motor's input: positive, it turns the rotor forward about â.
    B_0 is nobody's: no magnet feels a reaction to it.
    """

    is_sampled: ClassVar[bool | None] = False
    example: ClassVar[Mapping[str, Any]] = {"moment_a_m2": (1.0, 0.0, 0.0)}
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-105",
        version="1.1.0",
        stability="experimental",
        summary="Magnetic body: force, torque, and the reaction on the magnet and its motor.",
        equations=(
            r"\mathbf m = R\Big(\mathbf m_0 + \frac{V}{\mu_0}\operatorname{diag}"
            r"\frac{\chi}{1 + N_i\chi}\,R^\top\mathbf B\Big)",
            r"\mathbf F = (\nabla\mathbf B)^\top\mathbf m, \quad "
            r"\boldsymbol\tau = \mathbf m\times\mathbf B",
            r"\mathbf F_\text{magnet} = -\mathbf F, \quad \boldsymbol\tau_\text{magnet} = "
            r"-\mathbf m\times\mathbf B_\text{magnet} - (\mathbf p - \mathbf c)\times\mathbf F",
        ),
        discretisation=(
            "Nothing is integrated: fluxes follow poses and fields of the same step.",
            "The state holds the moment of the last step, so that a run stops where it has none.",
        ),
        assumptions=(
            "The body is small: the field and its gradient are those at its origin.",
            "Its own field does not change the magnet's magnetisation.",
            "All of `field_world` is the one magnet's whose pose is wired.",
        ),
        limitations=(
            "One body node gives the reaction on one magnet; a permanent moment may have several.",
            "A soft body has constant susceptibility: no saturation, no hysteresis.",
            "Inside the magnet there is no answer: the moment is not a number and the run stops.",
        ),
        validated_ranges=(ValidatedRange("moment_a_m2", 1e-6, 1.0, "A·m²", "against Magpylib"),),
        operating_context=f"{LABORATORY} It is the link between a magnet "
        "outside and a microrobot in a vessel, here a tube of the laboratory.",
        changelog=(
            ("1.0.0", "2026-11-18", "First version."),
            ("1.1.0", "2026-11-18", "`angle_to_field`."),
        ),
        references=(
            "[@Jackson1999] Jackson, J. D. (1999). Classical Electrodynamics, section 5.7.",
            "[@Osborn1945] Osborn, J. A. (1945). Demagnetizing factors of the general ellipsoid.",
        ),
        implementation=(
            Mapped("F, tau and the reaction", f"{_HERE}.compute_boundary_fluxes"),
            Mapped("m", f"{_HERE}.moment_world"),
            Mapped("soft", "mime.nodes.magnetics.soft_ellipsoid.SoftEllipsoid.moment"),
        ),
    )

    moment_a_m2: Float[Array, "3"] | None = parameter(
        "A·m²", shape=(3,), default=None, doc="m_0, permanent, in the body's frame"
    )
    soft: SoftEllipsoid | None = effect(SoftEllipsoid, doc="matter that the field magnetises")
    background_field_t: Float[Array, "3"] | None = parameter(
        "T", shape=(3,), default=None, doc="B_0 in the world, such as Earth's"
    )
    rotor_axis: Float[Array, "3"] = parameter(
        "", shape=(3,), default=(0.0, 0.0, 1.0), doc="â of the rotor, in the magnet's frame"
    )
    rotor_axis_point_m: Float[Array, "3"] | None = parameter(
        "m", shape=(3,), default=None, doc="a point of the rotor's axis, in the magnet's frame"
    )

    def value_problems(self) -> Iterator[Problem]:
        moment = self.moment_a_m2
        if self.soft is None and (moment is None or _is_zero(moment)):
            hint = "Give a vector in A·m², or `soft`"
            yield Problem(("moment_a_m2",), "is zero: the field does nothing to the body", hint)
        if _is_zero(self.rotor_axis):
            hint = "Give a vector like (0, 0, 1)"
            yield Problem(("rotor_axis",), "has length 0 and so no direction", hint)

    def boundary_input_spec(self) -> dict[str, Input]:
        return {
            "body_pose_world": Input((7,), "m", IDENTITY_POSE, "replacive", "p and R"),
            "magnet_pose_world": Input((7,), "m", IDENTITY_POSE, "replacive", "c, and â's frame"),
            "field_world": Input((3,), "T", 0.0, "additive", "B of the magnet at p"),
            "field_gradient_world": Input((3, 3), "T/m", 0.0, "additive", "dB_i/dp_j at p"),
            "inside": Input((), "", 0.0, "additive", "1 where p is in a magnet, else 0"),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "moment_world": Output((3,), "A·m²", "m"),
            "wrench_world": Output((6,), "N, N·m", "F and tau on the body, at p"),
            "magnet_wrench_world": Output((6,), "N, N·m", "on the magnet, at its centre c"),
            "load_torque": Output((), "N·m", "on the rotor, about its axis"),
            "potential_energy": Output((), "J", "-m_0 . B - m_soft . B / 2"),
            "angle_to_field": Output((), "rad", "between m and B: the lag in a turning field"),
        }

    def state_spec(self) -> dict[str, Output]:
        return {"moment_world": Output((3,), "A·m²", "m; not a number inside of a magnet")}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The moment follows the field at once."""
        permanent, induced = self.moment_world(boundary_inputs)
        return {"moment_world": permanent + induced}

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The wrenches on body and magnet."""
        u = {name: jnp.asarray(value) for name, value in boundary_inputs.items()}
        permanent, induced = self.moment_world(u)
        m, B = permanent + induced, self._field(u)
        force = u["field_gradient_world"].T @ m
        arm = u["body_pose_world"][:3] - u["magnet_pose_world"][:3]
        moment_on_magnet = -jnp.cross(m, u["field_world"]) - jnp.cross(arm, force)
        R_world_magnet = quat_to_matrix(u["magnet_pose_world"][3:])
        about_axis = moment_on_magnet
        if self.rotor_axis_point_m is not None:
            about_axis = about_axis + jnp.cross(R_world_magnet @ self.rotor_axis_point_m, force)
        axis = self.rotor_axis / jnp.sqrt(self.rotor_axis @ self.rotor_axis)
        return {
            "moment_world": m,
            "wrench_world": jnp.concatenate([force, jnp.cross(m, B)]),
            "magnet_wrench_world": jnp.concatenate([-force, moment_on_magnet]),
            "load_torque": (R_world_magnet @ axis) @ about_axis,
            "potential_energy": -(permanent + 0.5 * induced) @ B,
            "angle_to_field": _angle(m, B),
        }

    def moment_world(self, inputs: Values) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """The permanent and the induced moment, A·m²; not numbers where the body is in a magnet."""
        R_world_body = quat_to_matrix(jnp.asarray(inputs["body_pose_world"])[3:])
        B = self._field(inputs)
        permanent, induced = jnp.zeros_like(B), jnp.zeros_like(B)
        if self.moment_a_m2 is not None:
            permanent = R_world_body @ self.moment_a_m2
        if self.soft is not None:
            induced = R_world_body @ self.soft.moment(R_world_body.T @ B)
        return jnp.where(jnp.asarray(inputs["inside"]) > 0.5, jnp.nan, permanent), induced

    def drawing(self) -> Drawing:
        """Its moment as an arrow."""
        arrow = Arrow(
            "body", rgba=_MOMENT_RGBA, layer="fields", vector=Value("moment_world"), reach=0.02,
            unit="A·m²", what=f"moment of {self.name}",
        )  # fmt: skip
        return Drawing((Frame("body", follow=Value("body_pose_world")),), (arrow,), size_m=0.04)

    def _field(self, inputs: Values) -> Float[Array, "3"]:
        """B at the body, with the background."""
        B = jnp.asarray(inputs["field_world"])
        return B if self.background_field_t is None else B + self.background_field_t


def _angle(a: Float[Array, "3"], b: Float[Array, "3"]) -> Float[Array, ""]:
    """Between two vectors, rad; 0 with a gradient of 0 where they are parallel."""
    cross = jnp.cross(a, b)
    square = cross @ cross
    parallel = square == 0.0
    sine = jnp.where(parallel, 0.0, jnp.sqrt(jnp.where(parallel, 1.0, square)))
    return jnp.arctan2(sine, a @ b)


def _is_zero(vector: ArrayLike) -> bool:
    return known(vector) and not np.any(np.asarray(vector))
