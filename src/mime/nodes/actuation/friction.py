"""Dry friction of a rotor or of joints: tau_f opposes motion, and holds at rest up to tau_f(0).

A motor takes one number for each value. An arm takes an entry per joint (where drives move several
joints, per drive): one number for all, an array, or a mapping from joint names.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import jax.numpy as jnp
import numpy as np

from mime.core.parameters import EffectByName, known
from mime.core.problem import Problem
from mime.core.spec import parameter

if TYPE_CHECKING:
    from mime.control.kinematics import KinematicTree

Entries: TypeAlias = float | Mapping[str, float] | Any
"""One number for all joints, an array, or numbers by the names of joints."""
PerJoint = Callable[[str, Any, Any], Any]
"""(N,) from the name of a value, what was given for it, and what joints not named have."""


class DryFriction(EffectByName):
    """What motors and arms ask of their friction."""

    @abstractmethod
    def torque(self, omega: Any) -> Any:
        """tau_f at the speed of a rotor, or at those of all joints."""

    @abstractmethod
    def of_joints(self, tree: "KinematicTree", per_joint: PerJoint) -> Self:
        """An entry per joint; joints not named have the torque of the robot's file."""

    @property
    @abstractmethod
    def coulomb_torque(self) -> Any:
        """tau_c, all of it that programs know which have dry friction of one size only."""

    def values_at(self, omega: Any) -> list[Any]:
        """The parameters, in the precision of a speed."""
        return [jnp.asarray(value, jnp.result_type(omega)) for value in self.params.values()]

    def scalar_problems(self) -> Iterator[Problem]:
        """Values that are no single numbers, as a motor has them."""
        for name, value in self.params.items():
            if known(value) and not (hasattr(value, "ndim") and value.ndim == 0):
                yield Problem((name,), f"must be one number, got {value}")


class Coulomb(DryFriction):
    """tau_f = tau_c"""

    torque_n_m: Entries = parameter("N·m", shape=None, at_least=0.0, doc="tau_c")

    @property
    def coulomb_torque(self) -> Any:
        return self.torque_n_m

    def torque(self, omega: Any) -> Any:
        (tau_c,) = self.values_at(omega)
        return tau_c

    def of_joints(self, tree: "KinematicTree", per_joint: PerJoint) -> "Coulomb":
        usual = tree.joint_coulomb_friction
        return Coulomb(per_joint("torque_n_m", self.torque_n_m, usual))


class Stribeck(DryFriction):
    """tau_f = tau_c + (tau_s - tau_c) exp(-(w / w_s)²)"""

    coulomb_torque_n_m: Entries = parameter(
        "N·m", shape=None, at_least=0.0, doc="tau_c, at high speed"
    )
    static_torque_n_m: Entries = parameter(
        "N·m", shape=None, at_least=0.0, doc="tau_s, breakaway torque, at least tau_c"
    )
    velocity_rad_per_s: Entries = parameter(
        "rad/s", shape=None, above=0.0, doc="w_s, speed at which tau_s falls to tau_c"
    )

    @property
    def coulomb_torque(self) -> Any:
        return self.coulomb_torque_n_m

    def torque(self, omega: Any) -> Any:
        tau_c, tau_s, w_s = self.values_at(omega)
        return tau_c + (tau_s - tau_c) * jnp.exp(-((omega / w_s) ** 2))

    def of_joints(self, tree: "KinematicTree", per_joint: PerJoint) -> "Stribeck":
        """Joints not named have the torque of the robot's file at any speed."""
        usual = tree.joint_coulomb_friction
        tau_c = per_joint("coulomb_torque_n_m", self.coulomb_torque_n_m, usual)
        tau_s = per_joint("static_torque_n_m", self.static_torque_n_m, tau_c)
        w_s = per_joint("velocity_rad_per_s", self.velocity_rad_per_s, 1.0)
        return Stribeck(tau_c, tau_s, w_s)

    def value_problems(self) -> Iterator[Problem]:
        tau_c: Any = self.coulomb_torque_n_m
        tau_s: Any = self.static_torque_n_m
        if known(tau_c, tau_s) and np.ndim(tau_c) == np.ndim(tau_s):
            pairs = zip(np.ravel(tau_c).tolist(), np.ravel(tau_s).tolist(), strict=False)
            for least, given in [pair for pair in pairs if pair[1] < pair[0]][:1]:
                message = f"must be >= coulomb_torque_n_m = {least:g} N·m, got {given:g}"
                yield Problem(("static_torque_n_m",), message)
