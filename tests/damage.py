"""Random damage to files: flipped bits, cut ends, zeroed blocks, strange bytes, swapped blocks."""

import os

import numpy as np

COUNT = int(os.environ.get("MIME_FUZZ", "0"))
"""Inputs for each generator, set by `make fuzz`; 0 for the small size that a test states."""


def seeds(small):
    """Seeds of the inputs: a few in the suite, 10,000 by `make fuzz`."""
    return range(COUNT or small)


def damaged(whole, seed):
    """The bytes of a file with one kind of damage, and that kind's name."""
    random = np.random.default_rng(seed)
    data = bytearray(whole)
    kind = ("bit", "bits", "cut", "zeros", "bytes", "swap", "longer")[seed % 7]
    at = int(random.integers(len(data)))
    length = int(min(random.choice([1, 8, 64, 2048]), len(data) - at))
    if kind in ("bit", "bits"):
        for place in [at, *random.integers(len(data), size=9 * (kind == "bits"))]:
            data[place] ^= 1 << int(random.integers(8))
    elif kind == "cut":
        del data[at:]
    elif kind == "zeros":
        data[at : at + length] = bytes(length)
    elif kind == "bytes":
        data[at : at + length] = random.bytes(length)
    elif kind == "swap":
        other = int(random.integers(len(data) - length + 1))
        first, second = bytes(data[at : at + length]), bytes(data[other : other + length])
        data[at : at + length], data[other : other + length] = second, first
    else:
        data += random.bytes(length)
    return bytes(data), kind
