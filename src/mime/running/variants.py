"""What differs between the members of a batch: parameters, initial states, inputs."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from mime.core.address import find, split_addresses
from mime.core.arguments import numbers
from mime.core.problem import InputError, ParameterError, Problem
from mime.core.program import Program
from mime.core.signals import (
    Constant,
    Function,
    Inputs,
    OfMembers,
    Series,
    Signals,
    as_float_array,
    check_pose,
    declared,
)
from mime.core.spec import Input
from mime.core.step import SimulationState
from mime.native.folding import jit_folding
from mime.native.members import OverMembers


@dataclasses.dataclass
class Split:
    """`{node: {name: values}}`: those that differ from member to member, and those of all."""

    varied: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """Batch axis first."""
    shared: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


class Variants:
    """What varies, with the batch axis first, and how many members there are."""

    def __init__(
        self,
        program: Program,
        steps: int,
        parameters: Mapping[str, Any] | None,
        initial: Mapping[str, Any] | None,
        inputs: Inputs | None,
        batch_size: int | None,
    ):
        self.program, self.steps = program, steps
        self.sizes: dict[str, int] = {} if batch_size is None else {"batch_size": batch_size}
        self.parameters = self._split(parameters, self._parameter_shape)
        for node, values in self.parameters.varied.items():
            for name, array in values.items():
                self._check_range(node, name, array)
        self.initial = self._split(initial, self._state_shape)
        self._measure_inputs(inputs)
        if not self.sizes:
            raise InputError("nothing varies: give values with a leading batch axis, or batch_size")
        if len(set(self.sizes.values())) > 1:
            found = ", ".join(f"{name}: {size}" for name, size in self.sizes.items())
            raise InputError(f"the batch axes disagree ({found})")
        self.size = next(iter(self.sizes.values()))
        if self.size < 1:
            raise InputError(f"a batch needs at least one member, got {self.size}")
        self._check_starts()
        self._sort_inputs(inputs)
        self.shared = program.with_parameters(self.parameters.shared)

    def _parameter_shape(self, node: str, name: str) -> tuple[int, ...]:
        leaf = find(self.program.nodes[node], name)
        value = leaf.of(self.program.nodes[node])
        return () if value is None else np.shape(value)

    def _state_shape(self, node: str, name: str) -> tuple[int, ...]:
        spec = self.program.nodes[node].state_spec()
        return spec[name].shape if name in spec else ()

    def _split(
        self, given: Mapping[str, Any] | None, shape_of: Callable[[str, str], tuple[int, ...]]
    ) -> Split:
        """Values that vary, told by their rank, and those that all members share."""
        found = Split()
        for node, name, value in split_addresses(given):
            array = np.asarray(numbers(f"{node}.{name}", value))
            known = node in self.program.nodes
            varies = known and array.ndim == len(shape_of(node, name)) + 1
            if varies:
                self.sizes[f"{node}.{name}"] = len(array)
            side = found.varied if varies else found.shared
            side.setdefault(node, {})[name] = array
        return found

    def _check_range(self, node: str, name: str, values: np.ndarray) -> None:
        """A parameter outside its range is refused with the member that has it."""
        spec = find(self.program.nodes[node], name).spec
        if spec is None or spec.allows(values):
            return
        for member, value in enumerate(values):
            if not spec.allows(np.asarray(value)):
                message = f"must be {spec.expected()}, got {value} for member {member}"
                raise ParameterError("run_batch", [Problem((node, name), message)])

    def _check_starts(self) -> None:
        """A start that no member can have is refused, with the member that has it."""
        self.program.checked_initial(self.initial.shared)
        for node, fields in self.initial.varied.items():
            for member in range(self.size):
                own = {node: {field: values[member] for field, values in fields.items()}}
                try:
                    self.program.checked_initial(own)
                except InputError as error:
                    (problem,) = error.problems
                    words = f"member {member}: {problem.message}"
                    raise InputError(words, place=problem.place) from None
                if self._are_sound(node, fields):  # names and shapes are those of the first
                    break

    def _are_sound(self, node: str, fields: Mapping[str, np.ndarray]) -> bool:
        finite = all(np.isfinite(values).all() for values in fields.values())
        return finite and not any(self.program.nodes[node].state_problems(fields))

    def _measure_inputs(self, inputs: Inputs | None) -> None:
        specs = self.program.input_specs()
        for node, field, value in declared(inputs, self.program.wiring.external):
            name = f"{node}.{field}"
            if isinstance(value, OfMembers):
                self.sizes[name] = value.size
            elif not callable(value):
                shape = np.shape(numbers(f"input {name}", value))
                if self._per_member(name, shape, specs[node][field]):
                    self.sizes[name] = shape[0]

    def _per_member(self, name: str, shape: tuple[int, ...], spec: Input) -> bool:
        rank = len(shape) - len(spec.shape)
        if rank == 2:
            return shape[0] > 1
        if rank != 1 or shape[0] == 1:
            return False
        if shape[0] == self.steps and shape[0] in self.sizes.values():
            raise InputError(
                f"input {name}: {shape[0]} values could be one per step or one per member. "
                f"Give it shape (1, {self.steps}, ...) for the former, "
                f"({shape[0]}, 1, ...) for the latter."
            )
        return shape[0] != self.steps

    def _sort_inputs(self, inputs: Inputs | None) -> None:
        """Shared signals as in a single run; those of one per member hold the batch axis first."""
        shared: dict[str, dict[str, Any]] = {}
        self.varied_signals: Signals = {}
        specs = self.program.input_specs()
        for node, field, value in declared(inputs, self.program.wiring.external):
            name, spec = f"{node}.{field}", specs[node][field]
            if isinstance(value, OfMembers):
                self.program.signals({node: {field: value.of(0)}}, self.steps)  # its shape
                self.varied_signals.setdefault(node, {})[field] = Function(value.function)
                continue
            if callable(value) or not self._per_member(name, np.shape(value), spec):
                one_for_all = not callable(value) and np.ndim(value) == len(spec.shape) + 2
                shared.setdefault(node, {})[field] = np.asarray(value)[0] if one_for_all else value
                continue
            array = check_pose(name, spec, as_float_array(name, value))
            signal = self._member_signal(name, spec, array)
            self.varied_signals.setdefault(node, {})[field] = signal
            self._check_goals(node, field, array)
        self.shared_signals = self.program.signals(shared, self.steps)

    def _check_goals(self, node: str, field: str, array: Array | np.ndarray) -> None:
        try:
            self.program.check_goal(node, field, array)
        except InputError:
            for member, values in enumerate(np.asarray(array)):
                self.program.check_goal(node, field, values, f" of member {member}")

    def _member_signal(
        self, name: str, spec: Input, array: Array | np.ndarray
    ) -> Constant | Series:
        if array.ndim == len(spec.shape) + 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.shape == (self.size, *spec.shape):
            return Constant(array)
        if array.shape == (self.size, self.steps, *spec.shape):
            return Series(array)
        raise InputError(
            f"input {name} has shape {array.shape}: expected {(self.size, *spec.shape)} for a "
            f"constant per member, or {(self.size, self.steps, *spec.shape)} for a series of each"
        )

    def initial_states(self, threads: int | None = None) -> SimulationState:
        """The members' states before the first step, batch axis first in all."""
        varied = (self.parameters.varied, self.initial.varied, np.arange(self.size))
        start = OverMembers(_initial_state, self.shared)
        return start(varied, self.initial.shared, members=self.size, threads=threads)

    def part(self, rows: slice) -> "Variants":
        """Some of the members."""
        part = copy.copy(self)
        varied, part.varied_signals = jax.tree.map(
            lambda x: x[rows], (self.parameters.varied, self.varied_signals)
        )
        part.parameters = Split(varied, self.parameters.shared)
        part.size = len(range(self.size)[rows])
        return part

    def member(self, index: int) -> tuple[Program, Signals]:
        """The graph of one member, and its inputs."""

        def own(values: Any) -> Any:
            return jax.tree.map(lambda x: x[index], values)

        program = self.shared.with_parameters(own(self.parameters.varied))
        return program, merged(self.shared_signals, own(self.varied_signals))


def merged(
    common: Mapping[str, Mapping[str, Any]], own: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """`{node: {field: value}}` of both; a member's own go first."""
    names = [*common, *(n for n in own if n not in common)]
    return {n: {**common.get(n, {}), **own.get(n, {})} for n in names}


def _state(shared: Program, varied: Any, common: Any) -> SimulationState:
    parameters, fields, _ = varied
    return shared.with_parameters(parameters).init_state(merged(common, fields))


_initial_state = jit_folding(_state)
