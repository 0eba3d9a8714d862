"""Call public names with one bad argument at a time; print what is no exception of MIME's own.

`python bad_calls.py COUNT SEED` tries COUNT of all pairs of (argument, bad value), drawn by SEED; 0
tries all of them. In a process of its own, since the suite's type checker would answer instead.
"""

import dataclasses
import inspect
import json
import random
import sys
import traceback
import warnings
from fractions import Fraction

import numpy as np

import mime
from mime.reporting.node_sheet import example_node

BAD = {
    "None": None,
    "True": True,
    "-1": -1,
    "0": 0,
    "nan": float("nan"),
    "inf": float("inf"),
    "1e200": 1e200,
    "10**400": 10**400,
    "2.5": 2.5,
    "numpy -3": np.int64(-3),
    "complex": 1j,
    "fraction": Fraction(1, 3),
    "text": "x",
    "long text": "x" * 10_000,
    "empty text": "",
    "bytes": b"x",
    "empty list": [],
    "ragged list": [[1.0], [1.0, 2.0]],
    "list of text": ["a", "b"],
    "list of None": [None],
    "dict": {},
    "dict of None": {None: None},
    "nested dict": {"a": {"b": "c"}},
    "set": {1},
    "object": object(),
    "class": type("Anything", (), {"__init__": lambda self, *args, **options: None}),
    "function": lambda *args: None,
    "array of nan": np.full(3, np.nan),
    "array 2x2x2": np.zeros((2, 2, 2)),
    "array of text": np.array(["a"]),
    "array of objects": np.array([None, {}], dtype=object),
    "date": np.datetime64("2020-01-01"),
}


