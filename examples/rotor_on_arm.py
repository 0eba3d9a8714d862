"""A six-axis desktop arm that carries a motor-driven rotor: from volts to the pose of the tool.

    trajectory -> computed torque -> arm -> rotor (12 V at its terminals) -> reaction on the arm

One graph, one compiled program. Prints the figures and writes a picture and the trajectory.
"""

import argparse
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mime import GraphManager, Trajectory
from mime.control.kinematics import joint_to_world_transforms
from mime.models import model_path
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.nodes.control.joint_controllers import ComputedTorqueNode
from mime.nodes.control.joint_trajectory import JointTrajectoryNode
from mime.xla.cache import enable_compilation_cache

DT = 1e-3
HOME = np.array([-0.02763, 0.49873, -1.51875, 1.54673, 1.55147, 0.0])
REACH = np.array([0.9, 0.9, -0.6, 0.4, 0.9, 1.2])


def build() -> tuple[GraphManager, RobotArmNode]:
    # Behind its gear each joint motor's rotor weighs gear² times its inertia: what keeps the light
    # wrist still when the rotor stage spins up.
    arm = RobotArmNode(
        "arm",
        DT,
        model_path("desktop_arm_6axis"),
        "tool",
        rotor_inertia_kg_m2=np.full(6, 5e-6),
        gear_ratio=np.full(6, 20.0),
    )
    rotor = MotorNode(
        "rotor",
        DT,
        inertia_kg_m2=1e-5,
        kt_n_m_per_a=0.05,
        r_ohm=1.0,
        l_henry=1e-3,
        damping_n_m_s=1e-4,
        command_mode="voltage",
        integrator="exact",
    )
    graph = GraphManager()
    graph.add_node(
        JointTrajectoryNode("path", DT, [HOME, REACH, HOME], arm.tree.velocity_limits, 4.0, 40.0)
    )
    graph.add_node(ComputedTorqueNode("controller", DT, arm.tree, kp=900.0, kd=60.0))
    graph.add_node(arm)
    graph.add_node(rotor)
    for field in ("angles", "velocities", "accelerations"):
        graph.add_edge("path", "controller", f"desired_joint_{field}", f"desired_joint_{field}")
    graph.add_edge("arm", "controller", "joint_angles", "joint_angles", delay=True)
    graph.add_edge("arm", "controller", "joint_velocities", "joint_velocities", delay=True)
    graph.add_edge("controller", "arm", "joint_torques", "commanded_joint_torques")
    graph.add_edge("arm", "rotor", "end_effector_pose_world", "parent_pose_world")
    graph.add_edge("rotor", "arm", "reaction_wrench_world", "end_effector_wrench_world", delay=True)
    graph.add_external_input("rotor", "commanded_voltage")
    return graph, arm


def draw(run: Trajectory, arm: RobotArmNode, path: Path) -> None:
    figure = plt.figure(figsize=(11, 6.2), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(1.05, 1))
    scene = figure.add_subplot(grid[:, 0], projection="3d")
    moments = np.linspace(0, len(run.time) // 2, 5).astype(int)
    for moment in moments:
        q = run["arm"]["joint_angles"][moment]
        joints = joint_to_world_transforms(arm.tree, q)[:, :3, 3]
        tip = run["arm"]["end_effector_pose_world"][moment, :3]
        points = np.vstack([np.zeros(3), joints, tip])
        shade = plt.cm.viridis(0.15 + 0.7 * moment / moments[-1])
        scene.plot(*points.T, "-o", color=shade, linewidth=3, markersize=4)
    tip = run["arm"]["end_effector_pose_world"][:, :3]
    scene.plot(*tip.T, color="tab:red", linewidth=1, label="tool path")
    scene.set(
        xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title="arm on its way to the far point"
    )
    scene.set_box_aspect(np.ptp(np.vstack([tip, points, np.zeros(3)]), axis=0) + 0.05)
    scene.legend(loc="upper right")
    panels = (
        (run["arm"]["joint_angles"] * 180 / np.pi, "joint angles [°]"),
        (run["arm"]["joint_torques_actual"], "joint torques [N·m]"),
        (run["rotor"]["rotor_angular_velocity"], "rotor speed [rad/s]"),
    )
    for row, (values, label) in enumerate(panels):
        axis = figure.add_subplot(grid[row, 1])
        axis.plot(run.time, values, linewidth=1.2)
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        if row == 0:
            axis.legend([f"{i}" for i in range(1, 7)], title="joint", ncols=3, fontsize=7)
    axis.set_xlabel("time [s]")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    folder = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()

    graph, arm = build()
    simulation = graph.compile()
    run = simulation.run(
        3.0,
        {"rotor": {"commanded_voltage": lambda t: jax.numpy.where(t < 0.5, 0.0, 12.0)}},
        initial_state={"arm": {"joint_angles": HOME}},
        every=5,
    )
    error = np.abs(run["arm"]["joint_angles"] - run["path"]["desired_joint_angles"]).max()
    speed, expected = run["rotor"]["rotor_angular_velocity"][-1], 12 * 0.05 / (0.05**2 + 1e-4)
    print(f"largest tracking error {np.degrees(error):.4f}°")
    print(f"rotor speed at the end {speed:.4f} rad/s, in closed form {expected:.4f} rad/s")
    print(f"tool at the end [m]: {np.round(run['arm']['end_effector_pose_world'][-1, :3], 4)}")
    folder.mkdir(parents=True, exist_ok=True)
    run.save(folder / "rotor_on_arm.nc")
    draw(run, arm, folder / "rotor_on_arm.png")
    print(f"wrote {folder / 'rotor_on_arm.nc'} and {folder / 'rotor_on_arm.png'}")


if __name__ == "__main__":
    main()
