"""MIME-VER-191: thrust, torque and drag of helices that were measured."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
from mime.verification.benchmark import Finding, Measurement, benchmark, scaled

_NAMES = ("thrust", "torque", "drag")
_MEASURED = {  # pitch over radius: thrust, torque, drag; of wires 20.635 radii long, 0.063 thick
    2.226: (6.264, 131.93, 52.06),
    3.677: (9.598, 100.80, 46.96),
    6.509: (11.034, 81.93, 39.41),
    9.811: (9.569, 72.69, 35.29),
    15.241: (7.845, 68.07, 34.12),
}


class _Computed(NamedTuple):
    """What the authors' own program gave, for a helix of radius 1."""

    pitch: float
    length: float
    filament: float
    lighthill: tuple[float, ...]
    johnson: tuple[float, ...]
    stokeslets: tuple[float, ...] | None


_PROGRAM = (
    _Computed(10.0, 30.8, 0.04, (12.1864, 91.1528, 43.0764), (12.0108, 87.8737, 41.7128),
              (12.0935, 90.8023, 42.810)),
    _Computed(9.811, 130 / 6.3, 0.397 / 6.3, (9.251, 69.27, 34.13), (9.156, 66.43, 32.88), None),
)  # fmt: skip


@benchmark(191, "Helices that were measured", HelicalSwimmerNode, scaled("filament_radius_m", 2.0))
def measured_helices(
    Swimmer: Any, *, viscosity_pa_s: float = 100.0, helix_radius_m: float = 6.3e-3
) -> Iterator[Finding]:
    r"""$F = R_{36}\,\Omega$, $T = R_{66}\,\Omega$, $D = R_{33}\,U$

    Thrust and torque of a wire helix that turns in silicone oil and is held, and its drag along its
    axis.

    Reference: Rodenborn et al. (2013): the measurements of their figure 2, as read off it by
    Djutanta et al. (2022), and results of their program, which those recorded beside them: slender
    bodies of Lighthill and of Johnson, and regularised Stokeslets (github.com/fdjutant/flagella3D,
    scripts/2022_07_04_rodenborn_abd_results.py, figure_scripts/2022_05_19_data_for_fig4d.py).
    Procedure:
    1. Take the resistance of each helix by Stokeslets.
    2. Compare it, over mu times the radius, its square and its cube, with all of them.
    Covers: regularised Stokeslets of a filament, in open fluid
    Excludes: head, tube (MIME-VER-187), resistive-force theory, which is off up to fivefold here
    """

    def found(pitch: float, length: float, filament: float) -> np.ndarray:
        r = helix_radius_m
        swimmer = Swimmer(
            "helix", 1e-3, pitch_m=pitch * r, helix_radius_m=r, turns=length / pitch,
            filament_radius_m=filament * r, viscosity_pa_s=viscosity_pa_s, theory="stokeslets",
        )  # fmt: skip
        R = np.abs(np.asarray(swimmer.resistance())) / viscosity_pa_s
        return np.array([R[2, 5] / r**2, R[5, 5] / r**3, R[2, 2] / r])

    outside = np.zeros(3)
    for case in _PROGRAM:
        ours = found(case.pitch, case.length, case.filament)
        low, high = np.array(case.johnson), np.array(case.lighthill)
        outside = np.maximum(outside, np.maximum(low / ours - 1.0, ours / high - 1.0))
        if case.stokeslets is not None:
            off = np.abs(ours / np.array(case.stokeslets) - 1.0)
            for name, error, limit in zip(_NAMES, off, (0.005, 0.025, 0.01), strict=True):
                why = "blobs of another size, some 1 % of a logarithm"
                words = f"{name} off their Stokeslets"
                yield Measurement(words, float(error), limit, why=why)
    why = "both are slender-body theories, with errors of the order of a/R on either side"
    words = "beyond what Lighthill's and Johnson's slender bodies enclose"
    yield Measurement(words, float(max(0.0, outside.max())), 0.0, why=why)
    wires = {p: found(p, 130 / 6.3, 0.397 / 6.3) / np.array(m) - 1 for p, m in _MEASURED.items()}
    longest = max(wires)
    others = np.abs([off for pitch, off in wires.items() if pitch != longest]).max(axis=0)
    for name, error in zip(_NAMES, others, strict=True):
        why = "a few percent of the measurement and of reading a figure; their theories are as low"
        yield Measurement(f"{name} off measured, pitch up to 10 R", float(error), 0.08, why=why)
    why = "measured values are above ours there; of theirs, no computed ones are at hand"
    worst = float(np.abs(wires[longest]).max())
    yield Measurement("worst off measured, pitch of 15 R", worst, 0.13, why=why)
