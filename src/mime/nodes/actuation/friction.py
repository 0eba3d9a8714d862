"""Dry friction of a rotor or of joints: tau_f opposes motion, and holds at rest up to tau_f(0).

A motor takes one number for each value. An arm takes an entry per joint (where drives move several
joints, per drive): one number for all, an array, or a mapping from joint names.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import jax.numpy as jnp
import numpy as np

from mime.core.parameters import EffectByName, known, with_fields
from mime.core.problem import Problem
from mime.core.spec import parameter

if TYPE_CHECKING:
    from mime.control.kinematics import KinematicTree

Entries: TypeAlias = float | Mapping[str, float] | Any
"""One number for all joints, an array, or numbers by the names of joints."""
PerJoint = Callable[[str, Any, Any], Any]
"""(N,) from the name of a value, what was given for it, and what joints not named have."""


class Load(NamedTuple):
    """What a gearbox has between its two sides, both taken positive where they speed it up."""

    motor: Any
    """tau_m of the motor."""
    external: Any
    """tau_e of all else but friction and inertia: weight, springs, contacts."""


class DryFriction(EffectByName):
    """What motors and arms ask of their friction."""

    by_load: ClassVar[bool] = False
    """Whether it grows with the load."""

    @abstractmethod
    def torque(self, omega: Any) -> Any:
        """tau_f at the speed of a rotor, or at those of all joints, without load."""

    def largest(self, omega: Any, way: Any, load: Load) -> Any:
        """The most that friction takes from a motion forward (way 1) or backward (-1)."""
        return self.torque(omega)

    @abstractmethod
    def of_joints(self, tree: "KinematicTree", per_joint: PerJoint) -> Self:
        """An entry per joint; joints not named have the torque of the robot's file."""

    @property
    @abstractmethod
    def coulomb_torque(self) -> Any:
        """tau_c, all of it that programs know which have dry friction of one size only."""

    def with_free_joints(self, count: int) -> Self:
        """The friction of a tree with `count` joints more in front, which have none."""

        def padded(name: str, values: Any) -> Any:
            xp: Any = np if isinstance(values, np.ndarray) else jnp
            least = 1.0 if self.parameter_specs()[name].above == 0.0 else 0.0
            return xp.concatenate([np.full(count, least, values.dtype), values])

        return with_fields(self, **{name: padded(name, x) for name, x in self.params.items()})

    def values_at(self, omega: Any) -> list[Any]:
        """The parameters, in the precision of a speed."""
        return [jnp.asarray(value, jnp.result_type(omega)) for value in self.params.values()]

    def in_words(self, entry: int = 0) -> str:
        """All values, of one joint where there is an entry for each: for notes in files."""
        given = {name: np.ravel(x) for name, x in self.params.items()}
        values = {name: float(x[entry if x.size > 1 else 0]) for name, x in given.items()}
        inside = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({inside})"

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

    def slope(self, omega: Any) -> Any:
        """dtau_f/dw at the speed of a rotor."""
        tau_c, tau_s, w_s = self.values_at(omega)
        return -2.0 * omega / w_s**2 * (tau_s - tau_c) * jnp.exp(-((omega / w_s) ** 2))

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


