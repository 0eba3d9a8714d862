"""The best members of a study: against closed forms, SciPy, Optuna's own front and full grids; and
each member that is asked for is run once.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import mime
from mime.cli import main
from mime.scenarios.source import ScenarioError
from mime.studies.evaluations import InMemory
from mime.studies.experiment import Experiment
from mime.studies.file import read_study
from mime.studies.objectives import Aim, Limit, Objective
from mime.studies.optimise import build_search
from mime.studies.slopes import Slopes
from mime.studies.store import StudyError
from mime.studies.sweep import StudyInterrupted, sweep
from motor_studies import content

ROOT = Path(__file__).parents[2]
J, LOAD, TORQUE, END = 1e-4, 4e-2, 0.02, 0.02
"""Inertias of rotor and load, torque of the motor, end of the run."""
DRIVE = f"""
[simulation]
duration = {END}
timestep = 1e-3

[nodes.motor]
type = "MotorNode"
inertia_kg_m2 = {J}
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 0.0
command_mode = "torque"
gear = {{ratio = 5.0, output_inertia_kg_m2 = {LOAD}}}

[inputs."motor.commanded_torque"]
kind = "constant"
value = {TORQUE}

[[figures_of_merit]]
name = "speed"
kind = "final"
field = "motor.output_angular_velocity"

[[figures_of_merit]]
name = "rotor speed"
kind = "max"
field = "motor.rotor_angular_velocity"
unit = "rpm"
"""
STUDY = """
title = "Gear"
scenario = "drive.toml"

[vary]
"motor.gear.ratio" = {{loguniform = [1.0, 400.0]}}

[optimise]
maximise = "speed"
{more}
"""


def write(folder, more="", study=STUDY):
    (folder / "drive.toml").write_text(DRIVE)
    file = folder / "study.toml"
    file.write_text(study.format(more=more))
    return file


@pytest.fixture
def runs(monkeypatch):
    """How many members each run had."""
    found, plain = [], Experiment.run

    def counted(self, columns, threads=None):
        found.append(len(next(iter(columns.values()))))
        return plain(self, columns, threads)

    monkeypatch.setattr(Experiment, "run", counted)
    return found


def test_gradients_find_the_gear_of_the_fastest_start(tmp_path, runs):
    """w = n tau t / (Jo + n² J) is largest at n = sqrt(Jo / J)."""
    file = write(tmp_path)
    found = mime.optimise_study(file, out=tmp_path / "store", progress=False)
    # A relative error of 1e-9 in w, where descents stop, is one of about 3e-5 in n.
    np.testing.assert_allclose(found.parameters()["motor.gear.ratio"], np.sqrt(LOAD / J), rtol=1e-4)
    assert sum(runs) == found.computed == found.study.size < 150
    assert found.front == (found.best,)
    assert "8 starts by gradients, all arrived" in repr(found)
    assert "20" in repr(found)
    simulation = found.simulation()
    assert simulation.nodes["motor"].gear.ratio == found.parameters()["motor.gear.ratio"]
    end = simulation.run(END, {"motor": {"commanded_torque": TORQUE}}, progress=False)
    for run in (end, found.run()):
        speed = np.ravel(run["motor"]["output_angular_velocity"])[-1]
        np.testing.assert_allclose(found.figures()["speed"], speed, rtol=1e-14)
    again = mime.optimise_study(file, out=tmp_path / "store", progress=False)
    assert (again.computed, again.reused, again.best) == (0, found.study.size, found.best)
    assert sum(runs) == found.computed


def test_a_limit_that_presses_is_kept_and_met(tmp_path):
    """The rotor's speed n w is below a limit: n² = Jo w_max / (tau t - J w_max)."""
    most = 1.5  # rad/s; at n = 20 it would be 2
    limit = most * 30 / np.pi
    file = write(tmp_path, f'constraints = ["rotor speed <= {limit!r}"]\nstarts = 4')
    found = mime.optimise_study(file, progress=False)
    closed = np.sqrt(LOAD * most / (TORQUE * END - J * most))
    # The optimiser aims 1e-4 inside of a limit and may miss that by as much.
    figures = found.figures()
    assert limit * (1 - 2.5e-4) < figures["rotor speed"] <= limit
    np.testing.assert_allclose(found.parameters()["motor.gear.ratio"], closed, rtol=5e-4)
    assert found.feasible[found.best]
    assert "slack" in repr(found)


