"""The address of a member: a digest of all that its result depends on.

    address = H(experiment, name and value of each parameter that varies)

where the experiment's print covers graph, fixed parameters, inputs, what is kept, the versions of
MIME, JAX, jaxlib, llvmlite and NumPy, and the kind of processor. Equal addresses mean equal bits.
"""

import hashlib
import json
from collections.abc import Mapping

import numpy as np

BYTES = 16


def addresses(prints: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """(member, 16) bytes; `prints` has the print of each member's experiment."""
    size = len(prints)
    names = sorted(columns)
    numeric = [name for name in names if columns[name].dtype != object]
    table = np.empty((size, len(numeric)), dtype="<f8")
    for place, name in enumerate(numeric):
        table[:, place] = columns[name]
    table += 0.0  # -0 is 0
    words = [name for name in names if name not in numeric]
    began = {
        each: hashlib.blake2b(json.dumps([each, names]).encode(), digest_size=BYTES)
        for each in dict.fromkeys(prints.tolist())
    }
    found = bytearray()
    rows, width = table.tobytes(), 8 * len(numeric)
    for member, experiment in enumerate(prints.tolist()):
        sha = began[experiment].copy()
        sha.update(rows[member * width : (member + 1) * width])
        if words:
            sha.update(json.dumps([columns[name][member] for name in words]).encode())
        found += sha.digest()
    return np.frombuffer(bytes(found), np.uint8).reshape(size, BYTES)


def as_keys(table: np.ndarray) -> np.ndarray:
    """Addresses as single values that can be sorted and compared."""
    return np.ascontiguousarray(table).view(f"S{BYTES}").ravel()
