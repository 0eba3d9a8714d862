"""Gradients of machine code: a jaxpr and its reverse as one jaxpr, which is then compiled.

kinds   the reverse of one operation, by JAX, once for each kind
sweep   a jaxpr and its reverse, operation by operation
rules   branches, functions, and functions with derivatives of their own
loops   loops, which keep their states
"""

from mime.native.gradient import rules  # noqa: F401 - it registers itself
from mime.native.gradient.loops import reversible

__all__ = ["reversible"]