def good_calls():
    """`{name: (callable, its good arguments)}`."""
    from elements import Rotor, Spring

    maze = mime.random_maze(1, 5, 5)
    tree = mime.parse_urdf(mime.model_path("desktop_arm_6axis"))
    home, top = np.zeros(6), np.ones(6)
    graph = mime.GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_external_input("rotor", "torque")
    simulation = graph.compile()
    calls = {
        "RobotArmNode": (
            mime.RobotArmNode,
            {
                "name": "a",
                "timestep": 1e-3,
                "urdf_path": mime.model_path("desktop_arm_6axis"),
                "end_effector_link_name": "tool",
                "gear_ratio": np.ones(6),
                "rotor_inertia_kg_m2": np.ones(6),
                "integrator": "semi_implicit",
                "joint_limits": "none",
            },
        ),
        "JointTrajectoryNode": (
            mime.JointTrajectoryNode,
            {
                "name": "a",
                "timestep": 1e-3,
                "waypoints_rad": [home, top],
                "velocity_limits_rad_per_s": top,
                "acceleration_limits_rad_per_s2": top,
                "jerk_limits_rad_per_s3": top,
                "tree": tree,
            },
        ),
        "JointPDNode": (
            mime.JointPDNode,
            {"name": "a", "timestep": 1e-3, "tree": tree, "kp": 1.0, "kd": 1.0},
        ),
        "ComputedTorqueNode": (
            mime.ComputedTorqueNode,
            {"name": "a", "timestep": 1e-3, "tree": tree, "kp": 1.0, "kd": 1.0},
        ),
        "ToolPathNode": (
            mime.ToolPathNode,
            {
                "name": "a",
                "timestep": 1e-3,
                "tree": tree,
                "end_effector_link_name": "tool",
                "posture_rad": home,
                "speed_m_per_s": 0.1,
                "waypoints_m": None,
                "circle": None,
                "acceleration_m_per_s2": 1.0,
                "jerk_m_per_s3": 1.0,
            },
        ),
        "Payload": (
            mime.Payload,
            {"link": "tool", "mass_kg": 1.0, "com_m": np.zeros(3), "inertia_kg_m2": np.eye(3)},
        ),
        "KinematicTree.with_payload": (
            tree.with_payload,
            {"link": "tool", "mass_kg": 1.0, "com_m": np.zeros(3), "inertia_kg_m2": np.eye(3)},
        ),
        "KinematicTree.lock": (tree.lock, {tree.joint_names[0]: 0.0}),
        "KinematicTree.subtree": (tree.subtree, {"root": tree.link_names[1], "tip": "tool"}),
        "KinematicTree.with_frame": (
            tree.with_frame,
            {"name": "f", "link": "tool", "pose": [0, 0, 0, 1, 0, 0, 0]},
        ),
        "random_maze": (
            mime.random_maze,
            {"seed": 1, "rows": 5, "cols": 5, "loops": 0.1, "winding": 0.5},
        ),
        "Maze": (mime.Maze, {f: getattr(maze, f) for f in inspect.signature(mime.Maze).parameters}),
        "model_path": (mime.model_path, {"name": "desktop_arm_6axis"}),
        "starting_state": (mime.starting_state, {"maze": maze}),
        "build_mouse": (
            mime.build_mouse,
            {
                "maze": maze,
                **{
                    name: entry.default
                    for name, entry in inspect.signature(mime.build_mouse).parameters.items()
                    if entry.default is not inspect.Parameter.empty
                },
            },
        ),
        "solve_ik": (
            mime.solve_ik,
            {
                "tree": tree,
                "frame_name": "tool",
                "target_pose": [0.1, 0, 0.1, 1, 0, 0, 0],
                "q0": home,
                "offset": (0, 0, 0, 1, 0, 0, 0),
                "position_tolerance_m": 1e-3,
                "angle_tolerance_rad": 1e-3,
                "max_iterations": 5,
                "damping": 1.0,
                "weights": (1, 1, 1, 1, 1, 1),
                "restarts": 0,
            },
        ),
        "elastic_drive": (
            mime.elastic_drive,
            {"motor": example_node(mime.MotorNode)[0], "joint_name": "j", "iterated": False},
        ),
        "load_scenario": (mime.load_scenario, {"path": "nowhere.toml"}),
        "read_maze": (mime.read_maze, {"path": "nowhere.mz", "format": "mz", "goals": None}),
        "parse_urdf": (
            mime.parse_urdf,
            {
                "path": mime.model_path("desktop_arm_6axis"),
                "search_path": (),
                "on_problem": "refuse",
            },
        ),
        "parse_xacro": (
            mime.parse_xacro,
            {"path": "gone.xacro", "search_path": (), "on_problem": "refuse", "arguments": None},
        ),
        "expand_xacro": (
            mime.expand_xacro,
            {"path": "gone.xacro", "search_path": (), "arguments": None},
        ),
        "GraphManager.add_edge": (
            lambda **a: _wired(Rotor, Spring, **a),
            {
                "source": "rotor",
                "target": "spring",
                "source_field": "angle",
                "target_field": "angle",
                "transform": None,
                "delay": False,
            },
        ),
        "GraphManager.add_node": (lambda node: mime.GraphManager().add_node(node), {"node": None}),
        "GraphManager.add_graph": (
            lambda other: mime.GraphManager().add_graph(other),
            {"other": 1},
        ),
        "GraphManager.add_external_input": (
            lambda **a: _with_input(Rotor, **a),
            {"node": "rotor", "field": "torque"},
        ),
        "GraphManager.add_coupling_group": (
            mime.GraphManager().add_coupling_group,
            {
                "nodes": ["a", "b"],
                "tolerance": 1e-3,
                "max_iterations": 5,
                "acceleration": "none",
                "method": "jacobi",
                "name": "n",
            },
        ),
        "GraphManager.add_derived_parameter": (
            mime.GraphManager().add_derived_parameter,
            {"node": "a", "parameter": "b", "function": np.sin, "sources": ["a"], "reads": ["b"]},
        ),
        "Simulation.with_parameters": (
            simulation.with_parameters,
            {"parameters": {"rotor.damping_n_m_s": 0.2}},
        ),
        "Simulation.with_parameters.value": (
            lambda value: simulation.with_parameters({"rotor.damping_n_m_s": value}),
            {"value": 1.0},
        ),
        "Simulation.init_state": (simulation.init_state, {"initial": {"rotor": {"angle": 1.0}}}),
        "Simulation.step": (
            lambda inputs: simulation.step(simulation.init_state(), inputs),
            {"inputs": {"rotor": {"torque": 1.0}}},
        ),
        "Simulation.rollout": (
            lambda **a: simulation.rollout(simulation.init_state(), **a),
            {"inputs": {}, "steps": 2, "record": None, "every": 1, "remat_every": None},
        ),
        "sweep": (
            mime.sweep,
            {
                "what": simulation,
                "vary": {"rotor.damping_n_m_s": [0.1, 0.2]},
                "out": None,
                "duration": 0.002,
                "inputs": {"rotor": {"torque": 1.0}},
                "initial_state": {"rotor": {"angle": 1.0}},
                "every": 1,
                "figures": [{"name": "a", "kind": "max", "field": "rotor.speed"}],
                "fields": ["rotor.angle"],
                "keep_every": 2,
                "client": None,
                "threads": 1,
                "progress": False,
                "draws": None,
                "sampling": "sobol",
                "seed": 0,
                "zip": [],
                "constraints": ["rotor.damping_n_m_s < 1"],
                "chunk": 4,
                "title": "a",
            },
        ),
        "sweep.vary": (
            lambda value: mime.sweep(
                simulation,
                {"rotor.damping_n_m_s": value},
                duration=0.001,
                fields=["rotor.angle"],
                progress=False,
            ),
            {"value": {"uniform": [0.1, 0.2]}},
        ),
        "optimise_study": (
            mime.optimise_study,
            {
                "what": simulation,
                "vary": {"rotor.damping_n_m_s": {"uniform": [0.1, 0.2]}},
                "optimise": {"minimise": "a", "budget": 2, "starts": 1},
                "out": None,
                "duration": 0.002,
                "inputs": {"rotor": {"torque": 1.0}},
                "initial_state": {"rotor": {"angle": 1.0}},
                "every": 1,
                "figures": [{"name": "a", "kind": "max", "field": "rotor.speed"}],
                "client": None,
                "threads": 1,
                "progress": False,
                "zip": [],
                "constraints": ["rotor.damping_n_m_s < 1"],
                "chunk": 4,
                "title": "a",
            },
        ),
        "optimise_study.optimise": (
            lambda value: mime.optimise_study(
                simulation,
                {"rotor.damping_n_m_s": [0.1, 0.2]},
                {"minimise": value},
                duration=0.001,
                figures=[{"name": "a", "kind": "max", "field": "rotor.speed"}],
                progress=False,
            ),
            {"value": "a"},
        ),
        "load_study": (mime.load_study, {"path": "study.toml", "overrides": []}),
        "open_study": (mime.open_study, {"path": "store", "study": None, "check": True}),
        "Channel": (
            mime.Channel,
            {"field": "a.b", "unit": "V", "delay": 3, "offset": False, "gain": False, "noise": 1.0},
        ),
        "Unknown": (mime.Unknown, {"start": 1.0, "between": (0.5, 2.0), "std": 0.1, "prior": True}),
        "Log": (
            mime.Log,
            {
                "source": "log.csv",
                "name": "a",
                "time": "t",
                "time_unit": "s",
                "columns": {},
                "initial": {},
                "inputs": "from",
                "held_out": False,
            },
        ),
        "Log.initial": (lambda value: mime.Log("log.csv", initial={"a.b": value}), {"value": 1.0}),
        "fit": (
            mime.fit,
            {
                "simulation": simulation,
                "logs": {"time": np.arange(20.0), "torque": np.ones(20), "angle": np.ones(20)},
                "columns": {"torque": "rotor.torque", "angle": "rotor.angle"},
                "unknowns": ["rotor.damping_n_m_s"],
                "inputs": None,
                "starts": 1,
                "seed": 0,
                "progress": False,
            },
        ),
        "design": (
            mime.design,
            {
                "simulation": simulation,
                "inputs": {"rotor.torque": 1.0},
                "sensors": {"rotor.nothing": 1.0},
                "unknowns": ["rotor.damping_n_m_s"],
                "duration": 0.1,
                "period": 1e-3,
                "limits": None,
                "harmonics": 3,
                "starts": 1,
                "seed": 0,
            },
        ),
        "Fit.load": (mime.Fit.load, {"path": "nowhere.json", "simulation": None}),
    }
    run = {
        "inputs": {"rotor": {"torque": 1.0}},
        "record": None,
        "every": 1,
        "initial_state": None,
        "progress": False,
        "checkpoint": None,
        "resume": False,
    }
    batch = {**run, "batch_size": 2, "threads": 1, "parameters": {}}
    del batch["checkpoint"], batch["resume"]
    for name, method, options in (
        ("run", simulation.run, run),
        ("run_batch", simulation.run_batch, batch),
    ):
        calls[f"Simulation.{name}"] = (method, {"steps": 4, **options})
        calls[f"Simulation.{name} duration"] = (
            lambda duration, method=method, options=options: method(duration, **options),
            {"duration": 0.004},
        )
        calls[f"Simulation.{name} input"] = (
            lambda value, method=method, options=options: method(
                steps=4, **{**options, "inputs": {"rotor": {"torque": value}}}
            ),
            {"value": 1.0},
        )
        calls[f"Simulation.{name} state"] = (
            lambda value, method=method, options=options: method(
                steps=4, **{**options, "initial_state": {"rotor": {"angle": value}}}
            ),
            {"value": 1.0},
        )
    for name in mime.__all__:
        cls = getattr(mime, name)
        if name in calls or not inspect.isclass(cls) or name in ("Node", "Effect"):
            continue
        if issubclass(cls, mime.Node) and (node := example_node(cls)[0]) is not None:
            calls[name] = (cls, _fields(node))
        elif issubclass(cls, mime.Effect):
            calls[name] = (cls, dict.fromkeys(cls.parameter_specs(), 1.0))
    return calls


