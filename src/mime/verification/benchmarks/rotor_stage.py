"""MIME-VER-188 and 189: a rotor that weighs something, at the end of an arm."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from mime.control.kinematics import forward_dynamics, parse_urdf
from mime.models import model_path
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.robot_arm import RobotArmNode, floating
from mime.nodes.actuation.rotor_stage import RotorStage
from mime.running.graph import GraphManager
from mime.verification.benchmark import Convergence, Finding, Measurement, benchmark, largest
from mime.verification.convergence import order_error

Arm: Any = RobotArmNode
MOTOR: dict[str, Any] = {
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "command_mode": "torque",
}
LOOP = (
    ("arm", "rotor", "end_effector_pose_world", "parent_pose_world", False),
    ("arm", "rotor", "end_effector_twist_world", "parent_twist_world", False),
    ("rotor", "arm", "reaction_wrench_world", "end_effector_wrench_world", True),
)
_GIMBAL = """<robot name="gimbal"><link name="ground"/>
  <joint name="yaw" type="continuous"><parent link="ground"/><child link="yoke"/>
    <axis xyz="0 0 1"/></joint>
  <link name="yoke"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="pitch" type="continuous"><parent link="yoke"/><child link="beam"/>
    <axis xyz="0 1 0"/></joint>
  <link name="beam"><inertial><mass value="0.1"/>
    <inertia ixx="1e-5" ixy="0" ixz="0" iyy="5e-4" iyz="0" izz="5e-4"/></inertial></link>
  <joint name="end" type="fixed"><parent link="beam"/><child link="mount"/>
    <origin xyz="{lever} 0 0"/></joint><link name="mount"/></robot>"""


class _NoGyroscope(MotorNode):
    """The parent feels nothing of the rotor's momentum when it turns the axis."""

    def _reaction_wrench(self, state: Any, u: Any, tau: Any, reaction: Any) -> Any:
        if "parent_twist_world" not in u:
            return super()._reaction_wrench(state, u, tau, reaction)
        return super()._reaction_wrench(
            state, u | {"parent_twist_world": np.zeros(6)}, tau, reaction
        )


def carried(arm: RobotArmNode, rotor: MotorNode) -> Any:
    """The graph of an arm and the rotor at its end."""
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_node(rotor)
    for source, target, flux, field, delay in LOOP:
        graph.add_edge(source, target, flux, field, delay=delay)
    graph.add_external_input("arm", "commanded_joint_torques")
    graph.add_external_input("rotor", "commanded_torque")
    return graph.compile()


