"""What is sampled keeps its own rate in a fit, so that the steps around it must divide that."""

from mime.core.program import Program

SAMPLES = 4
"""Samples of an interval between two rows, and the degree of the polynomial through them."""
FINEST = 256
"""Steps of an interval at most."""

KEPT = 16
"""Samples of an interval that are kept at most. A current may settle in a fraction of a row, and
what is late by a part of a row is read there; halving the steps then shows the error of that."""


def kept_every(steps: int) -> int:
    """Every how many steps of an interval are kept: most samples up to `KEPT`, in whole pieces."""
    pieces = steps // SAMPLES
    return min(k for k in range(1, pieces + 1) if pieces % k == 0 and steps // k <= KEPT)


def sampled_nodes(program: Program) -> tuple[str, ...]:
    """Nodes that keep their rate: they say so, or do not say and are slower than the fastest."""
    periods = dict(program.wiring.periods)
    return tuple(
        name
        for name, node in program.nodes.items()
        if node.is_sampled or (node.is_sampled is None and periods[name] > 1)
    )


def commensurate(program: Program, period_s: float) -> float:
    """The nearest period that the timestep of what is sampled divides, or that divides it.

    Of rows that are not whole periods apart any period is as good as another near it.
    """
    own = max((program.nodes[name].timestep for name in sampled_nodes(program)), default=0.0)
    if own == 0.0:
        return period_s
    return own * round(period_s / own) if period_s >= own else own / round(own / period_s)


def is_commensurate(program: Program, period_s: float) -> bool:
    """Whether steps divide both a period and the timesteps of what is sampled."""
    own = [program.nodes[name].timestep for name in sampled_nodes(program)]
    steps = range(SAMPLES, FINEST + 1, SAMPLES)
    return any(all(is_whole(t * n / period_s) for t in own) for n in steps)


def is_whole(steps: float) -> bool:
    """A whole number of steps, one or more, but for rounding."""
    return abs(steps - round(steps)) < 1e-6 * steps and steps > 0.5
