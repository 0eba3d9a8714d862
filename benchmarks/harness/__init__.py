"""How MIME is measured beside others: same work, results compared first, then timed in turns."""

from harness.case import Case, Figure, Peer, Place, relative_difference

__all__ = ["Case", "Figure", "Peer", "Place", "relative_difference"]
