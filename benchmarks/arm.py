"""The arm's dynamics beside its peers, as ratios from one run: `python benchmarks/arm.py`.

UR5, double precision, 2 threads. Results are compared before they are timed; times are interleaved
and the best of several. Writes `benchmarks/results/arm.json` and a plot of the cost against the
number of joints. A peer that is not installed is reported as missing.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import best_of

import mime.control.kinematics as kin
from mime.core.stacking import without_fusion

jax.config.update("jax_enable_x64", True)
GRAVITY = np.array([0.0, 0.0, -9.81])
BATCH, STEPS, DT = 4096, 2000, 1e-3
JOINTS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 30)
ROOT = Path(__file__).parent.parent
# What XLA's CPU compiler is told: see mime.core.program.
DEFAULT: dict[str, Any] = {}
NO_EMITTERS = {"xla_cpu_use_fusion_emitters": False}
UNFUSED = {"xla_disable_hlo_passes": "fusion"}
MANY_OPERATIONS = 2500

results: dict[str, Any] = {}


def report(name: str, value: float, unit: str, goal: float | None = None) -> None:
    """One line of the table, and one entry of the file."""
    results[name] = {"value": value, "unit": unit, "goal": goal}
    verdict = "" if goal is None else f"   goal {goal:g}: {'met' if value <= goal else 'NOT met'}"
    print(f"{name:<66}{value:10.3f} {unit:<10}{verdict}", flush=True)


def missing(name: str, error: Exception) -> None:
    """A peer that could not be run: said, not hidden."""
    results[name] = {"missing": f"{type(error).__name__}: {error}"}
    print(f"{name:<66}missing ({type(error).__name__}: {str(error)[:60]})", flush=True)


def ur5_path() -> Path:
    files = metadata.files("example-robot-data") or []
    return Path(next(str(f.locate()) for f in files if str(f).endswith("ur5_robot.urdf")))


def without_meshes(path: Path) -> str:
    """For dynamics, neither MuJoCo nor frax needs the meshes, and would have to find them."""
    text = path.read_text()
    for tag in ("visual", "collision"):
        while f"<{tag}>" in text:
            before, _, rest = text.partition(f"<{tag}>")
            text = before + rest.partition(f"</{tag}>")[2]
    return text


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


def dynamics(tree: kin.KinematicTree) -> Callable[..., Any]:
    return lambda q, qd, tau: kin.forward_dynamics(tree, q, qd, tau, GRAVITY)


def step_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """Semi-implicit Euler, as MuJoCo's default integrator without damping."""

    def step(q: Any, qd: Any, tau: Any) -> Any:
        qd = qd + DT * f(q, qd, tau)
        return q + DT * qd, qd

    return step


def rollout_of(f: Callable[..., Any], steps: int) -> Callable[..., Any]:
    step = step_of(f)

    def rollout(q: Any, qd: Any, tau: Any) -> Any:
        body = lambda state, _: (step(*state, tau), None)  # noqa: E731
        return jax.lax.scan(body, (q, qd), None, length=steps)[0]

    return rollout


def compiled(function: Callable[..., Any], options: dict[str, Any], *args: Any) -> Any:
    """The program and the seconds it took, tracing included."""
    start = time.perf_counter()
    with without_fusion() if options == UNFUSED else nullcontext():
        lowered = jax.jit(function).lower(*args)
    program = lowered.compile(compiler_options=options)
    return program, time.perf_counter() - start


def options_for(tree: kin.KinematicTree, batch: bool) -> dict[str, Any]:
    q = jnp.zeros(tree.num_joints)
    equations = jax.make_jaxpr(dynamics(tree))(q, q, q).eqns
    if any(e.primitive.name == "scan" for e in equations):
        return DEFAULT
    if batch:
        return UNFUSED
    return NO_EMITTERS if len(equations) >= MANY_OPERATIONS else DEFAULT


def agree(what: str, ours: Any, theirs: Any, tolerance: float = 1e-8) -> None:
    error = np.max(np.abs(np.asarray(ours) - theirs)) / np.max(np.abs(theirs))
    if not error < tolerance:
        raise AssertionError(f"{what}: results differ by {error:.1e}, so no time is worth taking")


def mujoco_model(path: Path) -> Any:
    import mujoco

    model = mujoco.MjModel.from_xml_string(without_meshes(path))
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.timestep, model.opt.gravity = DT, GRAVITY
    model.dof_damping[:], model.dof_armature[:] = 0.0, 0.0
    return model


