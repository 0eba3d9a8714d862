"""The small algebra of rigid bodies: vectors, matrices, frames, wrenches and the moments of a mass.

Everything is made of the scalars of `scalar.py`, each a value of its own: a zero of a joint frame
removes the operations it would have taken part in.
"""

# mypy: disable-error-code="override"
# (a sum of vectors is not the concatenation of tuples that it takes the place of)

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple, no_type_check

import jax

from mime.control.kinematics.scalar import Scalar, add, cos_sin, is_constant, mul, neg, sub


@jax.tree_util.register_pytree_node_class
@no_type_check
class Vector(tuple):
    """Three scalars (x, y, z)."""

    __slots__ = ()

    def tree_flatten(self) -> tuple[tuple, None]:
        return tuple(self), None

    @classmethod
    def tree_unflatten(cls, _: None, parts: Iterable) -> "Vector":
        return cls(parts)

    def __add__(self, other: "Vector") -> "Vector":
        (ax, ay, az), (bx, by, bz) = self, other
        return Vector((add(ax, bx), add(ay, by), add(az, bz)))

    def __sub__(self, other: "Vector") -> "Vector":
        (ax, ay, az), (bx, by, bz) = self, other
        return Vector((sub(ax, bx), sub(ay, by), sub(az, bz)))

    def __neg__(self) -> "Vector":
        return Vector(neg(a) for a in self)

    def __mul__(self, factor: Scalar) -> "Vector":
        return Vector(mul(a, factor) for a in self)

    def dot(self, other: "Vector") -> Scalar:
        (ax, ay, az), (bx, by, bz) = self, other
        return add(add(mul(ax, bx), mul(ay, by)), mul(az, bz))

    def cross(self, other: "Vector") -> "Vector":
        (ax, ay, az), (bx, by, bz) = self, other
        return Vector(
            (
                sub(mul(ay, bz), mul(az, by)),
                sub(mul(az, bx), mul(ax, bz)),
                sub(mul(ax, by), mul(ay, bx)),
            )
        )


@jax.tree_util.register_pytree_node_class
@no_type_check
class Matrix(tuple):
    """Three rows, each a `Vector`."""

    __slots__ = ()

    def tree_flatten(self) -> tuple[tuple, None]:
        return tuple(self), None

    @classmethod
    def tree_unflatten(cls, _: None, parts: Iterable) -> "Matrix":
        return cls(parts)

    @property
    def T(self) -> "Matrix":
        return Matrix(Vector(column) for column in zip(*self, strict=True))

    def __add__(self, other: "Matrix") -> "Matrix":
        return Matrix(a + b for a, b in zip(self, other, strict=True))

    def __sub__(self, other: "Matrix") -> "Matrix":
        return Matrix(a - b for a, b in zip(self, other, strict=True))

    def __mul__(self, factor: Scalar) -> "Matrix":
        return Matrix(row * factor for row in self)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Matrix):
            return Matrix(other.T @ row for row in self)
        return Vector(row.dot(other) for row in self)


ZERO = Vector((0.0, 0.0, 0.0))
IDENTITY = Matrix(map(Vector, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))))


@no_type_check
def symmetric(entry: Callable[[int, int], Scalar]) -> Matrix:
    """The symmetric matrix with `entry(row, column)`, evaluated for the upper six entries only."""
    (xx, xy, xz), (yy, yz), (zz,) = ([entry(i, j) for j in range(i, 3)] for i in range(3))
    return Matrix(map(Vector, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))


@no_type_check
def cross_matrix(v: Vector) -> Matrix:
    """[v]×, with [v]× p = v × p."""
    x, y, z = v
    return Matrix(map(Vector, ((0.0, neg(z), y), (z, 0.0, neg(x)), (neg(y), x, 0.0))))


@no_type_check
def symmetric_sum(A: Matrix, B: Matrix) -> Matrix:
    """A + B, both symmetric."""
    return symmetric(lambda i, j: add(A[i][j], B[i][j]))


@no_type_check
def turned(R: Matrix, A: Matrix) -> Matrix:
    """R A Rᵀ, A symmetric.

    The trace stays as it is and gives the last entry of the diagonal. It is that of the row of R
    with the most variables, which would take the most operations.
    """
    i, j, k = sorted(range(3), key=lambda row: sum(not is_constant(x) for x in R[row]))
    RA_i, RA_j = A @ R[i], A @ R[j]
    ii, jj = RA_i.dot(R[i]), RA_j.dot(R[j])
    kk = _difference([A[0][0], A[1][1], A[2][2]], [ii, jj])
    entry = {(i, i): ii, (j, j): jj, (k, k): kk}
    entry[i, j] = entry[j, i] = RA_i.dot(R[j])
    entry[i, k] = entry[k, i] = RA_i.dot(R[k])
    entry[j, k] = entry[k, j] = RA_j.dot(R[k])
    return symmetric(lambda row, column: entry[row, column])


