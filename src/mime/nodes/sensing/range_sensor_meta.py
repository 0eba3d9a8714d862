"""Metadata of `RangeSensorNode`: the source of its docs page and reports."""

from mime.core.spec import Mapped, NodeMeta, ValidatedRange

_SENSING = "mime.nodes.sensing"
_NODE = f"{_SENSING}.range_sensor.RangeSensorNode"

RANGE_SENSOR_META = NodeMeta(
    id="MIME-NODE-121",
    version="1.0.0",
    stability="experimental",
    summary="Range sensors on a body in a maze: rays to the nearest wall face, and what is read.",
    equations=(
        r"d = \min_f D_f / |\cos\varphi_f|, \quad \partial d/\partial\varphi = d \tan\varphi",
        r"d_\mathrm{beam}^{-2} = \frac{1}{2\beta}\int_{-\beta}^{\beta} d(\theta)^{-2}\,d\theta "
        r"\quad \text{(optional)}",
        r"\hat d = \operatorname{clip}(d + \mathrm{bias} + \sigma\nu,\, d_{\min},\, d_{\max}), "
        r"\quad \nu \sim \mathcal N(0, 1)",
        r"\mathrm{adc} = \operatorname{round}(c + o + (a - d)^{1/b} + \sigma_c\nu), \quad "
        r"\hat d = a - (\mathrm{adc} - c - o)^b \quad \text{(optional)}",
    ),
    discretisation=(
        "Sampled once a step, or once in hold_steps; no integration.",
        "A reading leaves the pipeline delay_samples samples after it was taken.",
        "The beam's integral is Gauss-Legendre quadrature with beam_rays rays.",
    ),
    assumptions=(
        "Walls are vertical, of one thickness, on a square grid; a post stands on every corner.",
        "Surfaces are matt and equally bright; the angle of incidence does not change a reading.",
        "A beam is equally bright over its cone, in the plane; a ray that meets nothing counts as "
        "one that ends at max_range_m.",
        "The calibration a, b, c, offset is right: it makes the counts and reads them.",
    ),
    limitations=(
        "The body itself hides nothing, and other robots are not seen.",
        "Distances have a kink where the ray passes an edge, and their gradient jumps there.",
        "Outside min_range_m to max_range_m readings are clipped, and gradients are 0.",
        "The gradient of a quantised reading is 0; straight_through=True gives that of the "
        "unquantised one.",
    ),
    validated_ranges=(
        ValidatedRange("max_range_m", 0.15, 2.0, "m", "against all boxes of the maze"),
        ValidatedRange("wall_thickness_m", 0.012, 0.05, "m"),
    ),
    references=(
        "Thrun, S., Burgard, W., Fox, D. (2005). Probabilistic Robotics, chapter 6. MIT Press.",
        "Amanatides, J., Woo, A. (1987). A fast voxel traversal algorithm for ray tracing.",
        "Benet, G. et al. (2002). Using infrared sensors for distance measurement in mobile "
        "robots. Robotics and Autonomous Systems 40(4).",
    ),
    implementation=(
        Mapped("d", f"{_SENSING}.ray_casting.cast_direction"),
        Mapped("d_beam, hat d", f"{_NODE}.compute_boundary_fluxes"),
        Mapped("adc", f"{_SENSING}.infrared.adc_from_distance"),
        Mapped("a - (adc - c - o)^b", f"{_SENSING}.infrared.distance_from_adc"),
        Mapped("pipeline, key of nu", f"{_NODE}.update"),
    ),
)
