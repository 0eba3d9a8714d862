"""What a node is: a frozen value with physical parameters, typed inputs and outputs, and a step."""

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime._text import brief, nearest, quoted, warn_user
from mime.core.address import replace_value
from mime.core.drawing import Drawing
from mime.core.monitor import Monitor
from mime.core.parameters import Parameterised, as_numpy, with_fields
from mime.core.printing import node_text
from mime.core.problem import InputError, ParameterError, Problem
from mime.core.spec import Input, NodeMeta, Output, missing_functions
from mime.core.upward import drawer
from mime.native.folding import MOST_PROGRAMS, jit_folding, split

if TYPE_CHECKING:  # a field is given a number or an array and holds an array: no one type is both
    Scalar: TypeAlias = Any
    """`Float[Array, ""]`: a number that a gradient can be taken by, what a parameter holds."""
else:
    Scalar = Float[Array, ""]
State = dict[str, Array]
"""The state of a node: its fields by name."""
Values = Mapping[str, Any]
"""Inputs or fluxes by name. An input that is absent takes its spec's default."""


AnyNode = TypeVar("AnyNode", bound="Node")


def _as_float(value: Any) -> Any:
    """A number as a float; what is none stays, to be refused by name."""
    try:
        return value if isinstance(value, str | bool) else float(value)
    except Exception:  # an object's own `__float__` may raise anything
        return value


