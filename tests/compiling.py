"""Programs that run a few times only: what their compiler saves is more than what they then lose.

`jax.jit(f, compiler_options=QUICK)` is the same program, operation by operation; LLVM optimizes
it less, and XLA's older emitter of loops, which is several times as fast, writes it. For tests that
compare an algorithm with another: what `mime` compiles by itself is tested as users have it.
"""

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
