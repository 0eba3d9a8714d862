"""Random graphs: the compiled program equals a slow, obvious interpreter of the same rules."""

import math
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elements import Cell
from mime import GraphManager
from sizes import sized

DT = 0.05


class Interpreter:
    """The rules of a graph in plain Python floats, one dictionary at a time."""

    def __init__(self, order, periods, edges, external, group):
        self.order, self.periods, self.edges = order, periods, edges
        self.external, self.group = external, group
        self.x = dict.fromkeys(order, 0.0)
        self.step_count = 0
        self.flux = {}
        for name in order:  # before the first step: same-step edges from nodes already evaluated
            r, s = self.inputs(name, self.flux, {}, {})
            self.flux[name] = self.fluxes(name, self.x[name], r, s)

    @staticmethod
    def fluxes(name, x, r, s):
        return {"y": x + 0.25 * r, "z": (x, s)}

    def inputs(self, name, now, before, external):
        r, s = None, 0.0
        for source, target, source_field, target_field, delay in self.edges:
            values = (before if delay else now).get(source)
            if target != name or values is None:
                continue
            value = values["y"] if source_field == "y" else values["z"][0] - values["z"][1]
            if target_field == "r":
                r = value
            else:
                s += value
        given = external.get(name, {})
        s += given.get("s", 0.0)
        r = given.get("r", r)
        return (0.5 if r is None else r), s

    def fire(self, name, now, before, external):
        dt = DT * self.periods[name]
        r, s = self.inputs(name, now, before, external)
        x = self.x[name] + dt * (math.sin(r) + s - self.x[name])
        return x, self.fluxes(name, x, r, s)

    def step(self, external):
        before, now, x = self.flux, {}, dict(self.x)
        for name in self.order:
            if self.step_count % self.periods[name]:
                now[name] = before[name]
            elif name in self.group:
                if any(member in now for member in self.group):
                    continue  # all members were solved together
                trial = dict(now) | {m: before[m] for m in self.group}
                for _ in range(400):
                    for member in self.group:
                        x[member], trial[member] = self.fire(member, trial, before, external)
                now |= {member: trial[member] for member in self.group}
            else:
                x[name], now[name] = self.fire(name, now, before, external)
        self.x, self.flux = x, now
        self.step_count += 1


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 5))
    names = draw(st.permutations(["ant", "bee", "cat", "dog", "elk"]))[:count]
    group = tuple(names[1:3]) if count >= 3 and draw(st.booleans()) else ()
    periods = {name: draw(st.sampled_from([1, 1, 2, 3])) for name in names}
    periods[names[0]] = 1
    periods |= dict.fromkeys(group, 1)
    edges, fed = [], set()
    for i, source in enumerate(names):
        for j, target in enumerate(names):
            if not draw(st.integers(0, 2)):
                inside = source in group and target in group and source != target
                delay = draw(st.booleans()) if (i < j or inside) else True
                target_field = draw(st.sampled_from("rs"))
                if target_field == "r" and (target, "r") in fed:
                    target_field = "s"
                fed.add((target, target_field))
                edges.append((source, target, draw(st.sampled_from("yz")), target_field, delay))
    free = [(n, f) for n in names for f in "rs" if f == "s" or (n, "r") not in fed]
    external = draw(st.lists(st.sampled_from(free), unique=True, max_size=3))
    return names, periods, edges, external, group, draw(st.integers(0, 2**16))


def difference(z):
    return z[0] - z[1]


def build(names, periods, edges, external, group, shuffle):
    graph = GraphManager()
    mix = random.Random(shuffle)
    for name in mix.sample(names, len(names)):
        graph.add_node(Cell(name, DT * periods[name]))
    for source, target, source_field, target_field, delay in mix.sample(edges, len(edges)):
        transform = difference if source_field == "z" else None
        graph.add_edge(source, target, source_field, target_field, transform, delay)
    for node, field in mix.sample(external, len(external)):
        graph.add_external_input(node, field)
    if group:
        # A loop of two z to s shrinks by 0.95² in each iteration: 315 of them leave 1e-14.
        graph.add_coupling_group(group, tolerance=1e-14, max_iterations=400)
    return graph.compile()


@settings(
    max_examples=sized(40, small=10),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(graphs())
@pytest.mark.slow
def test_a_compiled_graph_equals_the_obvious_interpreter(drawn):
    names, periods, edges, external, group, seed = drawn
    steps = 12
    rng = np.random.default_rng(seed)
    series = {pair: rng.normal(size=steps) for pair in external}
    inputs = {}
    for (node, field), values in series.items():
        inputs.setdefault(node, {})[field] = values

    slow = Interpreter(names, periods, edges, external, group)
    expected = []
    for n in range(steps):
        now = {}
        for (node, field), values in series.items():
            now.setdefault(node, {})[field] = float(values[n])
        slow.step(now)
        expected.append([(slow.x[name], slow.flux[name]["y"]) for name in sorted(names)])

    simulations = [build(names, periods, edges, external, group, shuffle) for shuffle in (0, 1)]
    assert simulations[0].wiring == simulations[1].wiring
    run = simulations[1].run(steps=steps, inputs=inputs)
    found = np.stack([[run[n]["x"], run[n]["y"]] for n in sorted(names)]).transpose(2, 0, 1)
    # Twelve steps of a few operations each; XLA may contract a*b+c. Coupled values stop at 1e-14.
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@settings(
    max_examples=sized(1000, small=2),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(drawn=graphs())
def test_native_code_and_xla_agree(drawn, monkeypatch):
    """Two graphs in the suite, 1,000 by `make soak`; runs and batches."""
    *parts, seed = drawn
    start = np.random.default_rng(seed).normal(size=(5, len(parts[0])))
    first = {name: {"x": start[0, k]} for k, name in enumerate(parts[0])}
    each = {name: {"x": start[:, k]} for k, name in enumerate(parts[0])}
    found = []
    for native in ("on", "off"):
        monkeypatch.setenv("MIME_NATIVE", native)
        simulation = build(*parts, 0)
        assert simulation.backend.native == (native == "on")
        one = simulation.run(steps=12, initial_state=first)
        batch = simulation.run_batch(steps=12, initial_state=each)
        values = [[one[n][f], batch[n][f]] for n in sorted(parts[0]) for f in ("x", "y")]
        found.append(np.concatenate([np.ravel(x) for pair in values for x in pair]))
    # As above: a few operations per step; coupled values stop at 1e-14.
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


def test_the_interpreter_can_disagree():
    """Dropping a delay changes the result by far more than the tolerance above."""
    names, periods = ["ant", "bee"], {"ant": 1, "bee": 1}
    delayed = [("ant", "bee", "y", "s", True)]
    slow = Interpreter(names, periods, [("ant", "bee", "y", "s", False)], [], ())
    for _ in range(12):
        slow.step({})
    run = build(names, periods, delayed, [], (), 0).run(steps=12)
    assert abs(run["bee"]["x"][-1] - slow.x["bee"]) > 1e-3
    assert run["ant"]["x"][-1] == pytest.approx(slow.x["ant"], rel=1e-13)
