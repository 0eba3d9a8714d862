"""Jiminy in a process of its own: it brings a Pinocchio that cannot be beside another one.

Reads its case as one line of JSON, then simulates once for each further line and answers with the
angles and speeds at the end.
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


def build(urdf, armature, flexibility):
    """The robot; a flexibility is a spherical joint before the pivot with a spring."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pendulum.urdf")
        with open(path, "w") as file:
            file.write(urdf)
        robot = jiminy.Robot()
        robot.initialize(path, has_freeflyer=False, mesh_package_dirs=[])
    motor = jiminy.SimpleMotor(JOINT)
    robot.attach_motor(motor)
    motor.initialize(JOINT)
    settings = {"enableArmature": True, "armature": armature, "enableEffortLimit": False}
    motor.set_options(motor.get_options() | settings)
    # Last: Jiminy 1.8.13 adds the armature once more whenever a motor's options are set.
    model = robot.get_model_options()
    model["dynamics"]["enableFlexibility"] = True
    vectors = {name: np.full(3, value) for name, value in flexibility.items()}
    model["dynamics"]["flexibilityConfig"] = [{"frameName": JOINT, **vectors}]
    robot.set_model_options(model)
    return robot


def simulator(urdf, gravity, start, steps, dt, armature, flexibility, stepper):
    """A function that simulates; without a controller in Python all of it is C++."""
    engine = jiminy.Engine()
    engine.add_robot(build(urdf, armature, flexibility))
    options = engine.get_options()
    options["world"]["gravity"] = np.array([0.0, 0.0, -gravity, 0.0, 0.0, 0.0])
    continuous = {"controllerUpdatePeriod": 0.0, "sensorsUpdatePeriod": 0.0}
    options["stepper"] |= continuous | stepper
    engine.set_options(options)
    x1, x2, w1, w2 = start
    q = np.array([0, np.sin(x1 / 2), 0, np.cos(x1 / 2), x2])
    v = np.array([0, w1, 0, w2])

    def simulate():
        engine.reset()
        engine.start(q, v)
        engine.step(steps * dt)
        state = engine.robot_states[0]
        end = [2 * np.arctan2(state.q[1], state.q[3]), state.q[4], state.v[1], state.v[3]]
        engine.stop()
        return [float(x) for x in end]

    return simulate


if __name__ == "__main__":
    simulate = simulator(**json.loads(sys.stdin.readline()))
    for _ in sys.stdin:
        print(json.dumps(simulate()), flush=True)