VOLTAGE = """
title = "Voltage"
scenario = "drive.toml"
set = ["motor.command_mode=voltage", "motor.damping_n_m_s=1e-4", "simulation.duration=0.1",
       "inputs.motor.commanded_torque.value=0.0"]
constraints = ["motor.gear.ratio * motor.kt_n_m_per_a <= 0.8"]

[vary]
"motor.gear.ratio" = {{loguniform = [1.0, 100.0]}}
"motor.kt_n_m_per_a" = {{uniform = [0.01, 0.1]}}
"motor.r_ohm" = {{equals = "0.5 + 100 * motor.kt_n_m_per_a ** 2"}}
"inputs.motor.commanded_voltage.value" = [6.0]

[[figures_of_merit]]
name = "current"
kind = "rms"
field = "motor.current"

[optimise]
maximise = "speed"
constraints = ["current <= 3.0"]
starts = 4
{more}
"""
INPUT = """
[inputs."motor.commanded_voltage"]
kind = "constant"
value = 1.0
"""


@pytest.fixture(scope="module")
def voltage(tmp_path_factory):
    """A search with limits of figures and of parameters, and what it finds."""
    folder = tmp_path_factory.mktemp("voltage")
    file = write(folder, study=VOLTAGE)
    (folder / "drive.toml").write_text(DRIVE + INPUT)
    search = build_search(read_study(file))
    return search, mime.optimise_study(file, out=folder / "store", progress=False)


def test_limits_of_figures_and_parameters_as_scipy_finds_them(voltage):
    search, found = voltage

    def figures(x):
        point = np.array([np.exp(x[0]), x[1] / 100, 0.0])
        study = search.base.with_columns(search.space.columns(point[None]))
        kept = study.experiments[0].run(dict(study.columns)).arrays
        return float(kept["speed"][0]), float(kept["current"][0]), point[0] * point[1]

    theirs = scipy.optimize.minimize(
        lambda x: -figures(x)[0] / 5,
        [np.log(9.0), 9.0],
        bounds=[(0, np.log(100.0)), (1.0, 10.0)],
        constraints=[
            {"type": "ineq", "fun": lambda x: 1 - figures(x)[1] / 3},
            {"type": "ineq", "fun": lambda x: 1 - figures(x)[2] / 0.8},
        ],
        method="SLSQP",
    )
    assert theirs.success
    best = figures(theirs.x)
    # Ours is inside of its limits by up to 2e-4 of them, and those are worth about as much speed.
    assert found.figures()["speed"] == pytest.approx(best[0], rel=1e-3)
    assert found.figures()["current"] <= 3.0
    own = found.parameters()
    assert own["motor.gear.ratio"] * own["motor.kt_n_m_per_a"] <= 0.8
    assert own["motor.r_ohm"] == 0.5 + 100 * own["motor.kt_n_m_per_a"] ** 2
    assert "by 4 starts by gradients" in repr(found)


ANGLES = 'field = "motor.output_angle", reference = "motor.rotor_angle"'
SPEED = 'field = "motor.output_angular_velocity"'
KINDS = f"""
{{ name = "final", kind = "final", field = "motor.output_angle", unit = "deg" }},
{{ name = "max", kind = "max", field = "motor.current" }},
{{ name = "min", kind = "min", field = "motor.current", after = 0.05 }},
{{ name = "mean", kind = "mean", field = "motor.current", unit = "mA" }},
{{ name = "rms", kind = "rms", field = "motor.current" }},
{{ name = "quantile", kind = "quantile", q = 0.77, {SPEED} }},
{{ name = "rise", kind = "rise_time", {SPEED}, target = 2.0 }},
{{ name = "beyond", kind = "overshoot", {SPEED}, target = 2.0 }},
{{ name = "error", kind = "rms_error", {ANGLES}, lag = 0.003 }},
{{ name = "far", kind = "max_distance", {ANGLES} }},
"""
ROADS = f"""
scenario = "drive.toml"
set = ["motor.command_mode=voltage", "motor.damping_n_m_s=1e-4", "simulation.duration=0.1",
       "inputs.motor.commanded_torque.value=0.0"]
figures_of_merit = [{KINDS.replace("{", "{{").replace("}", "}}")}]

[vary]
"motor.gear.ratio" = {{{{loguniform = [5.0, 10.0]}}}}
"motor.r_ohm" = {{{{equals = "2 * motor.gear.ratio / 10"}}}}
"initial_state.motor.angular_velocity" = {{{{uniform = [0.5, 1.0]}}}}
"inputs.motor.commanded_voltage.value" = {{{{uniform = [6.0, 8.0]}}}}

[optimise]
minimise = "final"
constraints = [{{more}}]
"""


