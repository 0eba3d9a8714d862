"""MIME-NODE-106: a helical swimmer at low Reynolds number."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.monitor import Monitor
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known, with_fields
from mime.core.pose import (
    IDENTITY_POSE,
    quat_from_rotation_vector,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
)
from mime.core.problem import Problem
from mime.core.spec import (
    Input,
    Mapped,
    NodeMeta,
    Output,
    ValidatedRange,
    effect,
    option,
    parameter,
)
from mime.nodes.magnetics.drag_balance import Balance, balanced_twist, free_twist
from mime.nodes.magnetics.drawing import swimmer_drawing
from mime.nodes.magnetics.resistive_force import (
    THEORIES,
    Helix,
    filament_coefficients,
    flow_reach,
    helix_resistance,
    sphere_resistance,
)
from mime.nodes.magnetics.stokeslets import stokeslet_resistance
from mime.nodes.magnetics.swimmer_inertia import SwimmerInertia
from mime.nodes.magnetics.tube import Contacts, Tube
from mime.nodes.magnetics.wall_drag import WIDEST_SPHERE
from mime.xla.stacking import stack_scalars

_HERE = "mime.nodes.magnetics.helical_swimmer.HelicalSwimmerNode"
_RESISTIVE = "mime.nodes.magnetics.resistive_force"
_WALL = "of the tube on the swimmer, with friction"
MOST_TURN_RAD = 0.5
"""In one step, which holds the wrench of its beginning."""


class HelicalSwimmerNode(Node):
    """Helix with a head in a viscous fluid: six degrees of freedom, without inertia or with it.

        [F; T] = R [U - v; Omega] + (c1 Omega_z + c2 |Omega_z| Omega_z) e_z     (body's frame)
        dp/dt = U,   dq/dt = Omega q / 2

    R is the 6x6 resistance of a helix about z and of a spherical head, from their geometry, by
    resistive-force theory; v is the fluid's velocity; c1 and c2 are further drag of its turning
    about its axis, such as that of a wall or of a turbulent fluid.
    """

    is_sampled: ClassVar[bool | None] = False
    example: ClassVar[Mapping[str, Any]] = {"filament_radius_m": 0.1}
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-106",
        version="1.2.0",
        stability="experimental",
        summary="Helical swimmer: 6x6 resistance from geometry, step-out, tube, inertia.",
        equations=(
            r"\begin{bmatrix}\mathbf F\\\mathbf T\end{bmatrix} = R\begin{bmatrix}\mathbf U - "
            r"\mathbf v\\\boldsymbol\Omega\end{bmatrix} + (c_1\Omega_z + c_2|\Omega_z|\Omega_z)"
            r"\,\mathbf e_z",
            r"R = \int \xi_n J^\top J + (\xi_t - \xi_n)\,\mathbf w\mathbf w^\top\,ds + "
            r"R_\text{head}, \quad J = [1, -[\mathbf x]_\times], \quad "
            r"\mathbf w = (\mathbf t, \mathbf x\times\mathbf t)",
        ),
        discretisation=(
            "Velocities follow the wrench of the step, exactly: linear but for c2, whose quadratic "
            "equation is solved in closed form.",
            "p' = p + dt U, q' = exp(dt Omega) q, of first order in dt; exact where velocities are "
            "constant.",
        ),
        assumptions=(
            "Without `inertia` drag balances the wrench at every moment; with it, drag is that of "
            "steady motion (no added mass, no history).",
            "Filament pieces and head do not feel each other's flow (resistive-force theory); with "
            "Stokeslets they do.",
            "Weight less buoyancy acts at the helix' centre.",
        ),
        limitations=(
            "Resistive-force theory overestimates drag along the axis and thrust of tight helices "
            "up to fourfold, see its page; regularised Stokeslets do not.",
            "Without `tube` the fluid is unbounded, but for what c1 and c2 stand for.",
            "In a tube the wall's drag is that on its axis. Without Stokeslets none is added "
            "across it, and along it that of a helix is less than half of what it is.",
            "A field that turns the body needs dt below a tenth of its smallest drag over m B.",
        ),
        validated_ranges=(
            ValidatedRange("turns", 1.0, 16, "", "R against quadratures and Taylor's helix"),
            ValidatedRange("timestep", 1e-7, 1e-4, "s", "steps of 1/2000 of a slip, extrapolated"),
        ),
        operating_context=(
            "In a vessel model on the bench: a straight tube of fluid that stands for an artery, "
            "such as the iliac one in which helical robots cut thrombi ex vivo (de Boer et al., "
            "2025). No pulsating flow, no blood cells, no soft tissue; not in a patient, and no "
            "clinical claim."
        ),
        changelog=(
            ("1.0.0", "2026-11-18", "First version."),
            ("1.1.0", "2026-11-18", "Tube, inertia, regularised Stokeslets, a given resistance."),
            (
                "1.2.0",
                "2026-11-18",
                "Stokeslets know the wall of a tube; leaps in a step are told.",
            ),
        ),
        references=(
            "[@GrayHancock1955] Gray, J., Hancock, G. J. (1955). The propulsion of sea-urchin "
            "spermatozoa.",
            "[@Lighthill1976] Lighthill, J. (1976). Flagellar hydrodynamics.",
            "[@Rodenborn2013] Rodenborn, B. et al. (2013). Propulsion of microorganisms by a "
            "helical flagellum.",
            "[@Cortez2005] Cortez, R., Fauci, L., Medovikov, A. (2005). The method of regularized "
            "Stokeslets in three dimensions: analysis, validation, and application to helical "
            "swimming.",
            "[@HabermanSayre1958] Haberman, W. L., Sayre, R. M. (1958). Motion of rigid and fluid "
            "spheres in stationary and moving liquids inside cylindrical tubes.",
            "[@Liron1978] Liron, N., Shahar, R. (1978). Stokes flow due to a Stokeslet in a pipe.",
            "[@HappelBrenner1983] Happel, J., Brenner, H. (1983). Low Reynolds number "
            "hydrodynamics.",
            "[@Katz1975] Katz, D. F., Blake, J. R., Paveri-Fontana, S. L. (1975). On the movement "
            "of slender bodies near plane boundaries at low Reynolds number.",
            "[@Chan1999] Chan, T. F., Golub, G. H., Mulet, P. (1999). A nonlinear primal-dual "
            "method for total variation-based image restoration.",
            "[@Mahoney2012] Mahoney, A. W. et al. (2012). Control of untethered magnetically "
            "actuated tools using a rotating permanent magnet in any position.",
            "[@ManLauga2013] Man, Y., Lauga, E. (2013). The wobbling-to-swimming transition of "
            "rotated helices.",
            "[@Adler1946] Adler, R. (1946). A study of locking phenomena in oscillators.",
            "[@deBoer2025] de Boer, M. C. J. et al. (2025). Wireless mechanical and hybrid "
            "thrombus fragmentation of ex vivo endovascular thrombosis model in the iliac artery.",
        ),
        implementation=(
            Mapped("U, Omega", "mime.nodes.magnetics.drag_balance.free_twist"),
            Mapped("R", f"{_HERE}.resistance"),
            Mapped("R by Stokeslets", "mime.nodes.magnetics.stokeslets.stokeslet_resistance"),
            Mapped("R of the helix", f"{_RESISTIVE}.helix_resistance"),
            Mapped("R of the head", f"{_RESISTIVE}.sphere_resistance"),
            Mapped("xi_t, xi_n", f"{_RESISTIVE}.filament_coefficients"),
            Mapped("U, Omega in a tube", "mime.nodes.magnetics.drag_balance.balanced_twist"),
            Mapped("M", "mime.nodes.magnetics.swimmer_inertia.SwimmerInertia.implicit"),
            Mapped("wall and friction", "mime.nodes.magnetics.tube.Tube.force_world"),
            Mapped("W of a tube's wall", "mime.nodes.magnetics.tube_wall.wall_mobility"),
            Mapped("drag of a head in a tube", "mime.nodes.magnetics.wall_drag.sphere_along"),
        ),
    )

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
    theory: str = option(default="lighthill", choices=THEORIES)
    """Which coefficients of a filament: `lighthill` or `gray_hancock`."""
    handedness: str = option(default="right", choices=("right", "left"))
    tube: Tube | None = effect(Tube, doc="a straight tube about it")
    inertia: SwimmerInertia | None = effect(SwimmerInertia, doc="mass; without, none counts")

    def value_problems(self) -> Iterator[Problem]:
        if not known(self.filament_radius_m, self.helix_radius_m, self.pitch_m):
            return
        yield from self._tube_problems()
        if self.resistance_matrix is not None:
            yield from self._matrix_problems()
            return
        a = float(self.filament_radius_m)
        along, across = flow_reach(self._helix, self.theory, self._drag_radius)
        thickest = float(along**2 / across)  # where xi_t = xi_n
        if a >= thickest:
            words = f"must be < {thickest:.3g} m for {self.theory} on this helix, got {a:g} m"
            hint = "A thicker filament resists more along than across: the theory ends there"
            yield Problem(("filament_radius_m",), words, hint)

    def _matrix_problems(self) -> Iterator[Problem]:
        place = ("resistance_matrix",)
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
        if self.tube is None or not known(self.tube.radius_m, self.head_radius_m):
            return
        radius, place = float(self.tube.radius_m), ("tube", "radius_m")
        hull = float(self.helix_radius_m + self.filament_radius_m)
        head = 0.0 if self.head_radius_m is None else float(self.head_radius_m)
        if radius <= max(hull, head):
            part = "the helix" if hull >= head else "the head"
            words = f"is too narrow: {part} has a radius of {max(hull, head):g} m, got {radius:g} m"
            yield Problem(place, words, "Give a wider tube or a thinner swimmer")
        elif self.tube.wall_drag == "fits" and head > WIDEST_SPHERE * radius:
            least = head / WIDEST_SPHERE
            words = f"must be >= {least:.3g} m for the drag of this head, got {radius:g} m"
            hint = "The formula for a sphere ends there; or take wall_drag='none'"
            yield Problem(place, words, hint)

    def boundary_input_spec(self) -> dict[str, Input]:
        return {
            "wrench_world": Input((6,), "N, N·m", 0.0, "additive", "F and T at its centre"),
            "flow_velocity_world": Input((3,), "m/s", 0.0, "additive", "v of the fluid"),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "swimmer_pose_world": Output((7,), "m", "p and q: z is its axis, towards the head"),
            "position_world": Output((3,), "m", "p"),
            "spin_rate": Output((), "rad/s", "about its own axis"),
            "swim_speed": Output((), "m/s", "along its own axis"),
        } | ({} if self.tube is None else {"wall_force_world": Output((3,), "N", _WALL)})

    def state_spec(self) -> dict[str, Output]:
        return {
            "pose_world": Output((7,), "m", "p and q"),
            "twist_world": Output((6,), "m/s, rad/s", "U and Omega of the last step"),
        }

    def initial_state(self) -> State:
        return {"pose_world": jnp.asarray(IDENTITY_POSE, float), "twist_world": jnp.zeros(6)}

    def state_problems(self, given: Mapping[str, Any]) -> Iterator[Problem]:
        pose = given.get("pose_world")
        if pose is not None and not isinstance(pose, jax.core.Tracer):
            off = np.abs(np.linalg.norm(np.asarray(pose)[..., 3:], axis=-1) - 1.0)
            if np.any(off > 1e-6):
                hint = "A pose is x, y, z and the quaternion w, x, y, z"
                yield Problem(("pose_world",), "has a quaternion of another length than 1", hint)

    def monitors(self) -> dict[str, Monitor]:
        """How far it turns in a step: in thin fluid a field makes it leap where dt is too long."""

        def turn(state: Any, inputs: Any) -> Any:
            return self.timestep * jnp.linalg.norm(state["twist_world"][3:])

        words = "turn (shorten the step: beyond the limit its motion means nothing)"
        return {"turn": Monitor(turn, MOST_TURN_RAD, "rad per step", words)}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Velocities from the wrench, and one step along them."""
        pose = state["pose_world"]
        R, wrench = self._resisting(state, boundary_inputs, dt)
        if self.tube is None:
            twist = free_twist(R, wrench, self.quadratic_drag_n_m_s2)
            twist = _turned(quat_to_matrix(pose[3:]), twist)
        else:
            twist = balanced_twist(self._balance(pose, R, wrench, dt))
        turn = quat_from_rotation_vector(dt * twist[3:])
        turned = quat_normalize(quat_multiply(turn, pose[3:]))
        return {
            "pose_world": jnp.concatenate([pose[:3] + dt * twist[:3], turned]),
            "twist_world": twist,
        }

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Where it is, and how fast it turns and swims."""
        pose, twist = state["pose_world"], state["twist_world"]
        axis = quat_to_matrix(pose[3:])[:, 2]
        fluxes = {
            "swimmer_pose_world": pose,
            "position_world": pose[:3],
            "spin_rate": axis @ twist[3:],
            "swim_speed": axis @ twist[:3],
        }
        if self.tube is not None:
            forces = self.tube.force_world(self._contacts(pose), twist)
            fluxes["wall_force_world"] = jnp.sum(forces, axis=0)
        return fluxes

    def resistance(self) -> Float[Array, "6 6"]:
        """R about the helix' centre, in the body's frame; N·s/m, N·s and N·m·s. Without c1, c2."""
        if self.resistance_matrix is not None:
            return self.resistance_matrix
        mu, tube_radius_m = self.viscosity_pa_s, self._drag_radius
        xi_t, xi_n = filament_coefficients(self._helix, mu, self.theory, tube_radius_m)
        R = helix_resistance(self._helix, xi_t, xi_n)
        if self.head_radius_m is None:
            return R
        return R + sphere_resistance(mu, self.head_radius_m, self._head_height, tube_radius_m)

    @classmethod
    def with_stokeslets(
        cls, name: str, timestep: float, **parameters_and_options: Any
    ) -> "HelicalSwimmerNode":
        """The swimmer whose R is that of regularised Stokeslets on its geometry.

        R is computed here, once; a pitch that is changed later does not change it. For gradients
        by geometry give `stokeslet_resistance` of the helix as `resistance_matrix`. In a tube it
        holds the wall's drag on the axis, and the node's tube has `wall_drag="none"`.
        """
        plain = cls(name, timestep, **parameters_and_options)
        mu, head = plain.viscosity_pa_s, plain.head_radius_m
        R = stokeslet_resistance(plain._helix, mu, head, tube_radius_m=plain._drag_radius)
        if plain.tube is not None:
            parameters_and_options["tube"] = with_fields(plain.tube, wall_drag="none")
        return cls(name, timestep, **parameters_and_options, resistance_matrix=R)

    def drawing(self) -> Drawing:
        """A capsule as long and as wide as the helix, its head, and the tube."""
        return swimmer_drawing(self)

    def _resisting(
        self, state: State, inputs: Values, dt: Any
    ) -> tuple[Float[Array, "6 6"], Float[Array, "6"]]:
        """R with c1, and the wrench with weight and what the flow carries; in the body's axes."""
        pose, wrench = state["pose_world"], jnp.asarray(inputs["wrench_world"])
        turn = quat_to_matrix(pose[3:]).T
        R = self.resistance().at[5, 5].add(self.linear_drag_n_m_s)
        given = _turned(turn, wrench.at[2].add(-self.net_weight_n))
        given = given + R[:, :3] @ (turn @ jnp.asarray(inputs["flow_velocity_world"]))
        if self.inertia is None:
            return R, given
        return self.inertia.implicit(R, given, _turned(turn, state["twist_world"]), dt)

    def _balance(
        self, pose: Float[Array, "7"], R: Float[Array, "6 6"], wrench: Float[Array, "6"], dt: Any
    ) -> Balance:
        """What the velocities of a step in a tube have to balance, in the world."""
        assert self.tube is not None
        turn = quat_to_matrix(pose[3:])
        parts = R.reshape(2, 3, 2, 3)
        R_world = jnp.einsum("ij,ajbk,lk->aibl", turn, parts, turn).reshape(6, 6)
        c2, contacts = self.quadratic_drag_n_m_s2, self._contacts(pose)
        return Balance(R_world, _turned(turn, wrench), turn[:, 2], c2, contacts, self.tube, dt)

    def _contacts(self, pose: Float[Array, "7"]) -> Contacts:
        """The ends of the helix and the head as balls, held against the tube."""
        end, hull = 0.5 * self.turns * self.pitch_m, self.helix_radius_m + self.filament_radius_m
        heights, radii = [end, -end], [hull, hull]
        if self.head_radius_m is not None:
            heights, radii = [*heights, self._head_height], [*radii, self.head_radius_m]
        offsets = jnp.outer(stack_scalars(heights), quat_to_matrix(pose[3:])[:, 2])
        assert self.tube is not None
        return self.tube.contacts(pose[:3], offsets, stack_scalars(radii))

    @property
    def _head_height(self) -> Scalar:
        """Where the head's centre is on the axis, m."""
        return 0.5 * self.turns * self.pitch_m + self.head_radius_m

    @property
    def _drag_radius(self) -> Scalar | None:
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


def _turned(turn: Float[Array, "3 3"], twist: Float[Array, "6"]) -> Float[Array, "6"]:
    """Both halves of a twist or a wrench in other axes."""
    return jnp.concatenate([turn @ twist[:3], turn @ twist[3:]])
