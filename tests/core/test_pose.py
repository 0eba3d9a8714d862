"""mime.core.pose against SciPy's rotations and closed-form derivatives."""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from compiling import QUICK
from mime.core import pose as mp

DTYPES = (np.float32, np.float64)
RNG = np.random.default_rng(20240607)

AXES = np.array([a for a in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(a)])
AXES /= np.linalg.norm(AXES, axis=1, keepdims=True)
# Zero, a half turn, ties between the matrix's diagonal elements (90 and 120 degrees), and both
# sides of each: the smallest offsets are below float64's resolution, the largest beyond the series.
ANGLES = np.array(
    [0.0, np.pi / 2, 2 * np.pi / 3, np.pi]
    + [10.0**-k for k in range(1, 17)]
    + [np.pi - 10.0**-k for k in range(1, 17)]
)
DEGENERATE = (AXES[:, None, :] * ANGLES[None, :, None]).reshape(-1, 3)
# cos(pi / 2) is 6e-17, not 0; these half turns are exact, as are their matrices' symmetries.
EXACT_HALF_TURNS = np.concatenate([np.zeros((len(AXES), 1)), AXES], axis=1)
RANDOM = Rotation.random(4000, rng=RNG)
ROTATIONS = Rotation.concatenate(
    [
        RANDOM,
        Rotation.from_rotvec(DEGENERATE),
        Rotation.from_quat(EXACT_HALF_TURNS, scalar_first=True),
    ]
)
N = len(ROTATIONS)
# Both signs of the quaternion, since every one stands for the same rotation.
QUATS = ROTATIONS.as_quat(scalar_first=True) * RNG.choice([-1.0, 1.0], (N, 1))
OTHER = RNG.permutation(N)
POINTS = RNG.uniform(-1.0, 1.0, (N, 3))
POSES = np.concatenate([RNG.uniform(-1.0, 1.0, (N, 3)), QUATS], axis=1)


@pytest.fixture
def rng():
    """Each test's own, so that its numbers do not depend on which tests ran before it."""
    return np.random.default_rng(7)


@cache
def compiled(function, quick):
    return jax.jit(jax.vmap(function), compiler_options=QUICK if quick else None)


def run(function, *arguments, dtype=np.float64, quick=False):
    """The vmapped function on arguments cast to dtype: of N rows, so that tests share a program."""
    rows = len(arguments[0])
    arrays = [np.asarray(a, dtype) for a in arguments]
    padded = [np.resize(a, (max(rows, N), *a.shape[1:])) for a in arrays]
    out = compiled(function, quick)(*padded)
    assert out.dtype == dtype
    return np.array(out[:rows], np.float64)


def run_derivative(function, *arguments, dtype=np.float64):
    """Derivatives are programs many times as large as the function."""
    return run(function, *arguments, dtype=dtype, quick=True)


def up_to_sign(q, reference):
    return q * np.where(np.sum(q * reference, axis=-1, keepdims=True) < 0, -1.0, 1.0)


def assert_close(actual, expected, dtype, ulps):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ulps * np.finfo(dtype).eps)


def matrices(poses):
    out = np.tile(np.eye(4), (len(poses), 1, 1))
    out[:, :3, :3] = Rotation.from_quat(poses[:, 3:], scalar_first=True).as_matrix()
    out[:, :3, 3] = poses[:, :3]
    return out


