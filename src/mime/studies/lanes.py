"""Which road a parameter of a study takes into a run: a lane of a batch, or a graph of its own."""

from collections.abc import Mapping

import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.problem import InputError, ParameterError
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario
from mime.scenarios.waveforms import Constant
from mime.studies.experiment import Lane


def lane_of(name: str, simulation: Simulation, scenario: Scenario | None) -> Lane | None:
    """The lane of `motor.r_ohm`, `encoder.seed`, `initial_state.motor.angle`,
    `inputs.motor.commanded_voltage` or `inputs.motor.commanded_voltage.frequency_hz`; None for a
    key of the scenario that makes another graph.
    """
    first, _, rest = name.partition(".")
    nodes = simulation.nodes
    if first == "initial_state" and first not in nodes:
        node, _, field = rest.partition(".")
        known = nodes[node].state_spec() if node in nodes else {}
        return Lane("initial", node, _scalar(name, field, known, nodes, node))
    if first == "inputs" and first not in nodes:
        return _input(name, rest, simulation, scenario)
    if first not in nodes:
        if scenario is not None:
            return None
        near = nearest(first, nodes)
        raise InputError(f"{name!r}: no node {first!r}{near} (nodes: {quoted(nodes)})")
    if rest == "seed" and "key" in nodes[first].state_spec():
        return Lane("seed", first, "key")
    try:
        value = find(nodes[first], rest).of(nodes[first])
    except ParameterError:
        if scenario is not None:
            return None
        raise
    if rest in nodes[first].built_from() and scenario is not None:
        return None
    if np.shape(value):
        raise InputError(f"{name!r} has shape {np.shape(value)}; name one entry of it")
    return Lane("parameter", first, rest)


def _input(name: str, rest: str, simulation: Simulation, scenario: Scenario | None) -> Lane | None:
    """A key of a waveform that holds a number is a lane; other keys make other inputs."""
    node, _, field = rest.partition(".")
    field, _, key = field.partition(".")
    if key and scenario is not None:
        given = scenario.tables.inputs
        waveform = given.get(f"{node}.{field}")
        if waveform is None:
            near = nearest(f"{node}.{field}", given)
            words = f"the scenario has no input {node}.{field}"
            raise InputError(f"{words}{near} (inputs: {quoted(given)})")
        if not waveform.takes_number(key):
            return None
        if isinstance(waveform, Constant):
            return Lane("input", node, field)
        return Lane("waveform", node, field, key)
    known = simulation.input_specs().get(node, {})
    field = _scalar(name, rest.partition(".")[2], known, simulation.nodes, node)
    if (node, field) not in simulation.wiring.external:
        raise InputError(f"{name!r} is no external input of the graph")
    return Lane("input", node, field)


def _scalar(name: str, field: str, known: Mapping, nodes: Mapping, node: str) -> str:
    if node not in nodes:
        raise InputError(f"{name!r}: no node {node!r}{nearest(node, nodes)} ({quoted(nodes)})")
    if field not in known:
        near = nearest(field, known)
        raise InputError(f"{name!r}: {node!r} has no {field!r}{near} ({quoted(known)})")
    if known[field].shape:
        raise InputError(f"{name!r} has shape {known[field].shape}; only numbers vary so")
    return field
