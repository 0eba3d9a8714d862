"""Linear equations with the mass matrix of a tree, on scalars."""

from mime.control.kinematics.scalar import Scalar, is_constant, mul, reciprocal, sub
from mime.xla.keep_call import Call, inline


def solve_ltdl(M: list[list[Scalar]], b: list[Scalar], call: Call = inline) -> list[Scalar]:
    """M x = b by M = Lᵀ D L, from the tips to the root (Featherstone 2008, section 6.5).

    `M` holds the lower triangle. In this order a tree's zeros never fill in, and a constant 0 costs
    nothing. (Joints that mimic others couple branches: there zeros may fill in.)
    """
    n = len(b)
    L, x = [list(row) for row in M], list(b)
    inverse_D: list[Scalar] = [0.0] * n
    carriers: list[list[int]] = [[]] * n
    for k in reversed(range(n)):
        inverse_D[k] = reciprocal(L[k][k])
        on = carriers[k] = [i for i in range(k) if not _is_zero(L[k][i])]
        rows = [[L[i][j] for j in on[: n_i + 1]] for n_i, i in enumerate(on)]
        row = [L[k][i] for i in on]
        factors, rows, rest = call(_eliminated, row, inverse_D[k], rows, x[k], [x[i] for i in on])
        for i, factor, updated, x_i in zip(on, factors, rows, rest, strict=True):
            L[k][i], x[i] = factor, x_i
            for j, entry in zip(on, updated, strict=False):
                L[i][j] = entry
    for k in range(n):
        on = carriers[k]
        x[k] = call(_substituted, x[k], inverse_D[k], [L[k][i] for i in on], [x[i] for i in on])
    return x


def _is_zero(x: Scalar) -> bool:
    return bool(is_constant(x) and x == 0.0)


def _eliminated(
    row: list[Scalar], inverse_D: Scalar, rows: list[list[Scalar]], x_k: Scalar, x: list[Scalar]
) -> tuple[list[Scalar], list[list[Scalar]], list[Scalar]]:
    """Row k of L, and what elimination leaves of the rows and of the right side above it."""
    factors = [mul(entry, inverse_D) for entry in row]
    rows = [
        [sub(entry, mul(factor, other)) for entry, other in zip(entries, row, strict=False)]
        for factor, entries in zip(factors, rows, strict=True)
    ]
    return (factors, rows, [sub(x_i, mul(f, x_k)) for x_i, f in zip(x, factors, strict=True)])


def _substituted(x_k: Scalar, inverse_D: Scalar, L_k: list[Scalar], x: list[Scalar]) -> Scalar:
    x_k = mul(x_k, inverse_D)
    for factor, x_i in zip(L_k, x, strict=True):
        x_k = sub(x_k, mul(factor, x_i))
    return x_k
