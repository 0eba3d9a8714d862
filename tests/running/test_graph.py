"""What a graph means: same-step edges, delays, sums, defaults, rates; and what it refuses."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elements import Cell, Rotor, Spring
from mime import GraphError, GraphManager, InputError


def pendulum(delay=False):
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 1e-3, 3.0))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque", delay=delay)
    graph.add_external_input("rotor", "torque")
    return graph


def test_a_same_step_edge_carries_the_new_value_and_a_delayed_one_the_old():
    graph = pendulum(delay=True)
    J, b, dt, k = 0.01, 0.1, 1e-3, 3.0
    angle = speed = torque = 0.0
    for _ in range(5):
        speed = (J * speed + dt * (1.0 + torque)) / (J + dt * b)
        angle += dt * speed
        torque = -k * angle
        fluxes = graph.step({"rotor": {"torque": 1.0}})
        # Three operations a step, each to half an ulp.
        assert fluxes["spring"]["torque"] == pytest.approx(torque, rel=1e-14)
        assert graph.get_node_state("rotor")["angle"] == pytest.approx(angle, rel=1e-14)


def test_stepping_by_hand_equals_a_run():
    graph = pendulum(delay=True)
    by_hand = [graph.step({"rotor": {"torque": 0.5}})["rotor"]["angle"] for _ in range(20)]
    run = graph.compile().run(steps=20, inputs={"rotor": {"torque": 0.5}})
    np.testing.assert_array_equal(by_hand, run["rotor"]["angle"])


def test_methods_go_through_jit_as_they_are():
    simulation = pendulum(delay=True).compile()
    state = jax.jit(simulation.init_state)()
    jitted, plain = jax.jit(simulation.step)(state), simulation.step(state)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), jitted, plain))


def test_additive_inputs_sum_their_edges_and_the_external_input():
    graph = GraphManager()
    for name in "abc":
        graph.add_node(Cell(name, 0.1))
    graph.add_edge("a", "c", "y", "s")
    graph.add_edge("b", "c", "y", "s", transform=lambda y: 10 * y)
    graph.add_external_input("c", "s")
    fluxes = graph.step({"c": {"s": 100.0}})
    expected = float(fluxes["a"]["y"] + 10 * fluxes["b"]["y"] + 100.0)
    assert fluxes["c"]["z"][1] == pytest.approx(expected, rel=1e-15)


def test_an_input_that_nobody_feeds_takes_its_default():
    graph = GraphManager()
    graph.add_node(Cell("a", 0.1))
    graph.add_external_input("a", "r")
    assert graph.step()["a"]["y"] == pytest.approx(0.1 * np.sin(0.5) + 0.25 * 0.5, rel=1e-15)


def test_a_slow_node_fires_at_its_own_rate_and_holds_between():
    graph = GraphManager()
    graph.add_node(Cell("fast", 0.1))
    graph.add_node(Cell("slow", 0.3))
    graph.add_edge("fast", "slow", "y", "s")
    trajectory = graph.compile().run(steps=9)
    slow = trajectory["slow"]["x"]
    assert len(set(slow.tolist())) == 3
    np.testing.assert_array_equal(slow.reshape(3, 3), np.repeat(slow[::3, None], 3, axis=1))
    # It steps with its own dt, on the input of the step at which it fires.
    first = 0.3 * (np.sin(0.5) + trajectory["fast"]["y"][0])
    assert slow[0] == pytest.approx(first, rel=1e-14)


def test_a_slow_node_is_not_computed_between_its_firings():
    import jax

    calls = []

    class Counting(Cell):
        def update(self, state, boundary_inputs, dt):
            jax.debug.callback(lambda: calls.append(1))
            return {"x": state["x"] + 1.0}

    graph = GraphManager()
    graph.add_node(Cell("fast", 0.1))
    graph.add_node(Counting("slow", 0.5))
    graph.compile().run(steps=20)
    jax.effects_barrier()
    assert len(calls) == 4


def test_the_order_of_add_node_and_add_edge_changes_no_bit():
    nodes = [Cell(name, 0.1) for name in "abcd"]
    edges = [("a", "d", "y", "s"), ("b", "d", "y", "s"), ("c", "d", "y", "s"), ("d", "a", "y", "s")]
    results = []
    for order in itertools.permutations(range(4)):
        graph = GraphManager()
        for index in order:
            graph.add_node(nodes[index])
        for index in reversed(order):
            graph.add_edge(*edges[index], delay=index == 3)
        simulation = graph.compile()
        assert not results or simulation.wiring == results[0][1]
        results.append((graph, simulation.wiring))
    runs = [graph.compile().run(steps=50)["d"]["y"] for graph, _ in results[::8]]
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])


def problems_of(graph):
    with pytest.raises(GraphError) as error:
        graph.compile()
    return "\n".join(map(str, error.value.problems))


def test_all_mistakes_are_reported_at_once():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 2.5e-3, 3.0))
    graph.add_node(Spring("spring", 2.5e-3, 3.0))
    graph.add_edge("rotr", "spring", "angle", "angle")
    graph.add_edge("rotor", "spring", "angel", "angle")
    graph.add_edge("rotor", "spring", "angle", "angles")
    graph.add_edge("rotor", "spring", "speed", "rest_angle")
    graph.add_edge("spring", "rotor", "torque", "pose")
    graph.add_external_input("rotor", "voltage")
    graph.add_external_input("motor", "voltage")
    found = problems_of(graph)
    for part in (
        "'spring' is the name of 2 nodes",
        "unknown node 'rotr' (did you mean 'rotor'?)",
        "unknown flux 'angel' (did you mean 'angle'?)",
        "unknown input 'angles' (did you mean 'angle'?)",
        "unit 'rad/s' into an input in 'rad'",
        "its source has shape (), the input expects (7,)",
        "2.5 times the smallest (0.001 s of 'rotor'), not a whole multiple",
        "The nearest that fits is 0.002 s",
        "external input rotor.voltage: unknown input 'voltage'",
        "external input motor.voltage: unknown node 'motor'",
        "undeclared cycle",
    ):
        assert part in found


def test_two_sources_of_a_replacive_input_are_refused():
    graph = GraphManager()
    for name in "abc":
        graph.add_node(Cell(name, 0.1))
    graph.add_edge("a", "c", "y", "r")
    graph.add_edge("b", "c", "y", "r")
    assert "c.r is replacive and has 2 sources" in problems_of(graph)
    graph = GraphManager()
    graph.add_node(Cell("a", 0.1))
    graph.add_node(Cell("b", 0.1))
    graph.add_edge("a", "b", "y", "r")
    graph.add_external_input("b", "r")
    assert "an external input" in problems_of(graph)


def test_an_undeclared_cycle_is_spelled_out():
    found = problems_of(pendulum())
    assert "rotor.angle -> spring.angle; spring.torque -> rotor.torque" in found
    assert "`delay`" in found
    assert "a coupling group of ['rotor', 'spring']" in found


def test_a_cycle_through_a_node_outside_its_group_is_refused():
    graph = GraphManager()
    for name in "abc":
        graph.add_node(Cell(name, 0.1))
    for source, target in ("ab", "bc", "ca"):
        graph.add_edge(source, target, "y", "s")
    graph.add_coupling_group(["a", "b"])
    assert "undeclared cycle" in problems_of(graph)


def test_a_self_loop_needs_a_delay():
    graph = GraphManager()
    graph.add_node(Cell("a", 0.1))
    graph.add_edge("a", "a", "y", "s")
    assert "reads its own flux of the same step" in problems_of(graph)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (lambda z: z, r"its source has|its transform gives shape (2,)"),
        (lambda z: z.no_such_thing, "its transform fails on shape (2,)"),
    ],
)
def test_a_transform_that_does_not_fit_is_refused(transform, message):
    graph = GraphManager()
    graph.add_node(Cell("a", 0.1))
    graph.add_node(Cell("b", 0.1))
    graph.add_edge("a", "b", "z", "s", transform=transform)
    assert any(part in problems_of(graph) for part in message.split("|"))


def test_groups_are_checked():
    graph = GraphManager()
    graph.add_node(Cell("a", 0.1))
    graph.add_node(Cell("b", 0.2))
    graph.add_coupling_group(["a", "b"], name="a")
    graph.add_coupling_group(["a", "x"])
    found = problems_of(graph)
    for part in ("the name is taken", "unknown node 'x'", "Merge the two", "different rates"):
        assert part in found
    for options in (
        {"tolerance": 0.0},
        {"max_iterations": 0},
        {"acceleration": "fast"},
        {"method": "newton"},
    ):
        with pytest.raises(GraphError, match=next(iter(options))):
            graph.add_coupling_group(["a"], **options)


def test_an_empty_graph_and_a_thing_that_is_no_node_are_refused():
    with pytest.raises(GraphError, match="no nodes"):
        GraphManager().compile()
    with pytest.raises(GraphError, match="takes a Node, got str"):
        GraphManager().add_node("rotor")


def test_an_undeclared_external_input_is_refused():
    simulation = pendulum(delay=True).compile()
    with pytest.raises(InputError, match=r"did you mean 'rotor.torque'"):
        simulation.run(steps=1, inputs={"rotor": {"torqe": 1.0}})
    with pytest.raises(InputError, match="must be a mapping like"):
        simulation.run(steps=1, inputs={"rotor": 1.0})


def test_the_wiring_can_be_drawn():
    graph = pendulum(delay=True)
    chart = graph.to_mermaid()
    assert chart.startswith("flowchart LR")
    for part in (
        'rotor["rotor<br/>Rotor, 0.001 s"]',
        'rotor -- "angle → angle" --> spring',
        'spring -. "torque → torque" .-> rotor',
        'rotor_torque(["torque"]) --> rotor',
    ):
        assert part in chart
    coupled = pendulum()
    coupled.add_coupling_group(["rotor", "spring"], name="joint")
    assert 'subgraph group0["joint: gauss_seidel"]' in coupled.to_mermaid()


def test_a_flow_chart_has_one_id_per_node_and_shows_names_as_they_are():
    graph = GraphManager()
    for name in ("a-b", "a_b", "end", 'say "x"<br/>#'):
        graph.add_node(Spring(name, 1e-3, 1.0))
    chart = graph.to_mermaid().splitlines()[1:]
    ids = [line.strip().partition("[")[0] for line in chart]
    assert len(set(ids)) == 4
    assert "end" not in ids
    assert any("say #34;x#34;#60;br/#62;#35;<br/>" in line for line in chart)


def test_initial_states_are_checked_and_held_fluxes_follow_them():
    simulation = pendulum(delay=True).compile()
    state = simulation.init_state({"rotor": {"angle": 0.2}})
    assert state.held["spring"]["torque"] == pytest.approx(-0.6, rel=1e-15)
    with pytest.raises(InputError, match="no node 'roto'"):
        simulation.init_state({"roto": {}})
    with pytest.raises(InputError, match="no field 'angel'"):
        simulation.init_state({"rotor": {"angel": 0.0}})
    with pytest.raises(InputError, match=r"has shape \(2,\)"):
        simulation.init_state({"rotor": {"angle": jnp.zeros(2)}})


def test_a_problem_tells_its_place_as_a_value():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 2.5e-3, 3.0))
    graph.add_edge("rotor", "spring", "angel", "angle")
    graph.add_external_input("rotor", "voltage")
    graph.add_coupling_group(["rotor", "x"], name="both")
    with pytest.raises(GraphError) as error:
        graph.compile()
    places = [problem.place for problem in error.value.problems]
    edge = next(place[1] for place in places if place[0] == "edge")
    assert (edge.source, edge.source_field) == ("rotor", "angel")
    assert ("input", "rotor", "voltage") in places
    assert ("node", "spring", "timestep") in places
    assert ("group", "both") in places
