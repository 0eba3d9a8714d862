"""The experiment to run next: within its limits, better than a step and a chirp, as foretold."""

import jax
import numpy as np
import pytest

import mime
from fitting.motors import COLUMNS, NOISE, PERIOD, TRUE, UNKNOWNS, bench, motor_matrices, sampled
from mime.cli import main
from mime.fitting.design import basis
from mime.fitting.rank import rank_of
from mime.fitting.unknown import WIDEST_LOG
from sizes import sized

pytestmark = pytest.mark.slow
SEEDS = sized(20, small=2)
VOLTS, SPEED, CURRENT = COLUMNS["volts"], COLUMNS["speed"], COLUMNS["current"]
SENSORS = {SPEED: NOISE[0], CURRENT: NOISE[1]}


SCENARIO = """
[simulation]
duration = 0.05
timestep = 1e-3

[nodes.motor]
type = "MotorNode"
r_ohm = 1.3
l_henry = 5e-3
kt_n_m_per_a = 0.042
inertia_kg_m2 = 1e-4
damping_n_m_s = 3e-4
command_mode = "voltage"
integrator = "exact"

[inputs."motor.commanded_voltage"]
kind = "constant"
value = 1.0
"""
FILE = """
scenario = "motor.toml"
unknowns = ["motor.r_ohm", "motor.l_henry"]

[design]
duration = 0.05
period = 1e-3
inputs = {"motor.commanded_voltage" = 6.0}
sensors = {"motor.current" = 0.05}
limits = {"motor.current" = 3.0}
shape = "spline"
harmonics = 2
starts = 1
"""


@pytest.fixture(scope="module")
def planned():
    return mime.design(
        bench(1.0),
        {VOLTS: 6.0},
        SENSORS,
        UNKNOWNS,
        duration=0.2,
        period=PERIOD,
        limits={CURRENT: 3.0},
        harmonics=6,
        starts=1,
    )


def test_it_tells_more_than_a_step_and_a_chirp_as_long(planned):
    assert planned.outlook.log_det > max(o.log_det for o in planned.others.values()) + 3.0
    for name in UNKNOWNS:
        assert planned.outlook.half[name] < min(o.half[name] for o in planned.others.values())
    assert "chirp" in str(planned)