@no_type_check
def _difference(plus: list[Scalar], minus: list[Scalar]) -> Scalar:
    """Σ plus - Σ minus, without what is in both: a unit row of R leaves an entry as it is."""
    for x in minus:
        same = [n for n, y in enumerate(plus) if y is x]
        if same:
            del plus[same[0]]
        else:
            plus = [*plus[:-1], sub(plus[-1], x)]
    return reduce(add, plus, 0.0)


@no_type_check
def turned_about(frame: Matrix, axis: Vector, angle: Scalar) -> Matrix:
    """`frame` turned by `angle` about its own `axis`, by Rodrigues' formula:

        R = R_0 (u uᵀ + cos(angle) (1 - u uᵀ) + sin(angle) [u]×)

    In this form a coordinate axis leaves only four entries that are not constant. And if R_0 is
    itself a turn about u by some angle_0 then R is one by angle_0 + angle: UR's joints are written
    so, with angle_0 = 1.57079632679, which is not quite pi/2. The sum keeps R sparse without
    touching the number.
    """
    if is_constant(angle) and angle == 0.0:
        return frame
    known = all(is_constant(x) for row in (axis, *frame) for x in row)
    if known and frame @ axis == axis:
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = frame
        trace = frame[0][0] + frame[1][1] + frame[2][2]
        sine = axis.dot(Vector((zy - yz, xz - zx, yx - xy)))  # twice, as is trace - 1 the cosine
        frame, angle = IDENTITY, add(math.atan2(sine, trace - 1.0), angle)
    cos, sin = cos_sin(angle)
    fixed = frame @ symmetric(lambda i, j: mul(axis[i], axis[j]))
    return fixed + (frame - fixed) * cos + (frame @ cross_matrix(axis)) * sin


@no_type_check
class Motion(NamedTuple):
    """Velocity, or acceleration: of the origin of the frame it is written in, and angular."""

    linear: Vector
    angular: Vector

    def __add__(self, other: "Motion") -> "Motion":
        return Motion(self.linear + other.linear, self.angular + other.angular)

    def __mul__(self, factor: Scalar) -> "Motion":
        return Motion(self.linear * factor, self.angular * factor)


@no_type_check
class Wrench(NamedTuple):
    """A force and its moment about the origin of the frame that both are written in."""

    force: Vector
    moment: Vector

    def __add__(self, other: "Wrench") -> "Wrench":
        return Wrench(self.force + other.force, self.moment + other.moment)

    def __sub__(self, other: "Wrench") -> "Wrench":
        return Wrench(self.force - other.force, self.moment - other.moment)

    def __mul__(self, factor: Scalar) -> "Wrench":
        return Wrench(self.force * factor, self.moment * factor)

    def power(self, motion: Motion) -> Scalar:
        """F · v + M · w; for the motion S of a joint, the torque that the joint carries."""
        return add(motion.linear.dot(self.force), motion.angular.dot(self.moment))


@no_type_check
class Frame(NamedTuple):
    """The pose of a child frame in its parent:  p_parent = R p_child + r."""

    R: Matrix
    r: Vector

    def point(self, p: Vector) -> Vector:
        return self.R @ p + self.r

    def compose(self, child: "Frame") -> "Frame":
        return Frame(self.R @ child.R, self.point(child.r))

    def wrench(self, w: Wrench) -> Wrench:
        """A wrench at the child's origin, seen at the parent's."""
        force = self.R @ w.force
        return Wrench(force, self.R @ w.moment + self.r.cross(force))

    def mass(self, m: "MassMoments") -> "MassMoments":
        """A mass described in the child frame, described in the parent frame."""
        R, r = self
        h = R @ m.first
        first = h + r * m.mass
        shift = symmetric(lambda i, j: add(mul(h[i], r[j]), mul(r[i], first[j])))
        return MassMoments(m.mass, first, symmetric_sum(turned(R, m.second), shift))

    def motion_of_child(self, m: Motion) -> Motion:
        """A motion at the parent's origin, seen at the child's."""
        return Motion(self.R.T @ (m.linear + m.angular.cross(self.r)), self.R.T @ m.angular)


IDENTITY_FRAME = Frame(IDENTITY, ZERO)


