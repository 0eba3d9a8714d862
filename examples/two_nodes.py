"""Two nodes written from scratch and wired into a graph: a rotor and the spring that holds it.

J dw/dt = tau - b w,   dtheta/dt = w          tau = -k theta
"""

import jax
import numpy as np

from mime import GraphManager, Input, Node, Output, Scalar, parameter


class Rotor(Node):
    """w' = (J w + dt tau)/(J + dt b),   theta' = theta + dt w'"""

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
        return state


class Spring(Node):
    """tau = -k theta"""

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


jax.config.update("jax_enable_x64", True)
J, b, k, dt = 0.01, 0.002, 3.0, 1e-4
graph = GraphManager()
graph.add_node(Rotor("rotor", dt, J, b))
graph.add_node(Spring("spring", dt, k))
graph.add_edge("rotor", "spring", "angle", "angle")
graph.add_edge("spring", "rotor", "torque", "torque", delay=True)
simulation = graph.compile()

# One run, and its period: twice the time from one zero of the angle to the next.
run = simulation.run(2.0, initial_state={"rotor": {"angle": 1.0}})
zeros = run.time[1:][np.diff(np.sign(run["rotor"]["angle"])) != 0]
analytic = 2 * np.pi / np.sqrt(k / J - (b / (2 * J)) ** 2)
print(f"period {2 * np.diff(zeros).mean():.4f} s, in closed form {analytic:.4f} s")
run.plot().savefig("two_nodes.png")

# A thousand springs as one batch.
batch = simulation.run_batch(
    2.0,
    parameters={"spring.stiffness_n_m_per_rad": np.linspace(1.0, 5.0, 1000)},
    initial_state={"rotor": {"angle": 1.0}},
    every=100,
)
print(
    f"{batch.batch_size} springs, largest speed {np.abs(batch['rotor']['speed']).max():.2f} rad/s"
)


# The derivative of an angle with respect to the spring, through all steps.
def angle_after_200_ms(k):
    stiffer = simulation.with_parameters({"spring.stiffness_n_m_per_rad": k})
    end, _ = stiffer.rollout(stiffer.init_state({"rotor": {"angle": 1.0}}), steps=2000, record=())
    return end.of("rotor")["angle"]


print(f"d angle/dk = {jax.grad(angle_after_200_ms)(k):.4f} rad/(N·m/rad)")
