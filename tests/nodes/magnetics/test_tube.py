"""A swimmer in a tube: what its wall adds to drag, how it rests on it, slides, rolls and stops.

Most runs are those of one program: a ring in a tube along x.
"""

import jax
import numpy as np
import pytest
import scipy

from mime import GraphManager, HelicalSwimmerNode, ParameterError, Tube
from mime.nodes.magnetics.resistive_force import Helix, filament_coefficients
from mime.nodes.magnetics.wall_drag import filament_reach, sphere_about, sphere_along
from sizes import sized

MU, R_TUBE = 1e-3, 2e-3
RING = {
    "pitch_m": 1e-13, "helix_radius_m": 0.45e-3, "turns": 1.0, "filament_radius_m": 0.05e-3,
    "viscosity_pa_s": MU,
}  # fmt: skip
"""A helix of one turn that is flat: two balls of 0.5 mm at its origin touch the wall."""
BALL = RING | {"helix_radius_m": 1e-10, "filament_radius_m": 1e-11, "head_radius_m": 0.5e-3}
"""A sphere, its helix vanishes."""
HULL = 0.5e-3
WEIGHT, STIFFNESS, SOFT, MU_WALL, CREEP = 1e-6, 10.0, 1e-6, 0.3, 1e-5
WALL = {
    "radius_m": R_TUBE, "stiffness_n_per_m": STIFFNESS, "soft_depth_m": SOFT,
    "friction": MU_WALL, "creep_speed_m_s": CREEP,
}  # fmt: skip
DT = 1e-3


def ring(dt=DT, **changes):
    return HelicalSwimmerNode("ring", dt, **(RING | changes), tube=Tube(**WALL))


def simulation(dt):
    graph = GraphManager()
    graph.add_node(ring(dt, net_weight_n=WEIGHT))
    graph.add_external_input("ring", "wrench_world")
    return graph.compile()


@pytest.fixture(scope="module")
def tube():
    """A ring of a weight in a tube along x; steps of `DT`."""
    return simulation(DT)


def along(force):
    """The wrench of a force along the tube."""
    return {"ring": {"wrench_world": np.multiply.outer(force, np.eye(6)[0])}}


LYING = np.array([0.0, 0.0, HULL - R_TUBE - np.sqrt(SOFT * WEIGHT / STIFFNESS), 1.0, 0.0, 0.0, 0.0])
"""At rest on the wall: each of its two balls bears half of the weight."""


EXACT = {0.1: 1.263, 0.2: 1.680, 0.3: 2.371, 0.4: 3.596, 0.5: 5.970, 0.6: 11.135}
"""Haberman and Sayre's table of the exact solution, drag over Stokes'."""


OFF = (4e-4, 4e-4, 6e-4, 4e-3, 0.017, 0.049)


def test_a_ball_in_a_tube_is_as_slow_as_in_the_table():
    # The table has four digits; their formula is off by what its docstring says.
    for (ratio, exact), off in zip(EXACT.items(), OFF, strict=True):
        assert float(sphere_along(ratio)) == pytest.approx(exact, rel=off)
    node = HelicalSwimmerNode("ball", 1e-3, **BALL, tube=Tube(radius_m=HULL / 0.5))
    slower = float(node.resistance()[2, 2]) / (6 * np.pi * MU * HULL)
    assert slower == pytest.approx(EXACT[0.5], rel=0.017)


def test_the_factors_begin_as_reflections_at_the_wall_do():
    i0, i1, k0, k1 = (getattr(scipy.special, name) for name in ("i0", "i1", "k0", "k1"))

    def stokeslet(k):
        wall = [[i0(k), 2 * i0(k) + k * i1(k)], [i1(k), k * i0(k)]]
        a, b = np.linalg.solve(wall, [k * k1(k) - 2 * k0(k), -k * k0(k)])
        return a + 2 * b

    along = -1.5 / np.pi * scipy.integrate.quad(stokeslet, 1e-9, 40)[0]
    about = scipy.integrate.quad(lambda s: s**2 * k1(s) / i1(s), 0, 40)[0] / np.pi
    assert (float(sphere_along(1e-6)) - 1) / 1e-6 == pytest.approx(along, rel=3e-4)  # 2.1050
    assert (float(sphere_about(1e-2)) - 1) / 1e-6 == pytest.approx(about, rel=1e-5)  # 0.79682
    # A straight filament off the axis: eccentric cylinders, exact; a² of it is left.
    a, off = 1e-6, 0.7e-3
    exact = np.arccosh((R_TUBE**2 + a**2 - off**2) / (2 * a * R_TUBE))
    assert np.log(filament_reach(R_TUBE, off) / a) == pytest.approx(exact, abs=1e-6)
    helix = Helix(1.0, off, 1.0, a)  # so long a pitch that the wall alone counts
    xi_t, xi_n = filament_coefficients(helix, 1.0, "lighthill", R_TUBE)
    assert float(xi_t) == pytest.approx(2 * np.pi / exact, rel=2e-3)
    assert float(xi_n / xi_t) == pytest.approx(2.0, rel=2e-3)  # near a wall, Katz et al. (1975)


