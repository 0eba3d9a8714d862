"""All that exists only because of XLA: how its compiler for CPUs is made to behave.

A step of a robot is a few hundred operations on scalars. XLA was built for few operations on large
arrays, and does six things badly with many small ones. Each has its remedy here, and a benchmark
that shows what the remedy is worth. No number stands here, since numbers rot: docs/benchmarks.md
has those of the last complete run, and `make bench` measures yours.

`folding`      XLA takes every array for unknown, the zeros and ones of a joint's frame too.
               Here NumPy leaves are constants of a program and JAX arrays are its arguments.
               All compiled functions of MIME follow this one rule.
               (benchmarks/graph_overhead.py, benchmarks/kinematics.py)

`whole_loops`  XLA calls a kernel for each operation in the body of a loop, unless the body is tiny.
               **`import mime` adds an option to the environment variable XLA_FLAGS**, and the loop
               of a simulation becomes one function. A limit of your own in XLA_FLAGS goes first;
               MIME_KEEP_XLA_FLAGS=1 leaves the variable alone. Results are the same, but single
               runs take longer then. (benchmarks/arm.py, benchmarks/mouse.py)

`stacking`     XLA fuses a concatenation with what makes its parts, and computes what the parts
               share once for each. A few scalars become an array by a chain of selects instead.
               (benchmarks/kinematics.py)

`when`         Under `vmap`, XLA computes both branches of a condition for all members of a batch.
               Here the members that need the work are taken one by one. (benchmarks/mouse.py)

`cache`        XLA takes seconds to compile a program that it compiled yesterday. Programs are kept
               on disk, in a folder that `mime cache` shows and clears. (benchmarks/startup.py)

`running.batch_programs`
               With the members of a batch in lanes, XLA writes all values of a long step to memory;
               one by one, a member's values stay in registers. Short steps run in lanes, long ones
               one by one, and `mime.batched` does the latter for any function.
               (benchmarks/motor.py, benchmarks/arm.py)

This room imports nothing of MIME. What other files do for XLA's sake refers to this page.
"""
