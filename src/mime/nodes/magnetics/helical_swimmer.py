"""MIME-NODE-106: a helical swimmer at low Reynolds number."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.monitor import Monitor
from mime.core.node import Scalar, State, Values
from mime.core.pose import (
    IDENTITY_POSE,
    quat_from_rotation_vector,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
)
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange
from mime.nodes.magnetics.drag_balance import Balance, balanced_twist, free_twist
from mime.nodes.magnetics.drawing import swimmer_drawing
from mime.nodes.magnetics.swimmer_parameters import SwimmerParameters
from mime.nodes.magnetics.tube import Contacts
from mime.xla.stacking import stack_scalars

_HERE = "mime.nodes.magnetics.helical_swimmer.HelicalSwimmerNode"
_RESISTIVE = "mime.nodes.magnetics.resistive_force"
_WALL = "of the tube on the swimmer, with friction"
MOST_TURN_RAD = 0.5
"""In one step, which holds the wrench of its beginning."""


class HelicalSwimmerNode(SwimmerParameters):
    """Helix with a head in a viscous fluid: six degrees of freedom, without inertia or with it.

        [F; T] = R [U - v; Omega] + (c1 Omega_z + c2 |Omega_z| Omega_z) e_z     (body's frame)
        dp/dt = U,   dq/dt = Omega q / 2

    R is the 6x6 resistance of a helix about z and of a spherical head, from their geometry, by
    resistive-force theory or by Stokeslets; v is the fluid's velocity; c1 and c2 are further drag
    of its turning about its axis, such as that of a wall or of a turbulent fluid.
    """

    is_sampled: ClassVar[bool | None] = False
    example: ClassVar[Mapping[str, Any]] = {"filament_radius_m": 0.1}
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-106",
        version="1.3.0",
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
            ("1.2.0", "2026-11-18", "Stokeslets know a tube's wall; leaps in a step are told."),
            ("1.3.0", "2026-11-18", "`theory` can be `stokeslets`; heads of half a tube's radius."),
        ),
        references=(
            "[@GrayHancock1955] Gray, J., Hancock, G. J. (1955). The propulsion of sea-urchin "
            "spermatozoa.",
            "[@Lighthill1976] Lighthill, J. (1976). Flagellar hydrodynamics.",
            "[@Rodenborn2013] Rodenborn, B. et al. (2013). Propulsion of microorganisms by a "
            "helical flagellum.",
            "[@Djutanta2022] Djutanta, F. et al. (2022). Microscopic motility of isolated E. coli "
            "flagella.",
            "[@Cortez2005] Cortez, R., Fauci, L., Medovikov, A. (2005). The method of regularized "
            "Stokeslets in three dimensions: analysis, validation, and application to helical "
            "swimming.",
            "[@HabermanSayre1958] Haberman, W. L., Sayre, R. M. (1958). Motion of rigid and fluid "
            "spheres in stationary and moving liquids inside cylindrical tubes.",
            "[@Liron1978] Liron, N., Shahar, R. (1978). Stokes flow due to a Stokeslet in a pipe.",
            "[@HappelBrenner1983] Happel, J., Brenner, H. (1983). Low Reynolds number "
            "hydrodynamics.",
            "[@Katz1975] Katz, D. F., Blake, J. R., Paveri-Fontana, S. L. (1975). On the movement "
            "of slender bodies near plane boundaries at low Reynolds number. (Entry not checked.)",
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

    def drawing(self) -> Drawing:
        """The helix, its head, and the tube."""
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


def _turned(turn: Float[Array, "3 3"], twist: Float[Array, "6"]) -> Float[Array, "6"]:
    """Both halves of a twist or a wrench in other axes."""
    return jnp.concatenate([turn @ twist[:3], turn @ twist[3:]])
