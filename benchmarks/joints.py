"""Cost against the number of joints.

Serial chains of 1 to 30 joints, each axis a quarter turn from the last: one in `simulation.run`
beside MuJoCo's C loop, 1,024 in `simulation.run_batch` beside Pinocchio and MuJoCo. The mass matrix
takes more operations for every link than for the one before it, articulated bodies the same for
each: whichever has fewer for a chain computes it.
"""

from collections.abc import Iterator
from dataclasses import replace

import arm
import robots
from harness import Case, Place

JOINTS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 30)
LABEL = "joints of the chain"
QUICK = (8, 30)


def cases(threads: int) -> Iterator[Case]:
    """Each length alone and in a batch."""
    for joints in JOINTS:
        robot = robots.chain(joints)
        alone = replace(arm.one(robot), place=Place("joints", "one", joints, LABEL, linear=True))
        batch = arm.many(robot, 1024, threads, arm.Targets(aba=0.08 if joints >= 8 else None))
        yield replace(alone, repeats=5)
        yield replace(
            batch,
            repeats=3,
            place=Place("joints", "1,024", joints, LABEL, linear=True),
            quick=joints in QUICK,
        )