def test_slopes_are_those_of_central_differences(tmp_path):
    names = ["max", "min", "mean", "rms", "quantile", "rise", "beyond", "error", "far"]
    file = write(tmp_path, ", ".join(f'"{n} <= 1"' for n in names), study=ROADS)
    (tmp_path / "drive.toml").write_text(DRIVE + INPUT)
    search = build_search(read_study(file))
    points = np.array([[6.1, 0.6, 6.7], [8.3, 0.9, 7.4]])
    slopes = Slopes(search.base, search.space, search.aim, InMemory(None))
    addresses = search.base.with_columns(search.space.columns(points)).addresses
    ours = slopes.at(points, addresses)
    for place, step in enumerate((1e-4, 1e-4, 1e-4)):
        moved = np.repeat(points, 2, axis=0)
        moved[0::2, place] += step
        moved[1::2, place] -= step
        study = search.base.with_columns(search.space.columns(moved))
        kept = study.experiments[0].run(dict(study.columns)).arrays
        for row, name in enumerate(search.aim.figures):
            theirs = (kept[name][0::2] - kept[name][1::2]) / (2 * step)
            # Truncation, about step² of the third derivative; rounding, 1e-16 of a value / step.
            np.testing.assert_allclose(
                ours[:, row, place], theirs, rtol=2e-6, atol=1e-9, err_msg=f"{name} {place}"
            )


def test_the_front_is_optunas_own():
    optuna = pytest.importorskip("optuna")
    random = np.random.default_rng(1)
    figures = {n: random.integers(0, 12, 80).astype(float) for n in "abc"}
    figures["b"] += figures["a"]  # one is at the other's expense
    figures["a"][:5] = np.nan
    aim = Aim(
        (Objective("a", "minimise", ""), Objective("b", "maximise", "")), (Limit("c", "<=", 6, ""),)
    )
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=["minimize", "maximize"])
    for member in range(80):
        trial = study.ask()
        if member < 5:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        trial.set_constraint("c", figures["c"][member] - 6)
        study.tell(trial, [figures["a"][member], figures["b"][member]])
    front = aim.front(figures, aim.feasible(figures))
    assert front == sorted(trial.number for trial in study.best_trials)
    assert len(front) > 3


