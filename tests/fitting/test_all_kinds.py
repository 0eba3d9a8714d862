"""Windings, gears, rotors, springs and links in one fit, from volts, currents and encoders."""

import jax
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import mime
from mime.fitting.approach import approached
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.model import Model
from mime.fitting.rates import first_fineness
from mime.fitting.solve import first_noise, levenberg_marquardt, prior_of

LINK = """
  <joint name="j{i}" type="revolute"><parent link="{parent}"/><child link="{name}"/>
    <origin xyz="{x} 0 0"/><axis xyz="0 -1 0"/>
    <limit lower="-9" upper="9" effort="99" velocity="99"/></joint>
  <link name="{name}"><inertial><origin xyz="{c} 0 0"/><mass value="{m}"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="{I}" iyz="0" izz="{I}"/></inertial></link>"""
UPPER = {"i": 0, "parent": "base", "name": "upper", "x": 0.0, "c": 0.12, "m": 1.0, "I": 0.008}
LOWER = {"i": 1, "parent": "upper", "name": "lower", "x": 0.25, "c": 0.1, "m": 0.6, "I": 0.004}
URDF = f'<robot name="two"><link name="base"/>{LINK.format(**UPPER)}{LINK.format(**LOWER)}</robot>'
MOTOR = {"r_ohm": 1.3, "kt_n_m_per_a": 0.042, "inertia_kg_m2": 1e-4, "damping_n_m_s": 3e-4}
INDUCTANCE, RATIO, STIFFNESS = 2e-3, 20.0, 80.0
GEARED = {name: MOTOR[name] for name in MOTOR if name != "r_ohm"} | {"gear.ratio": RATIO}
ELECTRIC = {f"m{j}.r_ohm": MOTOR["r_ohm"] for j in range(2)}
ELECTRIC |= {f"m{j}.l_henry": INDUCTANCE for j in range(2)}
ARM = {f"arm.joint_stiffness_n_m_per_rad[{j}]": STIFFNESS for j in range(2)}
ARM |= {"arm.link[lower].moment_kg_m[x]": 0.06, "arm.link[lower].origin_inertia_kg_m2[yy]": 0.01}
ENCODERS = {"rotor": "arm.rotor_angles[{}]", "motor": "m{}.angle"}
NOISE = {"current": 0.03, "rotor": 5e-4, "link": 5e-4, "motor": 5e-3}
PERIOD, ROWS = 2e-3, 251


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Both motors, springs and links by SciPy's Runge-Kutta on Pinocchio's forward dynamics."""
    file = tmp_path_factory.mktemp("two") / "two.urdf"
    file.write_text(URDF, encoding="utf-8")
    model = pin.buildModelFromUrdf(str(file))
    data = model.createData()
    time = PERIOD * np.arange(ROWS)
    random = np.random.default_rng(3)
    volts = 8.0 * np.repeat(random.choice([-1.0, 1.0], size=(ROWS // 15 + 1, 2)), 15, axis=0)[:ROWS]
    J = RATIO**2 * MOTOR["inertia_kg_m2"]
    kt, b = RATIO * MOTOR["kt_n_m_per_a"], RATIO**2 * MOTOR["damping_n_m_s"]

    def slope(_, y, u):
        i, theta, w, q, qd = y.reshape(5, 2)
        spring = STIFFNESS * (theta - q)
        qdd = pin.aba(model, data, q, qd, spring)
        di = (u - MOTOR["r_ohm"] * i - kt * w) / INDUCTANCE
        return np.concatenate([di, w, (kt * i - b * w - spring) / J, qd, qdd])

    states = [np.array([0.0] * 2 + [-np.pi / 2, 0.0] + [0.0] * 2 + [-np.pi / 2, 0.0] + [0.0] * 2)]
    for k in range(ROWS - 1):
        ended = solve_ivp(slope, (0, PERIOD), states[-1], args=(volts[k],), rtol=1e-8, atol=1e-10)
        states.append(ended.y[:, -1])
    states = np.array(states)
    found = {"time": time}
    for j in range(2):
        found[f"volts{j}"] = volts[:, j]
        for name, at in (("current", 0), ("rotor", 2), ("link", 6)):
            noise = NOISE[name] * random.normal(size=ROWS)
            found[f"{name}{j}"] = states[:, at + j] + noise
        turned = RATIO * (states[:, 2 + j] - states[0, 2 + j])  # counted from where it starts
        found[f"motor{j}"] = turned + NOISE["motor"] * random.normal(size=ROWS)
    return file, found


def drive(file, wrong):
    """Two geared motors on an arm with two springs, every unknown `wrong` times the truth."""
    dt = PERIOD / 16
    graph = mime.GraphManager()
    for j in range(2):
        node = mime.MotorNode(
            f"m{j}",
            dt,
            **{name: wrong * value for name, value in MOTOR.items()},
            l_henry=wrong * INDUCTANCE,
            command_mode="voltage",
            gear=mime.Gear(RATIO / wrong),
            shaft="driven",
        )
        graph.add_node(node)
    tree = mime.parse_urdf(file)
    arm = mime.RobotArmNode(
        "arm",
        dt,
        tree,
        "lower",
        gravity_world=(0.0, 0.0, -9.81),
        rotor_inertia_kg_m2=np.full(2, float(node.reflected_inertia())),
        joint_stiffness_n_m_per_rad=np.full(2, wrong * STIFFNESS),
    )
    arm = arm.with_params(**{"link[lower].mass_kg": wrong * 0.6, "link[upper].mass_kg": wrong})
    graph.add_node(arm)
    reads = ["inertia_kg_m2", "gear"]
    graph.add_derived_parameter("arm", "tree.rotor_inertia", both, ["m0", "m1"], reads)
    for j in range(2):
        graph.add_edge(f"m{j}", "arm", "shaft_torque", "commanded_joint_torques", placed(j))
        graph.add_edge("arm", f"m{j}", "rotor_velocities", "shaft_velocity", taken(j), delay=True)
        graph.add_external_input(f"m{j}", "commanded_voltage")
    return graph.compile()


def both(first, second):
    import jax.numpy as jnp

    return jnp.stack([first.reflected_inertia(), second.reflected_inertia()])


def placed(j):
    return lambda tau: tau * np.eye(2)[j]


def taken(j):
    return lambda w: w[j]


def asked(table, encoder, **options):
    """Volts, currents, encoders of the links and of `encoder`; all that is unknown."""
    columns = {}
    for j in range(2):
        columns |= {
            f"volts{j}": f"m{j}.commanded_voltage",
            f"current{j}": mime.Channel(f"m{j}.current", **options),
            f"{encoder}{j}": mime.Channel(ENCODERS[encoder].format(j), **options),
            f"link{j}": mime.Channel(f"arm.joint_angles[{j}]", **options),
        }
    table = {name: table[name] for name in ("time", *columns)}
    own = [*MOTOR, "l_henry", "gear.ratio"]
    unknowns = [f"m{j}.{name}" for j in range(2) for name in own]
    unknowns += ["arm.joint_stiffness_n_m_per_rad", "arm.link[upper]", "arm.link[lower]"]
    given = mime.Log(table, name="two", initial={"arm.joint_angles[0]": -np.pi / 2})
    return given, columns, unknowns


def fitted(log, encoder, **options):
    """From a start that is 15 % off."""
    file, table = log
    question = asked(table, encoder, **options)
    return mime.fit(drive(file, 1.15), *question, starts=1, progress=False)


def check(fit, truth):
    """All of these are known, and where their intervals are: within four deviations."""
    off = {}
    for name, value in truth.items():
        assert fit[name].is_known, str(fit)
        off[name] = (fit[name].value - value) / (0.5 * (fit[name].high - fit[name].low))
    assert max(map(abs, off.values())) < 2.0, off


def check_sums(fit):
    sums = {c.name: c for c in fit.combinations}
    expected = {"mx[upper] + 0.25 m[lower]": 0.12 + 0.15}
    expected["Iyy[upper] + 0.0625 m[lower]"] = 0.008 + 0.0144 + 0.0375
    for name, value in expected.items():
        assert abs(sums[name].value - value) < sums[name].high - sums[name].low
    assert "arm.link[upper].mass_kg" in fit.not_known


@pytest.mark.slow
@pytest.mark.soak("test_drive fits motor, gear and spring at once, test_arm links: 40 s")
def test_all_kinds_of_unknowns_are_found_in_one_fit(log):
    """With an encoder on the motor's own shaft, ratios and inductances too."""
    fit = fitted(log, "motor", delay=0)
    assert fit.is_explained, str(fit)
    check(fit, {**ELECTRIC, **{f"m{j}.{n}": v for j in range(2) for n, v in GEARED.items()}, **ARM})
    check_sums(fit)