@benchmark(188, "Gyroscopic moment and imbalance of a rotor", MotorNode, _NoGyroscope)
def gyroscope(
    Motor: Any,
    *,
    mass_kg: float = 0.144,
    radius_m: float = 0.0175,
    length_m: float = 0.02,
    off_axis_m: float = 1e-4,
    lever_m: float = 0.08,
    speed_rad_per_s: float = 900.0,
    gravity_m_per_s2: float = 9.80665,
    duration_s: float = 0.5,
    timesteps_s: tuple[float, ...] = (1e-3, 1e-4),
) -> Iterator[Finding]:
    r"""$\dot\psi = m g d / (J\Omega)$, $\mathbf F = m e\,\Omega^2$

    A spinning cylinder at the end of a beam, which may yaw and pitch, precesses and does not fall.

    Reference: Steady precession with a level axis, in closed form; the force of a mass on a circle.
    Procedure:
    1. Set the beam level, the rotor at its speed, the yaw at the rate of steady precession.
    2. Run with a long and a short step; take the largest pitch, and the yaw at the end.
    3. Turn a rotor whose centre is off its axis, on a mount at rest: force and moment at the mount.
    Covers: gyroscopic moment, mass and inertia of the stage as a payload, imbalance
    Excludes: the arm's own dynamics, acceleration of the mount (MIME-VER-189)
    """
    axis = np.array([1.0, 0.0, 0.0])
    cylinder = RotorStage.cylinder(mass_kg, radius_m, length_m)
    turned = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])  # its axis is x
    stage = RotorStage(mass_kg, inertia_kg_m2=turned @ cylinder.inertia_kg_m2 @ turned.T)
    J, m, g = stage.axial_inertia(axis), mass_kg, gravity_m_per_s2
    rate = m * g * lever_m / (J * speed_rad_per_s)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gimbal.urdf")
        file.write_text(_GIMBAL.format(lever=lever_m))
        tree = parse_urdf(file)
    pitch, yaw = [], []
    for dt in timesteps_s:
        arm = Arm("arm", dt, tree, "mount", payload=stage.payload("mount", axis),
                           gravity_world=(0.0, 0.0, -g))  # fmt: skip
        rotor = Motor("rotor", dt, inertia_kg_m2=J, damping_n_m_s=0.0, axis_in_parent_frame=axis,
                      reaction="full", **MOTOR)  # fmt: skip
        start = {
            "arm": {"joint_velocities": np.array([rate, 0.0])},
            "rotor": {"angular_velocity": speed_rad_per_s},
        }
        wanted = {"arm": ["joint_angles"]}
        run = carried(arm, rotor).run(duration_s, initial_state=start, record=wanted)
        angles = run["arm"]["joint_angles"]
        pitch.append(float(np.abs(angles[:, 1]).max()))
        yaw.append(float(abs(angles[-1, 0] - rate * duration_s)))
    why = "steady: every step is the same, so that 10,000 of them add roundings only"
    yield Measurement("largest pitch", max(pitch), 1e-12, "rad", why=why)
    relative = max(yaw) / (rate * duration_s)
    yield Measurement("relative error of the precession", relative, 1e-11, why=why)

    off = RotorStage(m, (0.0, off_axis_m, lever_m), cylinder.inertia_kg_m2)
    z = np.array([0.0, 0.0, 1.0])
    rotor = Motor(
        "rotor", 1e-3, inertia_kg_m2=off.axial_inertia(z), damping_n_m_s=0.0, reaction="full",
        imbalance=off.imbalance(z, gravity_world=(0.0, 0.0, 0.0)), **MOTOR,
    )  # fmt: skip
    theta = 0.7
    state = rotor.initial_state() | {"angle": theta, "angular_velocity": speed_rad_per_s}
    state = {name: np.asarray(value, float) for name, value in state.items()}
    found = np.asarray(rotor.compute_boundary_fluxes(state, {}, 1e-3)["reaction_wrench_world"])
    outward = np.array([-np.sin(theta), np.cos(theta), 0.0])
    force = m * off_axis_m * speed_rad_per_s**2 * outward
    expected = np.concatenate([force, np.cross(lever_m * z, force)])
    error = largest(found - expected) / largest(force)
    yield Measurement("imbalance, relative error of force and moment", error, 1e-13,
                      why="some ten roundings")  # fmt: skip


