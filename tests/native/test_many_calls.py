"""Programs of very many calls: their values lie in the workspace, and tables say where.

A graph of a thousand motors is one. Here a few calls are made to count as many.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mime import GraphManager, MotorNode
from mime.native import kernel as kernels
from mime.native.lowering import functions, kernel_text
from native_kernels import by_jax, kernel_of, natively, same_bits
from sizes import FULL

MEMBERS, NODES = 5, 6
COUNT = 12


@pytest.fixture
def many(monkeypatch):
    """Three calls are many, and a function of four equations is worth one."""
    monkeypatch.setattr(functions, "MANY_CALLS", 3)
    monkeypatch.setattr(functions, "SMALLEST", 4)
    monkeypatch.setattr(functions, "SMALLEST_BY_TABLE", 4)


@pytest.fixture
def by_table(many, monkeypatch):
    """Looks whether a program that is compiled meanwhile calls by tables."""
    texts = []

    def seen(*args, **options):
        lowered = kernel_text(*args, **options)
        texts.append("ptr %table" in lowered.text)
        return lowered

    monkeypatch.setattr(kernels, "kernel_text", seen)
    motors.cache_clear()
    return texts


@jax.jit
def advanced(x, v, big, count, on, gain):
    """A node's step on whole numbers, which every order of operations has the same bits for."""
    turned = jnp.where(on, x[::-1], -x) + gain * v
    wrapped = turned - 8.0 * jnp.floor(turned / 8.0)
    return wrapped, v + x[0] - 2.0, big[::-1] + v, count + 1, ~on


def states(seed=3):
    rng = np.random.default_rng(seed)
    shape = (MEMBERS, NODES)
    return (
        rng.integers(-4, 4, (*shape, 3)).astype(float),
        rng.integers(-4, 4, shape).astype(float),
        rng.integers(-4, 4, (*shape, 100)).astype(float),
        rng.integers(0, 9, shape),
        rng.integers(0, 2, shape).astype(bool),
    )


def unstacked(arrays):
    return [tuple(x[k] for x in arrays) for k in range(NODES)]


def flat(nodes):
    return [x for node in nodes for x in node]


def check(function, *args, shared=None):
    found = natively(function, *args, shared=shared)
    kernel = kernel_of(function, args, shared or [False] * len(args))
    assert "ptr %table" in text_of(kernel, len(args))
    for mine, theirs in zip(found, by_jax(function, *args, shared=shared), strict=True):
        assert same_bits(mine, theirs)


def text_of(kernel, count):
    return kernel_text(kernel.closed, (False,) * count, 4, True).text


def test_a_loop_carries_states_in_the_workspace(many):
    def program(*arrays):
        def step(_, nodes):
            return [advanced(*node, 1.0 + k % 2) for k, node in enumerate(nodes)]

        return flat(lax.fori_loop(0, 5, step, unstacked(arrays)))

    check(program, *states())


def test_states_that_change_places_do_not_overwrite_each_other(many):
    def program(*arrays):
        def step(_, nodes):
            after = [advanced(*node, 1.0) for node in nodes]
            return [nodes[1], nodes[0], after[4], *after[2:-1]]

        return flat(lax.fori_loop(0, 5, step, unstacked(arrays)))

    check(program, *states())


def test_members_that_stop_sooner_keep_what_they_had(many):
    def program(limit, *arrays):
        def step(carry):
            k, nodes = carry
            return k + 1, [advanced(*node, 1.0) for node in nodes]

        start = jnp.zeros((), limit.dtype), unstacked(arrays)
        count, nodes = lax.while_loop(lambda carry: carry[0] < limit, step, start)
        return count, *flat(nodes)

    check(program, np.arange(MEMBERS), *states())


def test_calls_in_branches_and_inner_loops(many):
    def program(way, *arrays):
        def step(k, nodes):
            once = lambda nodes: [advanced(*node, 1.0) for node in nodes]  # noqa: E731
            nodes = lax.cond(way > k, once, lambda nodes: nodes, nodes)
            return lax.fori_loop(0, way, lambda _, n: once(n), nodes)

        return flat(lax.fori_loop(0, 3, step, unstacked(arrays)))

    check(program, np.arange(MEMBERS) % 3, *states())
    if FULL:
        check(program, np.int64(2), *states(), shared=[True, *[False] * 5])


