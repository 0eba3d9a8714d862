"""Run by test_elastic_joint_vs_jiminy.py in a process of its own: Jiminy simulates a pendulum.

    python jiminy_pendulum.py result.npz < cases.json

Jiminy brings its own Pinocchio, which cannot be imported beside another one (Boost.Python keeps one
registry of types a process). `cases` maps a name to the keyword arguments of `simulate`.
"""

import json
import logging
import os
import sys
import tempfile

import numpy as np

logging.disable(logging.WARNING)  # it warns that it imports its own Pinocchio

import jiminy_py.core as jiminy  # noqa: E402

JOINT = "pivot"


def build(urdf, armature=0.0, flexibility=None):
    """The robot. A flexibility is a spherical joint before the pivot with a spring on its log."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pendulum.urdf")
        with open(path, "w") as file:
            file.write(urdf)
        robot = jiminy.Robot()
        robot.initialize(path, has_freeflyer=False, mesh_package_dirs=[])
    motor = jiminy.SimpleMotor(JOINT)
    robot.attach_motor(motor)
    motor.initialize(JOINT)
    motor.set_options(
        motor.get_options()
        | {"enableArmature": armature > 0.0, "armature": armature, "enableEffortLimit": False}
    )
    # Last: Jiminy 1.8.13 adds the armature once more whenever a motor's options are set, and counts
    # it right only when the model is built anew.
    model = robot.get_model_options()
    model["dynamics"]["enableFlexibility"] = flexibility is not None
    if flexibility is not None:
        vectors = {name: np.full(3, value) for name, value in flexibility.items()}
        model["dynamics"]["flexibilityConfig"] = [{"frameName": JOINT, **vectors}]
    robot.set_model_options(model)
    inertia = np.full(3, flexibility["inertia"]) if flexibility else ()
    np.testing.assert_array_equal(robot.pinocchio_model.rotorInertia, [*inertia, armature])
    return robot


def simulate(
    urdf,
    gravity,
    start,
    duration,
    samples,
    armature=0.0,
    flexibility=None,
    spring=0.0,
    gains=(0.0, 0.0),
    tolerance=1e-13,
):
    """(time, position, velocity): of the joint, or of flexibility and joint about the y axis.

    `start` is (x2, x2') or (x1, x2, x1', x2'); the motor's torque is -gains · (x2, x2'), and
    `spring` [N·m/rad] acts on the joint as internal dynamics.
    """
    robot = build(urdf, armature, flexibility)

    def command(t, q, v, measured, u):
        u[:] = -gains[0] * q[-1] - gains[1] * v[-1]

    def internal(t, q, v, measured, u):
        u[-1] = -spring * q[-1]

    robot.controller = jiminy.FunctionalController(command, internal)
    engine = jiminy.Engine()
    engine.add_robot(robot)
    options = engine.get_options()
    options["world"]["gravity"] = np.array([0.0, 0.0, -gravity, 0.0, 0.0, 0.0])
    options["stepper"] |= {
        "odeSolver": "runge_kutta_dopri",
        "tolAbs": tolerance,
        "tolRel": tolerance,
        "controllerUpdatePeriod": 0.0,  # continuous: the law is part of the right-hand side
        "sensorsUpdatePeriod": 0.0,
    }
    engine.set_options(options)
    q, v = initial(robot, start)
    engine.start(q, v)
    states = [(0.0, *read(robot, q, v))]
    for _ in range(samples):
        engine.step(duration / samples)
        state = engine.robot_states[0]
        states.append((engine.stepper_state.t, *read(robot, state.q, state.v)))
    engine.stop()
    time, position, velocity = zip(*states, strict=True)
    return np.array(time), np.array(position), np.array(velocity)


def initial(robot, start):
    """Jiminy's q and v: a flexibility comes first, as a quaternion (x, y, z, w)."""
    if len(start) == 2:
        return np.array(start[:1]), np.array(start[1:])
    x1, x2, w1, w2 = start
    return np.array([0, np.sin(x1 / 2), 0, np.cos(x1 / 2), x2]), np.array([0, w1, 0, w2])


def read(robot, q, v):
    """Angles and speeds about the y axis; anything else must be still."""
    if len(q) == 1:
        return q.copy(), v.copy()
    still = np.abs([q[0], q[2], v[0], v[2]]).max()
    assert still < 1e-12, f"the flexibility left the plane by {still}"
    return np.array([2 * np.arctan2(q[1], q[3]), q[4]]), np.array([v[1], v[3]])


if __name__ == "__main__":
    arrays = {}
    for name, case in json.load(sys.stdin).items():
        for field, values in zip(("t", "x", "v"), simulate(**case), strict=True):
            arrays[f"{name}.{field}"] = values
    np.savez(sys.argv[1], **arrays)