def one_robot(path: Path, tree: kin.KinematicTree) -> None:
    q, zero = jnp.linspace(-0.5, 0.5, 6), jnp.zeros(6)
    ours, seconds = compiled(rollout_of(dynamics(tree), STEPS), DEFAULT, q, zero, zero)
    report("UR5, one robot: compile the step", seconds, "s", 5.0)
    try:
        import mujoco
    except ImportError as error:
        missing("UR5, one robot: MIME / MuJoCo mj_step", error)
        return
    model = mujoco_model(path)
    data = mujoco.MjData(model)

    def c_loop() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = q
        mujoco.mj_step(model, data, STEPS)

    c_loop()
    # 2000 steps of a falling arm amplify rounding; 1e-6 of the state is far below any modelling.
    agree("one robot", ours(q, zero, zero)[0], data.qpos, 1e-6)
    mine, c = best_of(15, lambda: ours(q, zero, zero), c_loop)
    report("UR5, one robot: MIME", mine / STEPS * 1e6, "µs a step")
    report("UR5, one robot: MuJoCo mj_step", c / STEPS * 1e6, "µs a step")
    report("UR5, one robot: MIME / MuJoCo mj_step", mine / c, "", 1.2)


def on_two_threads(
    pool: ThreadPoolExecutor, program: Any, halves: list[Any], times: int, onwards: bool = False
) -> Any:
    """Each half of the batch through the program so many times; `onwards` from its own result."""

    def work(half: Any) -> Any:
        result = None
        for _ in range(times):
            result = program(*half)
            half = (*result, half[2]) if onwards else half
        return jax.block_until_ready(result)

    return list(pool.map(work, halves))