def test_shared_and_own_arguments_and_constant_results(many):
    def program(gains, *arrays):
        nodes = [advanced(*node, gains[k]) for k, node in enumerate(unstacked(arrays))]
        return *flat(nodes), np.arange(300.0), jnp.full((2, 3), True), gains

    gains = np.arange(float(NODES)) % 3
    check(program, gains, *states(), shared=[True, *[False] * 5])


@cache
def motors(count):
    graph = GraphManager()
    for k in range(count):
        graph.add_node(
            MotorNode(f"motor_{k}", 1e-3, inertia_kg_m2=1e-4 * (1 + k), kt_n_m_per_a=0.05,
                      r_ohm=1.0, l_henry=1e-3, damping_n_m_s=5e-4, command_mode="voltage")
        )  # fmt: skip
        graph.add_external_input(f"motor_{k}", "commanded_voltage")
    return graph.compile()


@pytest.mark.small("5")
@pytest.mark.parametrize("every", [1, 5])
def test_a_graph_of_many_motors_runs_each_as_if_it_were_alone(every, by_table):
    """To rounding: what is fused within a call is not across it."""
    count, steps = COUNT, 40
    simulation = motors(count)
    times = np.arange(steps) * 1e-3
    inputs = {
        f"motor_{k}": {"commanded_voltage": 1.0 + k + np.sin(90 * times)} for k in range(count)
    }
    whole = simulation.run(steps=steps, inputs=inputs, every=every, progress=False)
    assert any(by_table)
    alone = motors(1)
    for k in (0, COUNT - 1):
        mine = alone.with_parameters({"motor_0.inertia_kg_m2": 1e-4 * (1 + k)})
        single = mine.run(
            steps=steps, inputs={"motor_0": inputs[f"motor_{k}"]}, every=every, progress=False
        )
        for field, values in single.fields["motor_0"].items():
            scale = np.abs(values).max() + 1e-300
            error = np.abs(whole.fields[f"motor_{k}"][field] - values).max() / scale
            assert error < 1e-14, (k, field, error)


def test_a_batch_of_many_motors_has_the_bits_of_its_single_runs(by_table):
    count, members = COUNT, 6
    simulation = motors(count)
    inputs = {f"motor_{k}": {"commanded_voltage": 1.0 + k} for k in range(count)}
    inertias = 1e-4 * (1 + np.arange(members))
    batch = simulation.run_batch(
        steps=40, inputs=inputs, parameters={"motor_7.inertia_kg_m2": inertias}, progress=False
    )
    assert any(by_table)
    for member in (0, members - 1):
        own = simulation.with_parameters({"motor_7.inertia_kg_m2": inertias[member]})
        single = own.run(steps=40, inputs=inputs, progress=False)
        for node, fields in single.fields.items():
            for field, values in fields.items():
                assert same_bits(batch.fields[node][field][member], values), (node, field)


def test_arrays_too_large_for_registers_are_treated_by_loops_and_not_by_a_called_function(many):
    @jax.jit
    def chosen(mask, x, y):
        return jnp.where(mask, x, y) + jnp.where(mask, y, 0.5 * x)

    def function(x):
        for k in range(4):
            x = chosen(x > float(k), x, 2.0 * x + float(k))
        return x

    x = np.random.default_rng(0).integers(-4, 4, (MEMBERS, 40, 40)).astype(float)
    (found,), (theirs,) = natively(function, x), by_jax(function, x)
    assert same_bits(found, theirs)
    text = kernel_text(kernel_of(function, (x,), [False]).closed, (False,), 4, True).text
    assert text.count("\n") < 1600  # fewer than elements


def test_a_slice_of_an_array_in_the_workspace_loads_its_elements_and_no_others(many):
    @jax.jit
    def turned(x):
        return x[::-1] * 2.0 - jnp.abs(x) + jnp.floor(x)

    def function(x):
        for _ in range(4):
            x = turned(x)
        return sum(x[k] * float(k + 1) for k in range(100))

    x = np.random.default_rng(1).integers(-4, 4, (MEMBERS, 100)).astype(float)
    (found,), (theirs,) = natively(function, x), by_jax(function, x)
    assert same_bits(found, theirs)
    text = kernel_text(kernel_of(function, (x,), [False]).closed, (False,), 4, True).text
    assert text.count(" = load ") < 1000  # 100 slices of 1; of 100 elements each it were 10,000
