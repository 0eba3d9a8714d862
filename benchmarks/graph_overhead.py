"""What wiring costs: a graph's compiled run against the hand-written `lax.scan` of the same update.

Prints ratios (1.0 is free). Interleaved, best of several, one process: see `best_of`.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from timing import best_of

from mime import GraphManager, Input, Node, Output, parameter
from mime.core.node import Scalar

jax.config.update("jax_enable_x64", True)
STEPS = 1_000_000


class Rotor(Node):
    """J dw/dt = tau - b w, dtheta/dt = w, semi-implicit."""

    meta: ClassVar = None
    inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0)
    damping_n_m_s: Scalar = parameter("N·m·s", at_least=0.0)

    def boundary_input_spec(self):
        return {"torque": Input((), "N·m", coupling="additive")}

    def boundary_flux_spec(self):
        return {"speed": Output((), "rad/s")}

    def state_spec(self):
        return {"angle": Output((), "rad"), "speed": Output((), "rad/s")}

    def update(self, state, boundary_inputs, dt):
        J, b = self.inertia_kg_m2, self.damping_n_m_s
        w = (J * state["speed"] + dt * boundary_inputs["torque"]) / (J + dt * b)
        return {"angle": state["angle"] + dt * w, "speed": w}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"speed": state["speed"]}


def main() -> None:
    rotor = Rotor("rotor", 1e-3, 0.01, 0.1)
    graph = GraphManager()
    graph.add_node(rotor)
    graph.add_external_input("rotor", "torque")
    simulation = graph.compile()
    state, inputs = simulation.init_state(), {"rotor": {"torque": 1.0}}

    @jax.jit
    def hand_written(J, b, torque, angle, speed):
        def body(carry, _):
            angle, speed = carry
            speed = (J * speed + 1e-3 * torque) / (J + 1e-3 * b)
            angle = angle + 1e-3 * speed
            return (angle, speed), (speed, angle)

        return jax.lax.scan(body, (angle, speed), length=STEPS)

    zero = jnp.zeros(())
    arguments = (rotor.inertia_kg_m2, rotor.damping_n_m_s, jnp.asarray(1.0), zero, zero)
    record = {"rotor": ["speed", "angle"]}
    compiled = jax.jit(lambda state: simulation.rollout(state, inputs, STEPS, record=record))
    by_hand, rollout, eager, run = best_of(
        9,
        lambda: hand_written(*arguments),
        lambda: compiled(state),
        lambda: simulation.rollout(state, inputs, STEPS, record=record),
        lambda: simulation.run(steps=STEPS, inputs=inputs, record=record).time,
    )
    nanoseconds = 1e9 / STEPS
    print(f"{'hand-written lax.scan':<42}{by_hand * nanoseconds:8.1f} ns a step")
    for name, seconds in (
        ("simulation.rollout, parameters constant", rollout),
        ("simulation.rollout", eager),
        ("simulation.run, every step kept", run),
    ):
        ratio = seconds / by_hand
        print(f"{name:<42}{seconds * nanoseconds:8.1f} ns a step   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
