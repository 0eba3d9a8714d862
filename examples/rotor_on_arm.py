"""A six-axis desktop arm that carries a motor-driven magnet: from volts to the pose of the tool.

trajectory -> computed torque -> arm -> rotor (12 V at its terminals) -> reaction on the arm

The magnet weighs ten times as much as the arm's last link. Its mass and its inertia across the axis
are the arm's payload, its inertia about the axis is the motor's; the motor gives back its torque,
the gyroscopic moment, and the shaking of a magnet whose centre is a tenth of a millimetre off.
"""

import jax
import jax.numpy as jnp
import numpy as np

from mime import (
    ComputedTorqueNode,
    GraphManager,
    JointTrajectoryNode,
    MotorNode,
    RobotArmNode,
    RotorStage,
    model_path,
)

jax.config.update("jax_enable_x64", True)
dt = 1e-3
home = np.array([-0.02763, 0.49873, -1.51875, 1.54673, 1.55147, 0.0])
reach = np.array([0.9, 0.9, -0.6, 0.4, 0.9, 1.2])
# Behind its gear the rotor of a joint's motor weighs gear² times its inertia: that keeps the light
# wrist still when the rotor at the tool spins up.
joint_motors = {"rotor_inertia_kg_m2": np.full(6, 5e-6), "gear_ratio": np.full(6, 20.0)}
magnet = RotorStage.cylinder(0.144, radius_m=0.0175, length_m=0.02, centre_m=(1e-4, 0.0, 0.03))
arm = RobotArmNode(
    "arm",
    dt,
    model_path("desktop_arm_6axis"),
    "tool",
    payload=magnet.payload("tool"),
    **joint_motors,
)
rotor = MotorNode(
    "rotor",
    dt,
    inertia_kg_m2=1e-5 + magnet.axial_inertia(),
    kt_n_m_per_a=0.05,
    r_ohm=1.0,
    l_henry=1e-3,
    damping_n_m_s=1e-4,
    command_mode="voltage",
    integrator="exact",
    reaction="full",
    imbalance=magnet.imbalance(),
)

graph = GraphManager()
limits = 0.9 * arm.tree.velocity_limits, 4.0, 40.0  # speed, acceleration, jerk of the joints
graph.add_node(JointTrajectoryNode("path", dt, [home, reach, home], *limits))
graph.add_node(ComputedTorqueNode("controller", dt, arm.loaded_tree, kp=900.0, kd=60.0))
graph.add_node(arm)
graph.add_node(rotor)
for field in ("desired_joint_angles", "desired_joint_velocities", "desired_joint_accelerations"):
    graph.add_edge("path", "controller", field, field)
for field in ("joint_angles", "joint_velocities"):
    graph.add_edge("arm", "controller", field, field, delay=True)
graph.add_edge("controller", "arm", "joint_torques", "commanded_joint_torques")
graph.add_edge("arm", "rotor", "end_effector_pose_world", "parent_pose_world")
graph.add_edge("arm", "rotor", "end_effector_twist_world", "parent_twist_world")
graph.add_edge("rotor", "arm", "reaction_wrench_world", "end_effector_wrench_world", delay=True)
graph.add_external_input("rotor", "commanded_voltage")

run = graph.compile().run(
    4.0,
    {"rotor": {"commanded_voltage": lambda t: 12.0 * jnp.clip((t - 0.1) / 0.5, 0.0, 1.0)}},
    initial_state={"arm": {"joint_angles": home}},
)
error = np.abs(run["arm"]["joint_angles"] - run["path"]["desired_joint_angles"]).max()
speed, expected = run["rotor"]["rotor_angular_velocity"][-1], 12 * 0.05 / (0.05**2 + 1e-4)
print(f"largest tracking error {np.degrees(error):.4f}°")
print(f"rotor speed at the end {speed:.4f} rad/s, in closed form {expected:.4f} rad/s")
fields = ["arm.joint_angles", "arm.joint_torques_actual", "rotor.rotor_angular_velocity"]
run.plot(*fields).savefig("rotor_on_arm.png")
run.save("rotor_on_arm.nc")
