"""Every exception of ours pickles to itself: a worker process sends it back as it was."""

import importlib
import multiprocessing
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest

import mime
from mime.core.problem import GraphError, Problem, ProblemError
from mime.core.wiring import Edge
from mime.running.trajectory import Divergence, Trajectory
from mime.scenarios.source import ScenarioProblem


def _walk():
    for module in pkgutil.walk_packages(mime.__path__, "mime."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, kinds = [BaseException], []
    while found:
        kind = found.pop()
        found += kind.__subclasses__()
        if kind.__module__.split(".")[0] == "mime":
            kinds.append(kind)
    return sorted(set(kinds), key=lambda kind: kind.__qualname__)


_TRAJECTORY = Trajectory(np.arange(2.0), {"m": {"x": np.ones(2)}}, {"m": {"x": "1"}}, {}, {})
_PROBLEMS = [Problem(("m", "r_ohm"), "must be > 0, got -1", "Give it more"), Problem(("x",), "?")]
_ARGUMENTS = {
    "GraphError": (_PROBLEMS,),
    "ScenarioError": (Path("a.toml"), [ScenarioProblem(("x",), "?", file=Path("a"), line=3)]),
    "DivergenceError": (Divergence("m", "x", 0.5), _TRAJECTORY),
    "RunInterrupted": ("stopped", _TRAJECTORY, "resume"),
    "LimitError": ("too fast", _TRAJECTORY),
    "CheckpointError": ("missing", "no file", "look"),
    "RobotFileError": (Path("a.urdf"), "no <link>", 3),
    "UrdfError": (Path("a.urdf"), "no <link>", 3),
    "MjcfError": (Path("a.xml"), "no <body>", 3),
    "MazeError": ("no way", (1, 2)),
    "VersionError": ("tcp://127.0.0.1:1", {"mime": "1"}, {"mime": "2"}),
    "LogError": ("log.csv", "must be a number", 7, "speed"),
    "CountError": ("position", 7, "must be a whole number"),
}


def _instance(kind):
    if kind.__name__ in _ARGUMENTS:
        return kind(*_ARGUMENTS[kind.__name__])
    return kind("MotorNode 'm'", _PROBLEMS) if issubclass(kind, ProblemError) else kind("text")


def _same(a, b):
    assert type(a) is type(b)
    assert str(a) == str(b)
    assert a.args == b.args
    assert vars(a).keys() == vars(b).keys()
    for name, value in vars(a).items():
        same = jax.tree.map(np.array_equal, _plain(value), _plain(vars(b)[name]))
        assert jax.tree.all(same), name


def _plain(value):
    return vars(value) if isinstance(value, Trajectory) else value


def test_every_exception_of_ours_pickles_to_itself():
    kinds = _walk()
    assert {"GraphError", "DivergenceError", "ScenarioError"} <= {k.__name__ for k in kinds}
    for kind in kinds:
        error = _instance(kind)
        _same(error, pickle.loads(pickle.dumps(error)))


def test_an_edge_with_a_lambda_travels_without_it():
    edge = Edge("a", "b", "x", "y", transform=lambda x: -x)
    problem = Problem(("edge", edge), "unknown node 'a'", label=f"edge {edge}:")
    there = pickle.loads(pickle.dumps(GraphError([problem])))
    assert str(there) == str(GraphError([problem]))
    assert there.problems[0].place == ("edge", edge.without_transform)


def test_exceptions_come_back_from_a_spawned_process():
    context = multiprocessing.get_context("spawn")
    errors = [_instance(kind) for kind in _walk()]
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for error, there in zip(errors, pool.submit(_ECHO, pickle.dumps(errors)).result()):
            _same(error, there)
        with pytest.raises(GraphError, match="there are no nodes"):
            pool.submit(mime.GraphManager().compile).result()


_ECHO = pickle.loads
"""A function that a spawned process can import."""


def test_messages_stay_under_2000_characters():
    many = [Problem(("node", f"n{i}"), "is unknown " + "x" * 300) for i in range(1000)]
    assert "... and 99" in str(GraphError(many))
    long = [Problem(("x",), "got " + "9" * 10_000)]
    for error in (
        GraphError(many),
        ProblemError("it", many),
        GraphError(long),
        ProblemError("it", long),
    ):
        assert len(str(error)) < 2000