@pytest.mark.slow
@pytest.mark.soak("the search alone, which the fits above and below go through, from ten starts")
def test_every_start_up_to_15_percent_off_ends_in_the_minimum(log):
    """Without parts of the log first, five of ten end elsewhere where bodies are off by mass and
    centre alone; with Marquardt's own scale, two of ten where every number is off.
    """
    file, table = log
    with jax.enable_x64(True):
        simulation, costs = drive(file, 1.0), []
        for seed in range(10):
            random = np.random.default_rng(seed)
            noisy = {
                name: values + NOISE.get(name[:-1], 0.0) * random.normal(size=ROWS)
                for name, values in table.items()
            }
            given, columns, unknowns = asked(noisy, "rotor")
            one = experiment(simulation, given, columns)
            found = coordinates(simulation, unknowns, [one])
            model = Model(simulation, (one,), found, first_fineness(simulation, [one]))
            prior, noise = prior_of(model), first_noise(model)
            # Every number: constants, springs, delays (in rows), all ten of each body.
            off = random.uniform(-0.15, 0.15, len(found))

            def descended(z, model=model, noise=noise, prior=prior):
                z, _ = approached(model, z, noise, prior, lambda done: None)
                every = model.counted(1.0)
                return levenberg_marquardt(lambda z: model.normal(z, every), z, noise, prior, 60)[
                    1
                ][0]

            costs.append([descended(start[None]) for start in (prior.centre, prior.centre + off)])
    least, ends = np.transpose(costs)
    # Where it ends elsewhere, that is at 1.01 to 100 times the least; anchors cost less than one.
    np.testing.assert_allclose(ends, least, rtol=3e-3)


@pytest.mark.slow
@pytest.mark.soak("the same with delays and their profiles: two minutes")
def test_an_encoder_behind_the_gear_leaves_the_ratio_open_and_says_so(log):
    """Only kt N, J N² and b N² act on the arm; an encoder on the motor's shaft would tell."""
    fit = fitted(log, "rotor")
    assert fit.is_explained, str(fit)
    check(fit, {**ELECTRIC, **ARM})
    check_sums(fit)
    for name in GEARED:
        assert f"m0.{name}" in fit.not_known, str(fit)
    product = next(c for c in fit.combinations if c.name == "m0.kt_n_m_per_a · m0.gear.ratio")
    assert product.low < RATIO * MOTOR["kt_n_m_per_a"] < product.high
    assert fit.advice.field == "m0.angle"
    assert {f"m0.{name}" for name in GEARED} <= {name for name, _ in fit.advice.known}
    delays = [e for e in fit.estimates if e.quantity == "delay"]
    assert len(delays) == 6
    for delay in delays:
        assert delay.is_known
        assert abs(delay.value) < 0.1 * PERIOD