class Node(Parameterised):
    """A physical element.   x' = f(x, u, dt),   y = g(x', u, dt)

    A subclass declares its parameters as fields and writes five methods; see CONTRIBUTING.md. In
    `update` and `compute_boundary_fluxes` it receives *complete* inputs: absent ones are filled in
    with their defaults (NumPy constants) before its code runs, unknown ones are refused. Both are
    compiled on their first eager call, so stepping by hand costs microseconds.
    """

    meta: ClassVar[NodeMeta | None] = None
    is_sampled: ClassVar[bool | None] = None
    """True: its timestep is part of what it is, as of a controller that computes once a step and
    holds its command. False: equations that hold at any step. None: the class does not say."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Arguments of one that stands for its type, on its sheet, where ones do not make a node."""

    name: str = eqx.field(static=True)
    """The node's name in a graph."""
    timestep: float = eqx.field(static=True, converter=_as_float)
    """Seconds from one update to the next."""

    @abstractmethod
    def boundary_input_spec(self) -> dict[str, Input]:
        """The inputs by name."""

    @abstractmethod
    def boundary_flux_spec(self) -> dict[str, Output]:
        """The fluxes (outputs) by name."""

    @abstractmethod
    def state_spec(self) -> dict[str, Output]:
        """The fields of the state by name, with shape and unit."""

    @abstractmethod
    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The state after a step of `dt` seconds, inputs held constant over it."""

    @abstractmethod
    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The fluxes that belong to `state` and to the inputs of the step that led there."""

    def initial_state(self) -> State:
        """The state at rest: zeros, unless the node says otherwise."""
        return {name: jnp.zeros(field.shape) for name, field in self.state_spec().items()}

    def state_fields(self) -> list[str]:
        """Names of the public fields of the state."""
        return list(self.state_spec())

    def observable_fields(self) -> list[str]:
        """Names of the state's fields that a run records unless told otherwise."""
        return self.state_fields()

    def state_problems(self, given: Mapping[str, Any]) -> Iterator[Problem]:
        """What is wrong with fields of a state to start from or go to; override it.

        A field has its shape, or that of many states with their axes in front. Skip traced values.
        """
        yield from ()

    def goal_inputs(self) -> Mapping[str, str]:
        """Inputs that say where another input, or a field of the state, should go:
        `{"desired_angle": "measured_angle"}`.
        """
        return {}

    def foreseen_fluxes(self) -> Mapping[str, str]:
        """Fluxes that will pass through all rows of a parameter: `{"target": "waypoints"}`."""
        return {}

    def monitors(self) -> Mapping[str, Monitor]:
        """Values that should stay within limits, by name; a run says which of them did not."""
        return {}

    def drawing(self) -> Drawing:
        """What there is to see of it: frames that follow its fields, and shapes; override it."""
        return Drawing()

    def lumped_constants(self) -> Mapping[str, tuple[Any, str]]:
        """Positive combinations of parameters that decide the motion, `{name: (value, unit)}`,
        simple ones first: what a log can tell where it does not tell the parameters one by one.
        """
        return {}

    def built_from(self) -> frozenset[str]:
        """Addresses of parameters that something was computed from when the node was built.

        They vary by a node that is built for each value: in no batch, and by no gradient.
        """
        return frozenset()

    def value_warnings(self) -> Iterator[Warning]:
        """What a user should know of values that are allowed; override it. Skip traced values."""
        yield from ()

    @property
    def label(self) -> str:
        """What an error calls this node: its class and name."""
        return f"{type(self).__name__} {self.name!r}"

    def __repr__(self) -> str:
        return node_text(self)

    def _repr_html_(self) -> str:
        return drawer("Node.html")(self)

    def with_params(self: "AnyNode", **values: Any) -> "AnyNode":
        """The same node with other parameter values; `jax.grad` and `jax.vmap` go through it.

        A name is an address within the node: `r_ohm`, `gear.ratio`, `link[forearm].mass_kg` (as
        `**{"gear.ratio": 5.0}` where it is no Python name).
        """
        node = self
        for address, value in values.items():
            node = replace_value(node, address, value)
        for owner in type(node).__mro__:  # as equinox does when a module is built
            if "__check_init__" in owner.__dict__:
                owner.__dict__["__check_init__"](node)
        return node

    def complete_inputs(self, boundary_inputs: Values, dtype: Any = None) -> dict[str, Any]:
        """Every input of the spec: as given (shape checked) or its default; others are refused.

        Defaults are of `dtype`: that of the state, so that single precision stays single.
        """
        spec = self.boundary_input_spec()
        for name in boundary_inputs:
            if name not in spec:
                raise InputError(
                    f"{self.label} has no input {name!r}"
                    f"{nearest(name, spec)}. "
                    f"Its inputs are {quoted(spec)}."
                )
        return {
            name: self._input(name, entry, boundary_inputs[name])
            if name in boundary_inputs
            else entry.default_value(dtype)
            for name, entry in spec.items()
        }

    def _input(self, name: str, entry: Input, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == jnp.result_type(float):
            array: Any = value
        else:
            array = jnp.asarray(value)
            if not jnp.issubdtype(array.dtype, jnp.floating):
                array = array.astype(jnp.result_type(float))
        if array.shape != entry.shape:
            raise InputError(
                f"{self.label}: input {name!r} has shape {array.shape}, "
                f"expected {entry.shape} [{entry.unit}]."
            )
        return array

    def validate_mime_consistency(self) -> list[str]:
        """Problems of the node's metadata and specs; empty when they are whole and agree."""
        if self.meta is None:
            return [f"{type(self).__name__} has no meta"]
        problems = [*self.meta.problems(), *missing_functions(self.meta)]
        state = self.initial_state()
        if state.keys() != self.state_spec().keys():
            problems.append(
                f"initial_state has {quoted(state)}, state_spec {quoted(self.state_spec())}"
            )
        for name, field in self.state_spec().items():
            if name in state and jnp.shape(state[name]) != field.shape:
                problems.append(
                    f"state {name!r} has shape {jnp.shape(state[name])}, spec {field.shape}"
                )
        inputs = {name: entry.default_value() for name, entry in self.boundary_input_spec().items()}
        fluxes = self.compute_boundary_fluxes(state, inputs, self.timestep)
        for name, output in self.boundary_flux_spec().items():
            if name not in fluxes:
                problems.append(f"flux {name!r} is in the spec but is not computed")
            elif jnp.shape(fluxes[name]) != output.shape:
                problems.append(
                    f"flux {name!r} has shape {jnp.shape(fluxes[name])}, spec {output.shape}"
                )
        known = {
            *self.params,
            *self.boundary_input_spec(),
            *self.state_spec(),
            "timestep",
            "num_joints",
        }
        problems += [
            f"validated range of {entry.quantity!r}, which is no parameter, input or state"
            for entry in self.meta.validated_ranges
            if entry.quantity not in known
        ]
        return problems

    def _own_problems(self) -> Iterator[Problem]:
        if not isinstance(self.name, str) or not self.name:
            yield Problem(("name",), f"must be a string, got {brief(self.name)}")
        if not (isinstance(self.timestep, float) and 0 < self.timestep < float("inf")):
            yield Problem(("timestep",), f"must be > 0 s, got {brief(self.timestep)}")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in ("update", "compute_boundary_fluxes"):
            if method in cls.__dict__:
                setattr(cls, method, _CompiledMethod(cls.__dict__[method]))

    def __check_init__(self) -> None:
        seen = as_numpy(self)
        if found := list(seen.problems()):
            raise ParameterError(self.label, found)
        for warning in seen.value_warnings():
            warn_user(warning)


class _CompiledMethod:
    """A node's method, its inputs completed and dtypes settled, compiled when called eagerly.

    A descriptor of its own, because equinox wraps plain methods in a pytree at every attribute
    access, which takes longer than the whole step.
    """

    def __init__(self, method: Callable[..., State]):
        def traced(node: Node, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
            result = method(
                node, state, node.complete_inputs(boundary_inputs, _float_of(state)), dt
            )
            return {name: _settle(value, state.get(name)) for name, value in result.items()}

        self._traced = traced
        self._compiled = jit_folding(traced)
        self._known: OrderedDict[Any, Any] = OrderedDict()
        update_wrapper(self, method)

    def traced(self, node: "Node", state: State, inputs: Values, dt: float | Scalar) -> State:
        """The method inside of a larger program: traced once for all nodes of one class, with the
        same options and shapes. The program then calls one function for all of them.
        """
        constants, variables = split(_nameless(node))
        key = (constants, dt)
        try:
            known = self._known.get(key)
        except TypeError:  # dt is traced
            return self._traced(node, state, inputs, dt)
        if known is None:

            def once(variables: list[Any], state: State, inputs: Values) -> State:
                return self._traced(constants.merge(variables), state, inputs, dt)

            known = self._known[key] = jax.jit(once)
            if len(self._known) > MOST_PROGRAMS:
                self._known.popitem(last=False)
        return known(variables, state, dict(inputs))

    def __get__(self, node: "Node | None", owner: type) -> Callable[..., State]:
        return self if node is None else partial(self._compiled, node)

    def __call__(self, node: "Node", *args: Any) -> State:
        return self._compiled(node, *args)


def _nameless(node: "Node") -> "Node":
    """The node without what tells it from others of its kind."""
    return with_fields(node, name="")


def _float_of(state: State) -> Any:
    """The floating dtype of a state; None when it has none."""
    dtypes = {jnp.result_type(x) for x in state.values()}
    floating = [dtype for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)]
    return jnp.result_type(*floating) if floating else None


def _settle(value: Any, before: Any) -> Array:
    """A strongly typed array in the dtype that the state had before: scan carries never change."""
    dtype = jnp.result_type(value) if before is None else jnp.result_type(before)
    return jax.lax.convert_element_type(jnp.asarray(value), dtype)


def traced_update(node: Node, state: State, inputs: Values, dt: float | Scalar) -> State:
    """`node.update` without its own compilation, for use inside a larger program."""
    method: Any = type(node).update
    return method.traced(node, state, inputs, dt)


def traced_fluxes(node: Node, state: State, inputs: Values, dt: float | Scalar) -> State:
    """`node.compute_boundary_fluxes` without its own compilation."""
    method: Any = type(node).compute_boundary_fluxes
    return method.traced(node, state, inputs, dt)