CATALOGUE = """
title = "Catalogue"
scenario = "geared_motor_voltage"
set = ["simulation.duration=0.2", "motor.gear.output_inertia_kg_m2=2e-4"]
zip = [["motor.limits.current_a", "motor.gear.efficiency"]]
keep.figures = ["largest current"]

[vary]
"motor.datasheet" = ["faulhaber_1331t006sr", "faulhaber_1331t012sr", "faulhaber_1524t012sr"]
"motor.gear.ratio" = {{integers = [3, 42]}}
"motor.limits.current_a" = [0.5, 1.0]
"motor.gear.efficiency" = [0.6, 0.9]

[[figures_of_merit]]
name = "turned"
kind = "final"
field = "motor.output_angle"
unit = "deg"

[optimise]
{more}
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """All 240 members of a catalogue, swept: the store, and what is to be found."""
    folder = tmp_path_factory.mktemp("grid")
    file = write(folder, 'maximise = "turned"', study=CATALOGUE)
    lists = folder / "lists.toml"
    ratios = ", ".join(map(str, range(3, 43)))
    lists.write_text(file.read_text().replace("{integers = [3, 42]}", f"[{ratios}]"))
    data = sweep(lists, out=folder / "store", progress=False).dataset.load()
    assert data.sizes["member"] == 240
    return folder, data


def test_a_catalogue_is_searched_with_what_a_sweep_has_run(grid, runs):
    folder, data = grid
    limit = 0.55
    more = f'maximise = "turned"\nconstraints = ["largest current <= {limit}"]\nbudget = 80'
    file = write(folder, more, study=CATALOGUE)
    found = mime.optimise_study(file, out=folder / "store", progress=False)
    assert (found.computed, found.reused, runs) == (0, found.study.size, [])
    assert 40 < found.study.size <= 80
    kept = data.where(data["largest current"] <= limit)
    assert np.nanmax(kept["turned"].values) < data["turned"].values.max()  # the limit presses
    best = data.isel(member=int(np.nanargmax(kept["turned"].values)))
    own = found.parameters()
    assert {name: str(own[name]) for name in own} == {n: str(best[n].values) for n in own}
    assert found.figures()["turned"] == float(best["turned"])
    everything = mime.optimise_study(
        file, optimise={"budget": 240, "maximise": "turned"}, out=folder / "store", progress=False
    )
    assert everything.study.size == 240
    assert "trying all members that there are" in repr(everything)
    assert everything.figures()["turned"] == float(best["turned"])
    about = json.loads(mime.open_study(folder / "store").dataset.attrs["optimise"])
    opened = mime.open_study(folder / "store").dataset.isel(member=about["best"])
    assert float(opened["turned"]) == float(best["turned"])
    assert about["constraints"] == [{"figure": "largest current", "sense": "<=", "bound": limit}]


def test_the_front_of_two_objectives_is_nearly_that_of_the_grid(grid):
    folder, data = grid
    more = 'maximise = "turned"\nminimise = "largest current"\nbudget = 120'
    file = write(folder, more, study=CATALOGUE)
    found = mime.optimise_study(file, out=folder / "store", progress=False)
    assert found.computed == 0
    costs = np.stack([-data["turned"].values, data["largest current"].values], axis=1)
    whole = Aim((Objective("a", "minimise", ""), Objective("b", "minimise", "")), ())
    figures = dict(zip("ab", costs.T, strict=True))
    true = costs[whole.front(figures, np.ones(len(costs), bool))]
    for one in true:  # by brute force: nobody is better in both
        assert not ((costs <= one).all(axis=1) & (costs < one).any(axis=1)).any()
    names = ["turned", "largest current"]
    ours = np.array([[found.figures(m)[n] for n in names] for m in found.front]) * [-1, 1]
    worst = costs.max(axis=0)

    def volume(front):
        """Of what a front is better than, below the worst of all."""
        front = front[np.argsort(front[:, 0])]
        tops = np.minimum.accumulate(np.append(worst[1], front[:, 1]))[:-1]
        return np.sum((worst[0] - front[:, 0]) * np.maximum(tops - front[:, 1], 0.0))

    # Half of all members are tried; at random the front would have 0.93 of the volume.
    assert 0.97 < volume(ours) / volume(true) <= 1.0 + 1e-12
    with pytest.raises(StudyError, match="several objectives: say which member of the front"):
        found.simulation()
    member = found.front[0]
    ratio = found.simulation(member).nodes["motor"].gear.ratio
    assert ratio == found.parameters(member)["motor.gear.ratio"]
    assert f"front: {len(found.front)} members" in repr(found)


@pytest.mark.parametrize("method", ["gradient", "optuna"])
def test_a_stopped_search_goes_on_to_the_same_bytes(tmp_path, runs, method):
    file = write(tmp_path, f'method = "{method}"\nstarts = 2\nbudget = 40\nbatch = 8')
    whole = mime.optimise_study(file, out=tmp_path / "whole", progress=False)
    members = whole.study.size
    assert sum(runs) == members
    runs.clear()
    for most in (3, 9):

        def stop(done, total, most=most):
            assert total == 40
            if done > most:
                raise KeyboardInterrupt

        with pytest.raises(StudyInterrupted, match=r"stopped after \d+ members, .* optimise again"):
            mime.optimise_study(file, out=tmp_path / "stopped", progress=stop)
    found = mime.optimise_study(file, out=tmp_path / "stopped", progress=False)
    assert 0 < found.reused < sum(runs) == members  # none twice
    assert (found.best, found.study.size) == (whole.best, members)
    np.testing.assert_array_equal(found.dataset["speed"], whole.dataset["speed"])
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


def test_members_that_fail_are_named_and_the_others_go_on(tmp_path):
    study = STUDY.replace("{{loguniform = [1.0, 400.0]}}", "[2.0, 20.0, 60.0]").replace(
        "[vary]", '[vary]\n"inputs.motor.commanded_torque.value" = [0.02, 1e308]'
    )
    more = 'constraints = ["rise <= 1"]\n[[figures_of_merit]]\nname = "rise"\nkind = "rise_time"\n'
    more += 'field = "motor.output_angular_velocity"\ntarget = 0.05'
    found = mime.optimise_study(write(tmp_path, more, study=study), progress=False)
    own = found.dataset
    assert found.parameters()["motor.gear.ratio"] == 20.0
    failed = np.flatnonzero(own["inputs.motor.commanded_torque.value"].values > 1).tolist()
    assert sorted(found.diverged) == failed
    assert found.unfinished == {"rise": [0]}  # a gear of 2 is too slow to get there
    assert "diverged: members 3, 4, 5" in repr(found)
    assert "without 'rise': member 0" in repr(found)


def test_no_feasible_member_says_the_nearest(tmp_path, capsys):
    study = STUDY.replace("{{loguniform = [1.0, 400.0]}}", "[10.0, 20.0, 60.0]")
    file = write(tmp_path, 'constraints = ["rotor speed <= 1"]', study=study)
    nearest = (
        r"no member of 3 keeps all limits. The nearest, member 0 \(motor.gear.ratio = 10\), has "
    )
    with pytest.raises(mime.InfeasibleError, match=nearest + r"rotor speed .* rpm, wanted <= 1\. "):
        mime.optimise_study(file, progress=False)


MISTAKES = {
    'maximise = "sped"': r"optimise\.maximise.*no figure 'sped' is kept \(did you mean 'speed'\?\)",
    "": r"optimise: nothing to look for: name a figure by minimise or maximise",
    'maximise = ["speed", "speed"]': "'speed' is an objective twice",
    'maximise = "speed"\nconstraints = ["speeed <= 3"]': r"constraints\[0\].*no figure 'speeed'",
    'maximise = "speed"\nconstraints = ["speed < 3"]': "must be 'figure <= number' or",
    'maximise = "speed"\nconstraints = ["speed <= fast"]': "must end in a number .* got 'fast'",
    'maximise = "speed"\nbudget = 0': "optimise.budget",
    'maximise = "speed"\nmethod = "newton"': "one of 'auto', 'gradient', 'optuna', got 'newton'",
}


@pytest.mark.parametrize("more", MISTAKES)
def test_what_is_wrong_with_the_table_is_told(tmp_path, more):
    file = write(tmp_path, more, study=STUDY.replace('maximise = "speed"\n', ""))
    with pytest.raises(ScenarioError, match=MISTAKES[more]):
        mime.optimise_study(file, progress=False)


RANGES = {
    "{{normal = [10.0, 1.0]}}": r"vary.*normal has no range to search.*Add between",
    "{{loguniform = [-1.0, 3.0]}}": "loguniform lies above 0",
    "{{uniform = [-1.0, 3.0]}}": r"must be > 0.*got -1\.0",
}


@pytest.mark.parametrize("axis", RANGES)
def test_what_is_wrong_with_a_range_is_told(tmp_path, axis):
    study = STUDY.replace("{{loguniform = [1.0, 400.0]}}", axis)
    with pytest.raises(ScenarioError, match=RANGES[axis]):
        mime.optimise_study(write(tmp_path, study=study), progress=False)


def test_a_key_that_makes_graphs_has_no_range(tmp_path):
    study = STUDY.replace("[vary]", '[vary]\n"simulation.timestep" = {{uniform = [1e-4, 1e-3]}}')
    with pytest.raises(ScenarioError, match="each of its values makes a graph; at most 256"):
        mime.optimise_study(write(tmp_path, study=study), progress=False)
    with pytest.raises(ScenarioError, match=r"the table is missing: \[optimise\]"):
        mime.optimise_study(write(tmp_path, study=STUDY.partition("[optimise]")[0]), progress=False)


@pytest.mark.parametrize(
    ("more", "why"),
    {
        'minimise = "count"': "'count' is a count: it is a whole number",
        'minimise = "settling"': "'settling' is a settling_time: it is the time of a sample",
        'minimise = "rotor speed"\nmaximise = "speed"': "there are several objectives",
        'minimise = "none"': "'none' has a slope of 0, or none, at all of 2 starts",
    }.items(),
)
def test_gradients_where_there_are_none_are_refused(tmp_path, more, why):
    figures = """
