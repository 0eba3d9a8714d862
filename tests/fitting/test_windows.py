"""Windows: rows and inputs of each, initial states eliminated, plants that run away."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import mime
from fitting import test_sampled
from fitting.motors import COLUMNS, NOISE, PERIOD, TRUE, bench, motor_log, sampled
from fitting.motors import motor_matrices as matrices
from mime import Channel, Input, Log, Node, Output, Scalar, Unknown, parameter
from mime.core.problem import InputError
from mime.fitting.coordinates import coordinates
from mime.fitting.divided import divided
from mime.fitting.experiment import experiment
from mime.fitting.file import load_fit
from mime.fitting.loss import Loss
from mime.fitting.model import Model, in_double
from mime.fitting.rank import rank_of
from mime.fitting.search import near_minimum
from mime.fitting.solve import polish, prior_of
from mime.fitting.states import reduced
from mime.fitting.widening import Cut, Residual, widened
from mime.fitting.windows import cut
from sizes import FULL, sized

UNKNOWNS = ["motor.r_ohm", "motor.inertia_kg_m2"]
EXACT = {
    "volts": "motor.commanded_voltage",
    "speed": Channel("motor.rotor_angular_velocity", delay=0, noise=NOISE[0]),
    "current": Channel("motor.current", delay=0, noise=NOISE[1]),
}


def motor_experiment(table, columns=COLUMNS):
    with jax.enable_x64(True):
        return experiment(in_double(bench(1.0)), Log(table, name="log"), columns)


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_every_row_is_in_one_window_and_inputs_act_when_they_did(jitter):
    table = motor_log(rows=401)
    random = np.random.default_rng(1)
    table["time"] = table["time"] + jitter * PERIOD * random.uniform(-1, 1, 401)
    table["volts"] = np.repeat(random.normal(0, 6, 41), 10)[:401]
    table["current"][100:130] = np.nan
    whole = motor_experiment(table)
    pieces = cut(whole, 0.1)
    assert len(pieces) == 4
    for j, sensor in enumerate(whole.sensors):
        rows = [p.experiment.sensors[j].positions + p.first for p in pieces]
        np.testing.assert_allclose(np.concatenate(rows), sensor.positions, rtol=0, atol=1e-9)
    steps = 4
    volts = whole.inputs(steps)["motor"]["commanded_voltage"]
    for piece in pieces:
        own = piece.experiment
        first = piece.first * steps
        expected = volts[first : first + own.intervals * steps]
        # Sums over the log, of 6 V each, differ in their last digits.
        found = own.inputs(steps)["motor"]["commanded_voltage"]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert all(s.positions[0] >= 1 + 3 for s in own.sensors)  # the delay that is allowed


def divided_motor(table, seconds=0.1):
    with jax.enable_x64(True):
        simulation = in_double(bench(1.0))
        whole = experiment(simulation, Log(table, name="log"), EXACT)
        model = Model(simulation, (whole,), coordinates(simulation, UNKNOWNS, [whole]), 4)
        return divided(model, seconds, prior_of(model).centre)


def states_of(model):
    """Speed and current of the windows' prior: centre and width, (windows, 2)."""
    names = ["angular_velocity", "current"]
    at = [[slot[1] for slot in model.windows.slots].index(name) for name in names]
    return model.windows.centre[:, at], model.windows.width[:, at]


def residuals_of(table, model):
    """Of two logarithms and all states, by a matrix exponential: (of rows, of the prior)."""
    pieces = cut(motor_experiment(table, EXACT), 0.1)
    centre, width = states_of(model)
    assert len(centre) == len(pieces) == 4

    def residuals(x):
        p = {**TRUE, "R": TRUE["R"] * np.exp(x[0]), "J": TRUE["J"] * np.exp(x[1])}
        states, rows_of_all, prior = x[2:].reshape(-1, 2), [], []
        for piece, state, c, w in zip(pieces, states, centre, width, strict=True):
            e = piece.experiment
            rows = e.driven["motor", "commanded_voltage"]
            times = PERIOD * np.round(e.positions)
            at = PERIOD * np.round(e.sensors[0].positions)
            y = sampled(*matrices(**p), rows, at, times, x0=state)
            for i, sensor in enumerate(e.sensors):
                rows_of_all.append((y[:, i] - sensor.measured) / NOISE[i])
            prior.append((state - c) / w)
        return np.concatenate(rows_of_all), np.concatenate(prior)

    return residuals, np.concatenate([[0.1, -0.1], centre.ravel()])