def test_it_keeps_its_limits_and_the_intervals_are_those_of_a_fit(planned, tmp_path):
    volts = planned.inputs[VOLTS]
    time = planned.time_s
    states = sampled(*motor_matrices(**TRUE), volts, time, time)
    assert np.max(np.abs(volts)) <= 6.0
    assert np.max(np.abs(states[:, 1])) <= 3.0 * (1 + 1e-9)
    late = sampled(*motor_matrices(**TRUE), volts, time, time, 0.5 * PERIOD)  # as it foresees
    readings = late + NOISE * np.random.default_rng(0).normal(size=states.shape)
    log = {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}
    columns = {
        "volts": VOLTS,
        "speed": mime.Channel(SPEED, noise=NOISE[0]),
        "current": mime.Channel(CURRENT, noise=NOISE[1]),
    }
    fit = mime.fit(bench(1.0), log, columns, UNKNOWNS, starts=1, progress=False)
    for name in UNKNOWNS:  # at the values found, not at the true ones: a few percent
        half = 0.5 * np.log(fit[name].high / fit[name].low)
        assert half == pytest.approx(planned.outlook.half[name], rel=0.1), name
    planned.to_csv(tmp_path / "input.csv")
    table = np.genfromtxt(tmp_path / "input.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(table[:, 1], volts, rtol=1e-8, atol=1e-8)


def test_intervals_and_errors_shrink_against_a_chirp_as_foretold(planned):
    """Logs of both inputs, with the noise of several seeds, fitted."""
    halves, off = {}, {}
    for name, outlook in (("design", planned.outlook), ("chirp", planned.others["chirp"])):
        found = [fitted(planned.time_s, outlook.inputs[VOLTS], seed) for seed in range(SEEDS)]
        halves[name] = np.mean([half for half, _ in found], axis=0)
        off[name] = np.sqrt(np.mean([np.square(error) for _, error in found], axis=0))
        foretold = np.array([outlook.half[parameter] for parameter in UNKNOWNS])
        np.testing.assert_allclose(halves[name], foretold, rtol=0.15)
        assert np.all(off[name] < 1.5 * halves[name])
    assert np.all(halves["design"] < halves["chirp"])
    if SEEDS >= 20:  # of few seeds errors are as they happen to be
        assert np.all(off["design"] < off["chirp"])


def fitted(time, volts, seed):
    """Half of each interval and each error, both as parts, of a fit to a noisy log."""
    late = sampled(*motor_matrices(**TRUE), volts, time, time, 0.5 * PERIOD)
    readings = late + NOISE * np.random.default_rng(seed).normal(size=late.shape)
    log = {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}
    columns = {
        "volts": VOLTS,
        "speed": mime.Channel(SPEED, noise=NOISE[0]),
        "current": mime.Channel(CURRENT, noise=NOISE[1]),
    }
    fit = mime.fit(bench(1.0), log, columns, UNKNOWNS, starts=1, progress=False)
    half = [0.5 * np.log(fit[name].high / fit[name].low) for name in UNKNOWNS]
    return half, np.log([fit[n].value / v for n, v in zip(UNKNOWNS, TRUE.values(), strict=True)])


def test_a_motor_with_coulomb_friction_is_stepped_as_its_fit_will_be():
    """The graph's own steps of 1 ms meet a stop up to 1 ms late: they would tell less of it."""

    def designed(integrator):
        graph = bench(1.0, integrator=integrator, friction=mime.Coulomb(0.01))
        kept = {"duration": 0.02, "period": PERIOD, "harmonics": 1, "starts": 1}
        return mime.design(graph, {VOLTS: 6.0}, SENSORS, ["motor.friction.torque_n_m"], **kept)

    own, exact = designed("semi_implicit"), designed("exact")
    assert own.outlook.half == exact.outlook.half
    assert "stepped from one stop" in str(own)
    assert "stepped from one stop" in own.report()
    assert exact.notes == ()


def test_splines_sum_to_one_so_that_a_constant_is_among_them():
    part = np.linspace(0.0, 1.0, 30, endpoint=False)
    waves = basis("spline", part, 4)
    assert waves.shape == (9, 30)
    np.testing.assert_allclose(waves.sum(axis=0), 1.0, atol=1e-14)


@pytest.mark.soak("the search itself: as with a Fourier series, and the file's words below")
def test_the_command_designs_splines(tmp_path):
    (tmp_path / "motor.toml").write_text(SCENARIO)
    (tmp_path / "fit.toml").write_text(FILE)
    main(["design", str(tmp_path / "fit.toml"), "--out", str(tmp_path / "out")])
    table = np.genfromtxt(tmp_path / "out" / "input.csv", delimiter=",", names=True)
    assert len(table["motorcommanded_voltage"]) == 50
    assert np.max(np.abs(table["motorcommanded_voltage"])) <= 6.0


def test_a_file_and_the_command(planned, tmp_path, capsys, monkeypatch):
    asked = {}

    def answer(simulation, *given, **options):
        asked.update(options, given=given)
        return planned

    monkeypatch.setattr("mime.fitting.design_file.design", answer)
    (tmp_path / "motor.toml").write_text(SCENARIO)
    (tmp_path / "fit.toml").write_text(FILE)
    main(["design", str(tmp_path / "fit.toml"), "--out", str(tmp_path / "out")])
    monkeypatch.undo()  # what is wrong is refused by the design itself
    assert asked["given"][:2] == ({VOLTS: 6.0}, {CURRENT: 0.05})
    wanted = {"duration": 0.05, "period": 1e-3, "shape": "spline", "harmonics": 2, "starts": 1}
    assert {name: asked[name] for name in wanted} == wanted
    said = capsys.readouterr().out
    assert "chirp" in said
    assert "motor.current reaches" in said
    table = np.genfromtxt(tmp_path / "out" / "input.csv", delimiter=",", names=True)
    volts = table["motorcommanded_voltage"]
    np.testing.assert_allclose(volts, planned.inputs[VOLTS], rtol=1e-8, atol=1e-8)
    assert "95 % interval" in (tmp_path / "out" / "report.html").read_text()
    limits = 'limits = {"motor.current'
    for bad, words in (
        (FILE.replace('"spline"', '"splin"'), "bad.toml:11: design.shape: must be one of"),
        (
            FILE.replace(limits, 'limits = {"motor.curent'),
            "bad.toml:10: design.limits.\"motor.curent\": 'motor' has no field 'curent'",
        ),
        (
            FILE.replace('inputs = {"motor.commanded_voltage', 'inputs = {"motor.volts'),
            "bad.toml:8: design.inputs.\"motor.volts\": 'motor' has no field 'volts'",
        ),
        (
            FILE.replace("period = 1e-3", "period = 1.0"),
            "bad.toml:6: design.duration: 0.05 s in rows of 1 s are 0 rows; an experiment has 20",
        ),
        (FILE + 'fit = "none.json"\n', "bad.toml:14: design.fit: no such file"),
        (FILE.replace("[design]", "[desing]"), "unknown key"),
        (FILE + 'arm = "motor"\n', "'inputs', 'sensors', 'limits' cannot stand beside `arm`"),
    ):
        (tmp_path / "bad.toml").write_text(bad)
        with pytest.raises(SystemExit):
            main(["design", str(tmp_path / "bad.toml")])
        assert words in capsys.readouterr().err


def test_limits_that_no_input_keeps_are_refused():
    spinning = {"initial": {"motor.angular_velocity": 50.0}, "harmonics": 2, "starts": 1}
    with pytest.raises(mime.InputError, match=r"reaches 49\.96 without any input"):
        mime.design(
            bench(1.0),
            {VOLTS: 6.0},
            SENSORS,
            UNKNOWNS,
            duration=0.05,
            period=PERIOD,
            limits={SPEED: 10.0},
            **spinning,
        )


def test_what_no_input_can_tell_is_refused():
    with pytest.raises(mime.InputError, match=r"no input tells motor.r_ohm, motor.l_henry.*apart"):
        mime.design(
            bench(1.0), {VOLTS: 6.0}, {SPEED: 0.5}, UNKNOWNS, duration=0.1, period=PERIOD, starts=1
        )
    with pytest.raises(mime.InputError, match="is no external input"):
        mime.design(bench(1.0), {SPEED: 6.0}, {CURRENT: 0.5}, UNKNOWNS, duration=0.1, period=PERIOD)
    assert jax.config.jax_enable_x64


def test_the_log_det_is_that_of_the_information_however_little_there_is():
    """It was infinite where a direction is known worse than within a factor of two."""
    random = np.random.default_rng(0)
    J = random.normal(size=(50, 4)) @ random.normal(size=(4, 4))
    none, known = np.zeros(4, bool), np.array([True, True, False, True])
    inverse = np.linalg.inv(J.T @ J)[np.ix_(known, known)]
    for size in (1e3, 1.0, 1e-9):
        rank = rank_of(size * J, np.full(4, WIDEST_LOG), none, 1.96)
        expected = -np.linalg.slogdet(inverse)[1] + 2 * 3 * np.log(size)
        assert rank.log_det(known) == pytest.approx(expected, rel=1e-9)
    J[:, 0] = J[:, 1]
    assert rank_of(J, np.full(4, WIDEST_LOG), none, 1.96).log_det(known) == -np.inf
