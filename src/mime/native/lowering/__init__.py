"""A jaxpr of one member as LLVM IR for blocks of members, one in each lane of a vector.

`values`       what a variable is: a constant, an array in registers, an array in memory
`emitter`      instructions, constants folded, nothing computed twice
`elementwise`, `shapes`, `reductions`, `indexing`, `control`
               what each primitive of JAX becomes
`varying`      what differs from member to member, and what they share
`kernel_text`  all of it as one function with the signature of `mime.native.ffi`
"""

from mime.native.lowering.kernel_text import KernelText, kernel_text, unknown_primitives
from mime.native.lowering.values import Unsupported

__all__ = ["KernelText", "Unsupported", "kernel_text", "unknown_primitives"]
