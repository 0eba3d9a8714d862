"""Programs are released: a process that makes new ones for ever keeps its memory and its maps.

In the suite 40 runs with a new function each, of which at most 8 are kept; `make soak` makes 3,000
such runs, 1,000 sizes of a batch and 1,000 graphs with the limit that users have.
"""

import gc
import os
from pathlib import Path

import pytest

from elements import Rotor
from mime import GraphManager
from mime.native import folding
from sizes import FULL

MAPS = Path("/proc/self/maps")
pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="counts the memory maps of Linux")


def _graph(name="rotor"):
    graph = GraphManager()
    graph.add_node(Rotor(name, 1e-3, 0.01))
    graph.add_external_input(name, "torque")
    return graph.compile()


def _function(simulation, index):
    simulation.run(steps=4, inputs={"rotor": {"torque": lambda t: index + 0 * t}}, record=())


def _batch(simulation, index):
    simulation.run_batch(steps=4, batch_size=index + 1, record=())


def _new_graph(simulation, index):
    _graph(f"rotor_{index}").run(steps=4, record=())


def _maps():
    gc.collect()
    return sum(1 for _ in MAPS.open())


def _megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.parametrize(
    ("work", "count"),
    [(_function, 3000 if FULL else 40)] + ([(_batch, 1000), (_new_graph, 1000)] if FULL else []),
)
def test_programs_are_released(work, count, monkeypatch, record_figure):
    if not FULL:
        monkeypatch.setattr(folding, "MOST_PROGRAMS", 8)
    simulation = _graph()
    half, most = count // 2, 0
    for index in range(count):
        work(simulation, index)
        if index == half:
            maps, megabytes = _maps(), _megabytes()
        most = max(most, folding.programs_kept())
    record_figure("maps", (maps, _maps()))
    record_figure("megabytes", (megabytes, _megabytes()))
    assert most <= folding.MOST_PROGRAMS + 4  # those compiled since the last look
    # The second half of the work adds less than ten programs would, at 13 to 69 maps and about 2 MB
    # each; without release it would add half of `count`.
    assert _maps() - maps < 10 * 13 + 130
    assert _megabytes() - megabytes < 10 * 2 + (100 if FULL else 20)
