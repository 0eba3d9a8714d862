"""What no `RangeSensorNode` can have, beyond the ranges of its parameters one by one."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.sensing.ray_casting import crossings_within

_CALIBRATION = ("ir_a_m", "ir_b", "ir_c_counts")
_PER_SENSOR = ("bias_m", *_CALIBRATION, "ir_offset_counts")


def problems(node: Any) -> Iterator[str]:
    """Each in words; those of shapes first."""
    poses = jnp.shape(node.sensor_poses_body)
    if len(poses) != 2 or poses[0] < 1 or poses[1] != 3:
        yield f"sensor_poses_body must have shape (S, 3), got {poses}"
    horizontal, vertical = jnp.shape(node.horizontal_walls), jnp.shape(node.vertical_walls)
    if len(horizontal) != 2 or vertical != (horizontal[0] - 1, horizontal[1] + 1):
        yield (
            "a maze of R x C cells has horizontal_walls (R + 1, C) and vertical_walls (R, C + 1); "
            f"got {horizontal} and {vertical}"
        )
    for name in _PER_SENSOR:
        shape = jnp.shape(0.0 if getattr(node, name) is None else getattr(node, name))
        if shape not in ((), poses[:1]):
            yield f"{name} must be one number or one per sensor, shape {poses[:1]}; got {shape}"
    for name, least in (("beam_rays", 1), ("delay_samples", 0), ("hold_steps", 1)):
        if getattr(node, name) < least:
            yield f"{name} must be >= {least}, got {getattr(node, name)}"
    if node.adc_bits is not None and not 1 <= node.adc_bits <= 24:
        yield f"adc_bits must be 1 to 24, got {node.adc_bits}"
    yield from _infrared(node)
    yield from _order(node, "min_range_m", "max_range_m")
    yield from _order(node, "wall_thickness_m", "cell_m")
    needed = crossings_needed(node)
    if needed is not None and needed > (node.crossings_per_axis or needed):
        yield (
            f"max_range_m = {node.max_range_m} reaches {needed} wall lines, and the node looks at "
            f"{node.crossings_per_axis} only. Build it anew, or give crossings_per_axis={needed}"
        )


def crossings_needed(node: Any) -> int | None:
    """`crossings_within` of the node's lengths; None when they are traced, or no lengths."""
    try:
        return crossings_within(node.cell_m, node.wall_thickness_m, node.max_range_m)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _infrared(node: Any) -> Iterator[str]:
    given = [name for name in _CALIBRATION if getattr(node, name) is not None]
    if 0 < len(given) < 3:
        yield f"an infrared sensor needs ir_a_m, ir_b and ir_c_counts; got {', '.join(given)} only"
    for name in ("ir_offset_counts", "noise_counts"):
        if not given and getattr(node, name) is not None:
            yield f"{name} is of an infrared sensor: give ir_a_m, ir_b and ir_c_counts too"
    if len(given) == 3:
        yield from _order(node, "max_range_m", "ir_a_m")


def _order(node: Any, smaller: str, larger: str) -> Iterator[str]:
    low, high = getattr(node, smaller), getattr(node, larger)
    if isinstance(low, jax.core.Tracer) or isinstance(high, jax.core.Tracer):
        return
    if not np.all(np.asarray(low) < np.asarray(high)):
        yield f"{smaller} must be below {larger}, got {low} and {high}"