def test_it_is_least_squares_on_unknowns_and_initial_states_together():
    """SciPy's, with a matrix exponential for each window: the values and their intervals."""
    table = motor_log(rows=401)
    residuals, start = residuals_of(table, divided_motor(table))
    ended = least_squares(
        lambda x: np.concatenate(residuals(x)), start,
        x_scale="jac", xtol=1e-14, ftol=1e-14, gtol=1e-14,
    )  # fmt: skip
    covariance = np.linalg.inv(ended.jac.T @ ended.jac)
    fit = mime.fit(bench(1.0), table, EXACT, UNKNOWNS, window=0.1, starts=1, progress=False)
    assert fit.windows.fitted == 4
    for j, (name, true) in enumerate(zip(UNKNOWNS, (TRUE["R"], TRUE["J"]), strict=True)):
        std = np.sqrt(covariance[j, j])
        # Slopes of `least_squares` are differences of 1e-8; it ends within 1e-5 of a deviation.
        assert abs(np.log(fit[name].value / true) - ended.x[j]) < 1e-3 * std
        half = 0.5 * np.log(fit[name].high / fit[name].low)
        assert half == pytest.approx(1.963 * std, rel=2e-3)  # Student's t of 790 degrees


@pytest.mark.parametrize("held", [None, 1])
def test_with_outliers_it_is_the_minimum_of_the_robust_cost(held):
    """SciPy's on unknowns and states, the prior squared; the second unknown free, then held."""
    table = motor_log(rows=401)
    table["speed"][50::40] += 10.0
    table["current"][70::40] -= 1.0
    model, loss = divided_motor(table), Loss("soft_l1")
    residuals, start = residuals_of(table, model)
    free = np.arange(len(start)) != held

    def whole(x):
        found = start.copy()
        found[free] = x
        return residuals(found)

    def rho(s):
        found = np.stack([s, np.ones_like(s), np.zeros_like(s)])
        of_rows = s[: sum(len(x) for e in model.experiments for x in [e.sensors[0].measured] * 2)]
        own = 1.0 + of_rows
        found[:, : len(own)] = 2 * (np.sqrt(own) - 1), own**-0.5, -0.5 * own**-1.5
        return found

    ended = least_squares(
        lambda x: np.concatenate(whole(x)), start[free],
        loss=rho, f_scale=loss.scale, xtol=1e-14, ftol=1e-14, gtol=1e-14,
    )  # fmt: skip
    with jax.enable_x64(True):
        prior = prior_of(model)
        at = prior.centre + np.log([TRUE["R"], TRUE["J"]]) + start[:2] - prior.centre
        noise = dict(zip(model.fields, NOISE, strict=True))
        z, cost, _ = polish(model, at, noise, prior, loss, held)
    expected = start[:2].copy()
    expected[free[:2]] = ended.x[: np.count_nonzero(free[:2])]
    # The anchor of z is worth 1e-4 of an unknown that the log tells to a hundredth; slopes of
    # `least_squares` are differences of 1e-8.
    np.testing.assert_allclose(z - np.log([TRUE["R"], TRUE["J"]]), expected, rtol=0, atol=1e-5)
    assert cost == pytest.approx(2.0 * ended.cost, rel=1e-5)
    if held is not None:
        assert z[held] == at[held]


