"""Runs of all plants as functions of the gains: figures, excess of limits, and margins."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.arguments import real, whole
from mime.core.problem import InputError
from mime.fitting.model import in_double
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario
from mime.tuning.gains import Gains
from mime.tuning.goal import Figures, Goal
from mime.tuning.loop_gain import LoopGain
from mime.tuning.loops import Loop, external_at, loops_of, period_of, scaled, step_matrix
from mime.tuning.margin_limits import MarginLimits
from mime.tuning.margins import Margin, is_one_signal, margin_of
from mime.tuning.plants import plants
from mime.tuning.start import at_start

_MOST_SAMPLES = 2000
"""Of a field in the pictures."""


@dataclasses.dataclass(frozen=True)
class Side:
    """All plants with one set of gains."""

    figures: np.ndarray
    """(plants, goals)"""
    recorded: Any
    margins: list[list[Margin]]
    """Of each loop, of each plant."""


class Run:
    """What is simulated: from the scenario, unless it is said."""

    def __init__(
        self, given: Any, duration: Any, inputs: Any, initial_state: Any = None, every: Any = None
    ) -> None:
        self.given = given
        scenario = given if isinstance(given, Scenario) else None
        self.simulation: Simulation = scenario.simulation if scenario else given
        if duration is None and scenario is None:
            raise InputError(
                "say how many seconds a run has", place=("duration",), label="duration:"
            )
        table = scenario.tables.simulation if scenario else None
        seconds = table.duration if duration is None and table else real("duration", duration, "s")
        self.steps = self.simulation.count_steps(seconds)
        own = table.every if table else max(1, -(-self.steps // _MOST_SAMPLES))
        self.every = min(own if every is None else whole("every", every, 1), self.steps)
        self.steps -= self.steps % self.every
        self.inputs = scenario.inputs if scenario and inputs is None else inputs
        fresh = scenario is not None and initial_state is None
        self.initial_state = scenario.initial_state if fresh and scenario else initial_state


class Bench:
    """Runs of all plants as functions of the gains."""

    def __init__(
        self,
        run: Run,
        gains: Any,
        goals: list[Goal],
        limits: Mapping[str, float],
        margins: Mapping[str, float],
        given: Any,
        members: int,
        random: np.random.Generator,
    ):
        self.run = run
        simulation = in_double(run.simulation)
        self.simulation, self.varied = plants(simulation, given, members, random)
        self.gains = Gains(self.simulation, gains)
        both = sorted({g.address for g in self.gains.entries} & set(self.varied))
        if both:
            raise InputError(
                f"{', '.join(both)} is a gain to tune", place=("plants",), label="plants:"
            )
        self.members = members if self.varied else 1
        every = run.every
        samples = 1 + np.arange(run.steps // every)
        self.time_s = samples * every * self.simulation.timestep
        self.figures = Figures(self.simulation, goals, self.time_s, limits)
        self.loops = loops_of(self.simulation, self.gains.entries)
        self.plants = {a: jnp.asarray(v) for a, v in self.varied.items()}
        period = period_of(self.simulation)
        self.period_s = period * self.simulation.timestep
        self.margin_limits = MarginLimits(margins, self.period_s, run.steps / period)

    def with_gains(self, values: Any, plant: Mapping[str, Any]) -> Simulation:
        """One plant with these gains."""
        return self.simulation.with_parameters({**plant, **self.gains.parameters(values)})

    def one(self, values: Any, plant: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Final state, recorded fields and figures of one plant."""
        simulation = self.with_gains(values, plant)
        first = simulation.init_state(self.run.initial_state)
        state, recorded = simulation.rollout(
            first,
            self.run.inputs,
            steps=self.run.steps,
            record=self.figures.record,
            every=self.run.every,
        )
        outside = external_at(simulation, self.run.inputs, self.run.steps)
        start = at_start(simulation, first, outside(first))
        return state, recorded, self.figures.values(recorded, start)

    def over_plants(self, function: Any, *shared: Any) -> Any:
        """A function of a plant for all of them; `shared` is the same in each."""
        if not self.plants:
            return jax.tree.map(lambda x: x[None], function(*shared, {}))
        axes = (*(None for _ in shared), 0)
        return jax.vmap(function, in_axes=axes)(*shared, self.plants)

    @cached_property
    def look(self) -> Any:
        """Final states, recorded fields and figures of all plants."""
        return jax.jit(lambda values: self.over_plants(self.one, values))

    @cached_property
    def matrices(self) -> Any:
        """A(g) of each plant at its final state, for one loop."""
        outside = external_at(self.simulation, self.run.inputs, self.run.steps)

        def of(loop: Loop, values: Any, factor: Any, states: Any) -> Any:
            def one(plant: Any, state: Any) -> Any:
                own = {**plant, **self.gains.parameters(values)}
                changed = scaled(self.simulation, loop, factor, own)
                simulation = self.simulation.with_parameters(changed)
                return step_matrix(simulation, state, outside(state))

            return jax.vmap(one)(self.plants, states)

        return jax.jit(of, static_argnums=0)

    def margins(self, values: np.ndarray, states: Any) -> list[list[Margin]]:
        """Of each loop, of each plant."""
        found = []
        for loop in self.loops:
            kept: dict[float, np.ndarray] = {}

            def of(factor: float, loop: Loop = loop, kept: Any = kept) -> np.ndarray:
                if factor not in kept:
                    kept[factor] = np.asarray(self.matrices(loop, values, factor, states))
                return kept[factor]

            self._refuse_without_loop_gain(loop, of)
            members = range(len(of(1.0)))
            found.append(
                [margin_of(lambda g, m=m, of=of: of(g)[m], self.period_s) for m in members]
            )
        return found

    def _refuse_without_loop_gain(self, loop: Loop, of: Callable[[float], np.ndarray]) -> None:
        """Margins were asked for, and there is no L(z) to have them."""
        if not self.margin_limits.said:
            return
        for closed, opened, half in zip(of(1.0), of(0.0), of(0.5), strict=True):
            if not all(np.isfinite(A).all() for A in (closed, opened, half)):
                continue
            gain = LoopGain(closed, opened)
            if gain.has_gain and not is_one_signal(gain, half):
                raise InputError(
                    f"the loop of {loop.name} has no L(z) to hold to margins: its gains "
                    f"({', '.join(loop.addresses)}) act within a step, on several signals, or more "
                    "than once in a period of all rates. Its gain margin is told without being "
                    "asked for; limit an overshoot or another figure instead",
                    place=("margins",),
                    label="margins:",
                )

    def side(self, values: np.ndarray) -> Side:
        """All plants with these gains."""
        states, recorded, figures = self.look(values)
        return Side(np.asarray(figures), recorded, self.margins(values, states))
