"""Memory that one batch after another records into.

The system fills new memory with zeros before it gives it, and takes it back page by page: for as
many samples as there are members of a study that takes as long as a tenth of the steps.
"""

from collections.abc import Sequence

import numpy as np


class Room:
    """Arrays for the samples of a batch. Those of the batch before are overwritten."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def arrays(self, shapes: Sequence[tuple[tuple[int, ...], np.dtype]]) -> list[np.ndarray]:
        """One of each shape and type, side by side in no other's memory; undefined values."""
        found = []
        for place, (shape, dtype) in enumerate(shapes):
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            if place == len(self._blocks):
                self._blocks.append(np.empty(size, np.uint8))
            elif len(self._blocks[place]) < size:
                self._blocks[place] = np.empty(size, np.uint8)
            found.append(self._blocks[place][:size].view(dtype).reshape(shape))
        return found