[[figures_of_merit]]
name = "count"
kind = "count"
field = "motor.current"

[[figures_of_merit]]
name = "settling"
kind = "settling_time"
field = "motor.current"

[[figures_of_merit]]
name = "none"
kind = "final"
field = "motor.commanded_torque"
"""
    study = STUDY.replace('maximise = "speed"\n', "") + figures
    file = write(tmp_path, f'{more}\nmethod = "gradient"\nstarts = 2', study=study)
    with pytest.raises(
        mime.InputError, match=rf"no search by gradients: {why}.*method = \"optuna\""
    ):
        mime.optimise_study(file, progress=False)


def test_the_command_tells_the_best_member_and_how_to_run_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    study = STUDY.replace("{{loguniform = [1.0, 400.0]}}", "[10.0, 20.0, 60.0]")
    write(tmp_path, study=study)
    main(["optimise", "study.toml"])
    told = capsys.readouterr().out
    assert "Gear: maximise speed\n  3 members: 3 computed, 0 there before; 3 feasible" in told
    assert re.search(r"run it: mime run \S*drive.toml --set motor.gear.ratio=20\n", told)
    assert re.search(r"motor.gear.ratio +20\n +speed +\S+ +rad/s +maximise\n", told)
    for name in ("result.nc", "report.html", "members.csv"):
        assert (tmp_path / "mime_output" / "study" / name).exists(), name
    main(["optimise", "study.toml", "--no-report", "--budget", "3"])
    assert "0 computed, 3 there before" in capsys.readouterr().out
    write(tmp_path, 'constraints = ["rotor speed <= 1"]', study=study)
    with pytest.raises(SystemExit) as end:
        main(["optimise", "study.toml"])
    assert end.value.code == 1
    assert "no member of 3 keeps all limits. The nearest" in capsys.readouterr().err
    write(tmp_path, 'method = "gradient"', study=study)
    with pytest.raises(SystemExit) as end:
        main(["optimise", "study.toml"])
    assert end.value.code == 2
    assert "motor.gear.ratio has no values in between" in capsys.readouterr().err


def test_without_optuna_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    file = write(tmp_path, 'method = "optuna"')
    with pytest.raises(StudyError, match=r"needs Optuna: pip install 'mime-sim\[search\]'"):
        mime.optimise_study(file, progress=False)


def test_an_input_of_one_member_and_of_as_many_as_there_are_steps(tmp_path):
    """`run_batch` would take these for a constant and for values over time."""
    write(tmp_path)
    name = "inputs.motor.commanded_torque.value"
    for count in (1, 20):
        torques = np.linspace(0.01, 0.02, count)
        data = sweep(tmp_path / "drive.toml", {name: torques.tolist()}, progress=False).dataset
        # w = n tau t / (Jo + n² J) with n = 5
        closed = 5 * torques * END / (LOAD + 25 * J)
        np.testing.assert_allclose(data["speed"], closed, rtol=1e-13)


def test_the_page_and_the_example_are_the_same_study():
    page = (ROOT / "docs" / "howto" / "optimise.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "motor_and_gear.toml").read_text(encoding="utf-8")
    assert example in page
