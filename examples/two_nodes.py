"""Two nodes written from scratch and wired into a graph: a rotor and the spring that holds it.

    J dw/dt = tau - b w,   dtheta/dt = w          tau_spring = -k theta

Run it: prints the measured frequency beside the analytic one and writes a plot.
"""

import argparse
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np

from mime import GraphManager, Input, Mapped, Node, NodeMeta, Output, ValidatedRange, parameter
from mime.core.node import Scalar
from mime.xla.cache import enable_compilation_cache


class Rotor(Node):
    """J dw/dt = tau - b w, dtheta/dt = w; semi-implicit Euler."""

    meta: ClassVar = NodeMeta(
        id="EXAMPLE-1",
        version="1.0.0",
        stability="experimental",
        summary="A damped rotor driven by a torque.",
        equations=("J dw/dt = tau - b w", "dtheta/dt = w"),
        discretisation=("w' = (J w + dt tau)/(J + dt b)", "theta' = theta + dt w'"),
        assumptions=("rigid rotor", "viscous friction only"),
        limitations=("no electrical side",),
        validated_ranges=(ValidatedRange("inertia_kg_m2", 1e-6, 1.0, "kg·m²"),),
        references=("any text on mechanics",),
        implementation=(Mapped("w', theta'", "__main__.Rotor.update"),),
    )
    inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0, doc="moment of inertia J")
    damping_n_m_s: Scalar = parameter("N·m·s", at_least=0.0, doc="viscous friction b")

    def boundary_input_spec(self):
        return {"torque": Input((), "N·m", coupling="additive", description="drive torque")}

    def boundary_flux_spec(self):
        return {"angle": Output((), "rad", "rotor angle"), "speed": Output((), "rad/s", "speed")}

    def state_spec(self):
        return self.boundary_flux_spec()

    def update(self, state, boundary_inputs, dt):
        J, b, tau = self.inertia_kg_m2, self.damping_n_m_s, boundary_inputs["torque"]
        w = (J * state["speed"] + dt * tau) / (J + dt * b)
        return {"angle": state["angle"] + dt * w, "speed": w}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"angle": state["angle"], "speed": state["speed"]}


class Spring(Node):
    """tau = -k theta."""

    stiffness_n_m_per_rad: Scalar = parameter("N·m/rad", above=0.0, doc="spring constant k")

    def boundary_input_spec(self):
        return {"angle": Input((), "rad", description="angle of the rotor")}

    def boundary_flux_spec(self):
        return {"torque": Output((), "N·m", "torque on the rotor")}

    def state_spec(self):
        return {}

    def update(self, state, boundary_inputs, dt):
        return state

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"torque": -self.stiffness_n_m_per_rad * boundary_inputs["angle"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    folder = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()

    J, b, k, dt = 0.01, 0.002, 3.0, 1e-4
    graph = GraphManager()
    graph.add_node(Rotor("rotor", dt, J, b))
    graph.add_node(Spring("spring", dt, k))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque", delay=True)
    simulation = graph.compile()
    trajectory = simulation.run(2.0, initial_state={"rotor": {"angle": 1.0}}, every=10)

    angle = trajectory["rotor"]["angle"]
    crossings = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    fraction = angle[crossings] / (angle[crossings] - angle[crossings + 1])
    period = np.diff((crossings + fraction) * (10 * dt)).mean()
    analytic = 2 * np.pi / np.sqrt(k / J - (b / (2 * J)) ** 2)
    print(trajectory)
    print(f"period measured {period:.6f} s, analytic {analytic:.6f} s")

    stiffness = np.linspace(1.0, 5.0, 1000)
    batch = simulation.run_batch(
        2.0,
        initial_state={"rotor": {"angle": np.ones(1000)}},
        parameters={"spring": {"stiffness_n_m_per_rad": stiffness}},
        record=(),
    )
    print(f"1000 springs in one batch: {batch.final_state.of('rotor')['angle'].shape} final angles")

    def final_angle(k):
        variant = simulation.with_parameters({"spring": {"stiffness_n_m_per_rad": k}})
        state = variant.init_state({"rotor": {"angle": 1.0}})
        return variant.rollout(state, steps=2000, record=())[0].of("rotor")["angle"]

    print(f"d angle(0.2 s)/dk = {jax.grad(final_angle)(k):.6f} rad/(N·m/rad)")
    folder.mkdir(parents=True, exist_ok=True)
    trajectory.save(folder / "two_nodes.nc")
    trajectory.plot().savefig(folder / "two_nodes.png", dpi=120)
    print(f"wrote {folder / 'two_nodes.nc'} and {folder / 'two_nodes.png'}")


if __name__ == "__main__":
    main()
