"""Whoever adds a rule to the compiler adds a case to the tests beside this one."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.program import CALLS, STRUCTURED
from mime.native.lowering.reductions import REDUCTIONS
from mime.native.lowering.shapes import SHAPES

HERE = Path(__file__).parent
NOT_HERE = {
    *("pjit", "core_call", "closed_call", "remat", "remat2", "custom_vjp_call_jaxpr"),
    *("checkpoint", "empty2", "expand_dims", "stop_gradient", "linear_solve", "copy_p"),
    *(f"scatter_{name}" for name in ("add", "sub", "mul", "min", "max")),
}
"""Names that other versions of JAX have, or that never reach a jaxpr."""


def test_every_rule_has_a_case():
    one, arrays, loops = (
        runpy.run_path(str(HERE / f"test_{name}.py")) for name in ("primitives", "arrays", "loops")
    )
    x, row, i = jnp.ones((3, 4)), jnp.ones(5), jnp.ones(5, int)
    of_one = [*one["OF_ONE_FLOAT"].values(), lambda x: lax.convert_element_type(x, "int32")]
    of_two = [*one["OF_TWO_FLOATS"].values(), lax.atan2, lax.pow]
    of_one += [f for n, (f, _) in one["ELEMENTARY"].items() if n not in ("atan2", "pow")]
    cases = [
        *((f, 1.0) for f in of_one),
        *((f, 1.0, 2.0) for f in of_two),
        *((f, 1) for f in one["OF_ONE_INTEGER"].values()),
        *((f, 1, 2) for f in one["OF_TWO_INTEGERS"].values()),
        (arrays["moved"], x),
        (arrays["joined"], x),
        (arrays["joined_integers"], x.astype(int)),
        (arrays["PRODUCTS"]["matrix·matrix"], x, x.T),
        (arrays["slices_of"](12), jnp.ones(12), 1, jnp.ones(3)),
        (arrays["gathers"], jnp.ones((6, 2)), i, i),
        (arrays["scatters"], jnp.ones((6, 2)), i, i, row),
        (loops["traps"], jnp.ones(loops["BIG"]), 1, 1.0),
        (loops["calls"], row, row),
        (lambda n: lax.while_loop(lambda k: k < n, lambda k: k + 1, 0), 3),
    ]
    tested = set().union(*(primitives(jax.make_jaxpr(f)(*args).jaxpr) for f, *args in cases))
    rules = {*ELEMENTS, *SHAPES, *REDUCTIONS, *STRUCTURED, *CALLS}
    assert rules - tested <= NOT_HERE


def primitives(jaxpr):
    """Names of the primitives in a jaxpr and in those inside it."""
    names = set()
    for eqn in jaxpr.eqns:
        names.add(eqn.primitive.name)
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    names |= primitives(inner)
    return names