def test_a_start_on_the_flat_of_a_logarithm_finds_the_minimum():
    """Of damping that is nothing the cost has no slope, and a descent from there stays."""
    table = motor_log(rows=401)
    with jax.enable_x64(True):
        simulation = in_double(bench(1.0))
        whole = experiment(simulation, Log(table, name="log"), EXACT)
        unknowns = [*UNKNOWNS, "motor.damping_n_m_s"]
        model = Model(simulation, (whole,), coordinates(simulation, unknowns, [whole]), 4)
        model = divided(model, 0.1, prior_of(model).centre)
        prior, loss = prior_of(model), Loss("linear")
        noise = dict(zip(model.fields, NOISE, strict=True))
        least, cost, _ = polish(model, prior.centre, noise, prior, loss)
        flat = prior.centre + np.array([0.0, 0.0, np.log(1e-9)])
        stays, there, _ = polish(model, flat, noise, prior, loss)
        found, reached, _ = near_minimum(model, flat, noise, prior, loss, True)
    assert there > cost + 10.0
    assert stays[2] < least[2] - 5.0
    # 1e-4 of the cost is what the last step of a start may leave.
    assert reached < cost * (1 + 1e-4)
    assert abs(found[2] - least[2]) < 0.05


class Rod(Node):
    """inertia q'' = torque - damping q' - weight sin q, by Runge and Kutta; upright at pi."""

    weight_n_m: Scalar = parameter("N·m", above=0.0)
    damping_n_m_s: Scalar = parameter("N·m·s/rad", above=0.0)
    inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0)

    def boundary_input_spec(self):
        return {"torque": Input((), "N·m")}

    def boundary_flux_spec(self):
        return {"turned": Output((), "rad", "after a gear of 2")}

    def state_spec(self):
        return {"angle": Output((), "rad"), "angular_velocity": Output((), "rad/s")}

    def slopes(self, x, torque):
        pull = torque - self.damping_n_m_s * x[1] - self.weight_n_m * jnp.sin(x[0])
        return jnp.stack([x[1], pull / self.inertia_kg_m2])

    def update(self, state, boundary_inputs, dt):
        u = boundary_inputs["torque"]
        x = jnp.stack([state["angle"], state["angular_velocity"]])
        a = self.slopes(x, u)
        b = self.slopes(x + 0.5 * dt * a, u)
        c = self.slopes(x + 0.5 * dt * b, u)
        d = self.slopes(x + dt * c, u)
        x = x + dt / 6 * (a + 2 * b + 2 * c + d)
        return {"angle": x[0], "angular_velocity": x[1]}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"turned": 0.5 * state["angle"]}


WEIGHT, DAMPING, INERTIA = 1.47, 0.03, 0.055
STEP = 5e-3
RODS = {"torque": "rod.torque", "angle": Channel("rod.turned", delay=0)}
ROD = ["rod.weight_n_m", "rod.damping_n_m_s"]


def rod(wrong):
    graph = mime.GraphManager()
    own = {"weight_n_m": wrong * WEIGHT, "damping_n_m_s": wrong * DAMPING}
    graph.add_node(Rod("rod", STEP, **own, inertia_kg_m2=INERTIA))
    graph.add_external_input("rod", "torque")
    return graph.compile()


def swing_up(seed, rows=801, noise=1e-3):
    """A rod that swings up by its energy, and is balanced; SciPy's integration."""
    random, x, found = np.random.default_rng(seed), np.array([0.05, 0.0]), []
    for k in range(rows):
        up = x[0] % (2 * np.pi) - np.pi
        energy = 0.5 * INERTIA * x[1] ** 2 + WEIGHT * (1 - np.cos(x[0]))
        torque = np.clip(0.8 * (2 * WEIGHT - energy) * x[1], -0.8, 0.8) + 0.3 * (k < 40)
        if abs(up) < 0.5:
            torque = -4 * up - 0.6 * x[1] + 0.3 * np.sin(2 * np.pi * 1.3 * k * STEP)
        found.append((k * STEP, torque, 0.5 * x[0] + noise * random.normal()))

        def slopes(t, y, torque=torque):
            return [y[1], (torque - DAMPING * y[1] - WEIGHT * np.sin(y[0])) / INERTIA]

        x = solve_ivp(slopes, (0, STEP), x, rtol=1e-9, atol=1e-11).y[:, -1]
    return dict(zip(("time", "torque", "angle"), np.array(found).T, strict=True))