def _fields(value):
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _wired(Rotor, Spring, **edge):
    graph = mime.GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 1e-3, 3.0))
    graph.add_edge(**edge)
    graph.compile()


def _with_input(Rotor, **names):
    graph = mime.GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_external_input(**names)
    graph.compile()


def trouble(function, arguments):
    """None when the call is accepted or refused by an exception of ours; else what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**arguments)
    except Exception as error:
        if isinstance(error, OSError):  # a file that is not there
            return None
        if type(error).__module__.split(".")[0] == "mime":
            return f"{len(str(error))} characters" if len(str(error)) >= 2000 else None
        frame = traceback.extract_tb(error.__traceback__)[-1]
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "/mime/" in f.filename]
        at = f"{ours[-1].filename.split('/mime/')[-1]}:{ours[-1].lineno}" if ours else frame.name
        return f"{type(error).__name__}: {str(error)[:100]} at {at}"
    return None


def main(count, seed):
    calls = good_calls()
    pairs = [(name, key, bad) for name, (_, given) in calls.items() for key in given for bad in BAD]
    if count:
        pairs = random.Random(seed).sample(pairs, min(count, len(pairs)))
    found = {}
    for name, key, bad in pairs:
        function, given = calls[name]
        if what := trouble(function, {**given, key: BAD[bad]}):
            found[f"{name}({key}={bad})"] = what
    print(json.dumps({"tried": len(pairs), "found": found}, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
