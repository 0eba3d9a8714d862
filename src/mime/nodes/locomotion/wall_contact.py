"""A convex body against the walls and posts of a maze: where they meet, and what the walls do.

Walls stand on the lines x = i cell and y = j cell, posts on their crossings: around each crossing
the solid is a square with up to four arms. A body smaller than a cell meets them in two ways only:
a vertex of its outline in a wall or post, or an edge of its outline on a corner of the nearest
post. Both are tested, so nothing slips in between the outline's points however few they are.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.nodes.locomotion.rolling import BodyVelocity, PlanarPose

_CREEP_M_PER_S = 1e-3
"""Below this speed the wall's friction is viscous instead of dry."""


class Walls(NamedTuple):
    """horizontal[r, c] stands north of cell (r, c), vertical[r, c] west of it; 1 or 0."""

    horizontal: Float[Array, "lines columns"]
    vertical: Float[Array, "rows lines"]
    cell: Any
    half_thickness: Any


class Surface(NamedTuple):
    """Stiffness k [N/m] and damping c [N·s/m] at one point of contact, friction or None."""

    k: Any
    c: Any
    friction: Any


class Contacts(NamedTuple):
    """Points of contact, in the maze's axes: offset r from the axle's midpoint, normal out of the
    wall, depth (0 where there is no contact).
    """

    rx: Float[Array, " n"]
    ry: Float[Array, " n"]
    nx: Float[Array, " n"]
    ny: Float[Array, " n"]
    depth: Float[Array, " n"]


class Placed(NamedTuple):
    """The body at a pose: axle's midpoint, unit vector forwards, offsets of the outline."""

    x: Any
    y: Any
    cos: Any
    sin: Any
    rx: Float[Array, " n"]
    ry: Float[Array, " n"]


class Push(NamedTuple):
    """The body's velocity after the walls' impulses, and their net force [N]."""

    velocity: BodyVelocity
    force: Any


def place_outline(outline: Any, pose: PlanarPose) -> Placed:
    """The outline at a pose, by one sum of products.

    On a CPU, XLA copies a cosine into every loop that uses it, but never the result of a sum.
    """
    cos, sin = jnp.cos(pose.heading), jnp.sin(pose.heading)
    to_world = jnp.stack([jnp.stack([cos, -sin, pose.x]), jnp.stack([sin, cos, pose.y])])
    points = jnp.concatenate(
        [jnp.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), jnp.pad(outline, ((0, 0), (0, 1)))]
    )
    x, y = jnp.sum(to_world[:, None, :] * points.astype(cos.dtype)[None], axis=2)
    return Placed(x[0], y[0], x[1], y[1], x[2:], y[2:])


def find_contacts(walls: Walls, outline: Any, body: Placed) -> Contacts:
    """All points of contact: vertices in walls along x, the same along y, and corners of the
    nearest post in the body.
    """
    depth_x, depth_y, out_x, out_y = _vertices_in_walls(walls, body)
    nothing = jnp.zeros_like(body.rx)
    groups = (
        Contacts(body.rx, body.ry, out_x, nothing, depth_x),
        Contacts(body.rx, body.ry, nothing, out_y, depth_y),
        _corners_in_body(walls, outline, body),
    )
    return Contacts(*(jnp.concatenate(fields) for fields in zip(*groups)))


def _nearest_crossing(walls: Walls, x: Any, y: Any) -> tuple[Any, Any]:
    """Column and row of the crossing nearest to a point, in the maze."""
    rows, columns = walls.vertical.shape[0], walls.horizontal.shape[1]
    per_cell = 1.0 / walls.cell
    i = jnp.clip(jnp.round(x * per_cell), 0, columns).astype(jnp.int32)
    j = jnp.clip(jnp.round(y * per_cell), 0, rows).astype(jnp.int32)
    return i, j


def _horizontal_arm(walls: Walls, i: Any, j: Any, east: Any) -> Any:
    """True where a wall runs from crossing (i, j) to the east (or west) one."""
    column, columns = jnp.where(east, i, i - 1), walls.horizontal.shape[1]
    at = j * columns + jnp.clip(column, 0, columns - 1)
    wall = walls.horizontal.reshape(-1).at[at].get(mode="promise_in_bounds")
    return (column >= 0) & (column < columns) & (wall > 0.5)