@benchmark(
    189,
    "Arm and rotor against one tree",
    MotorNode,
    _NoGyroscope,
    kind="independent code",
    needs=("pinocchio",),
)
def one_tree(
    Motor: Any,
    *,
    mass_kg: float = 0.144,
    com_m: tuple[float, ...] = (2e-3, -1e-3, 0.03),
    inertia_kg_m2: tuple[tuple[float, ...], ...] = (
        (3e-5, 2e-6, 1e-6),
        (2e-6, 2.5e-5, -2e-6),
        (1e-6, -2e-6, 2.2e-5),
    ),
    damping_n_m_s: float = 1e-4,
    speed_rad_per_s: float = 200.0,
    rotor_torque_n_m: float = 0.02,
    joint_torques_n_m: tuple[float, ...] = (0.5, -3.0, -1.0, 0.2, 0.3, 0.05),
    joint_armature_kg_m2: float = 2e-3,
    start_rad: tuple[float, ...] = (-0.02763, 0.49873, -1.21875, 1.04673, 1.05147, 0.2),
    duration_s: float = 0.05,
    timesteps_s: tuple[float, ...] = (2e-4, 1e-4),
) -> Iterator[Finding]:
    """M(q) q̈ + c + g = tau with the rotor as a seventh joint

    The desktop arm with a rotor far out of balance, driven by constant torques: as two nodes with a
    delayed edge between them, and as one tree.

    Reference: Pinocchio's `aba` on the arm with one joint more, integrated by SciPy's DOP853 to
    1e-12; `computeCentroidalMomentum` of the satellite with such a joint.
    Procedure:
    1. Run arm and rotor with two steps; compare angles and speeds of all seven joints at the end.
    2. Extrapolate both to dt = 0: what is left is an error of the model.
    3. Do the same with MIME's own tree that has the rotor as a joint: the accelerations.
    4. Put the rotor on the satellite's arm, whose shoulder moves, without gravity: the change of
       momentum, all six components.
    Covers: mass, inertia, gyroscopic moment, imbalance and axial torque of a rotor on a moving arm
    Excludes: closed forms (MIME-VER-188), wrenches on the tool (tests)
    """
    import pinocchio as pin

    stage = RotorStage(mass_kg, com_m, inertia_kg_m2)
    n, tau, gravity = 6, np.array(joint_torques_n_m), np.array([0.0, 0.0, -9.80665])

    def with_rotor(model: Any, frame: str) -> Any:
        mount = model.frames[model.getFrameId(frame)]
        joint = model.addJoint(mount.parentJoint, pin.JointModelRZ(), mount.placement, "rotor")
        body = pin.Inertia(stage.mass_kg, stage.com_m, stage.inertia_kg_m2)
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        return model

    def rotor(dt: float, g: Any) -> Any:
        return Motor(
            "rotor", dt, inertia_kg_m2=stage.axial_inertia(), damping_n_m_s=damping_n_m_s,
            reaction="full", imbalance=stage.imbalance(gravity_world=g), **MOTOR,
        )  # fmt: skip

    file = model_path("desktop_arm_6axis")
    model = with_rotor(pin.buildModelFromUrdf(str(file)), "tool")
    model.gravity.linear = gravity
    model.armature = np.append(np.full(n, joint_armature_kg_m2), 0.0)
    data = model.createData()

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        torques = np.append(tau, rotor_torque_n_m - damping_n_m_s * y[-1])
        qdd: np.ndarray = pin.aba(model, data, y[: n + 1], y[n + 1 :], torques)
        return np.concatenate([y[n + 1 :], qdd])

    begin = np.concatenate([start_rad, [0.0], np.zeros(n), [speed_rad_per_s]])
    exact = scipy.integrate.solve_ivp(
        slope, (0.0, duration_s), begin, method="DOP853", rtol=1e-12, atol=1e-13
    ).y[:, -1]
    commands = {
        "arm": {"commanded_joint_torques": tau},
        "rotor": {"commanded_torque": rotor_torque_n_m},
    }
    motors = {"rotor_inertia_kg_m2": np.full(n, joint_armature_kg_m2), "gear_ratio": np.ones(n)}
    ends = []
    for dt in timesteps_s:
        arm = Arm("arm", dt, file, "tool", payload=stage.payload("tool"),
                           gravity_world=gravity, **motors)  # fmt: skip
        spinning = {"angular_velocity": speed_rad_per_s}
        start = {"arm": {"joint_angles": np.array(start_rad)}, "rotor": spinning}
        run = carried(arm, rotor(dt, gravity)).run(
            duration_s, commands, initial_state=start, record=ALL, watch=False
        )
        ends.append(np.concatenate([_last(run, *field) for field in FIELDS]) - exact)
    errors = tuple(largest(end) for end in ends)
    yield order_error("order of the error in dt", timesteps_s, errors, 1, 0.05)
    left = largest(2.0 * ends[-1] - ends[-2]) / errors[-1]
    yield Measurement("left at dt = 0, over the error at the shortest step", left, 0.02,
                      why="the term of second order, in proportion to the step")  # fmt: skip
    yield Convergence("timestep (s)", timesteps_s, "largest error (rad, rad/s)",
                      {"arm and rotor": errors}, 1)  # fmt: skip

    tree = stage.as_joint(parse_urdf(file), "tool")
    tree = Arm("arm", 1e-3, tree, "tool", **{
        "gear_ratio": np.ones(n + 1), "rotor_inertia_kg_m2": model.armature.copy(),
    }).tree  # fmt: skip
    random, worst = np.random.default_rng(0), 0.0
    for _ in range(5):
        q, v, torque = random.normal(size=(3, n + 1)) * [[1.0], [3.0], [2.0]]
        theirs = pin.aba(model, data, q, v, torque)
        ours = forward_dynamics(tree, q, v, torque, gravity)
        worst = max(worst, largest(ours - theirs) / largest(theirs))
    yield Measurement("rotor as a joint of MIME's tree, relative error", worst, 1e-10,
                      why="some hundred roundings, and the condition of M")  # fmt: skip

    satellite = model_path("satellite_arm")
    flying = pin.buildModelFromUrdf(str(satellite), pin.JointModelFreeFlyer())
    held = [flying.getJointId(name) for name in ("wheel_axle", "elbow")]
    flying = with_rotor(pin.buildReducedModel(flying, held, pin.neutral(flying)), "forearm")
    tree = parse_urdf(satellite, base="floating").lock({"wheel_axle": 0.0, "elbow": 0.0})
    changes = []
    for dt in timesteps_s:
        arm = Arm(
            "arm", dt, tree, "forearm", payload=stage.payload("forearm"),
            gravity_world=np.zeros(3),
        )  # fmt: skip
        start = {
            "arm": {"base_twist_world": np.array([0.1, -0.2, 0.3, 0.4, -0.3, 0.8]),
                    "joint_velocities": np.array([0.5])},
            "rotor": {"angular_velocity": speed_rad_per_s},
        }  # fmt: skip
        run = carried(arm, rotor(dt, np.zeros(3))).run(
            duration_s,
            {"arm": {"commanded_joint_torques": np.array([2.0])},
             "rotor": {"commanded_torque": rotor_torque_n_m}},
            initial_state=start, record={**ALL, "arm": [*ALL["arm"], *floating.STATE]}, watch=False,
        )  # fmt: skip
        momenta = [_momentum(pin, flying, run, k) for k in (0, len(run.time) - 1)]
        changes.append(largest((momenta[1] - momenta[0]) / _momentum_scale(momenta[1])))
    yield Measurement("change of momentum, relative, at the shortest step", changes[-1], 1e-4,
                      why="the reaction of one step, which is still under way")  # fmt: skip
    yield order_error("order of the change of momentum", timesteps_s, changes, 1, 0.1)


