"""The motion that tells most of an arm: its regressor is Pinocchio's, its limits are kept."""

import numpy as np
import pinocchio
import pytest

import mime
from mime.cli import main
from mime.fitting.excitation import STANDARD_GRAVITY, regressor

pytestmark = pytest.mark.slow
NOISE = 0.1


@pytest.fixture(scope="module")
def tree():
    return mime.parse_urdf(mime.model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def planned(tree):
    options = {"duration": 3.0, "period": 0.05, "noise": NOISE, "harmonics": 4}
    return mime.design_motion(tree, velocity_limits=6.0, starts=2, **options)


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
    random = np.random.default_rng(0)
    q, qd, qdd = random.normal(size=(3, 1, tree.num_joints))
    mine = regressor(tree, q[0], qd[0], qdd[0], np.array(STANDARD_GRAVITY))
    np.testing.assert_allclose(np.asarray(mine) / NOISE, oracle[2](q, qd, qdd), atol=1e-11)


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


def test_what_cannot_be_moved_is_refused(tree):
    def refused(words, **options):
        given = {"duration": 3.0, "period": 0.05, "noise": NOISE, **options}
        with pytest.raises(mime.InputError, match=words):
            mime.design_motion(tree, **given)

    refused("noise must be a number > 0", noise=0.0)
    refused("velocity_limits must be a number > 0, or 3", velocity_limits=[1.0, 2.0])
    refused("position_limits must be", position_limits=[[1.0, 0.0]] * 3)
    refused("rows must be", duration=0.5)


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


def test_the_command_writes_the_motion(tmp_path, capsys, planned):
    (tmp_path / "d.toml").write_text(FILE)
    main(["design", str(tmp_path / "d.toml"), "--out", str(tmp_path / "out"), "--quiet"])
    table = np.genfromtxt(tmp_path / "out" / "input.csv", delimiter=",", names=True)
    assert table.dtype.names[:2] == ("time", f"q_{planned.joint_names[0]}")
    np.testing.assert_allclose(table["time"], 0.05 * np.arange(31), atol=1e-12)
    assert max(np.abs(table[f"qd_{name}"]).max() for name in planned.joint_names) <= 6.0
    assert "base parameters" in (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "bad.toml").write_text(FILE.replace('"arm"\nn', '"arn"\nn'))
    with pytest.raises(SystemExit):
        main(["design", str(tmp_path / "bad.toml")])
    assert "bad.toml:5: design.arm: no arm 'arn'" in capsys.readouterr().err
