"""Small nodes for the tests of the core."""

from typing import ClassVar

import jax.numpy as jnp

from mime import Input, Mapped, Node, NodeMeta, Output, ValidatedRange, option, parameter
from mime.core.node import Scalar


class Rotor(Node):
    """J dw/dt = tau - b w, semi-implicit."""

    meta: ClassVar = NodeMeta(
        id="TEST-1",
        version="1.0.0",
        stability="experimental",
        summary="A damped rotor.",
        equations=("J dw/dt = tau - b w",),
        discretisation=("w' = (J w + dt tau)/(J + dt b)",),
        assumptions=("rigid",),
        limitations=("no friction",),
        validated_ranges=(ValidatedRange("inertia_kg_m2", 1e-4, 1.0, "kg·m²"),),
        references=("any textbook",),
        implementation=(Mapped("w'", "elements.Rotor.update"),),
    )
    inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0, doc="moment of inertia J")
    damping_n_m_s: Scalar = parameter("N·m·s", at_least=0.0, default=0.1, doc="viscous b")
    extra_torque_n_m: Scalar | None = parameter("N·m", default=None, doc="optional")
    mode: str = option(default="plain")

    def boundary_input_spec(self):
        return {
            "torque": Input((), "N·m", coupling="additive", description="drive"),
            "pose": Input((7,), "m", (0, 0, 0, 1, 0, 0, 0)),
        }

    def boundary_flux_spec(self):
        return {"speed": Output((), "rad/s", "angular speed"), "angle": Output((), "rad")}

    def state_spec(self):
        return {"angle": Output((), "rad"), "speed": Output((), "rad/s")}

    def update(self, state, boundary_inputs, dt):
        J, b = self.inertia_kg_m2, self.damping_n_m_s
        tau = boundary_inputs["torque"]
        if self.extra_torque_n_m is not None:
            tau = tau + self.extra_torque_n_m
        w = (J * state["speed"] + dt * tau) / (J + dt * b)
        return {"angle": state["angle"] + dt * w, "speed": w}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"speed": state["speed"], "angle": state["angle"]}


class Spring(Node):
    """tau = -k (theta - theta_0): no state of its own."""

    stiffness_n_m_per_rad: Scalar = parameter("N·m/rad", above=0.0)

    def boundary_input_spec(self):
        return {"angle": Input((), "rad"), "rest_angle": Input((), "rad")}

    def boundary_flux_spec(self):
        return {"torque": Output((), "N·m")}

    def state_spec(self):
        return {}

    def update(self, state, boundary_inputs, dt):
        return state

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        k = self.stiffness_n_m_per_rad
        return {"torque": -k * (boundary_inputs["angle"] - boundary_inputs["rest_angle"])}


class Cell(Node):
    """x' = x + dt (sin(r) + s - c x), y = x' + g r, z = (x', s): every rule of a graph in one node.

    r is replacive with the default 0.5, s is additive.
    """

    decay: Scalar = parameter("1/s", at_least=0.0, default=1.0)
    gain: Scalar = parameter("1", default=0.25)

    def boundary_input_spec(self):
        return {"r": Input((), "", 0.5), "s": Input((), "", coupling="additive")}

    def boundary_flux_spec(self):
        return {"y": Output((), ""), "z": Output((2,), "")}

    def state_spec(self):
        return {"x": Output((), "")}

    def update(self, state, boundary_inputs, dt):
        x = state["x"]
        r, s = boundary_inputs["r"], boundary_inputs["s"]
        return {"x": x + dt * (jnp.sin(r) + s - self.decay * x)}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        y = state["x"] + self.gain * boundary_inputs["r"]
        return {"y": y, "z": jnp.stack([state["x"], jnp.asarray(boundary_inputs["s"])])}