def _vertical_arm(walls: Walls, i: Any, j: Any, south: Any) -> Any:
    """True where a wall runs from crossing (i, j) to the south (or north) one."""
    row, (rows, lines) = jnp.where(south, j, j - 1), walls.vertical.shape
    at = jnp.clip(row, 0, rows - 1) * lines + i
    wall = walls.vertical.reshape(-1).at[at].get(mode="promise_in_bounds")
    return (row >= 0) & (row < rows) & (wall > 0.5)


def _vertices_in_walls(walls: Walls, body: Placed) -> tuple[Any, Any, Any, Any]:
    """Depth of each vertex along x and along y (0: not that way), and the signs of the ways out.

    A way out leads towards the axle's midpoint, which is always in the open: so a vertex is pushed
    back through the face it came in by even when it is past the middle of the wall. Along x it is
    barred where a wall runs on in that direction: a row of walls is one flat face.
    """
    h = walls.half_thickness
    x, y = body.x + body.rx, body.y + body.ry
    i, j = _nearest_crossing(walls, x, y)
    line_x, line_y = i * walls.cell, j * walls.cell
    ax, ay = x - line_x, y - line_y
    centre_x, centre_y = body.x - line_x, body.y - line_y
    one = jnp.ones_like(ax)
    out_x, out_y = jnp.where(centre_x > 0, one, -one), jnp.where(centre_y > 0, one, -one)
    dx, dy = h - out_x * ax, h - out_y * ay
    in_x, in_y = jnp.abs(ax) < h, jnp.abs(ay) < h

    arm_x = _horizontal_arm(walls, i, j, jnp.where(in_x, centre_x, ax) > 0)
    arm_y = _vertical_arm(walls, i, j, jnp.where(in_y, centre_y, ay) > 0)
    sees_x, sees_y = jnp.abs(centre_x) > h, jnp.abs(centre_y) > h
    by_x = sees_x & (~sees_y | (dx < dy))  # the nearer of the post's faces that the body can see
    along_x = in_x & (arm_y | (in_y & ~arm_x & by_x))
    along_y = in_y & (arm_x | (in_x & ~arm_y & ~by_x))
    return jnp.where(along_x, dx, 0.0), jnp.where(along_y, dy, 0.0), out_x, out_y


def _corners_in_body(walls: Walls, outline: Any, body: Placed) -> Contacts:
    """The four corners of the post nearest to the axle: depth in the body, under the nearest edge.

    A corner that a wall covers does not count.
    """
    h, cos, sin = walls.half_thickness, body.cos, body.sin
    i, j = _nearest_crossing(walls, body.x, body.y)
    east, south = np.array([True, True, False, False]), np.array([True, False, True, False])
    rx = i * walls.cell - body.x + jnp.where(east, h, -h)
    ry = j * walls.cell - body.y + jnp.where(south, h, -h)
    f, s = rx * cos + ry * sin, ry * cos - rx * sin
    depth, nf, ns = jnp.full_like(f, jnp.inf), jnp.zeros_like(f), jnp.zeros_like(s)
    for edge_f, edge_s, offset in _edges(outline):
        inside = offset - edge_f * f - edge_s * s
        nearer = inside < depth
        depth = jnp.where(nearer, inside, depth)
        nf, ns = jnp.where(nearer, -edge_f, nf), jnp.where(nearer, -edge_s, ns)
    one = jnp.ones_like(f, dtype=jnp.int32)
    covered = _horizontal_arm(walls, i * one, j * one, east)
    covered = covered | _vertical_arm(walls, i * one, j * one, south)
    depth = jnp.where(covered | (depth < 0.0), 0.0, depth)
    return Contacts(rx, ry, nf * cos - ns * sin, nf * sin + ns * cos, depth)


def _edges(outline: Any) -> list[tuple[Any, Any, Any]]:
    """Outward normal and offset of each edge: inside is where normal . p < offset."""
    xp = np if isinstance(outline, np.ndarray) else jnp
    step = xp.roll(outline, -1, axis=0) - outline
    area = xp.sum(outline[:, 0] * step[:, 1] - outline[:, 1] * step[:, 0])
    length = xp.sign(area) * xp.sqrt(xp.sum(step**2, axis=1))
    normal_f, normal_s = step[:, 1] / length, -step[:, 0] / length
    offset = normal_f * outline[:, 0] + normal_s * outline[:, 1]
    return list(zip(normal_f, normal_s, offset))


