"""Limits are seen: a run says which joint or motor went beyond them, by how much, and when."""

import warnings

import jax
import numpy as np
import pytest

from elements import Rotor
from mime import (
    GraphManager,
    JointPDNode,
    LimitError,
    Limits,
    LimitWarning,
    MotorNode,
    RobotArmNode,
    Trajectory,
    Winding,
    model_path,
    parse_urdf,
)
from mime.cli import main

TREE = parse_urdf(model_path("planar_arm_3link"))
JOINT = TREE.joint_names[1]
EFFORT = float(TREE.effort_limits[1])
STEPS = 40


def arm(**options):
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", 1e-3, TREE, "link_3", **options))
    graph.add_external_input("arm", "commanded_joint_torques")
    return graph.compile()


SIMULATION = arm()


def torques(size=1.5):
    """Joint 1 is pushed beyond its effort from step 11 to step 20."""
    found = np.zeros((STEPS, 3))
    found[10:20, 1] = size * EFFORT
    return {"arm": {"commanded_joint_torques": found}}


def efforts(trajectory):
    return [w for w in trajectory.warnings if w.what == "commanded torque"]


@pytest.mark.small("record1-1", "None-40")
@pytest.mark.parametrize(("record", "every"), [(None, 1), ((), 1), (None, 40)])
def test_an_effort_beyond_its_limit_is_seen_whatever_is_recorded(record, every):
    with pytest.warns(LimitWarning, match="first beyond it at t = 0.011 s") as caught:
        run = SIMULATION.run(steps=STEPS, inputs=torques(), record=record, every=every)
    assert len(caught) == 1
    (found,) = efforts(run)
    assert (found.node, found.entry, found.unit) == ("arm", f"joint {JOINT!r}", "N·m")
    assert (found.value, found.limit) == (pytest.approx(1.5 * EFFORT), EFFORT)
    assert found.time_s == pytest.approx(0.011)
    assert run.final_state.seen == {}


def test_strict_makes_it_an_error_that_keeps_the_run():
    with pytest.raises(LimitError, match=f"commanded torque of joint {JOINT!r}") as error:
        SIMULATION.run(steps=STEPS, inputs=torques(), strict=True)
    assert len(error.value.trajectory.time) == STEPS


def test_within_the_limits_a_run_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = SIMULATION.run(steps=STEPS, inputs=torques(0.01), strict=True)
    assert run.warnings == ()


def test_a_velocity_limit_is_seen():
    fast = {"arm": {"joint_velocities": [0.0, 0.0, 1.01 * float(TREE.velocity_limits[2])]}}
    with pytest.warns(LimitWarning, match="velocity of joint"):
        run = SIMULATION.run(steps=2, initial_state=fast)
    assert run.warnings[0].what == "velocity"


def held(goal):
    """An arm that is told to go to one pose; two steps, which is when a goal is seen."""
    graph = GraphManager()
    graph.add_node(JointPDNode("pd", 1e-3, TREE, kp=1.0, kd=0.1))
    graph.add_external_input("pd", "desired_joint_angles")
    return graph.compile().run(steps=2, inputs={"pd": {"desired_joint_angles": goal}})


def test_a_goal_outside_the_joint_limits_is_named_with_what_it_is_in_degrees():
    low, high = (float(x) for x in TREE.joint_limits[1])
    with pytest.warns(LimitWarning, match="If -90 is in degrees, write -1.5708 rad") as caught:
        run = held([0.0, -90.0, high + 0.01])
    assert len(caught) == 1
    assert [(w.node, w.what, w.entry, w.value, w.limit) for w in run.warnings] == [
        ("pd", "desired angle", f"joint {JOINT!r}", -90.0, low),
        ("pd", "desired angle", f"joint {TREE.joint_names[2]!r}", high + 0.01, high),
    ]


def test_a_goal_at_its_limit_is_none_beyond_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held(TREE.joint_limits[:, 1] + 1e-9)


@pytest.mark.filterwarnings("ignore::mime.LimitWarning")
def test_a_batch_tells_the_members_apart():
    inputs = np.stack([torques(size)["arm"]["commanded_joint_torques"] for size in (0.01, 1.2, 2)])
    batch = SIMULATION.run_batch(
        steps=STEPS, inputs={"arm": {"commanded_joint_torques": inputs}}, watch=True
    )
    assert {w.member: w.value for w in efforts(batch)} == {
        1: pytest.approx(1.2 * EFFORT),
        2: pytest.approx(2 * EFFORT),
    }