@pytest.fixture(scope="module")
def swings():
    held = Log(swing_up(1), name="other", held_out=True)
    return [Log(swing_up(0), name="first"), held]


def test_a_swing_up_is_known_from_windows_where_the_whole_log_leads_astray(swings):
    options = {"starts": 2, "progress": False}
    whole = mime.fit(rod(1.3), swings, RODS, ROD, window=10.0, **options)
    assert whole.windows is None
    assert not whole.is_explained
    # Upright, an error grows by exp(5.2/s t): the whole log is left at several times its noise.
    assert whole.noise["rod.turned"][0] > 4e-3
    fit = mime.fit(rod(1.3), swings, RODS, ROD, window=1.0, **options)
    assert fit.is_explained
    assert fit.noise["rod.turned"][0] == pytest.approx(1e-3, rel=0.1)  # of 800 values: 2.5 %
    for name, true in zip(ROD, (WEIGHT, DAMPING), strict=True):
        half = 0.5 * (fit[name].high - fit[name].low)
        assert abs(fit[name].value - true) < 1.5 * half, name  # three deviations
        assert half < 0.02 * true, name
    found = fit.windows
    assert (found.seconds, found.fitted, found.held_out) == (1.0, 4, 4)
    assert found.states == ("rod.angle", "rod.angular_velocity")
    assert [run.log for run in found.free_runs] == ["first", "other"]
    assert min(run.left for run in found.free_runs) > 0.1 > 50 * fit.held_out[0].left
    told = str(fit)
    assert "windows of 1 s: 4 fitted, 4 held out; free at the start of each: rod.angle" in told
    assert "held out other, rod.turned: " in told
    assert " in windows; over the whole log " in told


def runaway_log(rows=401, noise=1e-3):
    """The rod around its upright position, kept there by feedback, its angle counted from there."""
    log = swing_up(2, 1200 + rows, noise)
    return {
        "time": log["time"][1200:] - log["time"][1200],
        "torque": log["torque"][1200:],
        "angle": log["angle"][1200:],
    }


def test_windows_are_as_long_as_the_start_stays_near_its_log(tmp_path):
    """Two seconds from upright the model of the start has fallen; half a second it has not."""
    log = Log(runaway_log(), initial={"rod.angle": Unknown(np.pi), "rod.angular_velocity": 0.0})
    assert np.ptp(log.source["angle"]) < 0.3  # three ranges are less than a fall
    fit = mime.fit(rod(1.05), log, RODS, ROD, starts=1, progress=False)
    assert fit.windows is not None
    assert fit.windows.seconds in (0.5, 1.0)
    fit.save(tmp_path / "fit.json")
    assert mime.Fit.load(tmp_path / "fit.json").windows == fit.windows


def test_a_log_that_the_start_can_follow_is_fitted_as_a_whole():
    fit = mime.fit(bench(1.3), motor_log(rows=301), COLUMNS, UNKNOWNS, starts=1, progress=False)
    assert fit.windows is None
    assert "free at the start" not in str(fit)


def test_controllers_keep_their_memory_from_window_to_window():
    truth = {"pi.kp": test_sampled.KP, "pi.ki": test_sampled.KI, "motor.inertia_kg_m2": TRUE["J"]}
    fit = mime.fit(
        test_sampled.loop(wrong=1.3),
        test_sampled.closed_loop_log(),
        test_sampled.COLUMNS,
        list(truth),
        window=0.2,
        starts=1,
        progress=False,
    )
    assert fit.windows.fitted == 3
    assert "pi.integral" in fit.windows.others  # its own memory
    assert "pi.integral" not in str(fit)
    for name, value in truth.items():
        assert abs(fit[name].value - value) < 0.8 * (fit[name].high - fit[name].low), name
        assert fit[name].high / fit[name].low < 1.05, name