FIELDS = (
    ("arm", "joint_angles"),
    ("rotor", "rotor_angle"),
    ("arm", "joint_velocities"),
    ("rotor", "rotor_angular_velocity"),
)
ALL = {
    "arm": ["joint_angles", "joint_velocities"],
    "rotor": ["rotor_angle", "rotor_angular_velocity"],
}


def _last(run: Any, node: str, field: str) -> np.ndarray:
    return np.atleast_1d(run[node][field][-1])


def _momentum(pin: Any, model: Any, run: Any, k: int) -> np.ndarray:
    """[P; L] about the centre of mass in world axes, by Pinocchio."""
    arm, rotor = run["arm"], run["rotor"]
    quat, twist = arm["base_orientation_world"][k], arm["base_twist_world"][k]
    back = pin.Quaternion(quat[0], *quat[1:]).matrix().T
    base = [*arm["base_position_world_m"][k], *quat[1:], quat[0]]
    q = np.concatenate([base, arm["joint_angles"][k], rotor["rotor_angle"][k : k + 1]])
    speeds = (arm["joint_velocities"][k], rotor["rotor_angular_velocity"][k : k + 1])
    v = np.concatenate([back @ twist[:3], back @ twist[3:], *speeds])
    momentum = pin.computeCentroidalMomentum(model, model.createData(), q, v)
    return np.concatenate([momentum.linear, momentum.angular])


def _momentum_scale(momentum: np.ndarray) -> np.ndarray:
    """The lengths of P and of L, for their components."""
    P, L = np.split(momentum, 2)
    return np.repeat([np.linalg.norm(P), np.linalg.norm(L)], 3)
