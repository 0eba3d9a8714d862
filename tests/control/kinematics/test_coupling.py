"""Linear equations with the zeros of a tree's mass matrix, against NumPy's on the full matrix."""

import jax.numpy as jnp
import numpy as np
import pytest

from mime import model_path
from mime.control.kinematics import mass_matrix, parse_urdf
from mime.control.kinematics.coupling import solver
from mime.control.kinematics.floating import at_base, with_base_joints
from mime.control.positive_definite import solve_held
from mime.native.folding import jit_folding


def problem(seed):
    """A floating arm with some rows added to the diagonal, and some joints held."""
    tree = with_base_joints(parse_urdf(model_path("desktop_arm_6axis")))
    rng = np.random.default_rng(seed)
    q = np.asarray(at_base(rng.uniform(-2, 2, 6)))
    H = np.asarray(mass_matrix(tree, q))
    b, added = rng.normal(size=12), rng.uniform(0, 0.1, 12)
    return tree, q, H, b, added, rng.random(12) < 0.3


@pytest.mark.parametrize("seed", range(4))
def test_held_coordinates_keep_their_values_and_leave_the_others_alone(seed):
    tree, q, H, b, added, held = problem(seed)
    moving = ~held
    expected = b.copy()
    A = (H + np.diag(added))[np.ix_(moving, moving)]
    expected[moving] = np.linalg.solve(A, b[moving])
    sparse = jit_folding(lambda t, q, *given: solver(t, q, ())(*given))
    dense = jit_folding(lambda _, *given: solve_held(*given))
    # The condition of A is 1e5 here, of which some 1e-16 each is lost.
    found = sparse(tree, jnp.asarray(q), *map(jnp.asarray, (H, b, added, held)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_array_equal(np.asarray(found)[held], b[held])
    found = dense(None, *map(jnp.asarray, (H, b, added, held)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_array_equal(np.asarray(found)[held], b[held])


def test_extra_rows_are_coupled_to_their_joints_alone():
    tree, q, H, b, added, held = problem(7)
    across = np.zeros((12, 2))
    across[8, 0], across[10, 1] = -0.01, -0.02
    whole = np.block([[H + 0.1 * np.eye(12), across], [across.T, 0.3 * np.eye(2)]])
    b, added, held = (np.concatenate([x, x[:2]]) for x in (b, added, held))
    moving = ~held
    expected = b.copy()
    A = (whole + np.diag(added))[np.ix_(moving, moving)]
    expected[moving] = np.linalg.solve(A, b[moving])
    sparse = jit_folding(lambda t, q, *given: solver(t, q, (8, 10))(*given))
    found = sparse(tree, jnp.asarray(q), *map(jnp.asarray, (whole, b, added, held)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)  # condition below 1e4
