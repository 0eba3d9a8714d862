"""A body that an arm carries."""

from collections.abc import Iterator
from typing import Any

from mime.control.kinematics import KinematicTree
from mime.control.kinematics.editing.checks import mass_problems
from mime.core.parameters import Effect
from mime.core.problem import Problem
from mime.core.spec import option, parameter


class Payload(Effect):
    """m, c, I of a body fixed to a link: `tree.with_payload(link, m, c, I)`.

    Its numbers are parameters of the arm (`arm.payload.mass_kg`), to be swept and fitted. A
    controller that is given the arm's `tree` does not know of it; the arm's own servo does.
    """

    link: str = option()
    """Any link of the URDF, or a named frame."""
    mass_kg: Any = parameter("kg", at_least=0.0, folds=True)
    com_m: Any = parameter("m", shape=(3,), folds=True, default=(0.0, 0.0, 0.0), doc="in the link")
    inertia_kg_m2: Any = parameter(
        "kg·m²",
        shape=(3, 3),
        folds=True,
        default=((0.0,) * 3,) * 3,
        doc="about its own centre of mass, in the link's axes",
    )

    def value_problems(self) -> Iterator[Problem]:
        yield from mass_problems(self.mass_kg, self.inertia_kg_m2)

    def on(self, tree: KinematicTree) -> KinematicTree:
        """The tree with it."""
        return tree.with_payload(self.link, self.mass_kg, self.com_m, self.inertia_kg_m2)
