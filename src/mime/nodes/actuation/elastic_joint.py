"""MIME-NODE-103: a joint with a spring between its rotor and its output body."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control.kinematics.writing import write_text
from mime.control.linear_flow import Matrix2, flow
from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter
from mime.nodes.actuation.elastic_joint_drawing import elastic_joint_drawing

_NODE = "mime.nodes.actuation.elastic_joint.ElasticJointNode"

ELASTIC_JOINT_META = NodeMeta(
    id="MIME-NODE-103",
    version="1.0.0",
    stability="experimental",
    summary="Elastic joint: rotor and output body joined by a spring-damper.",
    equations=(
        r"J\ddot x_2 = u + k x_1 + \nu\dot x_1, \quad "
        r"I(\ddot x_1 + \ddot x_2) = -k x_1 - \nu\dot x_1 + f \quad \text{(sea)}",
        r"(I + I_f)\ddot x_1 + I\ddot x_2 = -k x_1 - \nu\dot x_1 + f, \quad "
        r"I\ddot x_1 + (I + J)\ddot x_2 = u + f \quad \text{(inserted\_body)}",
        r"y = x_1 + x_2, \quad u_o = u - J\ddot x_2, \quad J = N^2 J_m, \quad u = N u_m",
        r"k x_1 \to k d + k_3 d^3, \quad "
        r"d = x_1 - \operatorname{clip}(x_1, -\beta, \beta) \quad \text{(optional)}",
    ),
    discretisation=(
        r"(I + J)\ddot p = u + f, \quad p = x_2 + I x_1/(I + J): "
        r"\quad \text{a parabola over the step, exact}",
        r"(\mu + I_f)\ddot x_1 + \nu\dot x_1 + k x_1 = (J f - I u)/(I + J): "
        r"\quad \text{the exponential of its 2x2 matrix (exact)}",
        r"\dot x_m = 2(x_m - x_n)/\Delta t, \quad "
        r"2(\mu + I_f)(\dot x_m - \dot x_n)/\Delta t + \nu\dot x_m + s(x_m) = g, \quad "
        r"x_{n+1} = 2x_m - x_n \quad \text{(implicit midpoint; } x_m \text{ in closed form)}",
        r"\dot x_{n+1} = (x_{n+1} - x_n)/\Delta t, \quad (\mu + I_f)(\dot x_{n+1} - \dot x_n)"
        r"/\Delta t + \nu\dot x_{n+1} + s(x_{n+1}) = g \quad \text{(backward Euler)}",
    ),
    assumptions=(
        "Torques are constant over a step.",
        "The gear has no losses; backlash lies between the spring and the output body.",
        "Damping acts on the whole deflection, inside the backlash too.",
    ),
    limitations=(
        "integrator='exact' is for the linear spring; hardening and backlash need 'implicit'.",
        "The implicit midpoint keeps a linear spring's energy, but where dt is long against "
        "the period it slows the swing down and hardly damps it: only the mean is right then.",
        "Its swing on a stiff spring with hardening or backlash can grow at such steps; "
        "'backward_euler' damps it instead, and a swing it does resolve too.",
        "An inserted body shifts the resonance by (1 + I_f/mu)^(-1/2) - 1, whatever I_f/I.",
        "One degree of freedom, constant inertias.",
    ),
    validated_ranges=(
        ValidatedRange("stiffness_n_m_per_rad", 20.0, 1e6, "N·m/rad"),
        ValidatedRange("inserted_inertia_kg_m2", 1e-7, 5e-2, "kg·m²"),
        ValidatedRange("timestep", 1e-4, 1e-1, "s", "exact, against the matrix exponential"),
    ),
    changelog=(("1.0.0", "2026-11-16", "First version."),),
    references=(
        "[@Vigne2020] Vigne, M. (2020). A note on the model used by Jiminy to simulate "
        "flexibilities.",
        "[@Spong1987] Spong, M. W. (1987). Modeling and control of elastic joint robots. "
        "J. Dyn. Sys., Meas., Control 109(4).",
    ),
    implementation=(
        Mapped("x_{n+1}", f"{_NODE}.update"),
        Mapped("y, u_o", f"{_NODE}.compute_boundary_fluxes"),
        Mapped("A, B, C, D", f"{_NODE}.state_space"),
        Mapped("E", f"{_NODE}.energy"),
        Mapped("eps", "mime.nodes.actuation.elastic_joint_analysis.inserted_body_error"),
    ),
)


class ElasticJointNode(Node):
    """Rotor and output body joined by a spring-damper: a series elastic actuator.

        J x2'' = u + k x1 + v x1'                                                    (1)
        I (x1'' + x2'') = -k x1 - v x1' + f                                          (2)

    x2 is the rotor, x1 the spring's deflection, y = x1 + x2 the output, u the motor's torque and f
    the external one, on the output body. `model="inserted_body"` hangs the spring on an extra body
    I_f instead, as rigid-body engines do that know no transmission; u_o = u - J x2'':

        I_f x1'' = -k x1 - v x1' - u_o,   I (x1'' + x2'') = u_o + f                  (3)
        I_f x1'' = -k x1 - v x1' - (u - J x2''),   I (x1'' + x2'') = u - J x2'' + f  (4)
        (I + I_f) x1'' + I x2'' = -k x1 - v x1' + f,   I x1'' + (I + J) x2'' = u + f (5)

    Both fall apart into a rigid motion of p = x2 + I x1 / (I + J) and a single oscillator:

        (I + J) p'' = u + f,   (mu + I_f) x1'' + v x1' + k x1 = (J f - I u) / (I + J)

    with mu = I J / (I + J) and I_f = 0 for the exact joint. Each step solves these two, so
    stiffness never limits it. With a gear N, J is N² times the rotor's own inertia and u is N
    times the motor's torque; x2 is the rotor's angle after the gear.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar[NodeMeta] = ELASTIC_JOINT_META

    rotor_inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0, doc="J_m, before the gear")
    output_inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0, doc="I, of the output body")
    stiffness_n_m_per_rad: Scalar = parameter("N·m/rad", above=0.0, doc="k")
    damping_n_m_s: Scalar = parameter("N·m·s/rad", at_least=0.0, default=0.0, doc="v")
    inserted_inertia_kg_m2: Scalar | None = parameter(
        "kg·m²", at_least=0.0, default=None, doc="I_f, only of model='inserted_body'"
    )
    gear_ratio: Scalar | None = parameter(
        "", above=0.0, default=None, doc="N, motor turns in a turn of the joint; none is 1"
    )
    hardening_n_m_per_rad3: Scalar | None = parameter(
        "N·m/rad³", above=0.0, default=None, doc="k3 of the spring's cubic term"
    )
    backlash_rad: Scalar | None = parameter(
        "rad", at_least=0.0, default=None, doc="beta, half the width of the backlash"
    )
    model: str = option(default="sea", choices=("sea", "inserted_body"))
    """`"sea"`: exact, no extra body. `"inserted_body"`: the spring hangs on a body I_f."""
    integrator: str = option(default="exact", choices=("exact", "implicit", "backward_euler"))
    """`"exact"`: linear spring only. `"implicit"`: midpoint rule, second order, any spring.
    `"backward_euler"`: first order, never adds energy, for stiff hardening or backlash."""

    def value_problems(self) -> Iterator[Problem]:
        if (self.inserted_inertia_kg_m2 is not None) != (self.model == "inserted_body"):
            message = "belongs to model='inserted_body', which needs it; got "
            message += f"{self.inserted_inertia_kg_m2} with model={self.model!r}"
            yield Problem(("inserted_inertia_kg_m2",), message)
        if self.integrator == "exact" and not self._linear:
            message = "'exact' solves a linear spring, and this one has hardening or backlash"
            yield Problem(("integrator",), message, "Use integrator 'implicit'")

    def boundary_input_spec(self) -> dict[str, Input]:
        return {
            "motor_torque": Input((), "N·m", 0.0, "additive", "on the rotor, before the gear"),
            "external_torque": Input((), "N·m", 0.0, "additive", "f, on the output body"),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "deflection": Output((), "rad", "x1, output against rotor"),
            "rotor_angle": Output((), "rad", "x2, after the gear"),
            "rotor_velocity": Output((), "rad/s", "x2'"),
            "motor_angle": Output((), "rad", "N x2, before the gear"),
            "motor_velocity": Output((), "rad/s", "N x2'"),
            "output_angle": Output((), "rad", "y = x1 + x2"),
            "output_velocity": Output((), "rad/s", "y'"),
            "spring_torque": Output((), "N·m", "-k x1 - v x1', of spring and damper on the output"),
            "transmission_torque": Output((), "N·m", "u_o = u - J x2''"),
        }

    def state_spec(self) -> dict[str, Output]:
        return {
            "rotor_angle": Output((), "rad", "x2, after the gear"),
            "rotor_velocity": Output((), "rad/s", "x2'"),
            "deflection": Output((), "rad", "x1"),
            "deflection_velocity": Output((), "rad/s", "x1'"),
        }

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The rigid motion by its parabola, the oscillator by `integrator`."""
        x2, w2 = state["rotor_angle"], state["rotor_velocity"]
        x1, w1 = state["deflection"], state["deflection_velocity"]
        u, f = self._torques(boundary_inputs, x1.dtype)
        J, I = self.reflected_inertia(), self.output_inertia_kg_m2
        share = I / (I + J)
        g = (1.0 - share) * f - share * u
        if self.integrator == "exact":
            dx1, dw1 = self._exact(x1, w1, g, dt)
        else:
            dx1, dw1 = self._implicit(x1, w1, g, dt)
        dwp = (u + f) / (I + J) * dt
        dp = (w2 + share * w1 + 0.5 * dwp) * dt
        return {
            "rotor_angle": x2 + dp - share * dx1,
            "rotor_velocity": w2 + dwp - share * dw1,
            "deflection": x1 + dx1,
            "deflection_velocity": w1 + dw1,
        }

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Motion of both sides, and what the spring and the transmission carry."""
        x2, w2 = state["rotor_angle"], state["rotor_velocity"]
        x1, w1 = state["deflection"], state["deflection_velocity"]
        u, f = self._torques(boundary_inputs, x1.dtype)
        J, I = self.reflected_inertia(), self.output_inertia_kg_m2
        spring = -self._spring(x1)[0] - self.damping_n_m_s * w1
        transmitted = spring
        if self.inserted_inertia_kg_m2 is not None:  # u - J x2'' = spring - I_f x1'', by (4)
            x1_acc = (spring + (J * f - I * u) / (I + J)) / self._swung_inertia()
            transmitted = spring - self.inserted_inertia_kg_m2 * x1_acc
        N = 1.0 if self.gear_ratio is None else self.gear_ratio
        return {
            "deflection": x1,
            "rotor_angle": x2,
            "rotor_velocity": w2,
            "motor_angle": N * x2,
            "motor_velocity": N * w2,
            "output_angle": x1 + x2,
            "output_velocity": w1 + w2,
            "spring_torque": spring,
            "transmission_torque": transmitted,
        }

    def drawing(self) -> Drawing:
        """Rotor, output, and the spring between them."""
        return elastic_joint_drawing()

    def reflected_inertia(self) -> Any:
        """J = N² J_m, the rotor's inertia after the gear."""
        if self.gear_ratio is None:
            return self.rotor_inertia_kg_m2
        return self.gear_ratio**2 * self.rotor_inertia_kg_m2

    def state_space(
        self,
    ) -> tuple[Float[Array, "4 4"], Float[Array, "4 2"], Float[Array, "2 4"], Float[Array, "2 2"]]:
        """A, B, C, D: inputs (motor_torque, external_torque), states as in `state_spec`, outputs
        (rotor angle, output angle). The spring is linear: hardening and backlash are left out.
        """
        J, I = self.reflected_inertia(), self.output_inertia_kg_m2
        k, v, m = self.stiffness_n_m_per_rad, self.damping_n_m_s, self._swung_inertia()
        N = jnp.ones_like(k) if self.gear_ratio is None else self.gear_ratio
        share, zero, one = I / (I + J), jnp.zeros_like(k), jnp.ones_like(k)
        A = [
            [zero, one, zero, zero],
            [zero, zero, share * k / m, share * v / m],
            [zero, zero, zero, one],
            [zero, zero, -k / m, -v / m],
        ]
        by_u, by_f = -share / m, (1.0 - share) / m  # x1''; x2'' = (u + f)/(I + J) - share x1''
        B = [
            [zero, zero],
            [N * (1.0 / (I + J) - share * by_u), 1.0 / (I + J) - share * by_f],
            [zero, zero],
            [N * by_u, by_f],
        ]
        C = [[one, zero, zero, zero], [one, zero, one, zero]]
        matrices = [jnp.stack([jnp.stack(row) for row in matrix]) for matrix in (A, B, C)]
        return matrices[0], matrices[1], matrices[2], jnp.zeros((2, 2), k.dtype)

    def lumped_constants(self) -> dict[str, tuple[Any, str]]:
        """Coefficients of both angles over the torque on the rotor."""
        J, I = self.reflected_inertia(), self.output_inertia_kg_m2
        k, v = self.stiffness_n_m_per_rad, self.damping_n_m_s
        return {
            "J + I": (J + I, "kg·m²"),
            "k/I": (k / I, "1/s²"),
            "v/I": (v / I, "1/s"),
            "k (J + I)/(J I)": (k * (J + I) / (J * I), "1/s²"),
            "v (J + I)/(J I)": (v * (J + I) / (J * I), "1/s"),
            "k/(J I)": (k / (J * I), "1/(kg·m²·s²)"),
            "v/(J I)": (v / (J * I), "1/(kg·m²·s)"),
        }

    def energy(self, state: State) -> Any:
        """E = J x2'²/2 + I y'²/2 + I_f x1'²/2 + k d²/2 + k3 d⁴/4;  E' = -v x1'² + u x2' + f y'."""
        w2, w1 = state["rotor_velocity"], state["deflection_velocity"]
        d = self._stretch(state["deflection"])
        energy = self.reflected_inertia() * w2**2 + self.output_inertia_kg_m2 * (w1 + w2) ** 2
        energy = energy + self.stiffness_n_m_per_rad * d**2
        if self.inserted_inertia_kg_m2 is not None:
            energy = energy + self.inserted_inertia_kg_m2 * w1**2
        if self.hardening_n_m_per_rad3 is not None:
            energy = energy + 0.5 * self.hardening_n_m_per_rad3 * d**4
        return 0.5 * energy

    def graph_to_mjcf(
        self, program: Any, path: Any, origins: Any, uncertainties: Any, mend: bool
    ) -> None:
        """Write this joint and the motor that drives it; `Simulation.to_mjcf` calls it."""
        from mime.nodes.actuation.mjcf_export import graph_mjcf, machine_of_joint

        machine = machine_of_joint(self)
        write_text(path, graph_mjcf(program, machine, origins, uncertainties, mend))

    @property
    def _linear(self) -> bool:
        return self.hardening_n_m_per_rad3 is None and self.backlash_rad is None

    def _torques(self, inputs: Values, dtype: Any) -> tuple[Any, Any]:
        u, f = inputs["motor_torque"].astype(dtype), inputs["external_torque"].astype(dtype)
        return (u if self.gear_ratio is None else self.gear_ratio * u), f

    def _swung_inertia(self) -> Any:
        """mu + I_f."""
        J, I = self.reflected_inertia(), self.output_inertia_kg_m2
        mu = I * J / (I + J)
        return mu if self.inserted_inertia_kg_m2 is None else mu + self.inserted_inertia_kg_m2

    def _stretch(self, x1: Any) -> Any:
        """d, the deflection less the backlash."""
        if self.backlash_rad is None:
            return x1
        return x1 - jnp.clip(x1, -self.backlash_rad, self.backlash_rad)

    def _spring(self, x1: Any) -> tuple[Any, Any]:
        """s = k d + k3 d³ and ds/dx1."""
        k, d = self.stiffness_n_m_per_rad, self._stretch(x1)
        torque, slope = k * d, k
        if self.hardening_n_m_per_rad3 is not None:
            torque = torque + self.hardening_n_m_per_rad3 * d**3
            slope = slope + 3.0 * self.hardening_n_m_per_rad3 * d**2
        if self.backlash_rad is not None:
            slope = jnp.where(jnp.abs(x1) > self.backlash_rad, slope, 0.0)
        return torque, slope

    def _exact(self, x1: Any, w1: Any, g: Any, dt: Any) -> tuple[Any, Any]:
        """What the step adds to x1 and x1', about the deflection g / k at rest."""
        k, v, m = self.stiffness_n_m_per_rad, self.damping_n_m_s, self._swung_inertia()
        step = flow(Matrix2(0.0, 1.0, -k / m, -v / m), x1 - g / k, w1, dt)
        return step.change_0, step.change_1

    def _implicit(self, x1: Any, w1: Any, g: Any, dt: Any) -> tuple[Any, Any]:
        """The same by backward Euler over h = dt, or by the midpoint rule: over dt/2, then twice.

        a c + s(x1 + c) = g + m x1'/h,   a = m/h² + v/h,   for the change c of x1 over h
        """
        m, twice = self._swung_inertia(), 2.0 if self.integrator == "implicit" else 1.0
        h = dt / twice
        a = (m / h + self.damping_n_m_s) / h
        right = g + m * w1 / h
        if self._linear:
            k = self.stiffness_n_m_per_rad
            c = (right - k * x1) / (a + k)
        else:
            c = self._root(a, right + a * x1) - x1
            torque, slope = self._spring(x1 + c)
            c = c + (right - a * c - torque) / (a + slope)  # the digits that the difference lost
        return twice * c, twice * (c / h - w1)

    def _root(self, a: Any, c: Any) -> Any:
        """The one root x of a x + s(x) = c, in closed form: inside the backlash, or beyond it."""
        beta = 0.0 if self.backlash_rad is None else self.backlash_rad
        beyond = jnp.abs(c) > a * beta
        rest = jnp.where(beyond, jnp.abs(c) - a * beta, 1.0)  # p d + q d³ = rest, p = a + k
        p, q = a + self.stiffness_n_m_per_rad, self.hardening_n_m_per_rad3
        if q is None:
            d = rest / p
        else:
            r = jnp.sqrt(p / (3.0 * q))
            d = 2.0 * r * jnp.sinh(jnp.arcsinh(1.5 * rest / (p * r)) / 3.0)
        return jnp.where(beyond, jnp.sign(c) * (beta + d), c / a)
