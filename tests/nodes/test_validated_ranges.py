"""A validated range was run: every node stays finite in every corner of its own."""

from itertools import product

import numpy as np
import pytest

from every_node import every_node_type
from mime import ParameterError
from mime.reporting.node_sheet import example_node

STEPS = 200
# The brain's only range is its timestep, and its own tests run whole contests.
NODES = [cls for cls in every_node_type() if cls.__name__ != "MouseBrainNode"]


def corners(node):
    """Every combination of the ends of those ranges that are parameters, and of the timestep."""
    ends = {r.quantity: (r.low, r.high) for r in node.meta.validated_ranges}
    names = [name for name in ends if name in node.params and node.params[name] is not None]
    times = ends.get("timestep", (node.timestep,))
    for *values, dt in product(*(ends[name] for name in names), times):
        full = {n: np.full(np.shape(node.params[n]), v) for n, v in zip(names, values, strict=True)}
        yield full, dt


@pytest.mark.filterwarnings("ignore::mime.StabilityWarning")
@pytest.mark.parametrize("cls", NODES, ids=lambda cls: cls.__name__)
def test_every_corner_stays_finite(cls):
    example = example_node(cls)[0]
    spec = example.boundary_input_spec()
    pushes = {n: np.full(x.shape, 0.1) for n, x in spec.items() if not np.any(x.default)}
    ran = 0
    for values, dt in corners(example):
        try:
            node = example.with_params(**values)
        except ParameterError:  # a corner that the node refuses by name is none of its range
            continue
        state = node.initial_state()
        for _ in range(STEPS):
            state = node.update(state, pushes, dt)
        ran += 1
        bad = {name for name, x in state.items() if not np.isfinite(np.asarray(x, float)).all()}
        assert not bad, (values, dt)
    assert ran
