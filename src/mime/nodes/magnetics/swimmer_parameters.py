"""The parameters of a helical swimmer, which of them go together, and its resistance."""

import functools
from collections.abc import Iterator
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import Node, Scalar
from mime.core.parameters import known, with_fields
from mime.core.problem import InputError, ParameterError, Problem
from mime.core.spec import effect, option, parameter
from mime.nodes.magnetics.resistive_force import (
    THEORIES,
    Helix,
    filament_coefficients,
    flow_reach,
    helix_resistance,
    sphere_resistance,
)
from mime.nodes.magnetics.stokeslets import least_tube_radius, points_of, unit_resistance
from mime.nodes.magnetics.swimmer_inertia import SwimmerInertia
from mime.nodes.magnetics.tube import Tube
from mime.nodes.magnetics.wall_drag import WIDEST_SPHERE

STOKESLETS = "stokeslets"
_SHAPE = ("pitch_m", "helix_radius_m", "turns", "filament_radius_m", "head_radius_m")
AnySwimmer = TypeVar("AnySwimmer", bound="SwimmerParameters")


def _call(build: Any) -> Any:
    return build() if callable(build) else build


class SwimmerParameters(Node):
    """A helix about z with a head, in a fluid, in open space or in a tube.   [F; T] = R [U; Omega]

    R follows its geometry in every step by resistive-force theory. By Stokeslets it is computed
    when the swimmer is built, for each Pa·s of viscosity.
    """

    pitch_m: Scalar = parameter("m", above=0.0, doc="lambda, length of a turn along the axis")
    helix_radius_m: Scalar = parameter("m", above=0.0, doc="rho, of the centre line")
    turns: Scalar = parameter("", above=0.0, doc="of the helix, whole or not")
    filament_radius_m: Scalar = parameter("m", above=0.0, doc="a")
    viscosity_pa_s: Scalar = parameter("Pa·s", above=0.0, doc="mu of the fluid")
    head_radius_m: Scalar | None = parameter(
        "m", above=0.0, default=None, doc="of a sphere that touches the upper end"
    )
    linear_drag_n_m_s: Scalar = parameter("N·m·s", at_least=0.0, default=0.0, doc="c1")
    quadratic_drag_n_m_s2: Scalar = parameter("N·m·s²", at_least=0.0, default=0.0, doc="c2")
    net_weight_n: Scalar = parameter("N", default=0.0, doc="weight less buoyancy, along -z")
    resistance_matrix: Float[Array, "6 6"] | None = parameter(
        "N·s/m, N·s, N·m·s", shape=(6, 6), default=None, doc="R in place of the theory's"
    )
    theory: str = option(default="lighthill", choices=(*THEORIES, STOKESLETS))
    """Which resistance: `lighthill` and `gray_hancock` are coefficients of a filament; by
    `stokeslets` every part feels the flow of all, and of the tube's wall."""
    handedness: str = option(default="right", choices=("right", "left"))
    tube: Tube | None = effect(Tube, doc="a straight tube about it")
    inertia: SwimmerInertia | None = effect(SwimmerInertia, doc="mass; without, none counts")
    by_stokeslets: Float[Array, "6 6"] | None = eqx.field(init=False, converter=_call)
    """R / mu of `theory="stokeslets"`: m, m² and m³. It comes last, when all else is as it will be.
    """

    def __post_init__(self) -> None:
        build: Any = self._built
        self.by_stokeslets = build

    def with_params(self: AnySwimmer, **values: Any) -> AnySwimmer:
        """The same swimmer with other values; R by Stokeslets is computed again where it changes.

        For that the geometry has to be numbers: it varies in no batch and has no gradients.
        """
        node = super().with_params(**values)
        if not (changed := self.built_from().intersection(values)):
            return node
        if not known(*map(node._value, self.built_from())):
            words = "varies in no batch and has no gradient: Stokeslets are computed for numbers"
            hint = "Build a graph for each value, or take theory = 'lighthill'"
            raise ParameterError(self.label, [Problem((min(changed),), words, hint)])
        return with_fields(node, by_stokeslets=node._built())

    def built_from(self) -> frozenset[str]:
        if self.theory != STOKESLETS or self.resistance_matrix is not None:
            return frozenset()
        shape = {name for name in _SHAPE if getattr(self, name) is not None}
        return frozenset(shape if self._drag_radius is None else shape | {"tube.radius_m"})

    def resistance(self) -> Float[Array, "6 6"]:
        """R about the helix' centre, in the body's frame; N·s/m, N·s and N·m·s. Without c1, c2."""
        if self.resistance_matrix is not None:
            return self.resistance_matrix
        mu, tube_radius_m = self.viscosity_pa_s, self._drag_radius
        if self.by_stokeslets is not None:
            return mu * self.by_stokeslets
        xi_t, xi_n = filament_coefficients(self._helix, mu, self.theory, tube_radius_m)
        R = helix_resistance(self._helix, xi_t, xi_n)
        if self.head_radius_m is None:
            return R
        return R + sphere_resistance(mu, self.head_radius_m, self._head_height, tube_radius_m)

    def value_problems(self) -> Iterator[Problem]:
        if not known(*map(self._value, {*_SHAPE, *self.built_from()})):
            if self.built_from() and self.by_stokeslets is None:
                words = "cannot be 'stokeslets' where the geometry is traced"
                yield Problem(("theory",), words, "Build the swimmer with numbers")
            return
        if self.tube is not None and not known(self.tube.radius_m):
            return
        yield from self._tube_problems()
        a, pitch = float(self.filament_radius_m), float(self.pitch_m)
        if float(self.turns) > 1.0 and pitch <= 2.0 * a:
            words = f"must be > {2.0 * a:g} m, twice the filament's radius, got {pitch:g} m"
            yield Problem(("pitch_m",), words, "One turn would lie in the next")
        elif self.resistance_matrix is not None:
            yield from self._matrix_problems()
        elif self.theory == STOKESLETS:
            try:
                points_of(self._helix)
            except InputError as error:
                yield Problem(("filament_radius_m",), f"is too thin: {error}")
        else:
            with jax.ensure_compile_time_eval():  # numbers, wherever other values are traced
                along, across = flow_reach(self._helix, self.theory, self._drag_radius)
                thickest = float(along**2 / across)  # where xi_t = xi_n
            if a >= thickest:
                words = f"must be < {thickest:.3g} m for {self.theory} on this helix, got {a:g} m"
                hint = "A thicker filament resists more along than across: the theory ends there"
                yield Problem(("filament_radius_m",), words, hint)

    def _matrix_problems(self) -> Iterator[Problem]:
        place = ("resistance_matrix",)
        if self.theory == STOKESLETS:
            yield Problem(("theory",), "must be 'lighthill', which is not looked at, with a matrix")
        if self.tube is not None and self.tube.wall_drag == "fits":
            words = "must be 'none' where the resistance is given: fits are for the theory's"
            yield Problem(("tube", "wall_drag"), words, "Give a matrix that knows the wall")
        if not known(self.resistance_matrix):
            return
        R = np.asarray(self.resistance_matrix)
        scale = np.sqrt(np.abs(np.outer(np.diag(R), np.diag(R))))
        if np.any(np.abs(R - R.T) > 1e-6 * scale):
            yield Problem(place, "must be symmetric", "R about the helix' centre, in its frame")
        elif np.any(np.diag(R) <= 0.0) or np.linalg.eigvalsh(R / scale).min() <= 0.0:
            words = "must be positive definite: drag takes energy from every motion"
            yield Problem(place, words, "R about the helix' centre, in its frame")

    def _tube_problems(self) -> Iterator[Problem]:
        if self.tube is None:
            return
        radius, place = float(self.tube.radius_m), ("tube", "radius_m")
        hull = float(self.helix_radius_m) + float(self.filament_radius_m)
        head = 0.0 if self.head_radius_m is None else float(self.head_radius_m)
        widest_drawn = max(hull, head)
        if radius <= widest_drawn:
            part = "the helix" if hull >= head else "the head"
            words = f"is too narrow: {part} has a radius of {widest_drawn:g} m, got {radius:g} m"
            yield Problem(place, words, "Give a wider tube or a thinner swimmer")
        elif self._drag_radius is None or self.resistance_matrix is not None:
            return
        elif self.theory == STOKESLETS:
            if radius < (least := least_tube_radius(self._helix, self.head_radius_m)):
                words = f"must be >= {least:.3g} m for Stokeslets, got {radius:g} m"
                yield Problem(place, words, "Give a wider tube, or take theory = 'lighthill'")
        elif head > WIDEST_SPHERE * radius:
            least = head / WIDEST_SPHERE
            words = f"must be >= {least:.3g} m for the drag of this head, got {radius:g} m"
            hint = "The formula for a sphere ends there; or take wall_drag='none'"
            yield Problem(place, words, hint)

    def _built(self) -> Float[Array, "6 6"] | None:
        if not self.built_from() or any(self.problems()):
            return None  # problems are told when the node is checked
        if not known(*map(self._value, self.built_from())):
            return None  # and so is this
        return jnp.asarray(unit_resistance(self._helix, self.head_radius_m, self._drag_radius))

    def _value(self, address: str) -> Any:
        return functools.reduce(getattr, address.split("."), self)

    @property
    def _head_height(self) -> Scalar:
        """Where the head's centre is on the axis, m."""
        return 0.5 * self.turns * self.pitch_m + self.head_radius_m

    @property
    def _drag_radius(self) -> Scalar | np.ndarray | None:
        """Radius of the tube whose wall adds to the drag, m."""
        if self.tube is None or self.tube.wall_drag == "none":
            return None
        return self.tube.radius_m

    @property
    def _helix(self) -> Helix:
        sign = 1.0 if self.handedness == "right" else -1.0
        return Helix(
            self.pitch_m, self.helix_radius_m, self.turns, self.filament_radius_m, sign
        )  # fmt: skip