def batch(path: Path, tree: kin.KinematicTree) -> None:
    rng = np.random.default_rng(0)
    q, qd, tau = rng.uniform(-1, 1, (3, 6, BATCH))
    halves = [
        tuple(jnp.asarray(x[:, part]) for x in (q, qd, tau))
        for part in (slice(0, BATCH // 2), slice(BATCH // 2, None))
    ]
    f = jax.vmap(dynamics(tree), in_axes=-1, out_axes=-1)
    program, seconds = compiled(f, UNFUSED, *halves[0])
    report("UR5, batch of 4096: compile the forward dynamics", seconds, "s")
    pool = ThreadPoolExecutor(2)
    repeat = 5
    mine = lambda: on_two_threads(pool, program, halves, repeat)  # noqa: E731
    ours = np.concatenate([program(*half) for half in halves], axis=-1)
    contenders: dict[str, Callable[[], Any]] = {}
    try:
        import pinocchio as pin

        model = pin.buildModelFromUrdf(str(path))
        model.gravity.linear = GRAVITY
        models = pin.ModelPool(model, 2)
        columns = [np.asfortranarray(x) for x in (q, qd, tau)]
        out = np.zeros((6, BATCH), order="F")
        contenders["Pinocchio abaInParallel"] = lambda: [
            pin.abaInParallel(2, models, *columns, out) for _ in range(repeat)
        ]
        contenders["Pinocchio abaInParallel"]()
        agree("Pinocchio", ours, out)
    except ImportError as error:
        missing("UR5, batch of 4096: MIME / Pinocchio abaInParallel", error)
    try:
        import mujoco
        from mujoco import rollout

        mj = mujoco_model(path)
        start = np.concatenate([np.zeros((1, BATCH)), q, qd]).T
        datas = [mujoco.MjData(mj) for _ in range(2)]
        mj_rollout = rollout.Rollout(nthread=2)

        def mujoco_rollout() -> Any:
            return mj_rollout.rollout(mj, datas, start, nstep=repeat)[0]

        step = jax.vmap(step_of(dynamics(tree)), in_axes=-1, out_axes=-1)
        free = [(*half[:2], jnp.zeros_like(half[2])) for half in halves]
        step_program, _ = compiled(step, UNFUSED, *free[0])
        mine_stepping = lambda: on_two_threads(pool, step_program, free, repeat, True)  # noqa: E731
        state = np.concatenate([np.concatenate(half).T for half in mine_stepping()])
        agree("MuJoCo", state, mujoco_rollout()[:, -1, 1:13])
        contenders["MIME, a step"] = mine_stepping
        contenders["MuJoCo rollout, a step"] = mujoco_rollout
    except ImportError as error:
        missing("UR5, batch of 4096: MIME / MuJoCo rollout, a step", error)
    try:
        contenders["frax"] = frax_batch(path, q, qd, tau, ours)
    except Exception as error:
        missing("UR5, batch of 4096: MIME / frax", error)
    times = best_of(15, mine, *contenders.values())
    each = [t / repeat / BATCH * 1e6 for t in times]
    report("UR5, batch of 4096: MIME", each[0], "µs a robot")
    goals = {"Pinocchio abaInParallel": 0.5, "MuJoCo rollout, a step": 0.35, "frax": 0.1}
    of = dict(zip(contenders, each[1:], strict=True))
    for name, theirs in of.items():
        report(f"UR5, batch of 4096: {name}", theirs, "µs a robot")
        if name in goals:
            like = of["MIME, a step"] if name.endswith("a step") else each[0]
            report(f"UR5, batch of 4096: MIME / {name}", like / theirs, "", goals[name])


def frax_robot(path: Path) -> Any:
    from frax.core.robot import Robot

    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(without_meshes(path))
        file.flush()
        return Robot(file.name)


def frax_batch(path: Path, q: Any, qd: Any, tau: Any, ours: Any) -> Callable[[], Any]:
    robot = frax_robot(path)
    f = jax.jit(jax.vmap(lambda q, qd, tau: robot.forward_dynamics(q, qd, tau, None)))
    rows = [jnp.asarray(x.T) for x in (q, qd, tau)]
    agree("frax", np.asarray(f(*rows)).T, ours)
    return lambda: [f(*rows) for _ in range(5)]


def jax_peers(path: Path, tree: kin.KinematicTree) -> None:
    """One robot in a scan, beside the peers that are written in JAX too."""
    steps, q, zero = 200, jnp.linspace(-0.5, 0.5, 6), jnp.zeros(6)
    ours, _ = compiled(rollout_of(dynamics(tree), steps), DEFAULT, q, zero, zero)
    expected = ours(q, zero, zero)[0]
    for name, build in (("frax", frax_rollout), ("MJX", mjx_rollout)):
        label = f"UR5, one robot: MIME / {name}"
        try:
            start = time.perf_counter()
            run = build(path, q, steps)
            agree(name, run(), np.asarray(expected), 1e-6)
            seconds = time.perf_counter() - start
        except Exception as error:
            missing(label, error)
            continue
        mine, theirs = best_of(5, lambda: ours(q, zero, zero), run)
        report(f"UR5, one robot: {name} (compiled in {seconds:.0f} s)", theirs / steps * 1e6, "µs")
        report(label, mine / theirs, "")


def frax_rollout(path: Path, q: Any, steps: int) -> Callable[[], Any]:
    robot, zero = frax_robot(path), jnp.zeros(6)
    f = rollout_of(lambda q, qd, tau: robot.forward_dynamics(q, qd, tau, None), steps)
    program, _ = compiled(f, DEFAULT, q, zero, zero)
    return lambda: program(q, zero, zero)[0]


def mjx_rollout(path: Path, q: Any, steps: int) -> Callable[[], Any]:
    from mujoco import mjx

    model = mjx.put_model(mujoco_model(path))

    @jax.jit
    def run(q: Any) -> Any:
        data = mjx.make_data(model).replace(qpos=q)
        body = lambda data, _: (mjx.step(model, data), None)  # noqa: E731
        return jax.lax.scan(body, data, None, length=steps)[0].qpos

    return lambda: run(q)


def mjx_batch(path: Path) -> None:
    """A step of the whole batch; slow enough that one call after the compilation will do."""
    label = "UR5, batch of 4096: MIME / MJX, a step"
    try:
        from mujoco import mjx

        model = mjx.put_model(mujoco_model(path))
        q = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (BATCH, 6)))
        data = jax.vmap(lambda q: mjx.make_data(model).replace(qpos=q))(q)
        step = jax.jit(jax.vmap(lambda data: mjx.step(model, data).qpos))
        (seconds,) = best_of(1, lambda: step(data))
    except Exception as error:
        missing(label, error)
        return
    report("UR5, batch of 4096: MJX, a step", seconds / BATCH * 1e6, "µs a robot")
    ours = results["UR5, batch of 4096: MIME, a step"]["value"]
    report(label, ours / (seconds / BATCH * 1e6), "", 0.001)


