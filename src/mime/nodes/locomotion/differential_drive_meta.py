"""What MIME-NODE-104 computes, how, under which assumptions, where it was checked; its fields."""

from mime.core.spec import Mapped, NodeMeta, Output, ValidatedRange

_HERE = "mime.nodes.locomotion"

META = NodeMeta(
    id="MIME-NODE-104",
    version="1.0.0",
    stability="experimental",
    summary="Differential drive: a mouse on two driven wheels, with slip and walls.",
    equations=(
        r"v = (r_l\omega_l + r_r\omega_r)/2, \quad \omega = (r_l\omega_l - r_r\omega_r)/W",
        r"\dot x = v\cos\theta - u\sin\theta, \quad \dot y = v\sin\theta + u\cos\theta, \quad "
        r"\dot\theta = \omega",
        r"m(\dot v - u\omega) = F_l + F_r + F_x, \quad m(\dot u + v\omega) = F_{lat} + F_y, \quad "
        r"I_z\dot\omega = \tfrac{W}{2}(F_l - F_r) + M_z \quad \text{(dynamic)}",
        r"J_w\dot\omega_i = \tau_i - r_i (F_i + R_i), \quad "
        r"|R_i| \le \tfrac12 c\,m g \quad \text{(dry)}",
        r"|F_{lat}| \le \mu m g, \quad |F_i| \le \tfrac12\sqrt{(\mu m g)^2 - F_{lat}^2}",
        r"N = \max(0, k d + c_w \dot d) \quad \text{at each point of contact with a wall}",
    ),
    discretisation=(
        r"a = \omega\Delta t/2, \quad x_{n+1} = x_n + v\Delta t\,"
        r"\operatorname{sinc}(a)\cos(\theta_n + a), \quad y_{n+1} = y_n + v\Delta t\,"
        r"\operatorname{sinc}(a)\sin(\theta_n + a), \quad \theta_{n+1} = \theta_n + 2a "
        r"\quad \text{(exact)}",
        "Velocities first, then the arc with the new ones (semi-implicit).",
        "Tyres: impulses that end the step without slip, within their limits; a 2x2 system, then "
        "projected Gauss-Seidel. A tyre that holds does so exactly.",
        r"\text{walls:} \quad (M + \Delta t(k\Delta t + c_w)\sum JJ^T)\Delta V = "
        r"\Delta t\sum(k d - c_w JV)J \quad \text{(implicit, at the pose the free step leads to)}",
    ),
    assumptions=(
        "The centre of mass is the axle's midpoint; casters carry and resist nothing.",
        "The floor is level; each wheel carries half the weight, whatever the acceleration.",
        "Static and sliding friction of the tyres are the same.",
        "Rolling resistance is a dry moment at each wheel, c m g r / 2.",
        "The body is convex and smaller than a cell; walls and posts are rigid and do not move.",
    ),
    limitations=(
        "The lateral force has the first call on the friction circle: a wheel that spins keeps its "
        "lateral grip, and an axle that slides sideways has no drive.",
        "In a slip, rolling resistance keeps the value it has without slip.",
        "Walls need model='dynamic' and a friction coefficient.",
        "Walls act before the tyres in a step: pressed on a wall, the depth (not the force) is "
        "(1 + n dt (k dt + c_w) / m) times the static one, n points of contact.",
        "A contact may act up to one step early. It stops 3 m/s at 0.1 kg and 1 ms; the depth "
        "grows with v sqrt(m/k) and must stay below the wall's thickness.",
    ),
    validated_ranges=(
        ValidatedRange("timestep", 1e-4, 1e-1, "s", "kinematic: exact at any"),
        ValidatedRange("wall_stiffness_n_per_m", 1e3, 1e6, "N/m", "stable"),
        ValidatedRange("friction_coefficient", 0.1, 2.0, ""),
    ),
    references=(
        "Mitrano, P. (2018). Dynamics equations for Smartmouse. (Its equation 34 has the wrong "
        "sign: facing south increases the row.)",
        "Stewart, D. E., Trinkle, J. C. (1996). An implicit time-stepping scheme for rigid body "
        "dynamics with inelastic collisions and Coulomb friction. IJNME 39(15).",
    ),
    implementation=(
        Mapped("x, y, theta", f"{_HERE}.rolling.advance"),
        Mapped("sinc", f"{_HERE}.rolling.sinc"),
        Mapped("v, u, omega, F", f"{_HERE}.tyres.roll"),
        Mapped("d", f"{_HERE}.wall_contact.find_contacts"),
        Mapped("N", f"{_HERE}.wall_contact.push_out"),
        Mapped("E", f"{_HERE}.differential_drive.DifferentialDriveNode.energy"),
    ),
)

POSE = {
    "x": Output((), "m", "of the axle's midpoint, to the right"),
    "y": Output((), "m", "down"),
    "heading": Output((), "rad", "clockwise from x, not wrapped"),
    "left_wheel_angle": Output((), "rad", "turned since the start"),
    "right_wheel_angle": Output((), "rad", "turned since the start"),
}
VELOCITIES = {
    "forward_velocity": Output((), "m/s", "v"),
    "lateral_velocity": Output((), "m/s", "u, to the right; 0 while the tyres hold"),
    "turn_rate": Output((), "rad/s", "w, clockwise"),
    "left_wheel_velocity": Output((), "rad/s", "w_l"),
    "right_wheel_velocity": Output((), "rad/s", "w_r"),
}
FORCES = {
    "left_tyre_force": Output((), "N", "on the body, forwards"),
    "right_tyre_force": Output((), "N", "on the body, forwards"),
    "lateral_tyre_force": Output((), "N", "of both tyres on the body, to the right"),
    "slipping": Output((), "", "1 when a tyre slipped in the step, else 0"),
}
CONTACT = {
    "contact_force": Output((), "N", "of the walls on the body, all together"),
    "penetration": Output((), "m", "of the body in the walls, the largest"),
    "deepest_penetration": Output((), "m", "the largest penetration since the start"),
    "hardest_contact": Output((), "N", "the largest contact_force since the start"),
}
MOTION = {
    "pose_world": Output((3,), "m", "x, y and heading [rad]"),
    "pose_cells": Output((3,), "", "column, row in cells, heading [rad]"),
    "body_velocity": Output((), "m/s", "v, forwards"),
    **{name: VELOCITIES[name] for name in ("lateral_velocity", "turn_rate")},
    **{name: POSE[name] for name in ("left_wheel_angle", "right_wheel_angle")},
    **{name: VELOCITIES[name] for name in ("left_wheel_velocity", "right_wheel_velocity")},
}
