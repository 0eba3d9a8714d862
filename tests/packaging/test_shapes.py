"""The shapes that signatures name are checked while the tests run."""

import sys

import jaxtyping
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.core import pose


def test_an_argument_of_another_shape_is_seen():
    with pytest.raises(jaxtyping.TypeCheckError, match=r"quat_rotate"):
        pose.quat_rotate(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4))
    with pytest.raises(jaxtyping.TypeCheckError, match=r"mass_matrix"):
        kin.mass_matrix.__wrapped__(None, np.zeros((2, 2)))


def test_every_module_that_names_shapes_is_watched():
    """What is loaded by now: its loader is that of the import hook."""
    names = [name for name in sys.modules if name.startswith("mime.")]
    with_shapes = [name for name in names if _names_shapes(sys.modules[name])]
    assert len(with_shapes) > 10
    loaders = {name: type(sys.modules[name].__spec__.loader).__name__ for name in with_shapes}
    assert set(loaders.values()) == {"_JaxtypingLoader"}, loaders


def _names_shapes(module):
    """True when a name of jaxtyping is among a module's own."""
    return any(getattr(value, "__module__", None) == "jaxtyping" for value in vars(module).values())
