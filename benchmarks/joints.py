"""Cost against the number of joints.

Serial chains of 1 to 30 joints, each axis a quarter turn from the last: one in `simulation.run`
beside MuJoCo's C loop, 1,024 in `simulation.run_batch` beside Pinocchio and MuJoCo.
"""

from collections.abc import Iterator
from dataclasses import replace

import arm
import robots
from harness import Case, Place

JOINTS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 30)
LABEL = "joints of the chain"


def cases(threads: int) -> Iterator[Case]:
    """Each length alone and in a batch; the targets are those of the arms."""
    for joints in JOINTS:
        robot = robots.chain(joints)
        alone = replace(arm.one(robot), place=Place("joints", "one", joints, LABEL))
        batch = arm.many(robot, 1024, threads)
        yield replace(alone, repeats=5)
        yield replace(batch, repeats=3, place=Place("joints", "1,024", joints, LABEL))
