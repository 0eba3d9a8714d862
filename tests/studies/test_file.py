"""`study.toml` and `mime sweep`: what is wrong is told with its line, and what is left is done."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

import mime
from mime.cli import main
from mime.fitting.result import Estimate, Fit
from mime.studies.file import load_study
from mime.studies.sweep import sweep
from motor_studies import write_study


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    return write_study(tmp_path)


def spoil(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file


WRONG = {
    "no scenario": ('scenario = "rotor.toml"\n', "", "scenario: the key is missing"),
    "another": ("rotor.toml", "motor_stepp", "no bundled scenario of that name (did you mean"),
    "a key": ("draws =", "draw =", "study.toml:4: draw: unknown key (did you mean 'draws'?)"),
    "nothing drawn": ("draws = 40", "", "draws: say how many members are drawn"),
    "a distribution": ("normal", "normall", 'vary."rotor.kt_n_m_per_a".normall: unknown key'),
    "bounds": ("[0.5, 2.0]", "[2.0, 0.5]", "uniform goes from a smaller number to a larger one"),
    "a range": ("[0.5, 2.0]", "[-2.0, 2.0]", 'study.toml:9: vary."rotor.r_ohm": rotor.r_ohm must'),
    "a node": ("rotor.r_ohm", "motor.r_ohm", "(did you mean 'rotor'?)"),
    "a parameter": (
        "rotor.r_ohm",
        "rotor.r_ohmm",
        'vary."rotor.r_ohmm": MotorNode has no parameter',
    ),
    "a field": ('["rotor.current"]', '["rotor.curent"]', "(did you mean 'current'?)"),
    "a part": ('["rotor.current"]', '["rotor.current[0]"]', "a field is kept whole"),
    "a stride": ("every = 50", "every = 3", "keep.every: must be a multiple of the scenario's"),
    "a figure": ("[keep]", '[keep]\nfigures = ["x"]', "the scenario has no figure 'x'"),
    "a constraint": ("seed = 7", 'constraints = ["rotor.j > 0"]', "'rotor.j' does not vary"),
    "a seed": ("seed = 7", "seed = -1", "study.toml:5: seed: must be >= 0, got -1"),
    "a fit": ("seed = 7", 'fit = "fit.json"', "study.toml:5: fit: cannot read "),
    "no comparison": ("seed = 7", 'constraints = ["1 >"]', "no expression: invalid syntax\n"),
    "an equation": (
        "[keep]",
        '"rotor.l_henry" = {equals = "rotor.j"}\n[keep]',
        """study.toml:12: vary."rotor.l_henry".equals: 'rotor.j' does not vary""",
    ),
    "an input": (
        "[keep]",
        '"inputs.rotr.commanded_voltage.value" = [1.0]\n[keep]',
        "has no input rotr.commanded_voltage (did you mean 'rotor.commanded_voltage'?)",
    ),
    "a graph": (
        "[keep]",
        '"inputs.rotor.commanded_voltage.kind" = ["sine"]\n[keep]',
        """study.toml:12: vary."inputs.rotor.commanded_voltage.kind": with inputs.rotor""",
    ),
    "too many graphs": (
        "[keep]",
        '"simulation.seed" = {from = 0, to = 299, count = 300}\n[keep]',
        "make 300 graphs",
    ),
    "two of a name": (
        "every = 50",
        'every = 50\n[[figures_of_merit]]\nname = "largest current"\nkind = "min"\n'
        'field = "rotor.current"',
        "'largest current' is named twice",
    ),
    "a kind": (
        "every = 50",
        'every = 50\n[[figures_of_merit]]\nname = "x"\nkind = "mx"\nfield = "rotor.current"',
        "figures_of_merit[0].kind: must be one of",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_where_and_what_to_do(file, case, capsys):
    old, new, words = WRONG[case]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(spoil(file, old, new))])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert words in told, told
    assert not (file.parent / "mime_output").exists()


def test_the_command_tells_of_members_and_goes_on(file, capsys):
    main(["sweep", "study.toml"])
    told = capsys.readouterr().out
    assert "Rotors: 40 members, 40 computed, 0 there before" in told
    assert re.search(r"largest current +│ [\d.]+ +│ [\d.]+ +│ [\d.]+ +│ A +│ member \d+", told)
    folder = file.parent / "mime_output" / "study"
    assert (folder / "result.nc").stat().st_size > 1000
    assert f"report: {folder.relative_to(file.parent) / 'report.html'}" in told
    assert len((folder / "members.csv").read_text().splitlines()) == 41
    before = (folder / "report.html").stat().st_mtime_ns
    spoil(file, "draws = 40", "draws = 44")
    main(["sweep", "study.toml", "--threads", "1", "--no-report"])
    told = capsys.readouterr().out
    assert "44 members, 4 computed, 40 there before" in told
    assert "report" not in told
    main(["sweep", "study.toml", "--quiet", "--no-report"])
    assert capsys.readouterr().out == ""
    assert (folder / "report.html").stat().st_mtime_ns == before
    main(["view", str(folder), "--no-open"])  # the one that is there
    assert (folder / "report.html").stat().st_mtime_ns == before
    (folder / "report.html").unlink()
    main(["view", str(folder), "--no-open"])
    assert "44 members of " in (folder / "report.html").read_text()
    with pytest.raises(SystemExit):
        main(["view", str(file.parent), "--no-open"])
    assert "no study is kept there" in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(file, capsys, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mime.studies.sweep.run_task", stopped)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "study.toml", "--set", "rotor.l_henry=2e-3", "--out", "o"])
    assert ended.value.code == 130
    told = capsys.readouterr().err
    assert "stopped after 0 of 40 members, which are kept in o" in told
    assert "Go on with:  mime sweep study.toml --set rotor.l_henry=2e-3 --out o" in told


def test_a_member_that_diverges_fails_the_command_and_is_named(file, capsys):
    spoil(file, "[keep]", '"inputs.rotor.commanded_voltage.value" = [1e308]\n[keep]')
    spoil(file, "draws = 40", "draws = 3")
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "study.toml", "--quiet", "--no-report"])
    assert ended.value.code == 1
    assert "member 0 diverged: rotor.angle is not finite" in capsys.readouterr().err


def test_a_folder_of_another_kind_is_a_users_mistake(file, capsys):
    (file.parent / "o" / "members.zarr" / "x").mkdir(parents=True)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "study.toml", "--out", "o"])
    assert ended.value.code == 2
    assert "is no store of studies" in capsys.readouterr().err


def test_a_fits_covariance_is_drawn_from(file):
    names = ["rotor.r_ohm", "rotor.kt_n_m_per_a", "delay"]
    kinds = ("parameter", "parameter", "delay")
    estimates = tuple(
        Estimate(name, "", kind, "known", value, 0, 1, 1, True)
        for name, kind, value in zip(names, kinds, (1.0, 0.05, 0.1))
    )
    covariance = np.array([[1e-2, 4e-4, 0.0], [4e-4, 2.5e-5, 0.0], [0.0, 0.0, 1.0]])
    empty = {
        field.name: ()
        for field in dataclasses.fields(Fit)
        if field.default is dataclasses.MISSING and field.name not in ("estimates", "covariance")
    }
    numbers = {"rank": 3, "rows": 1, "simulations": 1, "timestep": 1e-4, "step_error": 0.0}
    fit = Fit(
        **empty
        | numbers
        | {"estimates": estimates, "covariance": covariance, "noise": {}, "kept": {}}
        | {"starts": (1, 1)}
    )
    fit.save(file.parent / "fit.json")
    start = file.read_text().index("[vary]")
    end = file.read_text().index("[keep]")
    text = file.read_text()
    text = text[:start] + text[end:]
    text = text.replace("draws = 40", 'draws = 1024\nfit = "fit.json"')
    file.write_text(text)
    drawn = load_study(file).columns
    assert list(drawn) == names[:2]
    values = np.stack(list(drawn.values()))
    logs, mean = np.log(values), np.array([1.0, 0.05])
    np.testing.assert_allclose(np.cov(logs) * np.outer(mean, mean), covariance[:2, :2], rtol=0.05)
    np.testing.assert_allclose(logs.mean(1), np.log(mean), rtol=1e-3, atol=1e-3)
    only = text.replace('"fit.json"', '{file = "fit.json", parameters = ["delay"]}')
    file.write_text(only)
    with pytest.raises(mime.ScenarioError, match="'delay': no value in"):
        load_study(file)


NOISY = """
[simulation]
duration = 5e-3
timestep = 1e-3
[nodes.a]
type = "EncoderNode"
ticks_per_turn = 1000
noise_rad = 0.1
seed = {seed}
[inputs."a.angle"]
kind = "constant"
value = 1.0
"""


def test_seeds_are_lanes_and_give_what_a_node_of_that_seed_gives(tmp_path):
    file = tmp_path / "noisy.toml"
    file.write_text(NOISY.format(seed=0))
    node = mime.load_scenario(file).simulation.nodes["a"]
    (field,) = [name for name in node.boundary_flux_spec() if "angle" in name][:1]
    many = sweep(file, {"a.seed": [0, 5, 2**32 - 1]}, fields=[f"a.{field}"], progress=False)
    for member, seed in enumerate((0, 5, 2**32 - 1)):
        file.write_text(NOISY.format(seed=seed))
        one = mime.load_scenario(file).run()["a"][field]
        np.testing.assert_array_equal(many.dataset[f"a.{field}"][member], one)
    assert np.ptp(many.dataset[f"a.{field}"].values[:, 0]) > 0


def test_a_study_in_python_is_that_of_the_file(file):
    with jax.enable_x64(False):  # the scenario's precision holds
        normal = {"normal": (0.05, 0.002)}
        ours = sweep(
            "rotor.toml",
            {"rotor.r_ohm": {"uniform": [0.5, 2.0]}, "rotor.kt_n_m_per_a": normal},
            draws=40,
            seed=7,
            fields=["rotor.current"],
            keep_every=50,
            out="store",
            progress=False,
        )
        again = sweep("study.toml", out="store", progress=False)
    assert again.computed == 0
    assert ours.dataset["rotor.current"].dtype == np.float64
    assert json.loads(ours.dataset.attrs["versions"])["mime"] == mime.__version__
    with pytest.raises(mime.InputError, match="a study says all of it: leave out draws"):
        sweep("study.toml", draws=3)
    with pytest.raises(mime.InputError, match="a scenario says all of it: leave out duration"):
        sweep("rotor.toml", {"rotor.r_ohm": [1.0]}, duration=1.0)
