"""Metadata of `ElasticJointNode`: the source of its docs page and reports."""

from mime.core.spec import Mapped, NodeMeta, ValidatedRange

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
    references=(
        "Vigne, M. (2020). A note on the model used by Jiminy to simulate flexibilities.",
        "Spong, M. W. (1987). Modeling and control of elastic joint robots. "
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
