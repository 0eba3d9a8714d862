"""What tests know of programs: how to compile one that runs a few times only, and what is in it.

The compiler saves more time than the program then loses:
`jax.jit(f, compiler_options=QUICK)` is the same program, operation by operation; LLVM optimizes
it less, and XLA's older emitter of loops, which is several times as fast, writes it. For tests that
compare an algorithm with another: what `mime` compiles by itself is tested as users have it.
"""

from jax.extend.core import jaxprs_in_params

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def operations(jaxpr):
    """The primitives in a program, those of functions that it calls included."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inside in jaxprs_in_params(equation.params):
            yield from operations(inside)
