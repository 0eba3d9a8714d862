"""The arms of other packages, driven as ours are: semi-implicit Euler, implicit viscous friction.

Every function imports its package when it is called, so that one that is missing is only that.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from robots import DT, GRAVITY, Robot

Work = Callable[[], Any]


def pinocchio_model(robot: Robot) -> tuple[Any, Any, list[int]]:
    """The model, and for each of its joints the place among ours."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(robot.path))
    model.gravity.linear = GRAVITY
    return pin, model, robot.order(list(model.names)[1:])


def mujoco_model(robot: Robot) -> tuple[Any, Any, list[int]]:
    """Without contacts and limits, which nobody else here has."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(robot.path))
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.timestep, model.opt.gravity = DT, GRAVITY
    model.dof_damping[:], model.dof_armature[:] = robot.friction, 0.0
    names = [model.joint(i).name for i in range(model.njnt)]
    return mujoco, model, robot.order(names)


def pinocchio_step_alone(robot: Robot, steps: int) -> Work:
    """One robot, `aba` called from Python."""
    pin, model, order = pinocchio_model(robot)
    model.armature[:] = DT * robot.friction
    start, back = robot.angles(1)[0][order], np.argsort(order)

    def work() -> Any:
        data, q, v = model.createData(), start.copy(), np.zeros(model.nv)
        for _ in range(steps):
            v += DT * pin.aba(model, data, q, v, -robot.friction * v)
            q += DT * v
        return q[back]

    return work


def pinocchio_steps(robot: Robot, count: int, steps: int, threads: int) -> Work:
    """`abaInParallel`; the integration in NumPy is 1 % of it."""
    pin, model, order = pinocchio_model(robot)
    model.armature[:] = DT * robot.friction
    pool = pin.ModelPool(model, threads)
    start, back = np.asfortranarray(robot.angles(count)[:, order].T), np.argsort(order)
    out = np.zeros_like(start)

    def work() -> Any:
        q, v = start.copy(order="F"), np.zeros_like(start)
        for _ in range(steps):
            tau = -robot.friction * v
            if len(out) == 1:  # a matrix of one row is taken for a vector, and only begun to fill
                out[0] = pin.abaInParallel(threads, pool, q, v, tau)
            else:
                pin.abaInParallel(threads, pool, q, v, tau, out)
            v += DT * out
            q += DT * v
        return q[back].T

    return work


def mujoco_step_alone(robot: Robot, steps: int) -> Work:
    """One robot, all steps in one call: C, with nothing of Python in it."""
    mujoco, model, order = mujoco_model(robot)
    data, start, back = mujoco.MjData(model), robot.angles(1)[0][order], np.argsort(order)

    def work() -> Any:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = start
        mujoco.mj_step(model, data, steps)
        return np.array(data.qpos)[back]

    return work


def mujoco_steps(robot: Robot, count: int, steps: int, threads: int) -> Work:
    """`rollout`, the batch in C on threads; it has to record every state."""
    mujoco, model, order = mujoco_model(robot)
    from mujoco import rollout

    n, back = model.nq, np.argsort(order)
    start = np.zeros((count, 1 + 2 * n))
    start[:, 1 : 1 + n] = robot.angles(count)[:, order]
    datas = [mujoco.MjData(model) for _ in range(threads)]
    pool = rollout.Rollout(nthread=threads)
    states, sensors = np.zeros((count, steps, 1 + 2 * n)), np.zeros((count, steps, 0))

    def work() -> Any:
        pool.rollout(model, datas, start, nstep=steps, state=states, sensordata=sensors)
        return states[:, -1, 1 : 1 + n][:, back]

    return work


def mjx_steps(robot: Robot, count: int, steps: int) -> Work:
    """MuJoCo's own JAX version, the batch by `vmap`."""
    import jax
    import jax.numpy as jnp

    _, model, order = mujoco_model(robot)
    from mujoco import mjx

    on_device = mjx.put_model(model)
    start, back = jnp.asarray(robot.angles(count)[:, order]), np.argsort(order)

    @jax.jit
    @jax.vmap
    def run(q: Any) -> Any:
        data = mjx.make_data(on_device).replace(qpos=q)
        body = lambda data, _: (mjx.step(on_device, data), None)  # noqa: E731
        return jax.lax.scan(body, data, None, length=steps)[0].qpos

    return lambda: np.asarray(run(start))[:, back]


def frax_robot(robot: Robot) -> Any:
    """frax asks for settings that would change ours in the same process; they are left alone."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from frax.core.robot import Robot as FraxRobot

    return FraxRobot(os.fspath(robot.path))