def test_at_rest_the_wall_bears_the_weight(tube):
    stiffness = np.array([STIFFNESS, 1e6])  # explicit, the second would need steps of 1e-11 s
    run = tube.run_batch(0.1, parameters={"ring.tube.stiffness_n_per_m": stiffness})
    for member, k in enumerate(stiffness):
        force = run["ring"]["wall_force_world"][member, -1]
        assert force == pytest.approx([0.0, 0.0, WEIGHT], abs=1e-9 * WEIGHT)
        depth = -run["ring"]["pose_world"][member, -1, 2] + HULL - R_TUBE
        # A depth is a difference of millimetres: 1e-18 m is lost in it.
        assert depth == pytest.approx(np.sqrt(SOFT * WEIGHT / k), rel=1e-9, abs=1e-17)
        assert np.abs(run["ring"]["twist_world"][member, -1]).max() < 1e-12


def rolled(push, friction):
    """Speed and spin of a ring that friction brakes and turns, by SciPy's root finder."""
    R = np.array(ring().resistance())
    drag, turn = R[0, 0], R[4, 4]

    def braking(v):
        return friction * WEIGHT * v / np.hypot(v, CREEP)

    def wrong(v):
        return (push - braking(v)) / drag - braking(v) * HULL**2 / turn - v

    v = scipy.optimize.brentq(wrong, 0.0, push / drag, xtol=1e-18, rtol=1e-14)
    return (push - braking(v)) / drag, braking(v) * HULL / turn


def test_friction_brakes_a_ring_and_makes_it_roll(tube):
    pushes = np.array([0.5, 0.9, 1.1, 4.0, 100.0, 1.0]) * MU_WALL * WEIGHT
    frictions = np.array([MU_WALL] * 5 + [0.0])
    run = tube.run_batch(
        steps=1, inputs=along(pushes), parameters={"ring.tube.friction": frictions},
        initial_state={"ring": {"pose_world": LYING}},
    )["ring"]  # fmt: skip
    for k, (push, friction) in enumerate(zip(pushes, frictions, strict=True)):
        speed, spin = rolled(push, friction)
        twist, force = run["twist_world"][k, -1], run["wall_force_world"][k, -1]
        # A rounding of the depth, 1e-19 of 3e-7 m, is twice that in the force.
        assert twist[0] == pytest.approx(speed, rel=1e-8)
        assert twist[4] == pytest.approx(spin, rel=1e-8, abs=1e-9)
        assert force[2] == pytest.approx(WEIGHT, rel=1e-8)
        assert np.hypot(force[0], force[1]) <= friction * force[2] + 1e-30


def test_friction_stops_what_is_pushed_by_less_than_mu_n(tube):
    shares = np.array([0.9, 1.1])
    across = np.concatenate([LYING[:3], [0.5**0.5, 0.5**0.5, 0.0, 0.0]])
    run = tube.run_batch(
        steps=1, inputs=along(shares * MU_WALL * WEIGHT),
        parameters={"ring.linear_drag_n_m_s": 1.0},  # its axis is across the tube: no rolling
        initial_state={"ring": {"pose_world": across}},
    )["ring"]  # fmt: skip
    v, most = run["twist_world"][:, -1, 0], MU_WALL * WEIGHT
    drag = float(ring().resistance()[0, 0])
    assert drag * v + most * v / np.hypot(v, CREEP) == pytest.approx(shares * most, rel=1e-8)
    assert v[0] < 3 * CREEP  # it creeps
    assert v[1] > 100 * CREEP


