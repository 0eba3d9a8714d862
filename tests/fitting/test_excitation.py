"""The motion that tells most of an arm: its regressor is Pinocchio's, its limits are kept."""

import jax
import numpy as np
import pinocchio
import pytest
from scipy.interpolate import make_interp_spline

import mime
from fitting.arms import columns, graph_of, guess
from mime.cli import main
from mime.control.kinematics import rnea
from mime.fitting.excitation import STANDARD_GRAVITY, Excitation, Limits
from mime.fitting.regressor import Chain, moments_of, regressor

BODY = """<inertial><origin xyz="0.1 0.02 -0.03"/><mass value="0.7"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial>"""
JOINT = """<joint name="{1}" type="{0}"><parent link="{2}"/><child link="{1}"/>
  <origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="0 0.6 0.8"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/>{3}</joint>"""
MIMIC = '<mimic joint="left" multiplier="-1.5" offset="0.2"/>'
FINGERS = f"""<robot name="fingers"><link name="base"/>
{"".join(f'<link name="{name}">{BODY}</link>' for name in ("arm", "left", "right"))}
{JOINT.format("revolute", "arm", "base", "")}{JOINT.format("prismatic", "left", "arm", "")}
{JOINT.format("prismatic", "right", "arm", MIMIC)}</robot>"""
pytestmark = pytest.mark.slow
NOISE = 0.1


