"""MIME-NODE-101: a permanent magnet."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.pose import IDENTITY_POSE, quat_to_matrix
from mime.core.problem import InputError, Problem
from mime.core.spec import (
    LABORATORY,
    Input,
    Mapped,
    NodeMeta,
    Output,
    ValidatedRange,
    option,
    parameter,
)
from mime.nodes.magnetics.cylinder_field import cylinder_field, inside_cylinder
from mime.nodes.magnetics.dipole_field import MU_0, dipole_field
from mime.nodes.magnetics.drawing import magnet_drawing

_HERE = "mime.nodes.magnetics.permanent_magnet.PermanentMagnetNode"
_OUTSIDE_M = (0.0, 0.0, 1.0)
"""Where a point is until it is given: delayed edges begin with fluxes that must be finite."""


class PermanentMagnetNode(Node):
    """Permanent magnet that is carried about: its field and gradient at given points.

        B(p) = R B_m(Rᵀ (p - c)) + B_0,     dB/dp = R B_m' Rᵀ
        dipole:    B_m = mu0 / (4 pi) (3 (m . r̂) r̂ - m) / r³
        cylinder:  uniformly magnetised, exact (`cylinder_field`); its axis is z of its frame

    c and R are the magnet's pose. A magnet with a radius and a length is a cylinder of the
    magnetisation M = m / V; without, a dipole. Fields of several magnets add where they are wired.
    """

    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-101",
        version="1.0.0",
        stability="experimental",
        summary="Permanent magnet: exact cylinder or dipole; field and gradient at points.",
        equations=(
            r"\mathbf B(\mathbf p) = R\,\mathbf B_m\big(R^\top(\mathbf p - \mathbf c)\big) "
            r"+ \mathbf B_0, \quad \nabla\mathbf B = R\,\nabla\mathbf B_m R^\top",
            r"\mathbf B_m = \frac{\mu_0}{4\pi}\,\frac{3(\mathbf m\cdot\hat{\mathbf r})"
            r"\hat{\mathbf r} - \mathbf m}{r^3} \quad\text{(dipole)}",
            r"\mathbf B_m = \mu_0 M_z \nabla\times(\Psi\,\hat{\mathbf z}\times\mathbf r) "
            r"- \mu_0\nabla\big((M_x x + M_y y)\Psi\big) + \mu_0\mathbf M_\perp\chi "
            r"\quad\text{(cylinder)}",
        ),
        discretisation=(
            "Nothing is integrated: fluxes follow the pose and the points of the same step.",
            "Elliptic integrals by the arithmetic-geometric mean; gradients by differentiation.",
        ),
        assumptions=(
            "The magnetisation is uniform and rigid: no field changes it.",
            "Fields are quasi-static: no eddy currents, no waves.",
        ),
        limitations=(
            "At a cylinder's rim B is infinite, and at a dipole's centre; there it is not finite.",
            "On a cylinder's surface, where B jumps, the mean of both sides is given.",
            "No other permeable matter: the field is that of free space.",
        ),
        validated_ranges=(
            ValidatedRange("radius_m", 1e-3, 0.1, "m", "against Magpylib"),
            ValidatedRange("length_m", 1e-3, 0.1, "m", "against Magpylib, to 100 radii away"),
        ),
        operating_context=f"{LABORATORY} Held by an arm and spun by a motor outside of the vessel, "
        "it drives what swims within; the rig of this chain is `mime run helical_drive`.",
        changelog=(("1.0.0", "2026-11-18", "First version."),),
        references=(
            "[@Caciagli2018] Caciagli, A., Baars, R. J., Philipse, A. P., Kuipers, B. W. M. "
            "(2018). Exact expression for the magnetic field of a finite cylinder with arbitrary "
            "uniform magnetization.",
            "[@Derby2010] Derby, N., Olbert, S. (2010). Cylindrical magnets and ideal solenoids.",
            "[@Bulirsch1969] Bulirsch, R. (1969). Numerical calculation of elliptic integrals and "
            "elliptic functions. III.",
        ),
        implementation=(
            Mapped("B, dB/dp", f"{_HERE}.compute_boundary_fluxes"),
            Mapped("Psi", "mime.nodes.magnetics.cylinder_field.cylinder_field"),
            Mapped("dipole", "mime.nodes.magnetics.dipole_field.dipole_field"),
        ),
    )

    moment_a_m2: Scalar = parameter("A·m²", above=0.0, doc="|m| = M V")
    radius_m: Scalar | None = parameter("m", above=0.0, default=None, doc="a of the cylinder")
    length_m: Scalar | None = parameter("m", above=0.0, default=None, doc="of the cylinder")
    magnetisation_axis: Float[Array, "3"] = parameter(
        "", shape=(3,), default=(1.0, 0.0, 0.0), doc="direction of m in the magnet's frame"
    )
    background_field_t: Float[Array, "3"] | None = parameter(
        "T", shape=(3,), default=None, doc="B_0 in the world, such as Earth's; in one magnet only"
    )
    model: str = option(default="exact", choices=("exact", "dipole"))
    """`exact`: a cylinder where its size is given; `dipole` even then, which is right far away."""
    points: int | None = option(default=None)
    """How many points there are: shapes are (n, 3); None: one, and shapes are (3,)."""

    def value_problems(self) -> Iterator[Problem]:
        sizes = {"radius_m": self.radius_m, "length_m": self.length_m}
        missing = [name for name, value in sizes.items() if value is None]
        if len(missing) == 1:
            yield Problem((missing[0],), "is needed by a cylinder", "Give it, or neither: a dipole")
        axis = self.magnetisation_axis
        if not isinstance(axis, jax.core.Tracer) and not np.any(np.asarray(axis)):
            place = ("magnetisation_axis",)
            yield Problem(place, "has length 0 and so no direction", "Give a vector like (1, 0, 0)")
        if self.points is not None and (isinstance(self.points, bool) or self.points < 1):
            yield Problem(("points",), f"must be a count from 1 or None, got {self.points!r}", "")

    def boundary_input_spec(self) -> dict[str, Input]:
        return {
            "magnet_pose_world": Input((7,), "m", IDENTITY_POSE, "replacive", "c and R"),
            "points_world": Input((*self._many, 3), "m", _OUTSIDE_M, "replacive", "p, for B"),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "field_world": Output((*self._many, 3), "T", "B at the points"),
            "field_gradient_world": Output((*self._many, 3, 3), "T/m", "dB_i/dp_j there"),
            "moment_world": Output((3,), "A·m²", "m"),
            "inside": Output(self._many, "", "1 where a point is in the magnet, else 0"),
        }

    def state_spec(self) -> dict[str, Output]:
        return {}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """A magnet has no state."""
        return state

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Field and gradient at the points."""
        pose = jnp.asarray(boundary_inputs["magnet_pose_world"])
        points = jnp.asarray(boundary_inputs["points_world"])
        R_world_magnet = quat_to_matrix(pose[3:])

        def twice(point: Float[Array, "3"]) -> tuple[Array, Array]:
            field = self._field(point)
            return field, field  # once to differentiate, once as it is

        def at(point_world: Float[Array, "3"]) -> tuple[Array, Array, Array]:
            point = R_world_magnet.T @ (point_world - pose[:3])
            gradient, field = jax.jacfwd(twice, has_aux=True)(point)
            gradient_world = R_world_magnet @ gradient @ R_world_magnet.T
            field_world = R_world_magnet @ field
            if self.background_field_t is not None:
                field_world = field_world + self.background_field_t
            return field_world, gradient_world, self._inside(point)

        field, gradient, inside = at(points) if self.points is None else jax.lax.map(at, points)
        return {
            "field_world": field,
            "field_gradient_world": gradient,
            "moment_world": R_world_magnet @ (self.moment_a_m2 * self._direction),
            "inside": inside,
        }

    @classmethod
    def from_remanence(
        cls,
        name: str,
        timestep: float,
        remanence_t: float,
        radius_m: float,
        length_m: float,
        **parameters_and_options: Any,
    ) -> "PermanentMagnetNode":
        """The cylinder of a remanence B_r = mu0 M, T: its moment is B_r V / mu0."""
        moment = remanence_t * math.pi * radius_m**2 * length_m / MU_0
        given = {"moment_a_m2": moment, "radius_m": radius_m, "length_m": length_m}
        return cls(name, timestep, **{**given, **parameters_and_options})

    def remanence(self) -> Scalar:
        """B_r = mu0 m / V, T; of a magnet whose size is known."""
        if self.radius_m is None or self.length_m is None:
            raise InputError(f"{self.name}: a magnet without a size has no remanence")
        return MU_0 * self.moment_a_m2 / (math.pi * self.radius_m**2 * self.length_m)

    def drawing(self) -> Drawing:
        """A cylinder with its north half, or an arrow."""
        return magnet_drawing(self)

    def _field(self, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """B in the magnet's frame, at a point of that frame."""
        if self.model == "dipole" or self.radius_m is None or self.length_m is None:
            return dipole_field(point, self.moment_a_m2 * self._direction)
        a, half = self.radius_m, 0.5 * self.length_m / self.radius_m
        return self.remanence() * cylinder_field(point / a, half, self._direction)

    def _inside(self, point: Float[Array, "3"]) -> Float[Array, ""]:
        if self.radius_m is None or self.length_m is None:
            return jnp.zeros_like(point[0])
        return inside_cylinder(point / self.radius_m, 0.5 * self.length_m / self.radius_m)

    @property
    def _many(self) -> tuple[int, ...]:
        return () if self.points is None else (self.points,)

    @property
    def _direction(self) -> Any:
        axis = self.magnetisation_axis
        return axis / jnp.sqrt(axis @ axis)
