"""How far native code and XLA are apart, scenario by scenario and node by node.

Writes docs/native_accuracy.md. A difference is in units in the last place of the largest magnitude
that the field has in the run (double precision: a unit is about 2e-16 of it).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.extend
import numpy as np

from mime.native.kernel import Kernel
from mime.native.lowering import Unsupported
from mime.reporting.node_sheet import example_node
from mime.scenarios.bundled import bundled_scenarios
from mime.scenarios.node_types import own_types
from mime.scenarios.scenario import load_scenario

PAGE = Path(__file__).parent.parent / "docs" / "native_accuracy.md"
MEMBERS = 37
MOUSE = "The mouse in its maze is not here: XLA computes it either way, and takes a minute.\n"
HEAD = """# Native code beside XLA

The same functions, computed by `mime.native` and by XLA (`MIME_NATIVE=off`). The two round
differently (a·b + c once or twice, sums in another order, other sines), and a run repeats that at
every step. The difference is in units in the last place of the largest magnitude that a field
reaches: one unit is about 2·10⁻¹⁶ of it. `python tools/native_table.py` writes this page.

What else differs:

- XLA takes numbers below the smallest normal one (2·10⁻³⁰⁸) for zero. Native code computes with
  them, as IEEE 754 says, inside `jax.jit` too.
- A constant zero removes what it multiplies: 0·x is 0 for a NaN or an infinite x too, and x + 0
  keeps a negative zero.
- A count times a step, n·dt, is rounded before anything is taken from it, as in XLA: what begins
  at 1000 dt begins with step 1000.
- XLA's `exp2`, `sinh` and `cosh` are wrong by up to 400 units for large arguments; native ones by
  at most one.
"""


@contextmanager
def by_xla() -> Iterator[None]:
    """No native code in this block."""
    before = os.environ.get("MIME_NATIVE")
    os.environ["MIME_NATIVE"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["MIME_NATIVE"]
        else:
            os.environ["MIME_NATIVE"] = before


def ulps(a: Any, b: Any) -> float:
    """The largest difference in units of the last place of the largest number."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "f" or not a.size:
        return 0.0 if np.array_equal(a, b) else np.inf
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        far = np.max(np.where(same, 0, np.abs(a - b)))
    finite = np.abs(b[np.isfinite(b)])
    return float(far / np.spacing(max(finite.max(initial=0.0), np.finfo(b.dtype).tiny)))


def furthest(mine: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, float]:
    """The field that differs most, and by how much."""
    apart = {name: ulps(mine[name], other[name]) for name in mine}
    name = max(apart, key=lambda key: apart[key])
    return name, apart[name]


def scenario_row(file: Path, *overrides: str) -> tuple[str, str, int, str, float]:
    """(name, what computes it, steps, field, ulps)"""
    mine = _recorded(file, overrides)
    with by_xla():
        other = _recorded(file, overrides)
    scenario = load_scenario(file, overrides)
    return file.stem, str(scenario.simulation.backend), scenario.steps, *furthest(mine, other)


def _recorded(file: Path, overrides: Sequence[str]) -> dict[str, Any]:
    run = load_scenario(file, overrides).run()
    return {f"{node}.{name}": x for node, part in run.items() for name, x in part.items()}


def node_row(cls: type, xla: Mapping[str, Any] | None = None) -> tuple[str, str, str, float]:
    """(name, backend, field, ulps) of one step from states and inputs of any kind.

    `xla` are options of XLA's compiler.
    """
    node, _ = example_node(cls)
    assert node is not None
    rng = np.random.default_rng(1)
    state, inputs = node.initial_state(), node.complete_inputs({})

    def step(state: Any, inputs: Any) -> dict[str, Any]:
        after = node.update(state, inputs, node.timestep)
        fluxes = node.compute_boundary_fluxes(after, inputs, node.timestep)
        return {**{f"state {k}": v for k, v in after.items()}, **fluxes}

    def varied(x: Any) -> np.ndarray:
        x = np.broadcast_to(np.asarray(x), (MEMBERS, *np.shape(x)))
        return x + 0.1 * rng.normal(size=x.shape) if x.dtype.kind == "f" else x.copy()

    args = jax.tree.map(varied, (state, inputs))
    leaves, tree = jax.tree.flatten(args)
    one = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves]
    traced, shape = jax.make_jaxpr(
        lambda *x: step(*jax.tree.unflatten(tree, x)), return_shape=True
    )(*one)
    kernel = Kernel(traced)
    if reason := kernel.why_not():
        return cls.__name__, f"XLA: {reason}", "", 0.0
    try:
        found = kernel.call([np.array(x) for x in leaves], (False,) * len(leaves), MEMBERS)
    except Unsupported as error:
        return cls.__name__, f"XLA: {error}", "", 0.0
    with by_xla():
        members = jax.vmap(jax.extend.core.jaxpr_as_fun(traced))
        others = jax.jit(members, compiler_options=dict(xla or {}))(*leaves)
    named = [jax.tree.unflatten(jax.tree.structure(shape), list(x)) for x in (found, others)]
    return cls.__name__, "native", *furthest(*named)


def page() -> str:
    """The page's text."""
    lines = [HEAD, "## Runs of the bundled scenarios\n", MOUSE,
             "| scenario | computed by | steps | field that differs most | units |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for name, file in bundled_scenarios().items():
        if name == "mouse_in_maze":
            continue
        _, computed, steps, field, far = scenario_row(file)
        lines.append(f"| {name} | {computed} | {steps} | `{field}` | {far:.3g} |")
    lines += ["\n## One step of each node\n", f"{MEMBERS} members, states and inputs at random.\n",
              "| node | computed by | field that differs most | units |",
              "| --- | --- | --- | --- |"]  # fmt: skip
    for cls in own_types().values():
        name, computed, field, far = node_row(cls)
        lines.append(f"| {name} | {computed} | `{field}` | {far:.3g} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    PAGE.write_text(page(), encoding="utf-8")
