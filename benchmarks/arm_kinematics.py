"""Forward dynamics of a UR5 beside Pinocchio and MuJoCo, and its cost against the number of joints.

    python benchmarks/arm_kinematics.py [--joints 1 2 4 8 16 30]

Every figure is the best of several repetitions in one run, double precision; compare the ratios,
not the microseconds.
"""

import argparse
import tempfile
import threading
import time
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mime.control.kinematics as kin

jax.config.update("jax_enable_x64", True)
GRAVITY = np.array([0.0, 0.0, -9.81])
BATCH, STEPS, DT = 4096, 5000, 1e-3
# What XLA's CPU compiler is told. Batches: no fusion, because it recomputes what its loops share.
# One robot: the older of its two code generators, because the newer one recomputes inside a fusion
# (exponentially in deep trees).
NO_FUSION = {"xla_disable_hlo_passes": "fusion"}
PLAIN_EMITTERS = {"xla_cpu_use_fusion_emitters": False}


def best(function, repetitions: int = 7) -> float:
    """Seconds of the fastest call."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def ur5_path() -> Path:
    files = metadata.files("example-robot-data") or []
    return Path(next(str(f.locate()) for f in files if str(f).endswith("ur5_robot.urdf")))


def chain(joints: int) -> kin.KinematicTree:
    """A serial arm as they are built: each axis a quarter turn from the last, centres off it."""
    text = ['<robot name="chain"><link name="l0"/>']
    text += [
        f'<link name="l{i}"><inertial><origin xyz="0.02 0 0.1"/><mass value="1"/>'
        '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0.001" iyz="0"/>'
        f'</inertial></link><joint name="j{i}" type="continuous">'
        f'<parent link="l{i - 1}"/><child link="l{i}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="0 0.02 0.2" rpy="{np.pi / 2 * (-1) ** i} 0 0"/></joint>'
        for i in range(1, joints + 1)
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write("".join(text) + "</robot>")
        file.flush()
        return kin.parse_urdf(file.name)


def dynamics(tree: kin.KinematicTree):
    return lambda q, qd, tau: kin.forward_dynamics(tree, q, qd, tau, GRAVITY)


def one_robot(tree: kin.KinematicTree, options: dict) -> tuple[float, float]:
    """Compile time in s, time of a step in a scan in µs."""
    f = dynamics(tree)

    def rollout(q, qd, tau):
        def step(state, _):
            q, qd = state
            qd = qd + DT * f(q, qd, tau)
            return (q + DT * qd, qd), None

        return jax.lax.scan(step, (q, qd), None, length=STEPS)[0]

    q = jnp.linspace(-0.5, 0.5, tree.num_joints)
    zero = jnp.zeros_like(q)
    start = time.perf_counter()
    compiled = jax.jit(rollout, compiler_options=options).lower(q, zero, zero).compile()
    compile_time = time.perf_counter() - start
    run = best(lambda: jax.block_until_ready(compiled(q, zero, zero)), 5)
    return compile_time, run / STEPS * 1e6


def batch(tree: kin.KinematicTree, threads: int, options: dict, dtype=np.float64) -> float:
    """µs of one robot's forward dynamics, batch axis last, each thread a share of the batch."""
    rng = np.random.default_rng(0)
    shape = (tree.num_joints, BATCH // threads)
    shares = [
        [jnp.asarray(rng.uniform(-1, 1, shape), dtype) for _ in range(3)] for _ in range(threads)
    ]
    batched = jax.vmap(dynamics(tree), in_axes=-1, out_axes=-1)
    compiled = jax.jit(batched, compiler_options=options).lower(*shares[0]).compile()
    repeat = 20

    def work(share):
        for _ in range(repeat):
            result = compiled(*share)
        result.block_until_ready()

    def run():
        workers = [threading.Thread(target=work, args=(share,)) for share in shares]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    run()
    return best(run) / repeat / BATCH * 1e6


def pinocchio_batch(path: Path, threads: int) -> float:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    model.gravity.linear = GRAVITY
    pool = pin.ModelPool(model, threads)
    rng = np.random.default_rng(0)
    q, qd, tau = (np.asfortranarray(rng.uniform(-1, 1, (model.nv, BATCH))) for _ in range(3))
    out = np.zeros((model.nv, BATCH), order="F")
    return best(lambda: pin.abaInParallel(threads, pool, q, qd, tau, out), 15) / BATCH * 1e6


def mujoco_step(path: Path) -> float:
    import mujoco

    # Meshes are for drawing and contacts: MuJoCo needs neither here, and would have to find them.
    text = _without(_without(path.read_text(), "visual"), "collision")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.timestep = DT
    data = mujoco.MjData(model)
    data.qpos[:] = np.linspace(-0.5, 0.5, model.nq)
    return best(lambda: mujoco.mj_step(model, data, STEPS), 5) / STEPS * 1e6


def _without(text: str, tag: str) -> str:
    while f"<{tag}>" in text:
        before, _, rest = text.partition(f"<{tag}>")
        text = before + rest.partition(f"</{tag}>")[2]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joints", type=int, nargs="*", default=[1, 2, 4, 8, 16, 30])
    joints = parser.parse_args().joints
    path = ur5_path()
    ur5 = kin.parse_urdf(path)
    c_step = mujoco_step(path)
    print("UR5, one robot in a scan")
    for name, options in (("default", {}), ("plain emitters", PLAIN_EMITTERS)):
        compile_time, step = one_robot(ur5, options)
        print(
            f"  {name:15s} {step:7.2f} µs a step, {step / c_step:.2f} of MuJoCo's {c_step:.2f} µs; "
            f"compile {compile_time:.1f} s"
        )
    print(f"UR5, batch of {BATCH}")
    for threads in (1, 2):
        theirs = pinocchio_batch(path, threads)
        for name, dtype in (("float64", np.float64), ("float32", np.float32)):
            ours = batch(ur5, threads, NO_FUSION, dtype)
            print(
                f"  {threads} thread(s) {name} {ours:6.3f} µs a robot, {ours / theirs:.2f} of "
                f"Pinocchio's {theirs:.2f} µs (float64)"
            )
    print("serial chain, one robot in a scan (plain emitters)")
    for n in joints:
        compile_time, step = one_robot(chain(n), PLAIN_EMITTERS)
        print(f"  {n:2d} joints: {step:8.2f} µs a step, compile {compile_time:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
