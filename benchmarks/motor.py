"""The motor's speed, as ratios from one run: `python benchmarks/motor.py`.

The node's `update` in a scan, and a graph of it, against the same formulas written by hand; a batch
of 4096; stepping by hand from Python; MuJoCo's `dcmotor`.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.graph import GraphManager
from mime.nodes.actuation.motor import MotorNode

jax.config.update("jax_enable_x64", True)

DT, STEPS, BATCH, BATCH_STEPS = 1e-4, 200_000, 4096, 1000
PARAMETERS = (1e-4, 0.05, 1.0, 1e-3, 5e-4)


def by_hand(parameters, V, steps):
    """MIME-NODE-100's voltage mode and nothing else."""
    J, k, R, L, b = parameters

    def step(x, _):
        theta, w, i = x
        i = (i + DT / L * (V - k * w)) / (1 + DT * R / L)
        w = (J * w + DT * k * i) / (J + DT * b)
        return (theta + w * DT, w, i), None

    zero = 0.0 * V * J
    return jax.lax.scan(step, (zero, zero, zero), length=steps)[0][1]


def by_node(node, V, steps):
    def step(state, _):
        return MotorNode.update.traced(node, state, {"commanded_voltage": V}, DT), None

    start = jax.tree.map(lambda x: x + 0.0 * V, node.initial_state())
    return jax.lax.scan(step, start, length=steps)[0]["angular_velocity"]


def by_graph(simulation, V, steps):
    inputs = {"motor": {"commanded_voltage": V}}
    state, _ = simulation.rollout(simulation.init_state(), inputs, steps=steps, record=())
    return state.nodes["motor"]["angular_velocity"]


def seconds(function, *args, repeats=7):
    """The shortest of several timed calls after one that compiles."""
    jax.block_until_ready(function(*args))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(time.perf_counter() - start)
    return min(times)  # the machine may be shared; what it can do is the least disturbed run


def show(name, each, reference=None):
    ratio = "" if reference is None else f"{each / reference:7.2f} x by hand"
    print(f"{name:<52}{1e6 * each:10.4f} us a step {ratio}")


def simulation_of(node):
    graph = GraphManager()
    graph.add_node(node)
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def alone(modes):
    parameters, V = tuple(map(jnp.asarray, PARAMETERS)), jnp.asarray(2.0)
    hand = seconds(jax.jit(lambda p, V: by_hand(p, V, STEPS)), parameters, V) / STEPS
    show("one motor, scan by hand", hand)
    for name, options in modes.items():
        node = MotorNode("motor", DT, *PARAMETERS, **options)
        each = seconds(jax.jit(lambda n, V: by_node(n, V, STEPS)), node, V) / STEPS
        show(f"one motor, node, {name}", each, hand)
    node = MotorNode("motor", DT, *PARAMETERS, command_mode="voltage")
    each = seconds(jax.jit(lambda s, V: by_graph(s, V, STEPS)), simulation_of(node), V) / STEPS
    show("one motor, graph, voltage", each, hand)


def batched(modes):
    rng = np.random.default_rng(0)
    factors = jnp.asarray(rng.uniform(0.5, 2.0, (5, BATCH)))
    parameters = tuple(jnp.asarray(p) * f for p, f in zip(PARAMETERS, factors, strict=True))
    V = jnp.full(BATCH, 2.0)
    work = BATCH * BATCH_STEPS
    hand = seconds(jax.jit(lambda p, V: by_hand(p, V, BATCH_STEPS)), parameters, V) / work
    show(f"batch of {BATCH}, scan by hand", hand)
    for name, options in modes.items():
        build = lambda *p: MotorNode("motor", DT, *p, **options)  # noqa: B023, E731
        nodes = jax.vmap(build)(*parameters)
        run = jax.jit(jax.vmap(lambda n, V: by_node(n, V, BATCH_STEPS)))
        show(f"batch of {BATCH}, node, {name}", seconds(run, nodes, V) / work, hand)
    build = lambda *p: simulation_of(MotorNode("motor", DT, *p, command_mode="voltage"))  # noqa: E731
    run = jax.jit(jax.vmap(lambda s, V: by_graph(s, V, BATCH_STEPS)))
    each = seconds(run, jax.vmap(build)(*parameters), V) / work
    show(f"batch of {BATCH}, graph, vmap of rollout, voltage", each, hand)
    simulation = build(*PARAMETERS)
    names = ("inertia_kg_m2", "kt_n_m_per_a", "r_ohm", "l_henry", "damping_n_m_s")
    options = {
        "steps": BATCH_STEPS,
        "inputs": {"motor": {"commanded_voltage": 2.0}},
        "parameters": {"motor": dict(zip(names, map(np.asarray, parameters), strict=True))},
        "record": (),
        "progress": False,
    }
    each = seconds(lambda: simulation.run_batch(**options) and None) / work
    show(f"batch of {BATCH}, graph, run_batch, voltage", each, hand)


def eager():
    node, inputs = MotorNode("motor", DT, *PARAMETERS), {"commanded_torque": 0.01}
    state = node.update(node.initial_state(), inputs, DT)
    start = time.perf_counter()
    for _ in range(100_000):
        state = node.update(state, inputs, DT)
    jax.block_until_ready(state)
    total = time.perf_counter() - start
    print(f"{'100,000 calls of update from Python':<52}{total:10.2f} s  ({total / 30:.2f} of 30 s)")


def against_mujoco():
    try:
        import mujoco
    except ImportError:
        return
    J, k, R, L, b = PARAMETERS
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option timestep="{DT}" gravity="0 0 0"/>
      <worldbody><body>
        <joint name="shaft" type="hinge" damping="{b}"/>
        <inertial mass="1" pos="0 0 0" diaginertia="{J} {J} {J}"/>
      </body></worldbody>
      <actuator>
        <dcmotor joint="shaft" motorconst="{k}" resistance="{R}" inductance="{L}"/>
      </actuator>
    </mujoco>""")
    data = mujoco.MjData(model)
    data.ctrl[:] = 2.0
    start = time.perf_counter()
    mujoco.mj_step(model, data, nstep=STEPS)
    show("one motor, MuJoCo dcmotor (mj_step, nstep)", (time.perf_counter() - start) / STEPS)


if __name__ == "__main__":
    MODES = {
        "voltage": {"command_mode": "voltage"},
        "auto": {},
        "voltage, exact": {"command_mode": "voltage", "integrator": "exact"},
        "voltage, Coulomb": {"command_mode": "voltage", "coulomb_torque_n_m": 1e-3},
    }
    alone(MODES)
    batched(MODES)
    eager()
    against_mujoco()