def gradient(tree: kin.KinematicTree) -> None:
    """Of the final position with respect to the torques of a 100-step rollout."""
    rollout = rollout_of(dynamics(tree), 100)
    q, zero = jnp.linspace(-0.5, 0.5, 6), jnp.zeros(6)
    many = jnp.broadcast_to(q[:, None], (6, 1024)) + 0.0
    for label, f, args, options in (
        ("one robot", rollout, (q, zero, zero), NO_EMITTERS),
        ("1024", jax.vmap(rollout, -1, -1), (many, 0 * many, 0 * many), UNFUSED),
    ):
        loss = lambda q, qd, tau, f=f: jnp.sum(f(q, qd, tau)[0] ** 2)  # noqa: E731
        forward, _ = compiled(loss, options, *args)
        backward, seconds = compiled(jax.grad(loss, argnums=2), options, *args)
        one, two = best_of(7, lambda f=forward, a=args: f(*a), lambda f=backward, a=args: f(*a))
        report(f"UR5, {label}: gradient / forward of 100 steps", two / one, "")
        report(f"UR5, {label}: compile the gradient", seconds, "s")


def against_joints(joints: tuple[int, ...]) -> None:
    """Cost of a step and its compilation for serial chains."""
    table: list[list[float]] = []
    for n in joints:
        tree = chain(n)
        q, zero = jnp.linspace(-0.5, 0.5, n), jnp.zeros(n)
        alone, seconds = compiled(
            rollout_of(dynamics(tree), 200), options_for(tree, False), q, zero, zero
        )
        many = jnp.broadcast_to(q[:, None], (n, 1024)) + 0.0
        f = jax.vmap(dynamics(tree), in_axes=-1, out_axes=-1)
        side_by_side, batch_seconds = compiled(f, options_for(tree, True), many, many, many)
        one, batch = best_of(
            20,
            lambda p=alone, a=(q, zero, zero): p(*a),
            lambda p=side_by_side, a=(many, many, many): p(*a),
        )
        table.append([n, one / 200 * 1e6, batch / 1024 * 1e6, seconds, batch_seconds])
        print("chain of {:2d}: {:8.2f} µs alone, {:7.3f} µs in a batch; compile {:.1f} and "
              "{:.1f} s".format(*table[-1]), flush=True)  # fmt: skip
        if n in (6, 30):
            report(f"chain of {n}: compile the step", seconds, "s", 5.0 if n == 6 else 30.0)
    names = ("joints", "one_us", "batch_us", "one_compile_s", "batch_compile_s")
    results["cost against joints"] = dict(zip(names, np.transpose(table).tolist(), strict=True))
    plot(np.array(table))


def plot(table: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (cost, compile_time) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    n = table[:, 0]
    cost.loglog(n, table[:, 1], "o-", label="one robot in a scan")
    cost.loglog(n, table[:, 2], "s-", label="each of 1024, one thread")
    cost.set_ylabel("time of a step (µs)")
    compile_time.plot(n, table[:, 3], "o-", label="one robot in a scan")
    compile_time.plot(n, table[:, 4], "s-", label="batch of 1024")
    compile_time.set_ylabel("time to compile (s)")
    compile_time.set_ylim(bottom=0)
    for axis in (cost, compile_time):
        axis.set_xlabel("number of joints in a serial chain (1)")
        axis.axvline(10.5, color="0.6", linestyle=":")
        axis.grid(alpha=0.3)
        axis.legend()
    cost.set_xticks(n, [f"{int(x)}" for x in n])
    cost.minorticks_off()
    cost.set_title("mass matrix up to 10 joints, articulated bodies beyond", fontsize=9)
    figure.savefig(ROOT / "docs/images/arm_cost_vs_joints.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joints", type=int, nargs="*", default=JOINTS)
    joints = tuple(parser.parse_args().joints)
    path = ur5_path()
    tree = kin.parse_urdf(path)
    sections = (
        lambda: one_robot(path, tree),
        lambda: batch(path, tree),
        lambda: against_joints(joints),
        lambda: gradient(tree),
        lambda: jax_peers(path, tree),
        lambda: mjx_batch(path),
    )
    file = ROOT / "benchmarks/results/arm.json"
    file.parent.mkdir(exist_ok=True)
    for section in sections:
        section()
        file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
