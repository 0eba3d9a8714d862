"""What becomes of each thing in a robot's file: one table for the readers, the docs and the tests.

noted      it has one meaning, or cannot change the motion: the file loads
reported   it changes the motion: the file loads with a warning
refused    it has two meanings, or is no machine that MIME simulates: the file does not load
"""

from typing import Literal, NamedTuple

Kind = Literal["noted", "reported", "refused", "mended"]
"""`mended` is what `on_problem="mend"` makes of a finding that has a mending."""


class Rule(NamedTuple):
    """One line of the table."""

    kind: Kind
    formats: str
    """URDF, MJCF, or both."""
    what: str
    """What the file holds, in the plural."""
    effect: str
    """What MIME does with it, or what a user does about a refusal."""
    mend: str = ""
    """What `on_problem="mend"` does with it; empty: the same."""
    ignored: bool = False
    """True where a part of the file is not simulated: `tree.ignored` lists it."""


_BOTH = "URDF, MJCF"
RULES: dict[str, Rule] = {
    # Noted.
    "visual": Rule(
        "noted",
        "URDF",
        "second shapes and `<material>`s, mesh scales of one or four numbers, colours without "
        "opacity, any other mistake in a `<visual>` or a colour",
        "drawn as far as it has a meaning; no part of the dynamics",
    ),
    "mesh": Rule(
        "noted",
        _BOTH,
        "meshes and packages that are not found, or lie outside of the folders that are read",
        "drawn as a box",
        ignored=True,
    ),
    "tag": Rule(
        "noted",
        "URDF",
        "tags and attributes that MIME does not read: `<collision>`, `<gazebo>`, sensors, safety "
        "controllers, ...",
        "left out",
        ignored=True,
    ),
    "xml": Rule(
        "noted",
        _BOTH,
        "blank space before the XML declaration, comments that are not well-formed",
        "skipped",
    ),
    "twice": Rule("noted", "URDF", "a tag twice, saying the same", "the first is read"),
    "floating": Rule(
        "noted",
        "URDF",
        "a `floating` joint between a root without mass and the robot",
        'the robot has `base="floating"`, and starts at the origin of that joint',
    ),
    "no limit": Rule(
        "noted", "URDF", "effort or velocity limits of 0 or -1", "the joint has no such limit"
    ),
    "unused": Rule(
        "noted",
        "URDF",
        "limits of a continuous joint, `<dynamics>` and `<mimic>` of a fixed joint, and "
        "transmissions without a rotor inertia that do not drive one moving joint",
        "not used",
        ignored=True,
    ),
    "unlimited": Rule(
        "noted",
        "URDF",
        "revolute and prismatic joints without lower and upper limit",
        "the joint is unlimited",
        ignored=True,
    ),
    "no joint": Rule(
        "noted",
        _BOTH,
        "files without a joint that moves",
        "one rigid body: it has a frame for each link, and moves when its base floats",
    ),
    "no mass": Rule(
        "noted",
        "URDF",
        "robots without any mass (exports for planning)",
        "for kinematics: poses, Jacobians, inverse kinematics, paths, drawing. Dynamics are 0, and "
        "`RobotArmNode` refuses the robot",
        mend="every joint is held",
    ),
    "no inertia": Rule(
        "noted",
        _BOTH,
        "joints that move neither mass nor inertia",
        "kinematics, inverse dynamics and fits work; forward dynamics needs a rotor inertia, a "
        "mass, or `lock=`",
        mend="held at 0, or at the limit next to it",
    ),
    "inertia": Rule(
        "noted",
        _BOTH,
        "inertias of no solid body: a principal moment above the sum of the others, or planar "
        "(`izz` alone)",
        "kept as written",
        mend="the nearest physical inertia is taken: same axes, least squared change of moments",
    ),
    "mimic limits": Rule(
        "noted",
        _BOTH,
        "limits of a mimicking joint that exclude those of the joint it mimics",
        "not used",
        ignored=True,
    ),
    "warning": Rule("noted", _BOTH, "warnings of xacro and of MuJoCo's compiler", "repeated"),
    "sensor": Rule(
        "noted", "MJCF", "sensors, cameras, lights, height fields", "left out", ignored=True
    ),
    "contact": Rule(
        "noted", "MJCF", "geoms that can touch", "MIME has no contacts yet", ignored=True
    ),
    "beside": Rule(
        "noted", "MJCF", "bodies that stand still beside a floating base", "left out", ignored=True
    ),
    "gravcomp": Rule(
        "noted",
        "MJCF",
        "`gravcomp`",
        "a force -c m g at the centre of mass; it counts against the actuator's limit where "
        "`actuatorgravcomp` says so",
    ),
    "mimic": Rule(
        "noted",
        "MJCF",
        "`<equality><joint>` that are linear or constant",
        "the joint mimics the other exactly, or is held",
    ),
    "renamed": Rule(
        "noted", "MJCF", "sites with the name of a body or a site", "the frame is `site/NAME`"
    ),
    # Reported.
    "degrees": Rule(
        "reported",
        "URDF",
        "limits of revolute joints that look like degrees (multiples of a half from 30 to 720)",
        "kept as rad",
    ),
    "transmission": Rule(
        "reported",
        "URDF",
        "transmissions with a rotor inertia that do not drive one moving joint, or hold words for "
        "numbers (`TODO`, `${ratio}`)",
        "their rotor inertias are not used",
        ignored=True,
    ),
    "include": Rule(
        "reported",
        "URDF",
        "`<xacro:include>`s whose pattern matches no file",
        "left out",
        ignored=True,
    ),
    "open loop": Rule(
        "reported",
        _BOTH,
        "loops (`connect`, `weld`, a link with a second parent) with `open_loops=True`",
        "the loop is cut: its parts move apart",
        ignored=True,
    ),
    "tendon": Rule("reported", "MJCF", "tendons", "the joints move without them", ignored=True),
    "actuator": Rule(
        "reported",
        "MJCF",
        "actuators on tendons, sites and bodies, and those with a state, a delay, or a law that is "
        "not affine in control, position and velocity",
        "they drive nothing",
        ignored=True,
    ),
    "fluid": Rule(
        "reported", "MJCF", "drag of a fluid", "the robot moves in a vacuum", ignored=True
    ),
    "equality": Rule(
        "reported",
        "MJCF",
        "equalities of tendons, of joints beyond first degree or in contradiction, and inactive "
        "ones",
        "the joints move on their own",
        ignored=True,
    ),
    "friction": Rule(
        "reported",
        "MJCF",
        "joints with friction loss",
        "MIME holds a joint at rest exactly; MuJoCo's constraint lets it creep",
    ),
    "base passive": Rule(
        "reported",
        "MJCF",
        "damping, friction, armature and springs of a free joint",
        "the base flies without them",
        ignored=True,
    ),
    "nonlinear": Rule(
        "reported",
        "MJCF",
        "stiffness and damping that are not linear, springs that yield",
        "the linear part acts",
        ignored=True,
    ),
    "borne": Rule(
        "reported",
        "MJCF",
        "`actuatorgravcomp` in a file without actuators",
        "the weight is borne within the effort limit; MuJoCo bears nothing of it",
    ),
    "one-sided": Rule(
        "reported",
        "MJCF",
        "actuator force ranges that are not the same both ways",
        "the larger is the effort limit",
    ),
    # Refused.
    "malformed": Rule(
        "refused",
        _BOTH,
        "files that are cut off or not XML; DOCTYPE and entities; attributes that are missing or "
        "hold no finite number; an axis of length 0",
        "correct the line that the message names",
    ),
    "contradiction": Rule(
        "refused", "URDF", "a tag twice, saying different things", "delete one of them"
    ),
    "structure": Rule(
        "refused",
        _BOTH,
        "links and joints that are missing, there twice, or form a cycle; several roots; a "
        "`<mimic>` of no joint",
        "correct the names",
    ),
    "joint type": Rule(
        "refused",
        "URDF",
        "planar joints, and floating joints anywhere but at a root without mass",
        "split them into joints of one degree of freedom",
    ),
    "negative": Rule(
        "refused",
        _BOTH,
        "a negative mass, damping, friction or stiffness; a gear ratio of 0",
        "correct the number",
    ),
    "negative moment": Rule(
        "refused",
        _BOTH,
        "a negative principal moment of inertia of a link that moves",
        "correct the inertia",
        mend="the nearest physical inertia is taken",
    ),
    "swapped": Rule(
        "refused",
        "URDF",
        "a lower limit above the upper limit",
        "correct the limits",
        mend="the two are swapped",
    ),
    "negative limit": Rule(
        "refused",
        "URDF",
        "effort and velocity limits below 0, but -1",
        "correct the limit",
        mend="the magnitude is taken",
    ),
    "xacro": Rule(
        "refused",
        "URDF",
        "xacro elements in a `.urdf`: xacro is code",
        "read the file, then call `parse_xacro`, or pass `--xacro` on the command line",
    ),
    "mesh mass": Rule(
        "refused",
        "MJCF",
        "bodies whose mass follows from a mesh that is not found",
        "give the mesh, or the body an `<inertial>`",
    ),
    "code": Rule("refused", "MJCF", "plug-ins and extensions: they load code", "remove them"),
    "soft": Rule(
        "refused", "MJCF", "flexible and composite bodies, models within models", "remove them"
    ),
    "loop": Rule(
        "refused",
        _BOTH,
        "closed loops: `connect`, `weld`, a link with two parents",
        "take them out by `lock=` or `subtree=`, or cut them by `open_loops=True`",
    ),
    "ball": Rule("refused", "MJCF", "ball joints", "take them out by `lock=` or `subtree=`"),
    "several bodies": Rule(
        "refused",
        "MJCF",
        "several bodies that fly freely, or joints beside a floating base",
        "take them out by `lock=` or `subtree=`",
    ),
}
"""The table, by the names that findings carry."""