def skew(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


OF_QUATERNIONS = pytest.mark.small("float64")
"""Of poses, whose parts are functions of quaternions: these have their tests in both precisions."""
GENERATORS = np.stack([skew(e) for e in np.eye(3)], axis=-1)


# Tolerances are in units of the dtype's eps. Inputs of order one are cast to that dtype (half an
# eps each), then pass some ten rounded operations: 8 eps bounds what these produce.
@pytest.mark.parametrize("dtype", DTYPES)
def test_quaternion_product_matches_scipy(dtype):
    expected = (
        Rotation.from_quat(QUATS, scalar_first=True)
        * Rotation.from_quat(QUATS[OTHER], scalar_first=True)
    ).as_quat(scalar_first=True)
    actual = run(mp.quat_multiply, QUATS, QUATS[OTHER], dtype=dtype)
    assert_close(up_to_sign(actual, expected), expected, dtype, 8)


def test_quaternion_product_of_units_is_ij_equals_k():
    # SciPy compares rotations, which cannot tell q from -q; this fixes the sign and the convention.
    one, i, j, k = np.eye(4)
    for a, b, ab in [(i, j, k), (j, k, i), (k, i, j), (j, i, -k), (i, i, -one), (one, k, k)]:
        np.testing.assert_array_equal(mp.quat_multiply(a, b), ab)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotated_vector_matches_scipy(dtype):
    # 8 eps as above, twice: the point's length is up to sqrt(3).
    assert_close(
        run(mp.quat_rotate, QUATS, POINTS, dtype=dtype), ROTATIONS.apply(POINTS), dtype, 16
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_of_quaternion_matches_scipy(dtype):
    assert_close(run(mp.quat_to_matrix, QUATS, dtype=dtype), ROTATIONS.as_matrix(), dtype, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quaternion_of_matrix_matches_scipy_to_machine_precision_everywhere(dtype):
    actual = run(mp.quat_from_matrix, ROTATIONS.as_matrix(), dtype=dtype)
    assert np.all(actual[:, 0] >= 0)
    assert_close(up_to_sign(actual, QUATS), QUATS, dtype, 8)
    # The sign rule is SciPy's canonical one; where w is within rounding of 0 it is not determined.
    sure = np.abs(QUATS[:, 0]) > 8 * np.finfo(dtype).eps
    canonical = ROTATIONS.as_quat(canonical=True, scalar_first=True)
    assert_close(actual[sure], canonical[sure], dtype, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_half_turn_has_zero_w_and_first_nonzero_component_positive(dtype):
    half_turns = Rotation.from_quat(EXACT_HALF_TURNS, scalar_first=True)
    canonical = half_turns.as_quat(canonical=True, scalar_first=True)
    u = EXACT_HALF_TURNS[:, 1:, None]
    R = 2 * u * u.swapaxes(1, 2) - np.eye(3)
    assert_close(run(mp.quat_from_matrix, R, dtype=dtype), canonical, dtype, 8)
    # The rotation vector is pi long: 8 eps times pi, rounded up.
    v = run(mp.quat_to_rotation_vector, EXACT_HALF_TURNS, dtype=dtype)
    assert_close(v, np.pi * canonical[:, 1:], dtype, 32)


def test_quaternion_of_a_matrix_that_is_not_a_rotation_is_still_of_unit_length(rng):
    R = rng.normal(scale=3.0, size=(4000, 3, 3))
    # A square root, a division and a sum of four squares round to a few eps.
    norms = np.linalg.norm(run(mp.quat_from_matrix, R), axis=1)
    assert_close(norms, np.ones(4000), np.float64, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quaternion_of_axis_and_angle_matches_scipy_for_any_axis_length(dtype, rng):
    axis = RANDOM.apply([0.0, 0.0, 1.0])
    angle = rng.uniform(-np.pi, np.pi, len(axis))
    length = rng.uniform(0.1, 10.0, (len(axis), 1))
    expected = Rotation.from_rotvec(axis * angle[:, None]).as_quat(scalar_first=True)
    actual = run(mp.quat_from_axis_angle, axis * length, angle, dtype=dtype)
    assert_close(up_to_sign(actual, expected), expected, dtype, 8)
    # Exact sign too: cos(angle / 2) is not negative for these angles.
    assert np.all(actual[:, 0] >= 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quaternion_of_rotation_vector_matches_scipy(dtype, rng):
    beyond_a_turn = rng.uniform(-4.0, 4.0, (1000, 3))
    v = np.concatenate([ROTATIONS.as_rotvec(), DEGENERATE, beyond_a_turn])
    expected = Rotation.from_rotvec(v).as_quat(scalar_first=True)
    actual = run(mp.quat_from_rotation_vector, v, dtype=dtype)
    # 8 eps, and half the angle's rounding, which for up to 7 rad is another 2 eps.
    assert_close(up_to_sign(actual, expected), expected, dtype, 10)
    assert_close(actual[:, 0], np.cos(np.linalg.norm(v, axis=1) / 2), dtype, 10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_vector_of_quaternion_matches_scipy(dtype):
    v = run(mp.quat_to_rotation_vector, QUATS, dtype=dtype)
    expected = ROTATIONS.as_rotvec()
    # 8 eps times pi, rounded up; within that of a half turn v and -v are both right.
    half_turn = np.pi - np.linalg.norm(expected, axis=1) < 32 * np.finfo(dtype).eps
    v[half_turn] = up_to_sign(v[half_turn], expected[half_turn])
    assert_close(v, expected, dtype, 32)


def test_rotation_vector_does_not_depend_on_the_quaternions_length_or_sign(rng):
    scale = rng.uniform(0.1, 10.0, (N, 1)) * rng.choice([-1.0, 1.0], (N, 1))
    # As for a unit quaternion: 8 eps times pi, rounded up.
    sure = np.abs(QUATS[:, 0]) > 8 * np.finfo(np.float64).eps
    actual = run(mp.quat_to_rotation_vector, QUATS * scale)
    assert_close(actual[sure], ROTATIONS.as_rotvec()[sure], np.float64, 32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiny_rotation_vectors_keep_their_relative_precision(dtype, rng):
    v = AXES * 10.0 ** rng.uniform(-15, -2, (len(AXES), 1))
    round_trip = run(
        lambda v: mp.quat_to_rotation_vector(mp.quat_from_rotation_vector(v)), v, dtype=dtype
    )
    # Relative, unlike the rest: a dozen roundings of half an eps each.
    np.testing.assert_allclose(round_trip, v, rtol=8 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slerp_matches_scipy_between_any_two_rotations(dtype, rng):
    # SciPy interpolates along a sequence; pair k is its rotations 2 k and 2 k + 1.
    pairs = np.stack([QUATS, QUATS[OTHER]], axis=1)
    relative = (ROTATIONS.inv() * ROTATIONS[OTHER]).magnitude()
    # A half turn between them leaves the way round open. The rotation vector's error there is
    # 8 eps times pi, so nearer than that to a half turn rounding decides.
    pairs = pairs[relative < np.pi - 32 * np.finfo(dtype).eps]
    t = rng.uniform(0.0, 1.0, len(pairs))
    t[:200:2], t[1:200:2] = 0.0, 1.0
    sequence = Rotation.from_quat(pairs.reshape(-1, 4), scalar_first=True)
    expected = Slerp(np.arange(len(sequence)), sequence)(2 * np.arange(len(pairs)) + t)
    expected = expected.as_quat(scalar_first=True)
    actual = run(mp.quat_slerp, pairs[:, 0], pairs[:, 1], t, dtype=dtype)
    # Half of the rotation vector's 8 pi eps, and 8 eps for the product. SciPy's time 2 k + t has
    # lost log2(2 k) < 14 bits of t, up to 2**13 eps of float64 times half an angle of up to pi.
    atol = 24 * np.finfo(dtype).eps + 2**13 * np.finfo(np.float64).eps * np.pi / 2
    np.testing.assert_allclose(up_to_sign(actual, expected), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slerp_of_equal_or_antipodal_quaternions_stays_put(dtype, rng):
    t = rng.uniform(-1.0, 2.0, N)
    for b in (QUATS, -QUATS):
        assert_close(run(mp.quat_slerp, QUATS, b, t, dtype=dtype), QUATS, dtype, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slerp_across_a_half_turn_is_a_quarter_turn_at_its_middle(dtype):
    q = np.concatenate([EXACT_HALF_TURNS, -EXACT_HALF_TURNS])
    start = np.tile(mp.IDENTITY_QUAT, (len(q), 1))
    middle = run(mp.quat_slerp, start, q, np.full(len(q), 0.5), dtype=dtype)
    # 24 eps as for slerp above.
    assert_close(middle[:, 0], np.full(len(q), np.sqrt(0.5)), dtype, 24)
    assert_close(up_to_sign(middle[:, 1:], q[:, 1:]), q[:, 1:] * np.sqrt(0.5), dtype, 24)


@OF_QUATERNIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_pose_composition_matches_the_matrix_product(dtype):
    composed = run(mp.compose, POSES, POSES[OTHER], dtype=dtype)
    # 16 eps as for a rotated vector, and the position is up to 2 sqrt(3) long.
    assert_close(matrices(composed), matrices(POSES) @ matrices(POSES[OTHER]), dtype, 32)


@OF_QUATERNIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_pose_matches_the_matrix_inverse(dtype):
    inverse = matrices(run(mp.invert, POSES, dtype=dtype))
    # 16 eps as for a rotated vector, and as much for NumPy's inverse of a matrix of condition ~10.
    assert_close(inverse, np.linalg.inv(matrices(POSES)), dtype, 32)


@OF_QUATERNIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_transformed_point_matches_the_homogeneous_product(dtype):
    expected = ROTATIONS.apply(POINTS) + POSES[:, :3]
    # 16 eps as for a rotated vector, and one more addition.
    assert_close(run(mp.transform_point, POSES, POINTS, dtype=dtype), expected, dtype, 17)


@OF_QUATERNIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_pose_matrix_is_rotation_position_and_unit_row_and_reads_back(dtype):
    T = run(mp.pose_to_matrix, POSES, dtype=dtype)
    assert_close(T, matrices(POSES), dtype, 8)
    assert np.all(T[:, 3] == [0.0, 0.0, 0.0, 1.0])
    back = run(mp.pose_from_matrix, T, dtype=dtype)
    assert np.all(back[:, :3] == T[:, :3, 3])
    # The matrix's 8 eps, then 8 more to read it.
    assert_close(up_to_sign(back[:, 3:], QUATS), QUATS, dtype, 16)


def test_interpolated_pose_is_linear_in_position_and_slerp_in_rotation(rng):
    t = rng.uniform(0.0, 1.0, N)
    actual = run(mp.interpolate, POSES, POSES[OTHER], t)
    p = POSES[:, :3] + t[:, None] * (POSES[OTHER, :3] - POSES[:, :3])
    # Three roundings on numbers of order one.
    assert_close(actual[:, :3], p, np.float64, 3)
    # Equal formulas, but XLA may fuse them differently: the 24 eps of slerp; half turns as above.
    slerp = run(mp.quat_slerp, QUATS, QUATS[OTHER], t)
    sure = (ROTATIONS.inv() * ROTATIONS[OTHER]).magnitude() < np.pi - 32 * np.finfo(float).eps
    assert_close(actual[sure, 3:], slerp[sure], np.float64, 24)


def test_poses_form_a_group():
    a, b, c = POSES, POSES[OTHER], POSES[::-1]
    compose, invert = compiled(mp.compose, False), compiled(mp.invert, False)
    identity = np.tile(mp.IDENTITY_POSE, (N, 1))
    # Two compositions, 32 eps each.
    assert_close(compose(compose(a, b), c), compose(a, compose(b, c)), np.float64, 64)
    assert_close(compose(a, invert(a)), identity, np.float64, 64)
    assert_close(compose(invert(a), a), identity, np.float64, 64)
    np.testing.assert_array_equal(compose(a, identity), a)
    np.testing.assert_array_equal(compose(identity, a), a)


def test_inverse_conjugate_and_normal_agree_for_any_quaternion_length(rng):
    q = QUATS * rng.uniform(0.1, 10.0, (N, 1))
    norm = np.linalg.norm(q, axis=1, keepdims=True)
    one = np.tile(mp.IDENTITY_QUAT, (N, 1))
    # 8 eps as for any product, on factors whose lengths multiply to one.
    assert_close(run(mp.quat_multiply, q, run(mp.quat_inverse, q)), one, np.float64, 8)
    np.testing.assert_array_equal(run(mp.quat_conjugate, q), q * [1.0, -1.0, -1.0, -1.0])
    assert_close(run(mp.quat_normalize, q), q / norm, np.float64, 4)


# Gradients. R(exp(d) q) has the derivative [e_i]x R(q) along d_i at d = 0, at every rotation and
# whichever of q and -q a function returns, so half turns need no exception.
def turned(delta, q):
    return mp.quat_multiply(mp.quat_from_rotation_vector(delta), q)


THERE_AND_BACK = {
    "matrix": lambda q: mp.quat_from_matrix(mp.quat_to_matrix(q)),
    "rotation vector": lambda q: mp.quat_from_rotation_vector(mp.quat_to_rotation_vector(q)),
}


@pytest.mark.small("matrix-float64", "rotation vector-float64")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", THERE_AND_BACK)
def test_gradient_there_and_back_is_the_generator_at_every_rotation(name, dtype):
    def derivative(q):
        def f(delta):
            return mp.quat_to_matrix(THERE_AND_BACK[name](turned(delta, q)))

        return jax.jacfwd(f)(jnp.zeros(3, q.dtype))

    expected = np.einsum("ijd,njk->nikd", GENERATORS, ROTATIONS.as_matrix())
    # A chain of three functions, 8 eps each, and their derivatives as much; log's carries a pi.
    assert_close(run_derivative(derivative, QUATS, dtype=dtype), expected, dtype, 64)


@pytest.mark.small("float64")
@pytest.mark.parametrize("dtype", DTYPES)
def test_slerp_gradient_between_equal_or_antipodal_quaternions_shares_out_the_turn(dtype, rng):
    def derivative(a, b, t):
        def f(delta_a, delta_b, t):
            return mp.quat_to_matrix(mp.quat_slerp(turned(delta_a, a), turned(delta_b, b), t))

        zero = jnp.zeros(3, a.dtype)
        d_a, d_b, d_t = jax.jacrev(f, argnums=(0, 1, 2))(zero, zero, t)
        return jnp.concatenate([d_a, d_b, d_t[..., None]], axis=-1)

    t = rng.uniform(0.0, 1.0, N)
    sign = rng.choice([-1.0, 1.0], (N, 1))
    generator = np.einsum("ijd,njk->nikd", GENERATORS, ROTATIONS.as_matrix())
    share = np.concatenate([np.tile(1 - t[:, None], 3), np.tile(t[:, None], 3)], axis=1)
    expected = np.concatenate([generator, generator], axis=-1) * share[:, None, None, :]
    actual = run_derivative(derivative, QUATS, sign * QUATS, t, dtype=dtype)
    # As for there and back.
    assert_close(actual[..., :6], expected, dtype, 64)
    assert_close(actual[..., 6], np.zeros((N, 3, 3)), dtype, 64)


def test_second_derivatives_at_zero_rotation_are_those_of_the_series():
    hessian = run_derivative(jax.hessian(mp.quat_from_rotation_vector), np.zeros((1, 3)))[0]
    # cos(theta / 2) = 1 - theta^2 / 8 and k v is odd: exact in binary.
    np.testing.assert_array_equal(hessian, [-np.eye(3) / 4, *np.zeros((3, 3, 3))])
    # 2 u / w: minus 2 for w and the component itself; the rest is odd.
    hessian = run_derivative(jax.hessian(mp.quat_to_rotation_vector), [mp.IDENTITY_QUAT])[0]
    expected = np.zeros((3, 4, 4))
    for i in range(3):
        expected[i, 0, i + 1] = expected[i, i + 1, 0] = -2.0
    np.testing.assert_array_equal(hessian, expected)


SIZES = {
    mp.quat_multiply: (4, 4),
    mp.quat_conjugate: (4,),
    mp.quat_inverse: (4,),
    mp.quat_normalize: (4,),
    mp.quat_rotate: (4, 3),
    mp.quat_from_axis_angle: (3, 0),
    mp.quat_from_rotation_vector: (3,),
    mp.quat_to_rotation_vector: (4,),
    mp.quat_from_matrix: (9,),
    mp.quat_to_matrix: (4,),
    mp.quat_slerp: (4, 4, 0),
    mp.compose: (7, 7),
    mp.invert: (7,),
    mp.transform_point: (7, 3),
    mp.pose_to_matrix: (7,),
    mp.pose_from_matrix: (16,),
    mp.interpolate: (7, 7, 0),
}
"""Each function and the sizes of its arguments, flattened; 0 is a scalar."""
NOT_POLYNOMIAL = (
    mp.quat_normalize,
    mp.quat_from_axis_angle,
    mp.quat_from_rotation_vector,
    mp.quat_to_rotation_vector,
    mp.quat_from_matrix,
    mp.quat_slerp,
)
SHAPES = {0: (), 9: (3, 3), 16: (4, 4)}


def arguments(rng, sizes, quats):
    """Random arguments, one set for each of quats, which serves wherever a rotation is meant."""
    n = len(quats)
    R = Rotation.from_quat(quats, scalar_first=True)
    poses = np.concatenate([rng.uniform(-1.0, 1.0, (n, 3)), quats], axis=1)
    make = {
        0: lambda: rng.uniform(0.1, 0.9, n),
        3: lambda: rng.uniform(0.2, 1.0, (n, 3)),
        4: lambda: quats,
        7: lambda: poses,
        9: R.as_matrix,
        16: lambda: matrices(poses),
    }
    return [make[size]() for size in sizes]


def flat(function, sizes):
    """The same function of one vector to one vector."""

    def f(x):
        parts = jnp.split(x, np.cumsum([max(s, 1) for s in sizes])[:-1])
        shaped = [p.reshape(SHAPES.get(s, (s,))) for p, s in zip(parts, sizes, strict=True)]
        return function(*shaped).ravel()

    return f


@cache
def with_jacobian(function):
    """Of one vector: the function and its Jacobian, side by side."""
    f = flat(function, SIZES[function])
    return lambda x: jnp.concatenate([f(x)[:, None], jax.jacrev(f)(x)], axis=1)


@pytest.mark.small("quat_from_matrix", "interpolate", "invert")
@pytest.mark.parametrize("function", SIZES, ids=lambda f: f.__name__)
def test_jacobian_matches_central_differences(function, rng):
    sizes = SIZES[function]
    near_zero = Rotation.from_rotvec(AXES * 1e-3).as_quat(scalar_first=True)
    # No half turns, where a step crosses from v to -v; the tests above have those.
    quats = np.concatenate([QUATS[:50], near_zero, [mp.IDENTITY_QUAT]])
    columns = arguments(rng, sizes, quats)
    if len(sizes) > 1 and sizes[1] in (4, 7):
        columns[1] = np.roll(columns[1], 7, axis=0)
    if function is mp.quat_from_rotation_vector:
        columns[0][:10] *= 1e-3
        columns[0][0] = 0.0
    x = np.concatenate([c.reshape(len(quats), -1) for c in columns], axis=1)
    # h near eps^(1/3) balances truncation h^2 / 6 times a third derivative of up to some tens
    # (1e-9) with rounding eps / h (2e-11). Entries reach 10: 1e-8 leaves a factor of ten.
    h = 1e-5
    steps = h * np.eye(x.shape[1])
    places = np.concatenate([x, *(x + e for e in steps), *(x - e for e in steps)])
    found = run_derivative(with_jacobian(function), places)
    at_x, up, down = np.split(found, [len(x), len(x) * (len(steps) + 1)])
    difference = (up - down)[..., 0].reshape(len(steps), len(x), -1) / (2 * h)
    np.testing.assert_allclose(at_x[..., 1:], np.moveaxis(difference, 0, -1), rtol=0, atol=1e-8)


@pytest.mark.small(*(f"{function.__name__}-float32" for function in NOT_POLYNOMIAL))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", NOT_POLYNOMIAL, ids=lambda f: f.__name__)
def test_values_and_jacobians_are_finite_at_every_degenerate_rotation(function, dtype, rng):
    sizes = SIZES[function]
    quats = np.concatenate([QUATS[len(RANDOM) :], [mp.IDENTITY_QUAT], -QUATS[-len(AXES) :]])
    n = len(quats)
    sets = [arguments(rng, sizes, quats)]
    if function is mp.quat_slerp:
        # Equal arguments above; here antipodal ones, and the identity against all.
        sets.append([quats, -quats, sets[0][2]])
        sets.append([quats, np.tile(mp.IDENTITY_QUAT, (n, 1)), sets[0][2]])
    if function is mp.quat_from_axis_angle:
        sets.append([np.resize(AXES, (n, 3)), np.resize(ANGLES, n)])
    if function is mp.quat_from_rotation_vector:
        sets.append([np.resize(np.concatenate([DEGENERATE, -DEGENERATE]), (n, 3))])
    x = np.concatenate([np.concatenate([c.reshape(n, -1) for c in s], axis=1) for s in sets])
    out = run_derivative(with_jacobian(function), x, dtype=dtype)
    assert np.all(np.isfinite(out))
    # A wrongly guarded branch shows as 1 / eps; the true entries of these matrices are below 10.
    assert np.max(np.abs(out)) < 10


@pytest.mark.parametrize("function", SIZES, ids=lambda f: f.__name__)
def test_single_precision_stays_single_with_python_numbers_beside_it(function, rng):
    sizes = SIZES[function]
    single = [
        np.asarray(a[0], np.float32)
        for a in arguments(rng, sizes, np.array([[0.6, 0.0, 0.8, 0.0]]))
    ]
    python = [float(a) if a.ndim == 0 else tuple(a.tolist()) for a in single]
    for i in range(len(sizes)):
        mixed = [
            a if i == j or a.ndim == 2 else p
            for j, (a, p) in enumerate(zip(single, python, strict=True))
        ]
        assert jax.eval_shape(lambda m=mixed: function(*m)).dtype == np.float32


@pytest.mark.parametrize("tuples", [0, 1, 2])
def test_tuples_give_the_same_pose_as_arrays(tuples):
    poses = [POSES[0], POSES[1]]
    mixed = [tuple(p.tolist()) if i < tuples else p for i, p in enumerate(poses)]
    # Python and XLA may round a fused product differently: 32 eps as for a composition.
    assert_close(mp.compose(*mixed), mp.compose(*map(jnp.asarray, poses)), np.float64, 32)


def test_integer_tuples_are_accepted():
    q = mp.quat_from_axis_angle((0, 0, 2), np.pi)
    # cos(pi / 2) is 6e-17 rather than 0.
    assert_close(q, [0.0, 0.0, 0.0, 1.0], np.float64, 1)
    # A rotated unit vector: a few roundings.
    assert_close(mp.quat_rotate(q, (1, 0, 0)), [-1.0, 0.0, 0.0], np.float64, 4)


def test_identity_is_neutral_for_plain_tuples():
    np.testing.assert_array_equal(mp.compose(mp.IDENTITY_POSE, mp.IDENTITY_POSE), mp.IDENTITY_POSE)
    np.testing.assert_array_equal(mp.quat_to_matrix(mp.IDENTITY_QUAT), np.eye(3))
    np.testing.assert_array_equal(mp.quat_from_matrix(np.eye(3)), mp.IDENTITY_QUAT)


def test_direction_of_nothing_is_nan_rather_than_a_guess():
    assert np.all(np.isnan(mp.quat_normalize((0.0, 0.0, 0.0, 0.0))))
    assert np.all(np.isnan(mp.quat_from_axis_angle((0.0, 0.0, 0.0), 1.0)[1:]))
