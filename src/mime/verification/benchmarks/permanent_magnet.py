"""MIME-VER-180 to 182: field and gradient of a permanent magnet, its pose and a background."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from mime.core.node import Scalar, State, Values
from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode
from mime.verification.benchmark import Measurement, benchmark, replaced

_AT_REST = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
_AXES = (("axial", (0.0, 0.0, 1.0)), ("diametral", (1.0, 0.0, 0.0)), ("askew", (1.0, 2.0, 2.0)))


@benchmark(
    180,
    "Field of a magnetised cylinder",
    PermanentMagnetNode,
    replaced("a dipole stands for the cylinder", model="dipole"),
)
def magnet_field(
    Magnet, *, moment_a_m2=18.89, radius_m=0.0175, length_m=0.02, within_m=(0.004, 0.4), points=24
):
    r"""$\mathbf B = \frac{B_r}{4\pi}\oint \hat{\mathbf t}\times\mathbf r/r^3\,dA$ (axial),
    $\frac{B_r}{4\pi}\oint\cos\varphi\,\mathbf r/r^3\,dA$ and $B_r$ inside (across)

    The exact field of a uniformly magnetised cylinder, near and far, outside and inside.

    Reference: The sheet of current, or the charges, on the mantle: in closed form over the length,
    SciPy's `quad` over the angle.
    Procedure:
    1. Magnetise the cylinder along its axis, across it, and askew.
    2. Compare B at random points (seed 0), their distances spread logarithmically.
    Covers: both magnetisations and their sum, inside and outside
    Excludes: the rim, where B is infinite; the surface, where it jumps
    """
    remanence_t = scipy.constants.mu_0 * moment_a_m2 / (math.pi * radius_m**2 * length_m)
    there = _points(within_m, points)
    for words, axis in _AXES:
        magnet = Magnet(
            "magnet", 1e-3, moment_a_m2=moment_a_m2, radius_m=radius_m, length_m=length_m,
            magnetisation_axis=axis, points=points,
        )  # fmt: skip
        m = remanence_t * np.array(axis) / np.linalg.norm(axis)
        expected = np.array([_sheets(p, m, radius_m, 0.5 * length_m) for p in there])
        error = np.linalg.norm(_fluxes(magnet, there)["field_world"] - expected, axis=1)
        relative = float(np.max(error / np.linalg.norm(expected, axis=1)))
        why = "what is asked of the quadrature"
        yield Measurement(f"largest relative error, {words}", relative, 1e-12, why=why)


class _NotTurned(PermanentMagnetNode):
    """The gradient is R B' where it should be R B' Rᵀ, with R a half turn about x."""

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        fluxes = super().compute_boundary_fluxes(state, boundary_inputs, dt)
        half_turn = np.array([1.0, -1.0, -1.0])
        return {
            **fluxes,
            "field_gradient_world": fluxes["field_gradient_world"] * half_turn[None, None],
        }


@benchmark(181, "Gradient of a magnet's field", PermanentMagnetNode, _NotTurned)
def magnet_gradient(
    Magnet, *, moment_a_m2=18.89, radius_m=0.0175, length_m=0.02, within_m=(0.03, 0.4), points=24
):
    r"""$\nabla\cdot\mathbf B = 0$, $\nabla\times\mathbf B = 0$,
    $\partial B_i/\partial p_j = \lim_{h\to 0}(B_i(p + h e_j) - B_i(p - h e_j))/2h$

    The gradient obeys Maxwell's equations, and is that of the field.

    Reference: Maxwell's equations in free space; central differences of the field itself.
    Procedure:
    1. Turn the magnet upside down (half a turn about x).
    2. Take trace and antisymmetric part of the gradient at random points (seed 0).
    3. Compare it with central differences over 1 µm.
    Covers: both magnetisations, a turned magnet
    Excludes: the field itself (MIME-VER-180)
    """
    upside_down, h = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0), 1e-6
    there = _points(within_m, points)
    for words, axis in _AXES[:2]:
        magnet = Magnet(
            "magnet", 1e-3, moment_a_m2=moment_a_m2, radius_m=radius_m, length_m=length_m,
            magnetisation_axis=axis, points=points,
        )  # fmt: skip
        gradient = _fluxes(magnet, there, upside_down)["field_gradient_world"]
        size = np.linalg.norm(gradient, axis=(1, 2))
        divergence = np.abs(np.trace(gradient, axis1=1, axis2=2)) / size
        curl = np.linalg.norm(gradient - gradient.transpose(0, 2, 1), axis=(1, 2)) / size
        why = "a difference of the magnet's two ends loses (r/a)² roundings"
        yield Measurement(f"divergence, {words}", float(divergence.max()), 1e-11, why=why)
        yield Measurement(f"curl, {words}", float(curl.max()), 1e-11, why=why)
        slopes = np.empty_like(gradient)
        for j, step in enumerate(h * np.eye(3)):
            ahead = _fluxes(magnet, there + step, upside_down)["field_world"]
            behind = _fluxes(magnet, there - step, upside_down)["field_world"]
            slopes[:, :, j] = (ahead - behind) / (2.0 * h)
        error = np.linalg.norm(gradient - slopes, axis=(1, 2)) / size
        why = "h²/r² of the differences, and 1e-16 r/h of their roundings"
        yield Measurement(f"against differences, {words}", float(error.max()), 1e-7, why=why)


class _TurnedBackground(PermanentMagnetNode):
    """The background field turns with the magnet."""

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        fluxes = super().compute_boundary_fluxes(state, boundary_inputs, dt)
        if self.background_field_t is None:
            return fluxes
        turned = self.background_field_t * np.array([0.0, -2.0, -2.0])
        return {**fluxes, "field_world": fluxes["field_world"] + turned[None]}


@benchmark(182, "Pose of a magnet, and a background field", PermanentMagnetNode, _TurnedBackground)
def magnet_background(
    Magnet, *, moment_a_m2=18.89, background_field_t=(2e-5, -1e-5, 4.5e-5), points=24
):
    r"""$\mathbf B(\mathbf p) = R\mathbf B_m(R^\top(\mathbf p - \mathbf c)) + \mathbf B_0$

    A field that is there anyway adds in the world's axes, wherever the magnet points.

    Reference: A dipole in NumPy, turned by half a turn about x and moved.
    Procedure: Compare B of magnet and background at random points (seed 0).
    Covers: pose, background
    Excludes: a cylinder's own field (MIME-VER-180)
    """
    pose = (0.1, -0.05, 0.2, 0.0, 1.0, 0.0, 0.0)
    there = _points((0.05, 0.5), points) + np.array(pose[:3])
    magnet = Magnet(
        "magnet", 1e-3, moment_a_m2=moment_a_m2, magnetisation_axis=(0.0, 1.0, 1.0),
        model="dipole", background_field_t=background_field_t, points=points,
    )  # fmt: skip
    m = moment_a_m2 / math.sqrt(2.0) * np.array([0.0, -1.0, -1.0])
    r = there - np.array(pose[:3])
    distance = np.linalg.norm(r, axis=1)[:, None]
    dipole = scipy.constants.mu_0 / (4.0 * np.pi) * (3.0 * (r @ m)[:, None] * r / distance**2 - m)
    expected = dipole / distance**3 + np.array(background_field_t)
    error = np.linalg.norm(_fluxes(magnet, there, pose)["field_world"] - expected, axis=1)
    relative = float(np.max(error / np.linalg.norm(expected, axis=1)))
    yield Measurement("largest relative error", relative, 1e-14, why="some ten roundings")


def _points(within_m: tuple[float, float], count: int) -> np.ndarray:
    direction = np.random.default_rng(0).normal(size=(count, 3))
    distance = np.geomspace(*within_m, count)
    return direction * (distance / np.linalg.norm(direction, axis=1))[:, None]


def _fluxes(
    magnet: PermanentMagnetNode, points: np.ndarray, pose: tuple[float, ...] = _AT_REST
) -> dict[str, np.ndarray]:
    inputs = {"points_world": points, "magnet_pose_world": np.array(pose)}
    fluxes = magnet.compute_boundary_fluxes({}, inputs, magnet.timestep)
    return {name: np.array(value) for name, value in fluxes.items()}


def _sheets(p: np.ndarray, m: np.ndarray, a: float, half: float) -> np.ndarray:
    """B of a cylinder with B_r = m: a current around it, and charges on its mantle."""
    x, y, z = p

    def integrand(component: int) -> Callable[[float], float]:
        def at(angle: float) -> float:
            cos, sin = math.cos(angle), math.sin(angle)
            dx, dy = x - a * cos, y - a * sin
            w = dx * dx + dy * dy
            up, down = math.sqrt(w + (z + half) ** 2), math.sqrt(w + (z - half) ** 2)
            flat = ((z + half) / up - (z - half) / down) / w  # of 1/r³ over the length
            steep = 1.0 / down - 1.0 / up  # of u/r³
            current = m[2] * np.array([cos * steep, sin * steep, -(sin * dy + cos * dx) * flat])
            charge = (m[0] * cos + m[1] * sin) * np.array([dx * flat, dy * flat, steep])
            return float(a / (4.0 * math.pi) * (current + charge)[component])

        return at

    there = math.atan2(y, x)
    limits = {"limit": 200, "epsabs": 1e-14, "epsrel": 1e-12, "points": [there % (2.0 * math.pi)]}
    field = [scipy.integrate.quad(integrand(i), 0.0, 2.0 * math.pi, **limits)[0] for i in range(3)]
    inside = x * x + y * y < a * a and abs(z) < half
    return np.array(field) + (np.array([m[0], m[1], 0.0]) if inside else 0.0)
