"""What the arm of MIME-NODE-102 computes, under which assumptions, and where that was checked."""

from mime.core.spec import LABORATORY, Mapped, NodeMeta, ValidatedRange

_KINEMATICS = "mime.control.kinematics"
_NODE = "mime.nodes.actuation.robot_arm"

ROBOT_ARM_META = NodeMeta(
    id="MIME-NODE-102",
    version="1.8.0",
    stability="experimental",
    summary="Arm of rigid links on a base that is fixed or floats, read from a URDF or MJCF, "
    "driven by joint torques.",
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
        r"P_{n+1} = P_n + \Delta t\,(m g + \sum F),\quad L_{n+1} = L_n + \Delta t \sum N,\quad "
        r"c_{n+1} = c_n + \Delta t\,P_{n+1}/m,\quad Q_{n+1} = Q_n \exp(\Delta t\,\omega/2) "
        r"\quad \text{(floating base)}",
        r"\text{midpoint, gauss4, rk4:} \quad p' = w,\; w' = a(p, w) \text{ by Gauss' collocation "
        r"(1 and 2 stages) or Runge and Kutta's scheme}",
        r"\tau = \tau_\mathrm{cmd} + g + k_p (q_d - q_{n+1}) + k_d (\dot q_d - \dot q_{n+1}),\; "
        r"|\tau| \le T,\; |\dot q_{n+1}| \le V \quad \text{(servo)}",
        r"\dot q^+ = \dot q + M^{-1}J^\top\lambda,\quad 0 \le \lambda \perp J(\dot q^+ + e\dot q) "
        r"\ge 0 \quad \text{(limits 'stop'; 'clip' keeps the velocity, 'spring' is a soft stop)}",
    ),
    assumptions=(
        "Rigid links; joints are rigid, or have a spring and damper between rotor and link.",
        "A fixed base stands at base_pose_world. A floating one is a rigid body that nothing "
        "touches: its pose and twist are states, and it has mass and inertia.",
        "Uniform gravity, given in world axes and rotated into the base.",
        "External wrenches are in world axes, at each link's own <inertial> origin or the tool.",
        "Fixed joints of the URDF are merged when it is read; their links stay addressable.",
        "Compensation of gravity (MJCF gravcomp) has the masses of the file and bears no payload; "
        "where actuators give it, it counts against their limits and acts on the rotor.",
        "A rotor behind a gear adds gear² times its inertia to the diagonal of M, no gyroscopics; "
        "behind a spring it spins by itself.",
        "Friction of an elastic joint is its gear's: it acts on the rotor.",
    ),
    limitations=(
        "No contact: links pass through each other and through the world.",
        "Semi-implicit Euler, the default, is first order in the timestep, and the energy of a "
        "frictionless arm drifts; integrator 'gauss4' keeps it.",
        "'midpoint', 'gauss4' and 'rk4' take no dry friction, and springs or friction that are "
        "stiff for the step make them diverge: the stages are found by 6 fixed-point iterations.",
        "A hard stop is hit at the end of a step; all stops of an arm share one restitution.",
        "A spring whose swing the step does not resolve stays stable and right in the mean; with "
        "'midpoint' its swing is slowed and hardly damped, with 'backward_euler' it dies out.",
        "'inserted_body' is for revolute joints that no other joint mimics, without soft stops.",
        "Friction by load has a servo's torque at the velocity before the step, and the torques "
        "from outside without those of the other joints' accelerations.",
        "In a step in which servos give way to a joint at its speed limit, dry friction stays what "
        "it was before they did.",
        "Closed kinematic loops are refused.",
        "With a floating base a joint that is clipped at its stop moves its links by up to a "
        "step's way; integrators of higher order let momentum jump by that, the default does not.",
        "Sticking joints are found by 30 sweeps of coordinate descent; a strongly coupled arm may "
        "need a smaller step for the set to settle.",
    ),
    validated_ranges=(
        ValidatedRange("num_joints", 1, 60, "", "against Pinocchio on real robots"),
        ValidatedRange("timestep", 1e-4, 1e-2, "s"),
    ),
    changelog=(
        ("1.0.0", "2026-11-15", "URDF, CRBA, RNEA and Jacobians, implicit friction, stops."),
        ("1.1.0", "2026-11-16", "Elastic joints, dry friction, a wrench at the tool."),
        (
            "1.2.0",
            "2026-11-16",
            "Wrenches and poses at a link's own inertial origin where fixed "
            "links were merged into it (before: at the centre of the merged body).",
        ),
        (
            "1.3.0",
            "2026-11-16",
            "A blow at a stop goes through the whole arm; integrators midpoint, gauss4, rk4; "
            "monitors of effort, velocity and position limits.",
        ),
        (
            "1.4.0",
            "2026-11-17",
            "Servo; payload, changes of the tree; wrenches at named frames; a link without "
            "<inertial> is pushed at its own origin.",
        ),
        ("1.5.0", "2026-11-17", "A base that floats."),
        ("1.6.0", "2026-11-18", "`end_effector_twist_world`."),
        ("1.7.0", "2026-11-18", "Compensation of gravity that an MJCF states (gravcomp)."),
        ("1.8.0", "2026-11-19", "`friction=LoadFriction(...)`: friction that grows with the load."),
    ),
    operating_context=f"{LABORATORY} Its base stands beside the patient, and its precision is that "
    "of the tool that it carries.",
    references=(
        "[@Featherstone2008] Featherstone, R. (2008). Rigid Body Dynamics Algorithms. Springer.",
        "[@Siciliano2009] Siciliano, B., Sciavicco, L., Villani, L., Oriolo, G. (2009). Robotics. "
        "Springer.",
        "[@Sciavicco2000] Sciavicco, L., Siciliano, B. (2000). Modelling and Control of Robot "
        "Manipulators. Springer. Wrenches by the Jacobian's transpose.",
        "[@Moreau1988] Moreau, J. J. (1988). Unilateral contact and dry friction in finite freedom "
        "dynamics. Springer.",
        "[@Hairer2006] Hairer, E., Lubich, C., Wanner, G. (2006). Geometric Numerical Integration. "
        "Springer.",
        "[@Duclusaud2025] Duclusaud, M., Passault, G., Padois, V., Ly, O. (2025). Extended "
        "Friction Models for the Physics Simulation of Servo Actuators. Friction that grows with "
        "the load.",
        "[@Annin2024AR4] Annin, C. (2024). AR4 open-source 6-DOF robot arm.",
    ),
    implementation=(
        Mapped("M(q)", f"{_KINEMATICS}.crba.mass_matrix", "CRBA"),
        Mapped("c(q, q̇) + g(q)", f"{_KINEMATICS}.rnea.nonlinear_bias", "RNEA, one pass"),
        Mapped("g_c(q)", f"{_KINEMATICS}.compensation.compensating_torques", "RNEA, other masses"),
        Mapped("J_i", f"{_KINEMATICS}.fk.frame_jacobian", "linear rows first"),
        Mapped("Σ J_iᵀ F_i", f"{_NODE}._wrench_to_joint_torques", "one inward pass of RNEA"),
        Mapped("q̈", f"{_KINEMATICS}.forward_dynamics.forward_dynamics", "CRBA and LᵀDL, or ABA"),
        Mapped("q̇', q'", f"{_NODE}.node.RobotArmNode.update", "semi-implicit Euler, limits"),
        Mapped("tau_c sign(q̇)", "mime.control.joint_friction.coulomb_step", "implicit, sticks"),
        Mapped(
            "tau_f(q̇, tau_m, tau_e)",
            "mime.nodes.actuation.friction.LoadFriction.largest",
            "load at the start of the step",
        ),
        Mapped("p', w'", f"{_NODE}.integrators.gauss_step", "midpoint, gauss4"),
        Mapped("p', w' (rk4)", f"{_NODE}.integrators.rk4_step"),
        Mapped("lambda", "mime.control.impact.velocities_after_blow", "all stops at once"),
        Mapped("rho, K", f"{_NODE}.springs.Springs", "springs eliminated from the step"),
        Mapped("tau (servo)", "mime.control.servo_step.servo_step", "implicit, within limits"),
        Mapped("I_f", f"{_NODE}.inserted_bodies.with_inserted_bodies", "the tree with balls"),
        Mapped("P, L, c, Q", f"{_NODE}.floating.step", "base='floating': six joints and momentum"),
        Mapped("P, L", f"{_KINEMATICS}.momentum.whole_body", "all links as one body"),
        Mapped("link poses", f"{_KINEMATICS}.fk.link_world_poses", "<inertial> origins"),
        Mapped("[v; w] of the tool", f"{_KINEMATICS}.fk.frame_jacobian_at", "times q̇"),
        Mapped("base ⊕ link ⊕ tool", f"{_NODE}.RobotArmNode.compute_boundary_fluxes"),
    ),
)
