"""Soft magnetic matter: a moment that the field makes."""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import Scalar
from mime.core.parameters import Effect
from mime.core.problem import Problem
from mime.core.spec import parameter
from mime.nodes.magnetics.dipole_field import MU_0


class SoftEllipsoid(Effect):
    """m_i = V / mu0  chi / (1 + N_i chi)  B_i     along its principal axes, those of its body

    Matter of constant susceptibility without hysteresis, in a field that is uniform over it.
    """

    susceptibility: Scalar = parameter("", above=0.0, doc="chi = M / H inside")
    volume_m3: Scalar = parameter("m³", above=0.0, doc="V")
    demagnetisation_factors: Float[Array, "3"] = parameter(
        "", shape=(3,), at_least=0.0, default=(1 / 3, 1 / 3, 1 / 3), doc="N, of sum 1; a sphere's"
    )

    def value_problems(self) -> Iterator[Problem]:
        factors = self.demagnetisation_factors
        if not isinstance(factors, jax.core.Tracer) and abs(np.sum(factors) - 1.0) > 1e-6:
            words = f"must have the sum 1, got {float(np.sum(factors)):g}"
            hint = "A sphere has (1/3, 1/3, 1/3), a long needle along z (1/2, 1/2, 0)"
            yield Problem(("demagnetisation_factors",), words, hint)

    def moment(self, field_t: Float[Array, "3"]) -> Float[Array, "3"]:
        """m in A·m², in the axes of the body, as the applied field is."""
        chi, N = self.susceptibility, self.demagnetisation_factors
        return self.volume_m3 / MU_0 * chi / (1.0 + N * chi) * field_t