@pytest.mark.filterwarnings("ignore::mime.LimitWarning")
def test_a_batch_in_lanes_sees_a_winding_that_is_too_hot():
    graph = GraphManager()
    winding = Winding(
        thermal_resistance_k_per_w=5.0, thermal_capacitance_j_per_k=0.01, max_temperature_c=80.0
    )
    motor = {"inertia_kg_m2": 1e-4, "kt_n_m_per_a": 0.05, "r_ohm": 1.0, "l_henry": 1e-3}
    graph.add_node(MotorNode("m", 1e-4, **motor, damping_n_m_s=5e-4, winding=winding))
    graph.add_external_input("m", "commanded_voltage")
    simulation = graph.compile()
    volts = np.array([1.0, 12.0])
    batch = simulation.run_batch(steps=400, inputs={"m": {"commanded_voltage": volts}}, watch=True)
    single = simulation.run(steps=400, inputs={"m": {"commanded_voltage": 12.0}})
    (found,), (alone,) = batch.warnings, single.warnings
    assert (found.member, found.unit, found.limit) == (1, "°C", 80.0)
    assert (found.value, found.time_s) == (pytest.approx(alone.value), alone.time_s)
    hot = np.flatnonzero(single["m"]["winding_temperature"] > 80.0)
    assert alone.time_s == pytest.approx(single.time[hot[0]])
    assert alone.value == pytest.approx(single["m"]["winding_temperature"].max())


MOTOR = {"inertia_kg_m2": 1e-4, "kt_n_m_per_a": 0.05, "r_ohm": 1.0, "l_henry": 1e-3}


def motor(mode, **options):
    graph = GraphManager()
    graph.add_node(MotorNode("m", 1e-4, **MOTOR, damping_n_m_s=5e-4, command_mode=mode, **options))
    graph.add_external_input("m", f"commanded_{mode}")
    return graph.compile()


@pytest.mark.parametrize(("mode", "command"), [("voltage", 6.0), ("torque", 0.15)])
def test_a_current_beyond_the_rated_one_is_seen(mode, command):
    """6 V at 1 Ω, or 0.15 N·m at 0.05 N·m/A: 3 A and more in some step, rated 2 A."""
    inputs = {"m": {f"commanded_{mode}": command}}
    with pytest.warns(LimitWarning, match="the current reaches .* A, its limit is 2 A"):
        run = motor(mode, rated_current_a=2.0).run(steps=100, inputs=inputs)
    (found,) = run.warnings
    current = run["m"]["motor_torque"] / MOTOR["kt_n_m_per_a"]
    assert found.value == pytest.approx(current.max())
    assert found.time_s == pytest.approx(run.time[np.argmax(current > 2.0)])


@pytest.mark.parametrize(("mode", "command"), [("voltage", 6.0), ("torque", 0.15)])
def test_a_drive_that_clips_the_current_keeps_the_motor_within_its_rating(mode, command):
    """The guide says so: clipping is no warning, and what is recorded is the clipped current."""
    clipped = motor(mode, rated_current_a=2.0, limits=Limits(current_a=2.0))
    run = clipped.run(steps=100, inputs={"m": {f"commanded_{mode}": command}}, strict=True)
    assert run.warnings == ()
    assert run["m"]["motor_torque"].max() == pytest.approx(2.0 * MOTOR["kt_n_m_per_a"])


@pytest.mark.filterwarnings("ignore::mime.LimitWarning")
def test_what_was_seen_survives_a_checkpoint(tmp_path):
    whole = SIMULATION.run(steps=STEPS, inputs=torques())
    file = tmp_path / "run.npz"

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SIMULATION.run(steps=STEPS, inputs=torques(), checkpoint=file, progress=stop)
    resumed = SIMULATION.run(steps=STEPS, inputs=torques(), checkpoint=file, resume=True)
    assert resumed.warnings == whole.warnings


@pytest.mark.filterwarnings("ignore::mime.LimitWarning")
def test_warnings_are_in_the_saved_file(tmp_path):
    run = SIMULATION.run(steps=STEPS, inputs=torques())
    run.save(tmp_path / "run.nc")
    assert Trajectory.load(tmp_path / "run.nc").warnings == run.warnings


def test_a_graph_without_monitors_compiles_nothing_of_them():
    graph = GraphManager()
    graph.add_node(Rotor("r", 1e-3, inertia_kg_m2=1e-3))
    run = graph.compile().run(steps=3)
    assert run.warnings == ()
    assert Rotor("r", 1e-3, inertia_kg_m2=1e-3).monitors() == {}


def test_a_batch_is_watched_only_when_asked():
    start = {"arm": {"joint_velocities": np.full((2, 3), 50.0)}}
    options = {"steps": STEPS, "initial_state": start, "progress": False}
    assert SIMULATION.run_batch(**options).warnings == ()
    with pytest.raises(LimitError, match="member 0"):
        SIMULATION.run_batch(**options, strict=True)


def test_a_rollout_is_not_watched():
    state, _ = SIMULATION.rollout(SIMULATION.init_state(), torques(), STEPS)
    assert jax.tree.leaves(state.seen) == []


@pytest.mark.filterwarnings("default::mime.LimitWarning")
def test_the_terminal_and_the_report_name_what_went_beyond(tmp_path, capsys):
    fast = "simulation.initial_state.arm.joint_velocities=[12.0, 0.0, 0.0]"
    short = ("--set", "simulation.duration=0.05", "--set", fast)
    with pytest.raises(SystemExit):  # the scenario's figures are those of its own start
        main(["run", "arm_3link_pd", *short, "--out", str(tmp_path)])
    assert "warning: arm: the velocity of joint" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Beyond their limits" in page
    assert "velocity joint" in page