def push_out(
    contacts: Contacts,
    surface: Surface,
    velocity: BodyVelocity,
    body: Placed,
    m: Any,
    Iz: Any,
    dt: Any,
) -> Push:
    """(M + dt (k dt + c) sum J J^T) dV = dt sum (k d - c J V) J

    `body` is where `velocity` alone would lead, d the depths there: force k d' - c J V' with depth
    d' = d - dt J dV and velocity V' of the step's end. J V is a contact's velocity along its
    normal. A friction coefficient adds the same along the wall, with viscosity mu N / |speed|.
    """
    rx, ry, nx, ny, depth = contacts
    v, u, w = velocity
    vx, vy = v * body.cos - u * body.sin, v * body.sin + u * body.cos
    px, py = vx - w * ry, vy + w * rx
    beta = surface.k * dt + surface.c
    push = jnp.where(depth > 0.0, surface.k * depth - surface.c * (nx * px + ny * py), 0.0)
    active = push > 0.0  # a contact never pulls
    push, b = jnp.where(active, dt * push, 0.0), jnp.where(active, dt * beta, 0.0)
    J = jnp.stack([nx, ny, rx * ny - ry * nx])
    A, F = _sums(J, b, push)
    change = _solve(m, Iz, A, F)
    if surface.friction is not None:
        along, arm = nx * py - ny * px, rx * nx + ry * ny
        normal = jnp.maximum(push - b * _along(J, change), 0.0)
        drag = surface.friction * normal / jnp.sqrt(along**2 + _CREEP_M_PER_S**2)
        A_along, F_along = _sums(jnp.stack([-ny, nx, arm]), drag, -drag * along)
        change = _solve(m, Iz, A + A_along, F + F_along)
    dx, dy, dw = change
    squared = dx**2 + dy**2
    moved = squared > 0.0
    force = jnp.where(moved, jnp.sqrt(jnp.where(moved, squared, 1.0)), 0.0) * (m / dt)
    velocity = BodyVelocity(
        v + dx * body.cos + dy * body.sin, u + dy * body.cos - dx * body.sin, w + dw
    )
    return Push(velocity, force)


def remaining_depth(
    contacts: Contacts, body: Placed, predicted: BodyVelocity, actual: BodyVelocity, dt: Any
) -> Any:
    """d' = d - dt J dV, the largest: the depth at the end of the step, to first order."""
    rx, ry, nx, ny, depth = contacts
    dv, du, dw = (after - before for after, before in zip(actual, predicted))
    dx, dy = dv * body.cos - du * body.sin, dv * body.sin + du * body.cos
    left = depth - dt * (nx * (dx - dw * ry) + ny * (dy + dw * rx))
    return jnp.maximum(jnp.max(jnp.where(depth > 0.0, left, 0.0)), 0.0)


def _along(J: Float[Array, "3 n"], change: tuple[Any, Any, Any]) -> Float[Array, " n"]:
    return J[0] * change[0] + J[1] * change[1] + J[2] * change[2]


def _sums(
    J: Float[Array, "3 n"], b: Float[Array, " n"], f: Float[Array, " n"]
) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    """sum b J J^T and sum f J; as plain sums, since XLA hands a small product to a library."""
    return jnp.sum((b[None] * J)[:, None, :] * J[None, :, :], axis=2), jnp.sum(f[None] * J, axis=1)


def _solve(m: Any, Iz: Any, A: Float[Array, "3 3"], b: Float[Array, "3"]) -> tuple[Any, Any, Any]:
    """x of (diag(m, m, Iz) + A) x = b, A symmetric and not negative: by L D L^T."""
    a11, a21, a22 = m + A[0, 0], A[1, 0], m + A[1, 1]
    a31, a32, a33 = A[2, 0], A[2, 1], Iz + A[2, 2]
    l21, l31 = a21 / a11, a31 / a11
    d2 = a22 - l21 * a21
    l32 = (a32 - l31 * a21) / d2
    d3 = a33 - l31 * a31 - l32 * (a32 - l31 * a21)
    y2 = b[1] - l21 * b[0]
    x3 = (b[2] - l31 * b[0] - l32 * y2) / d3
    x2 = y2 / d2 - l32 * x3
    return b[0] / a11 - l21 * x2 - l31 * x3, x2, x3
