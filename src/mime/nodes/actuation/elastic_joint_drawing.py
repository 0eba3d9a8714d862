"""What there is to see of an elastic joint: its rotor, its output, and the spring between them."""

from mime.core.drawing import Drawing, Frame, Solid, Twist, Value

SIZE_M = 0.1
_ROTOR_RGBA, _OUTPUT_RGBA = (0.55, 0.6, 0.68, 1.0), (0.3, 0.5, 0.8, 1.0)
_MARK_RGBA = (0.9, 0.35, 0.1, 1.0)
_TWIST_RGBA = (0.1, 0.65, 0.4, 0.8)


def elastic_joint_drawing() -> Drawing:
    """Two discs on one axis with a mark on each; the angle between them as a sector."""
    ahead = (0.0, 0.0, 0.5 * SIZE_M, 1.0, 0.0, 0.0, 0.0)
    frames = (
        Frame("rotor", turn=Value("rotor_angle")),
        Frame("output", pose=ahead, turn=Value("output_angle")),
        Frame("spring", pose=(0.0, 0.0, 0.25 * SIZE_M, 1.0, 0.0, 0.0, 0.0)),
    )
    disc, mark = (0.4 * SIZE_M, 0.15 * SIZE_M), (0.4 * SIZE_M, 0.06 * SIZE_M, 0.02 * SIZE_M)
    at = (0.2 * SIZE_M, 0.0, 0.085 * SIZE_M, 1.0, 0.0, 0.0, 0.0)
    shapes = (
        Solid("rotor", rgba=_ROTOR_RGBA, form="cylinder", size=disc),
        Solid("output", rgba=_OUTPUT_RGBA, form="cylinder", size=disc),
        Solid("rotor", at, _MARK_RGBA, size=mark),
        Solid("output", at, _MARK_RGBA, size=mark),
        Twist(
            "spring",
            rgba=_TWIST_RGBA,
            layer="spring deflection",
            angle=Value("deflection"),
            radius=0.55 * SIZE_M,
            what="deflection",
        ),
    )
    return Drawing(frames, shapes, size_m=SIZE_M)