def test_a_controller_that_fires_in_every_step_is_one_that_waits_in_finer_ones():
    """Finer steps need what the controller holds, where a run in steps of its own had no use."""
    with jax.enable_x64(True):
        simulation = in_double(test_sampled.loop(sample=1.25e-3, step=1.25e-3))
        table = Log(test_sampled.closed_loop_log(), name="log")
        read = experiment(simulation, table, test_sampled.COLUMNS)
        model = Model(simulation, (read,), coordinates(simulation, UNKNOWNS, [read]), 4)
        z = prior_of(model).centre
        windows = divided(model, 0.2, z)
        assert not windows.windows.carried["held"].get("pi")
        found = windows.programs.residuals(z, windows.data)
        finer = windows.finer()
        again = finer.programs.residuals(z, finer.data)
    for field, values in found.items():
        # The motor's steps are exact, and the controller's samples are the same.
        np.testing.assert_allclose(again[field], values, rtol=0, atol=1e-9)


def linear(random, windows, rows, own):
    """A linear problem: unknowns that all windows share, and initial states of their own."""
    t = np.arange(windows * rows) / rows
    J = np.column_stack([np.sin(3.1 * t), np.cos(7.7 * t) * t])
    window = np.repeat(np.arange(windows), rows)
    Js = np.exp(-(t - window))[:, None] * random.normal(size=(1, own))
    return J, Js * np.vander(1 + t - window, own), window


def without_states(J, Js, window, y):
    """J and y less what each window's own columns make of them."""
    J, y = J.copy(), y.copy()
    for w in np.unique(window):
        Q, _ = np.linalg.qr(Js[window == w])
        J[window == w] -= Q @ (Q.T @ J[window == w])
        y[window == w] -= Q @ (Q.T @ y[window == w])
    return J, y


def rank_with(J, r, window, rows):
    parts = [Residual(0, "sensor", np.arange(len(r)) * 1e-2, r)]
    seconds = np.full(window[-1] + 1, rows * 1e-2)
    rank = rank_of(J, np.ones(2), np.zeros(2, bool), 1.96)
    cut = Cut(window, seconds, np.zeros(0))
    return rank, widened(rank, parts, J, np.zeros((0, 2)), cut)


def correlated(random, count, rho=0.8):
    noise = random.normal(size=count)
    for k in range(1, count):
        noise[k] = rho * noise[k - 1] + np.sqrt(1 - rho**2) * noise[k]
    return noise


def test_a_window_that_is_left_out_takes_its_states_with_it():
    """The jackknife of the whole problem, states and all, solved again without each window."""
    random, windows, rows = np.random.default_rng(3), 12, 60
    J, Js, window = linear(random, windows, rows, 2)
    y = correlated(random, len(J))

    def solved(kept):
        states = np.zeros((len(J), 2 * windows))
        for w in range(windows):
            states[window == w, 2 * w : 2 * w + 2] = Js[window == w]
        whole = np.hstack([J, states])[np.isin(window, kept)]
        return np.linalg.lstsq(whole, y[np.isin(window, kept)], rcond=None)[0][:2]

    found = np.array([solved(np.delete(np.arange(windows), w)) for w in range(windows)])
    apart = found - found.mean(axis=0)
    expected = (windows - 1) / windows * apart.T @ apart
    own, left = without_states(J, Js, window, y)
    r = own @ solved(np.arange(windows)) - left
    rank, wide = rank_with(own, r, window, rows)
    B = rank.basis
    # Normal equations of a problem of condition 10: half of the digits at least.
    np.testing.assert_allclose(B @ wide.widening.covariance @ B.T, expected, rtol=1e-6)


