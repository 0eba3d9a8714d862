"""MIME-NODE-106: a helical swimmer at low Reynolds number."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
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
from mime.nodes.magnetics.drag_balance import Balance, balanced_twist
from mime.nodes.magnetics.drawing import swimmer_drawing
from mime.nodes.magnetics.resistive_force import (
    THEORIES,
    Helix,
    filament_coefficients,
    flow_reach,
    helix_resistance,
    sphere_resistance,
)
from mime.nodes.magnetics.tube import Contacts, Tube
from mime.nodes.magnetics.wall_drag import WIDEST_SPHERE
from mime.xla.stacking import stack_scalars

_HERE = "mime.nodes.magnetics.helical_swimmer.HelicalSwimmerNode"
_RESISTIVE = "mime.nodes.magnetics.resistive_force"
_WALL = "of the tube on the swimmer, with friction"


class HelicalSwimmerNode(Node):
    """Helix with a head in a viscous fluid: six degrees of freedom without inertia.

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
        version="1.0.0",
        stability="experimental",
        summary="Helical swimmer: 6x6 resistance from geometry, drag of its turning, step-out.",
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
            "No inertia: drag balances the wrench at every moment.",
            "Filament pieces and head do not feel each other's flow (resistive-force theory).",
            "Weight less buoyancy acts at the helix' centre.",
        ),
        limitations=(
            "Resistive-force theory is off by tens of percent for tight helices, see its page.",
            "Without `tube` the fluid is unbounded, but for what c1 and c2 stand for.",
            "In a tube the wall's drag is that on its axis, and none is added across it.",
            "A field that turns the body needs dt below a tenth of its smallest drag over m B.",
        ),
        validated_ranges=(
            ValidatedRange("turns", 0.5, 12, "", "R against quadratures"),
            ValidatedRange("timestep", 1e-7, 1e-4, "s", "steps of 1/2000 of a slip, extrapolated"),
        ),
        changelog=(("1.0.0", "2026-11-18", "First version."),),
        references=(
            "[@GrayHancock1955] Gray, J., Hancock, G. J. (1955). The propulsion of sea-urchin "
            "spermatozoa.",
            "[@Lighthill1976] Lighthill, J. (1976). Flagellar hydrodynamics.",
            "[@Rodenborn2013] Rodenborn, B. et al. (2013). Propulsion of microorganisms by a "
            "helical flagellum.",
            "[@Adler1946] Adler, R. (1946). A study of locking phenomena in oscillators.",
            "[@deBoer2025] de Boer, M. C. J. et al. (2025). Wireless mechanical and hybrid "
            "thrombus fragmentation of ex vivo endovascular thrombosis model in the iliac artery.",
        ),
        implementation=(
            Mapped("U, Omega", f"{_HERE}.update"),
            Mapped("R", f"{_HERE}.resistance"),
            Mapped("R of the helix", f"{_RESISTIVE}.helix_resistance"),
            Mapped("R of the head", f"{_RESISTIVE}.sphere_resistance"),
            Mapped("xi_t, xi_n", f"{_RESISTIVE}.filament_coefficients"),
            Mapped("U, Omega in a tube", "mime.nodes.magnetics.drag_balance.balanced_twist"),
            Mapped("wall and friction", "mime.nodes.magnetics.tube.Tube.force_world"),
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
    theory: str = option(default="lighthill", choices=THEORIES)
    """Which coefficients of a filament: `lighthill` or `gray_hancock`."""
    handedness: str = option(default="right", choices=("right", "left"))
    tube: Tube | None = effect(Tube, doc="a straight tube about it")

    def value_problems(self) -> Iterator[Problem]:
        if not known(self.filament_radius_m, self.helix_radius_m, self.pitch_m):
            return
        yield from self._tube_problems()
        a = float(self.filament_radius_m)
        reach = float(flow_reach(self._helix, self.theory, self._drag_radius))
        thickest = reach * math.exp(-1.5 if self.theory == "gray_hancock" else -0.5)
        if a >= thickest:
            words = f"must be < {thickest:.3g} m for {self.theory} on this helix, got {a:g} m"
            hint = "A thicker filament resists more along than across: the theory ends there"
            yield Problem(("filament_radius_m",), words, hint)

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

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Velocities from the wrench, and one step along them."""
        pose = state["pose_world"]
        R_world_body = quat_to_matrix(pose[3:])
        wrench, flow = boundary_inputs["wrench_world"], boundary_inputs["flow_velocity_world"]
        force, torque = jnp.asarray(wrench[:3]).at[2].add(-self.net_weight_n), wrench[3:]
        if self.tube is None:
            U, Omega = self._velocities(R_world_body.T @ force, R_world_body.T @ torque)
            U_world, Omega_world = R_world_body @ U + flow, R_world_body @ Omega
        else:
            held = self._balance(pose, jnp.concatenate([force, torque]), flow, dt)
            twist = balanced_twist(held)
            U_world, Omega_world = twist[:3], twist[3:]
        turn = quat_from_rotation_vector(dt * Omega_world)
        turned = quat_normalize(quat_multiply(turn, pose[3:]))
        return {
            "pose_world": jnp.concatenate([pose[:3] + dt * U_world, turned]),
            "twist_world": jnp.concatenate([U_world, Omega_world]),
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
        mu, tube_radius_m = self.viscosity_pa_s, self._drag_radius
        xi_t, xi_n = filament_coefficients(self._helix, mu, self.theory, tube_radius_m)
        R = helix_resistance(self._helix, xi_t, xi_n)
        if self.head_radius_m is None:
            return R
        return R + sphere_resistance(mu, self.head_radius_m, self._head_height, tube_radius_m)

    def drawing(self) -> Drawing:
        """A capsule as long and as wide as the helix, its head, and the tube."""
        return swimmer_drawing(self)

    def _balance(
        self, pose: Float[Array, "7"], wrench: Float[Array, "6"], flow: Float[Array, "3"], dt: Any
    ) -> Balance:
        """What the velocities of a step have to balance, in the world."""
        R_world_body = quat_to_matrix(pose[3:])
        R = self.resistance().at[5, 5].add(self.linear_drag_n_m_s)
        parts = R.reshape(2, 3, 2, 3)
        R_world = jnp.einsum("ij,ajbk,lk->aibl", R_world_body, parts, R_world_body).reshape(6, 6)
        c2, axis = self.quadratic_drag_n_m_s2, R_world_body[:, 2]
        carried = wrench + R_world[:, :3] @ flow
        assert self.tube is not None
        return Balance(R_world, carried, axis, c2, self._contacts(pose), self.tube, dt)

    def _contacts(self, pose: Float[Array, "7"]) -> Contacts:
        """The ends of the helix and the head as balls, held against the tube."""
        end, hull = 0.5 * self.turns * self.pitch_m, self.helix_radius_m + self.filament_radius_m
        heights, radii = [end, -end], [hull, hull]
        if self.head_radius_m is not None:
            heights, radii = [*heights, self._head_height], [*radii, self.head_radius_m]
        offsets = jnp.outer(stack_scalars(heights), quat_to_matrix(pose[3:])[:, 2])
        assert self.tube is not None
        return self.tube.contacts(pose[:3], offsets, stack_scalars(radii))

    def _velocities(
        self, force: Float[Array, "3"], torque: Float[Array, "3"]
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """U - v and Omega in the body's frame.

        S Omega + c2 |w| w e_z = T - C A⁻¹ F,   S = D + c1 e_z e_zᵀ - C A⁻¹ Cᵀ,   w = Omega_z

        is left when U is eliminated. Its solution for c2 = 0 has the spin w_0; with c2 it is the
        root of w + c2 (S⁻¹)_zz |w| w = w_0. Then c2 |w| is known: one more linear drag.
        """
        R = self.resistance()
        A, C = R[:3, :3], R[3:, :3]
        A_inverse = _inverse(A)
        turning = torque - C @ (A_inverse @ force)
        axial = jnp.zeros((3, 3)).at[2, 2].set(1.0)
        S = R[3:, 3:] - C @ A_inverse @ C.T + self.linear_drag_n_m_s * axial
        c2, S_inverse = self.quadratic_drag_n_m_s2, _inverse(S)
        free_spin = S_inverse[2] @ turning
        root = jnp.sqrt(1.0 + 4.0 * c2 * S_inverse[2, 2] * jnp.abs(free_spin))
        spin = 2.0 * free_spin / (1.0 + root)
        Omega = _inverse(S + c2 * jnp.abs(spin) * axial) @ turning
        return A_inverse @ (force - C.T @ Omega), Omega

    @property
    def _head_height(self) -> Scalar:
        """Where the head's centre is on the axis, m."""
        return 0.5 * self.turns * self.pitch_m + self.head_radius_m

    @property
    def _drag_radius(self) -> Scalar | None:
        """Radius of the tube whose wall adds to the drag, m."""
        has_wall = self.tube is not None and self.tube.wall_drag == "fits"
        return self.tube.radius_m if has_wall else None

    @property
    def _helix(self) -> Helix:
        sign = 1.0 if self.handedness == "right" else -1.0
        return Helix(
            self.pitch_m, self.helix_radius_m, self.turns, self.filament_radius_m, sign
        )  # fmt: skip


def _inverse(M: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """M⁻¹ of a symmetric matrix: its columns are cross products of M's over the determinant."""
    columns = jnp.stack([jnp.cross(M[1], M[2]), jnp.cross(M[2], M[0]), jnp.cross(M[0], M[1])], 1)
    return columns / (M[0] @ columns[:, 0])