def test_the_balance_is_found_in_all_kinds_of_contact(tube):
    rng, n = np.random.default_rng(0), sized(400, small=64)
    away = np.sqrt(rng.uniform(0, 1, n)) * (R_TUBE - HULL + 5e-6)  # half of them touch
    angle = rng.uniform(0, 2 * np.pi, n)
    tilt = scipy.spatial.transform.Rotation.random(n, random_state=1).as_quat(scalar_first=True)
    place = np.stack([0 * away, away * np.cos(angle), away * np.sin(angle)], 1)
    place[::2] *= ((R_TUBE - HULL + rng.normal(0, 5e-6, n)) / away)[::2, None]
    given = {
        "ring.tube.friction": rng.uniform(0, 0.5, n),
        "ring.tube.stiffness_n_per_m": 10 ** rng.uniform(-1, 3, n),
        "ring.tube.soft_depth_m": 10 ** rng.uniform(-7, -5, n),
        "ring.tube.creep_speed_m_s": 10 ** rng.uniform(-6, -4, n),
        "ring.quadratic_drag_n_m_s2": np.where(rng.random(n) < 0.5, 0, 1e-13),
    }
    wrench = rng.normal(size=(n, 6)) * ([1e-6] * 3 + [1e-9] * 3)
    poses = np.hstack([place, tilt])
    run = tube.run_batch(
        steps=1, inputs={"ring": {"wrench_world": wrench}}, parameters=given,
        initial_state={"ring": {"pose_world": poses}},
    )["ring"]  # fmt: skip
    V = run["twist_world"][:, -1]
    mu, k, w, v0, c2 = given.values()
    R = np.array(ring().resistance())
    turn = scipy.spatial.transform.Rotation.from_quat(tilt, scalar_first=True).as_matrix()
    both = np.kron(np.eye(2), np.ones((3, 3))) * np.tile(turn, (1, 2, 2))
    distance = np.linalg.norm(place, axis=1)
    normal, depth = place / distance[:, None], distance + HULL - R_TUBE
    velocity = V[:, :3] + np.cross(V[:, 3:], HULL * normal)
    into = np.sum(velocity * normal, 1)

    def push(g):
        g = np.maximum(g, 0)
        return 2 * k * np.where(g < w, g**2 / (2 * w), g - w / 2)  # of both balls

    slide = velocity - into[:, None] * normal
    grip = mu * push(depth) / np.sqrt(np.sum(slide**2, 1) + v0**2)
    wall = -push(depth + DT * into)[:, None] * normal - grip[:, None] * slide
    spin = np.sum(turn[:, :, 2] * V[:, 3:], 1)
    drag = np.einsum("nij,jk,nlk,nl->ni", both, R, both, V)
    drag[:, 3:] += (c2 * np.abs(spin) * spin)[:, None] * turn[:, :, 2]
    total = wrench - [0, 0, WEIGHT, 0, 0, 0] - drag
    total = total + np.hstack([wall, np.cross(HULL * normal, wall)])
    assert np.mean(depth > 0) > 0.2
    scale = np.linalg.norm(wrench[:, :3], axis=1) + np.linalg.norm(wall, axis=1)
    # Newton's method ends at the root of a rounding in energy; what sticks feels it most.
    assert np.all(np.linalg.norm(total[:, :3], axis=1) < 3e-8 * scale)
    assert np.all(np.linalg.norm(total[:, 3:], axis=1) < 3e-8 * scale * HULL)


def unbalanced(dt):
    """Work on a ring that falls and is pushed, less what is lost and stored, over what is lost."""
    push, steps = 4e-7, round(0.04 / dt)
    run = simulation(dt).run(steps=steps, inputs=along(push))["ring"]
    start = np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    poses, twists = np.concatenate([start, run["pose_world"]]), run["twist_world"]
    before, end = poses[:-1], poses[-1]
    R = np.array(ring().resistance())
    turn = scipy.spatial.transform.Rotation.from_quat(before[:, 3:], scalar_first=True)
    body = np.hstack([turn.inv().apply(twists[:, :3]), turn.inv().apply(twists[:, 3:])])
    drag = np.einsum("ni,ij,nj->n", body, R, body)
    distance = np.hypot(before[:, 1], before[:, 2])
    normal = before[:, :3] * [0, 1, 1] / np.maximum(distance, 1e-12)[:, None]
    depth = np.maximum(distance + HULL - R_TUBE, 0)
    assert depth.max() < SOFT  # where N = k g² / 2 w, of both balls
    velocity = twists[:, :3] + np.cross(twists[:, 3:], HULL * normal)
    slide = velocity - np.sum(velocity * normal, 1)[:, None] * normal
    v = np.linalg.norm(slide, axis=1)
    rubbing = MU_WALL * STIFFNESS * depth**2 / SOFT * v**2 / np.hypot(v, CREEP)
    lost = dt * np.sum(drag + rubbing)
    last = np.hypot(end[1], end[2]) + HULL - R_TUBE
    stored = 2 * STIFFNESS * max(last, 0) ** 3 / (6 * SOFT)
    return (push * end[0] - WEIGHT * end[2] - lost - stored) / lost


def test_what_is_done_on_it_is_lost_to_drag_friction_and_the_wall():
    coarse, fine = unbalanced(2e-4), unbalanced(2e-5)
    # Of first order, but for when in a step it touches: an implicit wall takes energy, gives none.
    assert 0.0 < fine < 0.25 * coarse
    assert coarse < 3e-3


