"""Motors, one and many.

A DC motor at a constant voltage, in steps of 0.1 ms. By hand is a `lax.scan` of the same four lines
under `jax.jit` (and `jax.vmap`), recording nothing. MuJoCo's `dcmotor` and gym-electric-motor take
steps of the same length with other schemes, SciPy's `solve_ivp` those that it needs (rtol 1e-6);
they are compared after a second, where calling `run` is a good part of our time.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from harness import Case, Figure, Peer

from mime import GraphManager
from mime.nodes.actuation.motor import Coulomb, MotorNode

DT, STEPS, COUNT, BATCH_STEPS, VOLTAGE = 1e-4, 1_000_000, 4096, 10_000, 2.0
SECOND = 10_000
NAMES = ("inertia_kg_m2", "kt_n_m_per_a", "r_ohm", "l_henry", "damping_n_m_s")
PARAMETERS = dict(zip(NAMES, (1e-4, 0.05, 1.0, 1e-3, 5e-4), strict=True))
INPUTS = {"motor": {"commanded_voltage": VOLTAGE}}
SAME, OTHER = 1e-12, 1e-3
"""Relative, of the speed: the same formulas; other schemes of at least first order."""


def cases(threads: int) -> Iterator[Case | Figure]:
    """One motor, a batch, and the node stepped from Python."""
    by_hand = Peer("lax.scan by hand", lambda: alone_by_hand(STEPS), SAME, 1.1)
    yield Case("one motor", lambda: alone(STEPS), (by_hand,), STEPS, "step", quick=True)
    others = (
        Peer("MuJoCo dcmotor, in C", mujoco, OTHER),
        Peer("SciPy solve_ivp", scipy, OTHER),
        Peer("gym-electric-motor", gym_electric_motor, OTHER),
    )
    yield Case("one motor, a second", lambda: alone(SECOND), others, SECOND, "step", repeats=3)
    pure = Peer("lax.scan by hand", lambda: alone_by_hand(STEPS), SAME, 1.1)
    yield Case("one motor, rollout under jit", lambda: rollout(STEPS), (pure,), STEPS, "step")
    for name, options, tolerance in (
        ("exact integration", {"integrator": "exact"}, OTHER),
        ("Coulomb friction", {"friction": Coulomb(1e-4)}, 2e-3),  # it takes 0.1 % of the speed
    ):
        peer = Peer("the motor without it", lambda: alone(STEPS), tolerance)
        yield Case(
            f"one motor, {name}",
            lambda options=options: alone(STEPS, **options),
            (peer,),
            STEPS,
            "step",
        )
    by_hand = Peer("lax.scan by hand, vmap", many_by_hand, SAME, 0.5)
    work = COUNT * BATCH_STEPS
    yield Case(
        f"{COUNT:,} motors", lambda: many(threads), (by_hand,), work, "motor-step", quick=True
    )
    yield Figure("100,000 calls of update from Python", from_python, "s")


def simulation_of(**options: Any) -> Any:
    graph = GraphManager()
    graph.add_node(MotorNode("motor", DT, **PARAMETERS, command_mode="voltage", **options))
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def alone(steps: int, **options: Any) -> Any:
    run = simulation_of(**options).run
    return lambda: run(steps=steps, inputs=INPUTS, record=(), progress=False).final_state.of(
        "motor"
    )["angular_velocity"]


def rollout(steps: int) -> Any:
    """The pure path, with the parameters as arguments of the program."""
    simulation = simulation_of()
    start = simulation.init_state()

    @jax.jit
    def run(simulation: Any) -> Any:
        end, _ = simulation.rollout(start, INPUTS, steps, record=())
        return end.of("motor")["angular_velocity"]

    return lambda: run(simulation)


def scan(p: Any, V: Any, steps: int) -> Any:
    """MIME-NODE-100's voltage mode and nothing else."""
    J, k, R, L, b = (p[name] for name in NAMES)

    def step(x: Any, _: None) -> Any:
        theta, w, i = x
        i = (i + DT / L * (V - k * w)) / (1 + DT * R / L)
        w = (J * w + DT * k * i) / (J + DT * b)
        return (theta + w * DT, w, i), None

    zero = jnp.zeros(())
    return jax.lax.scan(step, (zero, zero, zero), length=steps)[0][1]


def alone_by_hand(steps: int) -> Any:
    p, run = jax.tree.map(jnp.asarray, PARAMETERS), jax.jit(scan, static_argnums=2)
    return lambda: run(p, jnp.asarray(VOLTAGE), steps)


def varied() -> dict[str, np.ndarray]:
    factors = np.random.default_rng(0).uniform(0.5, 2.0, (len(NAMES), COUNT))
    return {name: PARAMETERS[name] * f for name, f in zip(NAMES, factors, strict=True)}


def many(threads: int) -> Any:
    run, parameters = simulation_of().run_batch, {"motor": varied()}
    options = {"record": (), "progress": False, "threads": threads, "parameters": parameters}
    return lambda: run(steps=BATCH_STEPS, inputs=INPUTS, **options).final_state.of("motor")[
        "angular_velocity"
    ]


def many_by_hand() -> Any:
    p = jax.tree.map(jnp.asarray, varied())
    run = jax.jit(jax.vmap(lambda p: scan(p, VOLTAGE, BATCH_STEPS)))
    return lambda: run(p)


def mujoco() -> Any:
    import mujoco

    J, k, R, L, b = PARAMETERS.values()
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

    def work() -> Any:
        mujoco.mj_resetData(model, data)
        data.ctrl[:] = VOLTAGE
        mujoco.mj_step(model, data, nstep=SECOND)
        return data.qvel[0]

    return work


def scipy() -> Any:
    from scipy.integrate import solve_ivp

    J, k, R, L, b = PARAMETERS.values()
    times = DT * np.arange(1, SECOND + 1)

    def slope(t: float, x: Any) -> Any:
        return (k * x[1] - b * x[0]) / J, (VOLTAGE - R * x[1] - k * x[0]) / L

    def work() -> Any:
        solution = solve_ivp(slope, (0, times[-1]), (0.0, 0.0), t_eval=times, rtol=1e-6, atol=1e-9)
        return solution.y[0, -1]

    return work


def gym_electric_motor() -> Any:
    """Its physical system without rewards and observations: supply, converter, motor, load.

    The inertia is the load's: a load without any is a division by zero.
    """
    from gym_electric_motor import physical_systems as ps

    J, k, R, L, b = PARAMETERS.values()
    motor = {"r_a": R, "l_a": L, "psi_e": k, "j_rotor": 1e-12 * J}
    system = ps.DcMotorSystem(
        converter=ps.ContFourQuadrantConverter(),
        motor=ps.DcPermanentlyExcitedMotor(motor_parameter=motor),
        load=ps.PolynomialStaticLoad(load_parameter={"a": 0.0, "b": b, "c": 0.0, "j_load": J}),
        supply=ps.IdealVoltageSupply(u_nominal=VOLTAGE),
        ode_solver=ps.EulerSolver(),
        tau=DT,
    )
    whole_supply = np.array([1.0])

    def work() -> Any:
        system.reset()
        for _ in range(SECOND):
            system.simulate(whole_supply)
        return system.system_state[system.OMEGA_IDX]

    return work


def from_python() -> float:
    import time

    node, inputs = MotorNode("motor", DT, **PARAMETERS), {"commanded_torque": 0.01}
    state = node.update(node.initial_state(), inputs, DT)
    began = time.perf_counter()
    for _ in range(10_000):
        state = node.update(state, inputs, DT)
    jax.block_until_ready(state)
    return 10 * (time.perf_counter() - began)
