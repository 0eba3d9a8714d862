"""Metadata of `RobotArmNode`: the source of its docs page and reports."""

from mime.core.spec import Mapped, NodeMeta, ValidatedRange

_KINEMATICS = "mime.control.kinematics"
_NODE = "mime.nodes.actuation.robot_arm"

ROBOT_ARM_META = NodeMeta(
    id="MIME-NODE-102",
    version="1.0.0",
    stability="experimental",
    summary="Arm of rigid links on a fixed base, read from a URDF, driven by joint torques.",
    equations=(
        r"M(q)\,\ddot q + c(q,\dot q) + g(q) = \tau_\mathrm{eff} + \sum_i J_i^\top F_i",
        r"\tau_\mathrm{eff} = \tau_\mathrm{cmd} - f\,\dot q - \tau_c\,\mathrm{sign}(\dot q)",
        r"\tau_\mathrm{eff} = -k x - \nu\dot x, \quad N^2 J_m\ddot\theta = \tau_\mathrm{cmd} - f\,"
        r"\dot\theta - \tau_c\,\mathrm{sign}(\dot\theta) + k x + \nu\dot x, \quad x = q - \theta"
        r"\quad \text{(elastic joints)}",
    ),
    discretisation=(
        r"\dot q_{n+1} = \dot q_n + \ddot q\,\Delta t,\quad q_{n+1} = q_n + \dot q_{n+1}\Delta t",
        r"(M + \Delta t f)\,\ddot q = \tau_\mathrm{cmd} - f \dot q_n - c - g + \sum_i J_i^\top F_i"
        r" \quad \text{(implicit friction; explicit on request)}",
        r"(M + \rho J)\,\ddot q = \dots + \rho\,\tau - (1 - \rho)(k x + K\dot x), \quad "
        r"K = k h + \nu, \quad \rho = K h/(J + K h), \quad x_{n+1} = x_n + \Delta t(\dot x_n + "
        r"h\,\ddot x), \quad h = \Delta t/2 \text{ or } \Delta t \quad \text{(elastic joints)}",
        "Dry friction: the implicit step of all joints together; a sticking joint has velocity 0",
        "Limits: 'stop' clips the position and zeroes the velocity into the wall, 'clip' keeps it, "
        "'spring' is a compliant stop taken implicitly",
    ),
    assumptions=(
        "Rigid links; joints are rigid, or have a spring and damper between rotor and link.",
        "Fixed base: base_pose_world is constant.",
        "Uniform gravity, given in world axes and rotated into the base.",
        "External wrenches are in world axes, at each link's centre of mass (or at the tool tip).",
        "Fixed joints of the URDF are merged when it is read; their links stay addressable.",
        "A rotor behind a gear adds gear² times its inertia to the diagonal of M, no gyroscopics; "
        "behind a spring it spins by itself.",
        "Friction of an elastic joint is its gear's: it acts on the rotor.",
    ),
    limitations=(
        "No contact: links pass through each other and through the world.",
        "Semi-implicit Euler is first order in the timestep.",
        "A spring whose swing the step does not resolve stays stable and right in the mean; with "
        "'midpoint' its swing is slowed and hardly damped, with 'backward_euler' it dies out.",
        "'inserted_body' is for revolute joints that no other joint mimics, without soft stops.",
        "Closed kinematic loops and floating bases are refused.",
        "Sticking joints are found by 30 sweeps of coordinate descent; a strongly coupled arm may "
        "need a smaller step for the set to settle.",
    ),
    validated_ranges=(
        ValidatedRange("num_joints", 1, 60, "", "against Pinocchio on real robots"),
        ValidatedRange("timestep", 1e-4, 1e-2, "s"),
    ),
    references=(
        "Featherstone, R. (2008). Rigid Body Dynamics Algorithms. Springer.",
        "Siciliano, B., Sciavicco, L., Villani, L., Oriolo, G. (2009). Robotics. Springer.",
        "Annin, C. (2024). AR4 open-source 6-DOF robot arm.",
    ),
    implementation=(
        Mapped("M(q)", f"{_KINEMATICS}.crba.mass_matrix", "CRBA"),
        Mapped("c(q, q̇) + g(q)", f"{_KINEMATICS}.rnea.nonlinear_bias", "RNEA, one pass"),
        Mapped("J_i", f"{_KINEMATICS}.fk.frame_jacobian", "linear rows first"),
        Mapped("Σ J_iᵀ F_i", f"{_NODE}.forces.wrench_to_joint_torques", "one inward pass of RNEA"),
        Mapped("q̈", f"{_KINEMATICS}.forward_dynamics.forward_dynamics", "CRBA and LᵀDL, unrolled"),
        Mapped("q̇', q'", f"{_NODE}.node.RobotArmNode.update", "semi-implicit Euler, limits"),
        Mapped(
            "tau_c sign(q̇)", "mime.control.joint_friction.coulomb_step", "implicit, exact sticking"
        ),
        Mapped("rho, K", f"{_NODE}.springs.Springs", "springs eliminated from the step"),
        Mapped("I_f", f"{_NODE}.inserted_bodies.with_inserted_bodies", "the tree with balls"),
        Mapped("link poses", f"{_KINEMATICS}.fk.link_world_poses", "COM frames"),
        Mapped(
            "base ⊕ link ⊕ tool",
            f"{_NODE}.node.RobotArmNode.compute_boundary_fluxes",
            "scalar first",
        ),
    ),
)
