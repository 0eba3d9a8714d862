"""A jaxpr of one member as LLVM IR for blocks of members, one in each lane of a vector.

`values`       what a variable is: a constant, an array in registers, an array in memory
`writer`       instructions and blocks; nothing is written twice
`arithmetic`   sums and products of lanes, constants folded
`emitter`      both, and arrays at addresses
`arrays`       arrays between registers and memory
`program`      a jaxpr, equation by equation
`elementwise`, `conversions`, `shapes`, `reductions`, `large`, `indexing`, `loops`, `branches`
               what each primitive of JAX becomes
`functions`, `tables`
               what is called many times, and very many small arrays
`varying`      what differs from member to member, and what they share
`kernel_text`  all of it as one function with the signature of `mime.native.ffi`
"""

from mime.native.lowering.kernel_text import (
    KernelText,
    is_unbounded,
    kernel_text,
    unknown_primitives,
)
from mime.native.lowering.values import UNBOUNDED, Unsupported

__all__ = [
    "UNBOUNDED",
    "KernelText",
    "Unsupported",
    "is_unbounded",
    "kernel_text",
    "unknown_primitives",
]