def test_gradients_are_those_of_differences(tube):
    wrench = {"ring": {"wrench_world": np.array([1e-6, 0.0, 0.0, 0.0, 0.0, 1e-9])}}

    def way(given):
        variant = tube.with_parameters({"ring": given})
        start = variant.init_state({"ring": {"pose_world": LYING}})
        return variant.rollout(start, wrench, 5, record=())[0].of("ring")["pose_world"][0]

    at = {"tube.friction": MU_WALL, "net_weight_n": 1.1 * WEIGHT, "tube.stiffness_n_per_m": 9.0}
    slopes = jax.grad(way)(at)
    for name, slope in slopes.items():
        up, down = (way(at | {name: at[name] * (1 + h)}) for h in (1e-5, -1e-5))
        # Central differences: 1e-10 of curvature, 1e-16 / 1e-5 of rounding.
        assert float(slope) == pytest.approx(float((up - down) / (2e-5 * at[name])), rel=1e-5)
        assert abs(slope * at[name]) > 1e-3 * abs(way(at))


def test_the_tube_is_drawn_along_its_axis():
    node = HelicalSwimmerNode("ball", 1e-3, **BALL, tube=Tube(
        radius_m=R_TUBE, axis=(0.0, -3.0, 4.0), point_m=(0.0, 0.0, 1.0), length_m=0.2,
    ))  # fmt: skip
    (tube,) = [shape for shape in node.drawing().shapes if shape.layer == "tube"]
    rotation = scipy.spatial.transform.Rotation.from_quat(tube.pose[3:], scalar_first=True)
    np.testing.assert_allclose(rotation.apply([0, 0, 1]), [0.0, -0.6, 0.8], atol=1e-15)
    assert tube.pose[:3] == (0.0, 0.0, 1.0)
    assert tube.size == (R_TUBE, 0.2)


@pytest.mark.parametrize(("handedness", "sign"), [("right", 1.0), ("left", -1.0)])
def test_the_helix_is_drawn_as_it_winds(handedness, sign):
    node = HelicalSwimmerNode(
        "helix", 1e-3, pitch_m=4e-3, helix_radius_m=1e-3, turns=1.5, filament_radius_m=1e-4,
        viscosity_pa_s=1e-3, handedness=handedness,
    )  # fmt: skip
    shapes = node.drawing().shapes
    middle, half = np.array([s.pose[:3] for s in shapes]), []
    for shape in shapes:
        rotation = scipy.spatial.transform.Rotation.from_quat(shape.pose[3:], scalar_first=True)
        half.append(0.5 * shape.size[1] * rotation.apply([0.0, 0.0, 1.0]))
    np.testing.assert_allclose((middle + half)[:-1], (middle - half)[1:], atol=1e-15)  # a chain
    ends = np.array([(middle - half)[0], (middle + half)[-1]])
    np.testing.assert_allclose(ends[:, 2], [-3e-3, 3e-3], rtol=1e-12)
    np.testing.assert_allclose(np.hypot(*ends[:, :2].T), 1e-3, rtol=1e-12)
    angles = np.unwrap(np.arctan2(middle[:, 1], middle[:, 0]))
    np.testing.assert_allclose(np.diff(angles), sign * np.pi / 6, rtol=1e-9)  # 12 of them a turn


@pytest.mark.parametrize(("wall", "words"), [
    ({"radius_m": 0.4e-3}, "too narrow: the head has a radius of 0.0005 m"),
    ({"radius_m": 0.7e-3}, ">= 0.000833 m for the drag of this head"),
    ({"radius_m": 2e-3, "axis": (0.0, 0.0, 0.0)}, "no direction"),
    ({"radius_m": 2e-3, "friction": -0.1}, ">= 0"),
    ({"radius_m": 2e-3, "wall_drag": "guess"}, "fits"),
])  # fmt: skip
def test_bad_tubes_are_refused_by_name(wall, words):
    with pytest.raises(ParameterError, match=words):
        HelicalSwimmerNode("ball", 1e-3, **BALL, tube=Tube(**wall))


def test_a_helix_wider_than_its_tube_is_refused():
    wide = BALL | {"helix_radius_m": 2e-3, "filament_radius_m": 1e-4, "pitch_m": 2e-3}
    with pytest.raises(ParameterError, match=r"too narrow: the helix has a radius of 0\.0021 m"):
        HelicalSwimmerNode("ball", 1e-3, **wide, tube=Tube(radius_m=2e-3))


def test_a_run_in_a_tube_is_machine_code_and_metadata_is_whole():
    graph = GraphManager()
    graph.add_node(ring(net_weight_n=WEIGHT))
    assert graph.compile().backend.native
    assert ring().validate_mime_consistency() == []
