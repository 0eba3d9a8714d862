"""MIME-NODE-121: range sensors on a body in a maze."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing, Frame, Ray, Value
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter
from mime.nodes.sensing.infrared import adc_from_distance, distance_from_adc
from mime.nodes.sensing.ray_casting import cast_direction, crossings_within
from mime.xla.stacking import stack_scalars

_HERE = "mime.nodes.sensing"
_NODE = f"{_HERE}.range_sensor.RangeSensorNode"
_CALIBRATION = ("ir_a_m", "ir_b", "ir_c_counts")
_PER_SENSOR = ("bias_m", *_CALIBRATION, "ir_offset_counts")


class RangeSensorNode(Node):
    """Rays from poses on a body to the nearest wall face of a maze, and what the sensors read.

        d = min over faces ahead of D / |cos(phi)|
        reading = clip(d + bias + sigma nu, min, max)

    and with an infrared sensor, by its counts,

        adc = round(c + offset + (a - d - bias - sigma nu)^(1/b) + sigma_c nu')
        reading = clip(a - (adc - c - offset)^b, min, max)

    Frame: x to the right (columns), y down (rows), angles clockwise. See `ray_casting` for the
    walls. Every part of the sensor's model is off unless its parameter is given.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-121",
        version="1.0.0",
        stability="experimental",
        summary="Range sensors on a body in a maze: rays to the nearest wall face, as they read.",
        equations=(
            r"d = \min_f D_f / |\cos\varphi_f|, \quad \partial d/\partial\varphi = d \tan\varphi",
            r"d_\mathrm{beam}^{-2} = \frac{1}{2\beta}\int_{-\beta}^{\beta} d(\theta)^{-2}\,d\theta",
            r"\hat d = \operatorname{clip}(d + \mathrm{bias} + \sigma\nu,\, d_{\min},\, d_{\max}), "
            r"\quad \nu \sim \mathcal N(0, 1)",
            r"\mathrm{adc} = \operatorname{round}(c + o + (a - d)^{1/b} + \sigma_c\nu), \quad "
            r"\hat d = a - (\mathrm{adc} - c - o)^b \quad \text{(optional)}",
        ),
        discretisation=(
            "Readings are sampled once per step, or once per hold_steps; nothing is integrated.",
            "A reading leaves the pipeline delay_samples samples after it was taken.",
            "The beam's integral is Gauss-Legendre quadrature with beam_rays rays.",
        ),
        assumptions=(
            "Walls are vertical, of one thickness, on a square grid, with a post on every corner.",
            "Surfaces are matt and equally bright, at any angle of incidence.",
            "A beam is equally bright over its cone; a ray that meets nothing ends at max_range_m.",
            "The calibration a, b, c, offset is right: it makes the counts and reads them.",
        ),
        limitations=(
            "The body itself hides nothing, and other robots are not seen.",
            "Distances have a kink where the ray passes an edge, and their gradient jumps there.",
            "Outside min_range_m to max_range_m readings are clipped, and gradients are 0.",
            "The gradient of a quantised reading is 0, unless straight_through=True.",
        ),
        validated_ranges=(
            ValidatedRange("max_range_m", 0.15, 2.0, "m", "against all boxes of the maze"),
            ValidatedRange("wall_thickness_m", 0.012, 0.05, "m"),
        ),
        changelog=(("1.0.0", "2026-11-16", "First version."),),
        references=(
            "[@Thrun2005] Thrun, S., Burgard, W., Fox, D. (2005). Probabilistic Robotics, chapter "
            "6. MIT Press.",
            "[@Amanatides1987] Amanatides, J., Woo, A. (1987). A fast voxel traversal algorithm "
            "for ray tracing.",
            "[@Benet2002] Benet, G. et al. (2002). Using infrared sensors for distance "
            "measurement in mobile robots. Robotics and Autonomous Systems 40(4).",
        ),
        implementation=(
            Mapped("d", f"{_HERE}.ray_casting.cast_direction"),
            Mapped("d_beam, hat d", f"{_NODE}.compute_boundary_fluxes"),
            Mapped("adc", f"{_HERE}.infrared.adc_from_distance"),
            Mapped("a - (adc - c - o)^b", f"{_HERE}.infrared.distance_from_adc"),
            Mapped("pipeline, key of nu", f"{_NODE}.update"),
        ),
    )

    horizontal_walls: Float[Array, "_ _"] = parameter(
        "", at_least=0.0, at_most=1.0, shape=None, doc="(rows + 1, cols), 1 where a wall stands"
    )
    vertical_walls: Float[Array, "_ _"] = parameter(
        "", at_least=0.0, at_most=1.0, shape=None, doc="(rows, cols + 1), 1 where a wall stands"
    )
    sensor_poses_body: Any = parameter(
        "m", shape=None, folds=True, doc="(S, 3): forward, right, angle [rad]"
    )
    cell_size_m: Any = parameter("m", above=0.0, folds=True, default=0.18, doc="side of a cell")
    wall_thickness_m: Any = parameter("m", above=0.0, folds=True, default=0.012)
    min_range_m: Any = parameter("m", above=0.0, folds=True, default=0.01, doc="least reading")
    max_range_m: Any = parameter(
        "m", above=0.0, folds=True, default=0.15, doc="largest reading: nothing is seen"
    )
    bias_m: Any = parameter("m", shape=None, default=None, doc="per sensor, added to the distance")
    noise_m: Scalar | None = parameter("m", at_least=0.0, default=None, doc="sigma, of distances")
    noise_counts: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="sigma_c, of an infrared sensor's counts"
    )
    beam_half_angle_rad: Any = parameter(
        "rad", above=0.0, at_most=1.5, folds=True, default=None, doc="beta; a thin ray when absent"
    )
    ir_a_m: Any = parameter("m", shape=None, default=None, doc="a; with b and c: infrared")
    ir_b: Any = parameter("", above=0.0, shape=None, default=None, doc="b")
    ir_c_counts: Any = parameter("", shape=None, default=None, doc="c")
    ir_offset_counts: Any = parameter("", shape=None, default=None, doc="offset, ambient light")
    adc_bits: int | None = option(default=None)
    """Readings are rounded to 2^bits steps of a converter: counts, or 0 to max_range_m."""
    beam_rays: int = option(default=5)
    """Rays in a beam, for its quadrature."""
    delay_samples: int = option(default=0)
    """Samples that a reading is late."""
    hold_steps: int = option(default=1)
    """Steps from one sample to the next; the reading is held between."""
    seed: int = option(default=0)
    """Seed of the noise. Two noisy nodes in one graph need two seeds."""
    straight_through: bool = option(default=False)
    """Differentiate a quantised reading as if it were not."""
    crossings_per_axis: int | None = option(default=None)
    """Wall lines looked at along x and along y, by default those that max_range_m reaches. Give
    `ray_casting.crossings_within` of the extremes when lengths vary in a batch."""

    def __post_init__(self) -> None:
        if self.crossings_per_axis is None:
            self.crossings_per_axis = self._crossings_needed()

    def _crossings_needed(self) -> int | None:
        """`crossings_within` of the node's lengths; None where they are traced or not numbers."""
        try:
            return crossings_within(self.cell_size_m, self.wall_thickness_m, self.max_range_m)
        except (TypeError, ValueError, ArithmeticError):
            return None

    def value_problems(self) -> Iterator[Problem]:
        poses = jnp.shape(self.sensor_poses_body)
        if len(poses) != 2 or poses[0] < 1 or poses[1] != 3:
            yield Problem(("sensor_poses_body",), f"must have shape (S, 3), got {poses}")
        horizontal, vertical = jnp.shape(self.horizontal_walls), jnp.shape(self.vertical_walls)
        if len(horizontal) != 2 or vertical != (horizontal[0] - 1, horizontal[1] + 1):
            expected = "must be (R + 1, C) and vertical_walls (R, C + 1) in a maze of R x C cells"
            yield Problem(("horizontal_walls",), f"{expected}, got {horizontal} and {vertical}")
        for name in _PER_SENSOR:
            shape = jnp.shape(0.0 if getattr(self, name) is None else getattr(self, name))
            if shape not in ((), poses[:1]):
                expected = f"must be one number or one per sensor, shape {poses[:1]}"
                yield Problem((name,), f"{expected}, got shape {shape}")
        for name, least in (("beam_rays", 1), ("delay_samples", 0), ("hold_steps", 1)):
            if getattr(self, name) < least:
                yield Problem((name,), f"must be >= {least}, got {getattr(self, name)}")
        if self.adc_bits is not None and not 1 <= self.adc_bits <= 24:
            yield Problem(("adc_bits",), f"must be 1 to 24, got {self.adc_bits}")
        missing = [name for name in _CALIBRATION if getattr(self, name) is None]
        if 0 < len(missing) < 3:
            yield Problem((missing[0],), "is missing", f"Give all of {', '.join(_CALIBRATION)}")
        for name in ("ir_offset_counts", "noise_counts"):
            if len(missing) == 3 and getattr(self, name) is not None:
                hint = f"Give {', '.join(_CALIBRATION)} too"
                yield Problem((name,), "belongs to an infrared sensor", hint)
        yield from self._order("min_range_m", "max_range_m")
        yield from self._order("wall_thickness_m", "cell_size_m")
        if not missing:
            yield from self._order("max_range_m", "ir_a_m")
        needed, given = self._crossings_needed(), self.crossings_per_axis
        if needed is not None and needed > (given or needed):
            reach = (
                f"reaches {needed} wall lines at {self.max_range_m} m, the node looks at {given}"
            )
            yield Problem(
                ("max_range_m",), reach, f"Build the node again with crossings_per_axis={needed}"
            )

    def _order(self, smaller: str, larger: str) -> Iterator[Problem]:
        low, high = getattr(self, smaller), getattr(self, larger)
        if known(low, high) and not np.all(np.asarray(low) < np.asarray(high)):
            yield Problem((smaller,), f"must be below {larger}, got {low} and {high}")

    def drawing(self) -> Drawing:
        """A ray for each sensor, as long as its reading; z points into the floor."""
        frames = [
            Frame("floor", pose=(0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)),
            Frame("body", "floor", follow=Value("pose_world"), planar=True),
        ]
        rays = []
        for i, (forward, right, angle) in enumerate(np.asarray(self.sensor_poses_body, float)):
            half = 0.5 * angle
            pose = (forward, right, -0.02, np.cos(half), 0.0, 0.0, np.sin(half))
            frames.append(Frame(f"sensor {i}", "body", tuple(float(x) for x in pose)))
            colour = (0.1, 0.6, 0.9, 0.9)
            rays.append(Ray(f"sensor {i}", rgba=colour, layer="rays", length=Value("reading", i)))
        return Drawing(tuple(frames), tuple(rays))

    @property
    def num_sensors(self) -> int:
        """S."""
        return int(self.sensor_poses_body.shape[0])

    @property
    def infrared(self) -> bool:
        """True when readings pass through counts of a, b, c."""
        return self.ir_a_m is not None

    @property
    def _noises(self) -> int:
        return (self.noise_m is not None) + (self.noise_counts is not None)

    @property
    def _piped(self) -> bool:
        return self.delay_samples > 0 or self.hold_steps > 1

    def boundary_input_spec(self) -> dict[str, Input]:
        return {"pose_world": Input((3,), "m", 0.0, "replacive", "x, y and heading [rad]")}

    def boundary_flux_spec(self) -> dict[str, Output]:
        S = self.num_sensors
        spec = {
            "distance": Output((S,), "m", "true distance along each ray, clipped to the range"),
            "reading": Output((S,), "m", "distance as the sensor reads it"),
        }
        if self.infrared:
            spec["adc"] = Output((S,), "", "counts of the reading")
        return spec

    def state_spec(self) -> dict[str, Output]:
        S, spec = self.num_sensors, {}
        if self._noises:
            spec["key"] = Output((2,), "", "of the random generator: step and seed")
        if self._piped:
            unit = "" if self.infrared else "m"
            spec["samples"] = Output((self.delay_samples + 1, S), unit, "newest first")
        if self.hold_steps > 1:
            spec["held"] = Output((), "", "steps since the last sample; 0 takes the next")
        return spec

    def initial_state(self) -> State:
        """Nothing seen yet: every sample in the pipeline is at `max_range_m`."""
        state = super().initial_state()
        if self._noises:
            state["key"] = jax.random.key_data(jax.random.key(self.seed, impl="threefry2x32"))
        if self._piped:
            nothing = jnp.full(self.num_sensors, self.max_range_m)
            state["samples"] = jnp.broadcast_to(self._convert(nothing), state["samples"].shape)
        return state

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Advance the random key and the pipeline by a step.

        A seed is the key's second word: counting in the first gives each step a key of its own.
        """
        new: State = {}
        if self._noises:
            new["key"] = state["key"] + np.array([1, 0], np.uint32)
        if self._piped:
            samples = state["samples"]
            sample = self._sample(boundary_inputs["pose_world"], new)[None]
            moved = jnp.concatenate([sample.astype(samples.dtype), samples[:-1]])
            if self.hold_steps > 1:
                moved = jnp.where(state["held"] == 0, moved, samples)
                new["held"] = jnp.mod(state["held"] + 1.0, self.hold_steps)
            new["samples"] = moved
        return new

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The true distances, and the readings that leave the pipeline."""
        pose = boundary_inputs["pose_world"]
        sample = state["samples"][-1] if self._piped else self._sample(pose, state)
        fluxes = {"distance": self._distances(pose), "reading": self._clip(self._read(sample))}
        return fluxes | ({"adc": sample} if self.infrared else {})

    def _sample(self, pose: Any, state: State) -> Any:
        """What the converter gives: counts when infrared, else metres."""
        noise = None
        if self._noises:
            key = jax.random.wrap_key_data(state["key"], impl="threefry2x32")
            noise = jax.random.normal(key, (self._noises, self.num_sensors), pose.dtype)
        distance = self._distances(pose) if self.beam_half_angle_rad is None else self._beam(pose)
        if self.bias_m is not None:
            distance = distance + self.bias_m
        if self.noise_m is not None and noise is not None:
            distance = distance + self.noise_m * noise[0]
        return self._convert(distance, noise)

    def _convert(self, distance: Any, noise: Any = None) -> Any:
        if not self.infrared:
            if self.adc_bits is None:
                return distance
            step = jnp.asarray(self.max_range_m, distance.dtype) / (2**self.adc_bits - 1)
            return step * self._round(distance / step)
        counts = adc_from_distance(distance, *self._calibration())
        if self.noise_counts is not None and noise is not None:
            counts = counts + self.noise_counts * noise[-1]
        if self.adc_bits is None:
            return counts
        return jnp.clip(self._round(counts), 0.0, 2.0**self.adc_bits - 1.0)

    def _read(self, sample: Any) -> Any:
        return distance_from_adc(sample, *self._calibration()) if self.infrared else sample

    def _calibration(self) -> tuple[Any, ...]:
        offset = 0.0 if self.ir_offset_counts is None else self.ir_offset_counts
        return self.ir_a_m, self.ir_b, self.ir_c_counts, offset

    def _round(self, value: Any) -> Any:
        rounded = jnp.round(value)
        return value + jax.lax.stop_gradient(rounded - value) if self.straight_through else rounded

    def _beam(self, pose: Any) -> Any:
        """The distance at which a wall across the ray would send back the same light."""
        nodes, weights = np.polynomial.legendre.leggauss(self.beam_rays)
        turns = self.beam_half_angle_rad * nodes
        rays = self._distances(pose, turns).reshape(self.beam_rays, self.num_sensors)
        light = sum(0.5 * float(weight) / ray**2 for weight, ray in zip(weights, rays))
        return 1.0 / jnp.sqrt(light)

    def _distances(self, pose: Any, turns: Any = (0.0,)) -> Any:
        """True distances, clipped, of all sensors turned by the first of `turns`, then the next.

        Heading and place on the body meet in one product of matrices, since XLA's CPU compiler
        would otherwise work out the heading's sine and cosine again for every ray (see
        benchmarks/ray_casting.py).
        """
        pose = jnp.asarray(pose)
        count = len(turns)
        forward, right, angle = jnp.tile(jnp.asarray(self.sensor_poses_body, pose.dtype).T, count)
        angle = angle + jnp.repeat(jnp.asarray(turns, pose.dtype), self.num_sensors)
        c, s = jnp.cos(angle), jnp.sin(angle)
        by_cos = jnp.concatenate([forward, right, c, s])
        by_sin = jnp.concatenate([-right, forward, -s, c])
        heading = stack_scalars([jnp.cos(pose[2]), jnp.sin(pose[2])])
        turned = jnp.matmul(jnp.stack([by_cos, by_sin], axis=1), heading, precision="highest")
        x, y, dx, dy = turned.reshape(4, count * self.num_sensors)
        distance = cast_direction(
            x + pose[0],
            y + pose[1],
            dx,
            dy,
            self.horizontal_walls,
            self.vertical_walls,
            self.cell_size_m,
            self.wall_thickness_m,
            self.max_range_m,
            self.crossings_per_axis,
        )
        return self._clip(distance)

    def _clip(self, distance: Any) -> Any:
        low, high = (jnp.asarray(x, distance.dtype) for x in (self.min_range_m, self.max_range_m))
        return jnp.clip(distance, low, high)