def test_intervals_of_windows_cover_the_truth_under_correlated_noise():
    inside, windows, rows = [], 12, 60
    for seed in range(sized(1000, small=60)):
        random = np.random.default_rng(seed)
        J, Js, window = linear(random, windows, rows, 2)
        own, left = without_states(J, Js, window, correlated(random, len(J)))
        z, *_ = np.linalg.lstsq(own, left, rcond=None)
        sigma = np.sqrt(np.mean((own @ z - left) ** 2))
        _, wide = rank_with(own / sigma, (own @ z - left) / sigma, window, rows)
        inside.append(np.abs(z) <= wide.half_widths)
    # 95 %: a deviation of 0.5 % of two thousand, of 2 % of the hundred and twenty.
    assert 0.93 - (not FULL) * 0.04 < np.mean(inside) < 0.985 + (not FULL) * 0.015


def test_the_slope_without_states_is_that_of_the_minimum_over_them():
    """Central differences of the cost, each with initial states found again."""
    model = divided_motor(motor_log(rows=401))
    noise = dict(zip(model.fields, NOISE, strict=True))
    loss = Loss("huber")

    def cost(z):
        found = reduced(model, z, noise, loss)
        rows = model.count
        return loss.cost(found.r[:rows]) + found.r[rows:] @ found.r[rows:]

    with jax.enable_x64(True):
        z = prior_of(model).centre + 0.02
        found = reduced(model, z, noise, loss)
        weights = np.concatenate([found.weights, np.ones(len(found.r) - model.count)])
        slope = 2.0 * found.J.T @ (weights * found.r)
        each = 1e-4 * np.eye(len(z))
        differences = [(cost(z + d) - cost(z - d)) / 2e-4 for d in each]
    # Of second order in steps of 1e-4, on a cost that is nearly a parabola.
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


def test_words_that_cannot_be_windows_are_refused():
    log = motor_log(rows=301)
    for given, words in [("whole", "window must be seconds, or 'auto'"), (0.0, "window must be")]:
        with pytest.raises(InputError, match=words):
            mime.fit(bench(), log, COLUMNS, UNKNOWNS, window=given, progress=False)
    with pytest.raises(InputError, match=r"window must be 10 rows or more, 0\.01 s of"):
        mime.fit(bench(), log, COLUMNS, UNKNOWNS, window=0.005, progress=False)
    with pytest.raises(InputError, match="window must be 'auto' with by='inverse_dynamics'"):
        mime.fit(bench(), log, COLUMNS, UNKNOWNS, window=1.0, by="inverse_dynamics", progress=False)


def test_a_file_says_how_long_windows_are(tmp_path, monkeypatch):
    from fitting.test_file import BENCH, FIT

    monkeypatch.chdir(tmp_path)
    log = motor_log(rows=301)
    table = np.column_stack([log["time"], log["volts"], log["speed"] * 30 / np.pi])
    np.savetxt("steps.csv", table, "%.6f", ",", header="time,volts,speed", comments="")
    (tmp_path / "bench.toml").write_text(BENCH, encoding="utf-8")
    text = FIT.replace("starts = 1", "starts = 1\nwindow = 0.1")
    (tmp_path / "fit.toml").write_text(text, encoding="utf-8")
    fit = load_fit("fit.toml").run(progress=False)
    assert (fit.windows.seconds, fit.windows.fitted) == (0.1, 3)


def test_a_state_that_its_log_knows_is_not_free():
    table = motor_log(rows=401)
    with jax.enable_x64(True):
        simulation = in_double(bench(1.0))
        log = Log(table, name="log", initial={"motor.current": 0.0})
        whole = experiment(simulation, log, EXACT)
        model = Model(simulation, (whole,), coordinates(simulation, UNKNOWNS, [whole]), 4)
        windows = divided(model, 0.1, prior_of(model).centre).windows
    at = [slot[1] for slot in windows.slots].index("current")
    assert windows.width[0, at] == 0.0
    assert windows.centre[0, at] == 0.0
    assert np.all(windows.width[1:, at] > 0)
    assert replace(windows).only([1]).first == windows.first[1:2]
