"""Linear equations with the mass matrix of a tree, on scalars."""

from mime.control.kinematics.scalar import Scalar, is_constant, mul, reciprocal, sub


def solve_ltdl(M: list[list[Scalar]], b: list[Scalar]) -> list[Scalar]:
    """M x = b by M = Lᵀ D L, from the tips to the root (Featherstone 2008, section 6.5).

    `M` holds the lower triangle. In this order a tree's zeros never fill in, and a constant 0 costs
    nothing. (Joints that mimic others couple branches: there zeros may fill in.)
    """
    n = len(b)
    M, x = [list(row) for row in M], list(b)
    inverse_D: list[Scalar] = [0.0] * n
    L: list[dict[int, Scalar]] = [{}] * n
    for k in reversed(range(n)):
        inverse_D[k] = reciprocal(M[k][k])
        L[k] = {i: mul(M[k][i], inverse_D[k]) for i in range(k) if not _is_zero(M[k][i])}
        for i, factor in L[k].items():
            for j in L[k]:
                if j <= i:
                    M[i][j] = sub(M[i][j], mul(factor, M[k][j]))
            x[i] = sub(x[i], mul(factor, x[k]))
    for k in range(n):
        x[k] = mul(x[k], inverse_D[k])
        for i, factor in L[k].items():
            x[k] = sub(x[k], mul(factor, x[i]))
    return x


def _is_zero(x: Scalar) -> bool:
    return bool(is_constant(x) and x == 0.0)