class LoadFriction(DryFriction):
    """tau_f = tau_c + |k_e tau_e - k_m tau_m| + s (tau_s + |s_e tau_e - s_m tau_m| + q)

    s = exp(-|w / w_s|^alpha) is 1 at rest and 0 at speed. tau_m is the torque of the motor and
    tau_e that of all else but friction and inertia, so that a motor that works against its load
    has the sum of both parts. Of opposed torques q is q_e tau_e² where the motor is stronger and
    q_m tau_m² where the load is. With a difference d, k_m is k_m + d where the motor drives the
    motion and k_m - d where it brakes it.

    These are the models M1 to M6 of Duclusaud et al. (2025), and with d the steady state of the
    one for harmonic and cycloidal drives in MuJoCo's issue 3528. A motor can turn, and what torque
    a motion takes is unique, as k_m + |d| + s_m < 1. Where k_e + s_e >= 1 no load drives the motor
    back.
    """

    by_load: ClassVar[bool] = True

    coulomb_torque_n_m: Entries = parameter(
        "N·m", shape=None, at_least=0.0, doc="tau_c, without load"
    )
    motor_load: Entries = parameter(
        "", shape=None, at_least=0.0, at_most=0.95, doc="k_m, friction per torque of the motor"
    )
    external_load: Entries = parameter(
        "", shape=None, at_least=0.0, default=0.0, doc="k_e, friction per external torque"
    )
    motor_load_difference: Entries = parameter(
        "", shape=None, at_least=-1.0, at_most=1.0, default=0.0,
        doc="d, at most k_m: k_m + d where the motor drives, k_m - d where it brakes",
    )  # fmt: skip
    stribeck_torque_n_m: Entries = parameter(
        "N·m", shape=None, at_least=0.0, default=0.0, doc="tau_s, more at rest"
    )
    stribeck_motor_load: Entries = parameter(
        "", shape=None, at_least=0.0, at_most=1.0, default=0.0, doc="s_m, more at rest"
    )
    stribeck_external_load: Entries = parameter(
        "", shape=None, at_least=0.0, default=0.0, doc="s_e, more at rest"
    )
    quadratic_motor_load_per_n_m: Entries = parameter(
        "1/(N·m)", shape=None, at_least=0.0, default=0.0, doc="q_m, where the load is stronger"
    )
    quadratic_external_load_per_n_m: Entries = parameter(
        "1/(N·m)", shape=None, at_least=0.0, default=0.0, doc="q_e, where the motor is stronger"
    )
    velocity_rad_per_s: Entries = parameter(
        "rad/s", shape=None, above=0.0, default=1.0, doc="w_s, at which s is 1/e"
    )
    exponent: Entries = parameter("", shape=None, above=0.0, default=2.0, doc="alpha")

    @property
    def coulomb_torque(self) -> Any:
        return self.coulomb_torque_n_m

    def torque(self, omega: Any) -> Any:
        none = jnp.zeros_like(omega)
        return self.largest(omega, 1.0, Load(none, none))

    def largest(self, omega: Any, way: Any, load: Load) -> Any:
        tau_c, k_m, k_e, d, tau_s, s_m, s_e, q_m, q_e, w_s, alpha = self.values_at(omega)
        motor, external = load
        s = jnp.exp(-_power(jnp.abs(omega / w_s), alpha))
        k_m = k_m + d * way * jnp.sign(motor)
        opposed = motor * external < 0
        stronger = jnp.abs(motor) - jnp.abs(external)
        q = jnp.where(stronger > 0, q_e * external**2, jnp.where(stronger < 0, q_m * motor**2, 0))
        at_rest = tau_s + jnp.abs(s_e * external - s_m * motor) + jnp.where(opposed, q, 0)
        return tau_c + jnp.abs(k_e * external - k_m * motor) + s * at_rest

    def of_joints(self, tree: "KinematicTree", per_joint: PerJoint) -> "LoadFriction":
        """Joints not named have the torque of the robot's file at any speed and load."""
        usual = {"coulomb_torque_n_m": tree.joint_coulomb_friction, "exponent": 2.0}
        usual["velocity_rad_per_s"] = 1.0
        values = self.params.items()
        return LoadFriction(**{k: per_joint(k, x, usual.get(k, 0.0)) for k, x in values})

    def value_problems(self) -> Iterator[Problem]:
        """What the motor loses of its own torque; arrays of one size."""
        names = ("motor_load", "motor_load_difference", "stribeck_motor_load")
        shares = [self.params[name] for name in names]
        if not known(*shares) or len({np.shape(x) for x in shares if np.shape(x)}) > 1:
            return
        k_m, d, s_m = np.broadcast_arrays(*(np.ravel(x) for x in shares))
        for share, given in zip(k_m, d, strict=True):
            if abs(given) > share:
                words = f"must be from {-share:g} to {share:g} (motor_load), got {given:g}"
                yield Problem(("motor_load_difference",), words)
                break
        if (most := np.max(k_m + np.abs(d) + s_m)) >= 1.0:
            words = (
                f"plus |motor_load_difference| and stribeck_motor_load must be < 1, got {most:g}"
            )
            hint = "From 1 on the friction of its own torque would hold the motor at any torque"
            yield Problem(("motor_load",), words, hint)


def _power(x: Any, exponent: Any) -> Any:
    """x^exponent of x >= 0; its derivatives at 0 are taken as 0, which they are not below 1."""
    moving = x > 0
    return jnp.where(moving, jnp.where(moving, x, 1) ** exponent, 0)