@no_type_check
def frame_from_matrix(rows: list) -> Frame:
    """The frame whose 4x4 homogeneous matrix has these unpacked rows."""
    return Frame(Matrix(Vector(row[:3]) for row in rows[:3]), Vector(row[3] for row in rows[:3]))


@no_type_check
class MassMoments(NamedTuple):
    """The moments 0, 1 and 2 of a mass distribution about the origin of its frame:

        m = ∫ dm,    h = ∫ p dm = m c,    S = ∫ p pᵀ dm

    They hold what the spatial inertia holds (I = tr(S) 1 - S), and they move from frame to frame
    with fewer operations.
    """

    mass: Scalar
    first: Vector
    second: Matrix

    def __add__(self, other: "MassMoments") -> "MassMoments":
        return MassMoments(
            add(self.mass, other.mass),
            self.first + other.first,
            symmetric_sum(self.second, other.second),
        )

    def __sub__(self, other: "MassMoments") -> "MassMoments":
        return MassMoments(
            sub(self.mass, other.mass), self.first - other.first, self.second - other.second
        )

    def inertial_wrench(self, a: Vector, A: Matrix) -> Wrench:
        """The wrench that gives every point p of the body the acceleration a + A p:

        F = ∫ (a + A p) dm = m a + A h,    N = ∫ p × (a + A p) dm = h × a + axial(A S)
        """
        S = self.second
        axial = Vector(sub(A[k].dot(S[j]), A[j].dot(S[k])) for j, k in ((1, 2), (2, 0), (0, 1)))
        return Wrench(a * self.mass + A @ self.first, self.first.cross(a) + axial)

    def momentum(self, motion: Motion) -> Wrench:
        """Linear and angular momentum of the body that moves with v + w × p:

        P = m v + w × h,    L = h × v + I w,    I = tr(S) 1 - S
        """
        (v, w), S, h = motion, self.second, self.first
        Iw = Vector(
            sub(mul(add(S[j][j], S[k][k]), w[i]), add(mul(S[i][j], w[j]), mul(S[i][k], w[k])))
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        )
        return Wrench(v * self.mass + w.cross(h), h.cross(v) + Iw)

    def inertia(self) -> Matrix:
        """I = tr(S) 1 - S"""
        S = self.second
        trace = [add(S[1][1], S[2][2]), add(S[2][2], S[0][0]), add(S[0][0], S[1][1])]
        return symmetric(lambda i, j: trace[i] if i == j else neg(S[i][j]))


NO_WRENCH = Wrench(ZERO, ZERO)
NO_MASS = MassMoments(0.0, ZERO, Matrix([ZERO] * 3))


@no_type_check
def moments_about_origin(mass: Scalar, com: Vector, inertia_at_com: Matrix) -> MassMoments:
    """S = S_com + m c cᵀ with S_com = tr(I)/2 1 - I."""
    half_trace = mul(
        0.5, add(add(inertia_at_com[0][0], inertia_at_com[1][1]), inertia_at_com[2][2])
    )
    h = com * mass
    second = symmetric(
        lambda i, j: add(
            sub(half_trace if i == j else 0.0, inertia_at_com[i][j]), mul(h[i], com[j])
        )
    )
    return MassMoments(mass, h, second)


@no_type_check
class LinkMotion(NamedTuple):
    """How a link moves: angular velocity, angular acceleration, acceleration of its origin."""

    w: Vector
    w_dot: Vector
    a: Vector
    A: Matrix
    """A point p of the link accelerates by a + A p."""


@no_type_check
def link_motion(w: Vector, w_dot: Vector, a: Vector) -> LinkMotion:
    """The motion with its A = [ẇ]× + [w]× [w]×."""
    return LinkMotion(w, w_dot, a, acceleration_gradient(w, w_dot))


@no_type_check
def acceleration_gradient(w: Vector, w_dot: Vector) -> Matrix:
    """A = [ẇ]× + [w]× [w]×: a point p of a turning body accelerates by A p against its origin."""
    x, y, z = w
    xx, yy, zz = mul(x, x), mul(y, y), mul(z, z)
    xy, xz, yz = mul(x, y), mul(x, z), mul(y, z)
    ax, ay, az = w_dot
    return Matrix(
        map(
            Vector,
            (
                (neg(add(yy, zz)), sub(xy, az), add(xz, ay)),
                (add(xy, az), neg(add(xx, zz)), sub(yz, ax)),
                (sub(xz, ay), add(yz, ax), neg(add(xx, yy))),
            ),
        )
    )


AT_REST = link_motion(ZERO, ZERO, ZERO)