@pytest.fixture(scope="module")
def tree():
    return mime.parse_urdf(mime.model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def planned(tree):
    options = {"duration": 3.0, "period": 0.03, "noise": NOISE, "harmonics": 4}
    return mime.design_motion(tree, velocity_limits=6.0, starts=1, **options)


@pytest.fixture(scope="module")
def oracle():
    model = pinocchio.buildModelFromUrdf(str(mime.model_path("planar_arm_3link")))
    model.gravity.linear = np.array(STANDARD_GRAVITY)
    data = model.createData()

    def rows(q, qd, qdd):
        each = zip(q, qd, qdd, strict=True)
        found = [pinocchio.computeJointTorqueRegressor(model, data, *row) for row in each]
        return np.concatenate(found) / NOISE

    return model, data, rows


def test_the_regressor_is_pinocchios(tree, oracle):
    """And with the moments of the file it gives the torques of the file."""
    motion = np.random.default_rng(0).normal(size=(3, 2, tree.num_joints))
    mine = regressor(tree, *motion, STANDARD_GRAVITY)
    np.testing.assert_allclose(mine.reshape(6, -1) / NOISE, oracle[2](*motion), atol=1e-11)
    model, data, _ = oracle
    torques = [pinocchio.rnea(model, data, *row) for row in zip(*motion, strict=True)]
    np.testing.assert_allclose(mine @ moments_of(tree), torques, atol=1e-12)


def test_joints_that_slide_or_mimic_others_have_theirs(tmp_path):
    """A branch with a turning joint, a slider and one that mimics it: `rnea`, and all slopes."""
    (tmp_path / "fingers.urdf").write_text(FINGERS)
    tree = mime.parse_urdf(tmp_path / "fingers.urdf")
    motion = np.random.default_rng(0).normal(size=(3, 2, tree.num_joints))
    gravity = np.array([1.0, 2.0, -9.0])
    Y = regressor(tree, *motion, gravity)
    with jax.enable_x64(True):
        torques = [rnea(tree, *row, gravity) for row in zip(*motion, strict=True)]
    np.testing.assert_allclose(Y @ moments_of(tree), np.array(torques), atol=1e-13)
    # Slopes of any function of Y: central differences of its own rows, to their h².
    chain, random, h = Chain.of(tree, gravity), np.random.default_rng(1), 1e-5
    motion = motion.transpose(0, 2, 1)
    weights = random.normal(size=chain.at(*motion).Y.shape)
    slopes = chain.at(*motion).slopes(weights)
    for part in range(3):
        for joint in range(tree.num_joints):
            step = np.zeros_like(motion)
            step[part, joint] = h
            ends = [chain.at(*(motion + sign * step)).Y for sign in (1, -1)]
            expected = np.sum(weights * (ends[0] - ends[1]), axis=(0, 1)) / (2 * h)
            np.testing.assert_allclose(slopes[part][joint], expected, rtol=1e-7, atol=1e-7)


def test_rank_information_and_condition_are_pinocchios(planned, oracle):
    s = np.linalg.svd(oracle[2](planned.q, planned.qd, planned.qdd), compute_uv=False)
    rank = int(np.count_nonzero(s > 1e-9 * s[0]))
    assert planned.rank == rank
    assert planned.outlook.log_det == pytest.approx(2 * np.sum(np.log(s[:rank])), rel=1e-10)
    assert planned.outlook.condition == pytest.approx(s[0] / s[rank - 1], rel=1e-8)


def test_it_tells_more_than_a_step_and_a_chirp(planned):
    for name in ("step", "chirp"):
        assert planned.narrower(name) > 1.5
        assert name in str(planned)


def test_limits_are_kept_and_both_ends_are_at_rest(planned, tree, oracle):
    lower, upper = np.asarray(tree.joint_limits).T
    assert np.all(planned.q >= lower - 1e-12)
    assert np.all(planned.q <= upper + 1e-12)
    assert np.max(np.abs(planned.qd)) <= 6.0 * (1 + 1e-12)
    model, data, _ = oracle
    each = zip(planned.q, planned.qd, planned.qdd, strict=True)
    torques = np.array([pinocchio.rnea(model, data, *row) for row in each])
    np.testing.assert_allclose(planned.torques, torques, atol=1e-9)
    assert np.all(np.abs(torques) <= np.asarray(tree.effort_limits) * (1 + 1e-9))
    for values in (planned.qd, planned.qdd):
        np.testing.assert_allclose(values[[0, -1]], 0.0, atol=1e-10)
    # Velocities are the slopes of the angles: differences of fourth order, away from the ends.
    q, h = planned.q, planned.time_s[1]
    slopes = (q[:-4] - 8 * q[1:-3] + 8 * q[3:-1] - q[4:]) / (12 * h)
    np.testing.assert_allclose(slopes, planned.qd[2:-2], atol=2e-2)


def test_fits_of_its_log_and_of_a_chirps_have_the_intervals_foretold(planned, tree, oracle):
    """From noisy torques; what is foretold is of Pinocchio's regressor: 1.96 sqrt(a F⁻¹ a)."""
    model, data, rows = oracle
    simulation = graph_of(guess(tree), gravity_world=STANDARD_GRAVITY)
    unknowns = [f"arm.link[{name}]" for name in tree.link_names]
    # So many rows that a spline through them follows the last periods of the chirp.
    time, widths = np.linspace(0.0, 3.0, 501), {}
    for name, rough in (("design", planned.q), ("chirp", planned.others["chirp"].q)):
        wave = make_interp_spline(planned.time_s, rough, k=5)
        q, *_ = motion = [wave(time), wave.derivative(1)(time), wave.derivative(2)(time)]
        torques = [pinocchio.rnea(model, data, *row) for row in zip(*motion, strict=True)]
        noise = NOISE * np.random.default_rng(2).normal(size=q.shape)
        read = {f"tau{j}": (torques + noise)[:, j] for j in range(3)}
        log = {"time": time, **{f"q{j}": q[:, j] for j in range(3)}, **read}
        fit = mime.fit(
            simulation, log, columns(3, noise=NOISE, delay=0), unknowns,
            by="inverse_dynamics", progress=False,
        )  # fmt: skip
        _, s, Vt = np.linalg.svd(rows(*motion), full_matrices=False)
        covariance = (Vt[: planned.rank].T / s[: planned.rank] ** 2) @ Vt[: planned.rank]
        for entry, at in (("moment_kg_m[x]", 1), ("origin_inertia_kg_m2[yy]", 6)):
            found = fit[f"arm.link[link_3].{entry}"]
            half = 0.5 * (found.high - found.low)
            foretold = 1.96 * np.sqrt(covariance[20 + at, 20 + at])
            assert half == pytest.approx(foretold, rel=0.1), (name, entry)
            assert abs(found.value - float(moments_of(tree)[20 + at])) < 1.7 * half
            widths.setdefault(entry, []).append(half)
    for mine, chirps in widths.values():
        assert mine < 0.8 * chirps


def test_the_search_has_the_slope_of_what_it_searches(tree):
    """Of -log det and of limits that are passed; by central differences."""
    limits = Limits(np.asarray(tree.joint_limits), np.full(3, 3.0), np.full(3, 10.0))
    plan = Excitation(tree, 0.05, 60, 3, np.full(3, NOISE), limits)
    random = np.random.default_rng(0)
    x = random.normal(0.0, 0.5, (3 * (1 + len(plan.waves[0]))))
    _, excess, back = plan.problem(x)
    weights = np.maximum(excess, 0.0) * random.uniform(0.5, 1.0, excess.shape)
    assert all(part.any() for part in np.split(weights, [183, 366]))  # all three kinds are passed

    def value(x):
        cost, excess, _ = plan.problem(x)
        return cost + weights @ excess

    slope, h = back(weights), 1e-6
    expected = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_what_cannot_be_moved_is_refused(tree):
    def refused(words, **options):
        given = {"duration": 3.0, "period": 0.05, "noise": NOISE, **options}
        with pytest.raises(mime.InputError, match=words):
            mime.design_motion(tree, **given)

    refused("noise must be a number > 0", noise=0.0)
    refused("velocity_limits must be a number > 0, or 3", velocity_limits=[1.0, 2.0])
    refused("position_limits must be", position_limits=[[1.0, 0.0]] * 3)
    refused("0.5 s in rows of .* are .* rows; an experiment has 20 to", duration=0.5)


FILE = """
scenario = "arm_3link_pd"

[design]
arm = "arm"
noise = 0.1
velocity_limits = 6.0
duration = 1.5
period = 0.05
harmonics = 3
starts = 1
"""


def test_the_command_writes_the_motion(tmp_path, capsys, monkeypatch, planned):
    (tmp_path / "d.toml").write_text(FILE)
    asked = {}
    monkeypatch.setattr(
        "mime.fitting.design_file.design_motion", lambda *_, **given: asked.update(given) or planned
    )
    main(["design", str(tmp_path / "d.toml"), "--out", str(tmp_path / "out"), "--quiet"])
    wanted = {"duration": 1.5, "period": 0.05, "noise": 0.1, "harmonics": 3, "starts": 1}
    assert {name: asked[name] for name in wanted} == wanted
    table = np.genfromtxt(tmp_path / "out" / "input.csv", delimiter=",", names=True)
    assert table.dtype.names[:2] == ("time", f"q_{planned.joint_names[0]}")
    np.testing.assert_allclose(table["time"], 0.03 * np.arange(101), atol=1e-9)
    assert max(np.abs(table[f"qd_{name}"]).max() for name in planned.joint_names) <= 6.0
    assert "base parameters" in (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "bad.toml").write_text(FILE.replace('"arm"\nn', '"arn"\nn'))
    with pytest.raises(SystemExit):
        main(["design", str(tmp_path / "bad.toml")])
    assert "bad.toml:5: design.arm: no arm 'arn'" in capsys.readouterr().err
