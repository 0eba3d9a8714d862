"""The mouse's body: Smartmouse's measures, and where its sensors sit."""

WHEEL_RADIUS_M = 0.0145
TRACK_WIDTH_M = 0.053
TICKS_PER_TURN = 16384.0
"""Counts of an encoder per turn of its wheel."""

OUTLINE_M = (
    *((-0.04, 0.0375), (-0.04, -0.0375), (0.03, -0.0375), (0.05, -0.022)),
    *((0.06, -0.008), (0.06, 0.008), (0.05, 0.022), (0.03, 0.0375)),
)
"""Vertices [forward, right] about the axle's midpoint: 0.1 m long, 0.075 m wide, 0.061 m around."""

SENSOR_POSES = (
    (0.055, 0.0, 0.0),
    (0.035, -0.026, -1.3446),
    (0.035, 0.026, 1.3446),
    (0.040, -0.022, -0.7854),
    (0.040, 0.022, 0.7854),
    (-0.0256, -0.03, -1.48353),
    (-0.0256, 0.03, 1.48353),
)
"""Range sensors [forward m, right m, angle rad]: front; front left and right; look-ahead left and
right; back left and right."""
