"""MIME-NODE-107: a pendulum on a shaft."""

import math
from typing import ClassVar

import jax.numpy as jnp

from mime.core.drawing import Drawing, Frame, Mount, Solid, Value
from mime.core.node import Node, Scalar, State, Values
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, parameter

_ROD_RGBA, _BOB_RGBA = (0.75, 0.75, 0.78, 1.0), (0.9, 0.35, 0.1, 1.0)


class PendulumLoadNode(Node):
    """Weight of a body on a horizontal shaft.   tau = -m g l sin(theta - theta_0)

    Its inertia turns with the shaft: give it to the motor, m l² of a point mass as its gear's
    `output_inertia_kg_m2`. Wire the shaft's angle, delayed, to `angle` and `load_torque` to the
    motor: the torque is then that of the angle at which the step begins.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-107",
        version="1.0.0",
        stability="experimental",
        summary="Weight of a pendulum on a horizontal shaft: an angle in, a torque out.",
        equations=(r"\tau = -m g l \sin(\theta - \theta_0)",),
        discretisation=(
            "The torque is that of the given angle; nothing is integrated. Fed by the angle at the "
            "beginning of a step, a semi-implicit motor swings it by symplectic Euler.",
        ),
        assumptions=("The body is rigid and fixed to the shaft; the shaft is horizontal.",),
        limitations=(
            "The inertia is the motor's parameter, and follows neither mass nor length.",
            "No drag of the air.",
        ),
        validated_ranges=(
            ValidatedRange("mass_kg", 1e-3, 10.0, "kg"),
            ValidatedRange("length_m", 1e-3, 1.0, "m"),
        ),
        changelog=(("1.0.0", "2026-11-19", "First version."),),
        references=(
            "[@Duclusaud2025] Duclusaud, M. et al. (2025). Extended friction models for the "
            "physics simulation of servo actuators. The pendulum as a bench for servos.",
        ),
        implementation=(
            Mapped(
                "tau", "mime.nodes.actuation.pendulum_load.PendulumLoadNode.compute_boundary_fluxes"
            ),
        ),
    )

    mass_kg: Scalar = parameter("kg", above=0.0, doc="m")
    length_m: Scalar = parameter("m", above=0.0, doc="l, from the shaft to the centre of mass")
    gravity_m_per_s2: Scalar = parameter("m/s²", at_least=0.0, default=9.80665, doc="g")
    rest_angle_rad: Scalar = parameter("rad", default=0.0, doc="theta_0, at which it hangs")

    def boundary_input_spec(self) -> dict[str, Input]:
        return {"angle": Input((), "rad", 0.0, "replacive", "theta, of the shaft")}

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {"load_torque": Output((), "N·m", "tau, on the shaft")}

    def state_spec(self) -> dict[str, Output]:
        return {}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The state stays empty."""
        return state

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The torque at this angle."""
        away = boundary_inputs["angle"] - self.rest_angle_rad
        weight = self.mass_kg * self.gravity_m_per_s2 * self.length_m
        return {"load_torque": -weight * jnp.sin(away)}

    def drawing(self) -> Drawing:
        """A rod and a ball that turn about y, hanging down where they are at rest; the motor that
        turns them sits behind, its axis along y.
        """
        length, rest = float(self.length_m), float(self.rest_angle_rad)
        turn = Value("angle", offset=-rest)
        frames = (Frame("shaft"), Frame("rod", "shaft", axis=(0.0, 1.0, 0.0), turn=turn))
        middle = (0.0, 0.0, -0.5 * length, 1.0, 0.0, 0.0, 0.0)
        end = (0.0, 0.0, -length, 1.0, 0.0, 0.0, 0.0)
        thin, thick = 0.03 * length, 0.15 * length
        shapes = (
            Solid("rod", middle, _ROD_RGBA, form="cylinder", size=(thin, length)),
            Solid("rod", end, _BOB_RGBA, form="sphere", size=(thick,)),
        )
        behind = (0.0, -0.3 * length, 0.0, math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
        motor = Mount("angle", 0, "shaft", 0.6 * length, behind)
        return Drawing(frames, shapes, (motor,), size_m=2.0 * length)
