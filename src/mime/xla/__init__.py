"""All that exists only because of XLA: how its compiler for CPUs is made to behave.

XLA computes what `mime.native` has no rule for, the mouse above all, and everything on platforms
without native code. A step of a robot is a few hundred operations on scalars. XLA was built for few
operations on large arrays, and does some things badly with many small ones. Each has its remedy
here, and a benchmark that shows what the remedy is worth. No number stands here, since numbers rot:
docs/benchmarks.md has those of the last complete run, and `make bench` measures yours.

`whole_loops`  XLA calls a kernel for each operation in the body of a loop, unless the body is tiny.
               **`import mime` adds an option to the environment variable XLA_FLAGS**, and the loop
               of a simulation becomes one function. A limit of your own in XLA_FLAGS goes first;
               MIME_KEEP_XLA_FLAGS=1 leaves the variable alone. Results are the same, but single
               runs take longer then. (benchmarks/mouse.py)

`stacking`     XLA fuses a concatenation with what makes its parts, and computes what the parts
               share once for each. A few scalars become an array by a chain of selects instead.
               (benchmarks/ray_casting.py, benchmarks/mouse.py)

`when`         Under `vmap`, XLA computes both branches of a condition for all members of a batch.
               Here the members that need the work are taken one by one. (benchmarks/mouse.py)

`cache`        XLA takes seconds to compile a program that it compiled yesterday. Programs are kept
               on disk, in a folder that `mime cache` shows and clears; native code is kept beside
               them. (benchmarks/startup.py)

With the members of a batch in lanes, XLA writes all values of a long step to memory; one by one, a
member's values stay in registers. So `run_batch` takes them one by one where XLA does the work
(`mime.native.members`).

This room imports nothing of MIME. What other files do for XLA's sake refers to this page.
"""
