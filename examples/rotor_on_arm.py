"""A six-axis desktop arm that carries a motor-driven rotor: from volts to the pose of the tool.

trajectory -> computed torque -> arm -> rotor (12 V at its terminals) -> reaction on the arm
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
    model_path,
)

jax.config.update("jax_enable_x64", True)
dt = 1e-3
home = np.array([-0.02763, 0.49873, -1.51875, 1.54673, 1.55147, 0.0])
reach = np.array([0.9, 0.9, -0.6, 0.4, 0.9, 1.2])
# Behind its gear the rotor of a joint's motor weighs gear² times its inertia: that keeps the light
# wrist still when the rotor at the tool spins up.
joint_motors = {"rotor_inertia_kg_m2": np.full(6, 5e-6), "gear_ratio": np.full(6, 20.0)}
arm = RobotArmNode("arm", dt, model_path("desktop_arm_6axis"), "tool", **joint_motors)
rotor = MotorNode(
    "rotor",
    dt,
    inertia_kg_m2=1e-5,
    kt_n_m_per_a=0.05,
    r_ohm=1.0,
    l_henry=1e-3,
    damping_n_m_s=1e-4,
    command_mode="voltage",
    integrator="exact",
)

graph = GraphManager()
limits = arm.tree.velocity_limits, 4.0, 40.0  # speed, acceleration and jerk of the joints
graph.add_node(JointTrajectoryNode("path", dt, [home, reach, home], *limits))
graph.add_node(ComputedTorqueNode("controller", dt, arm.tree, kp=900.0, kd=60.0))
graph.add_node(arm)
graph.add_node(rotor)
for field in ("desired_joint_angles", "desired_joint_velocities", "desired_joint_accelerations"):
    graph.add_edge("path", "controller", field, field)
for field in ("joint_angles", "joint_velocities"):
    graph.add_edge("arm", "controller", field, field, delay=True)
graph.add_edge("controller", "arm", "joint_torques", "commanded_joint_torques")
graph.add_edge("arm", "rotor", "end_effector_pose_world", "parent_pose_world")
graph.add_edge("rotor", "arm", "reaction_wrench_world", "end_effector_wrench_world", delay=True)
graph.add_external_input("rotor", "commanded_voltage")

run = graph.compile().run(
    3.0,
    {"rotor": {"commanded_voltage": lambda t: jnp.where(t < 0.1, 0.0, 12.0)}},
    initial_state={"arm": {"joint_angles": home}},
)
error = np.abs(run["arm"]["joint_angles"] - run["path"]["desired_joint_angles"]).max()
speed, expected = run["rotor"]["rotor_angular_velocity"][-1], 12 * 0.05 / (0.05**2 + 1e-4)
print(f"largest tracking error {np.degrees(error):.4f}°")
print(f"rotor speed at the end {speed:.4f} rad/s, in closed form {expected:.4f} rad/s")
fields = ["arm.joint_angles", "arm.joint_torques_actual", "rotor.rotor_angular_velocity"]
run.plot(*fields).savefig("rotor_on_arm.png")
run.save("rotor_on_arm.nc")
