"""What wiring costs.

A graph of one node with two lines of physics, every step recorded, beside the `lax.scan` of those
two lines written by hand under `jax.jit`, which returns the same arrays.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from harness import Case, Figure, Peer
from harness.measure import best_of

from mime import GraphManager, Input, Node, Output, parameter
from mime.core.node import Scalar

STEPS, DT = 1_000_000, 1e-3
INPUTS, RECORD = {"rotor": {"torque": 1.0}}, {"rotor": ["speed", "angle"]}


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


def cases(threads: int) -> Iterator[Case | Figure]:
    """Both public ways to run a graph."""
    others = (Peer("lax.scan by hand", by_hand, 1e-12, 1.1, agree=largest_difference),)
    for name, ours in (("rollout", rollout), ("run", run)):
        yield Case(f"one-node graph, {name}", ours, others, STEPS, "step", repeats=9, quick=True)
    yield Figure("a run of one step: what calling it costs", one_step_ms, "ms")


def largest_difference(ours: Any, theirs: Any) -> float:
    """Of speed and angle at every step, each relative to its largest."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


def simulation() -> Any:
    graph = GraphManager()
    graph.add_node(Rotor("rotor", DT, 0.01, 0.1))
    graph.add_external_input("rotor", "torque")
    return graph.compile()


def rollout() -> Any:
    compiled = simulation()
    state = compiled.init_state()

    def work() -> Any:
        found = compiled.rollout(state, INPUTS, STEPS, record=RECORD)[1]["rotor"]
        return jax.block_until_ready((found["speed"], found["angle"]))

    return work


def run() -> Any:
    compiled = simulation()

    def work() -> Any:
        found = compiled.run(steps=STEPS, inputs=INPUTS, record=RECORD, progress=False)["rotor"]
        return found["speed"], found["angle"]

    return work


def one_step_ms() -> float:
    run = simulation().run
    work = lambda: run(steps=1, inputs=INPUTS, record=(), progress=False).final_state  # noqa: E731
    work()
    return 1e3 * best_of(30, [work])[0]


def by_hand() -> Any:
    @jax.jit
    def scan(J: Any, b: Any, torque: Any, angle: Any, speed: Any) -> Any:
        def body(carry: Any, _: None) -> Any:
            angle, speed = carry
            speed = (J * speed + DT * torque) / (J + DT * b)
            angle = angle + DT * speed
            return (angle, speed), (speed, angle)

        return jax.lax.scan(body, (angle, speed), length=STEPS)[1]

    arguments = [jnp.asarray(x) for x in (0.01, 0.1, 1.0, 0.0, 0.0)]
    return lambda: scan(*arguments)
