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
    what: str
    """What the file holds, in the plural."""
    effect: str
    """What MIME does with it, or what a user does about a refusal."""
    mend: str = ""
    """What `on_problem="mend"` does with it; empty: the same."""
    ignored: bool = False
    """True where a part of the file is not simulated: `tree.ignored` lists it."""


RULES: dict[str, Rule] = {
    # Noted.
    "visual": Rule(
        "noted",
        "mistakes in a `<visual>` or material: a second shape, a mesh scale of one number",
        "drawn as far as possible",
    ),
    "mesh": Rule("noted", "meshes and packages that are not found", "drawn as a box", ignored=True),
    "tag": Rule("noted", "other tags: `<collision>`, `<gazebo>`, ...", "left out", ignored=True),
    "xml": Rule("noted", "space before the XML declaration, malformed comments", "skipped"),
    "twice": Rule("noted", "a tag twice, saying the same", "the first is read"),
    "floating": Rule(
        "noted",
        "a `floating` joint at a root without mass",
        '`base="floating"`, from the origin of that joint',
    ),
    "no limit": Rule("noted", "effort or velocity limits of 0 or -1", "no such limit"),
    "unused": Rule(
        "noted",
        "limits of a continuous joint, `<dynamics>` of a fixed one, transmissions without "
        "rotor inertia that drive no single joint",
        "not used",
        ignored=True,
    ),
    "drives": Rule(
        "noted",
        "`DifferentialTransmission` or `FourBarLinkageTransmission` with a `<rotorInertia>`",
        "two joints share two motors; `<dynamics>` and limits are the drives', after their gears",
    ),
    "unlimited": Rule(
        "noted",
        "revolute and prismatic joints without lower and upper limit",
        "unlimited",
        ignored=True,
    ),
    "no joint": Rule(
        "noted", "files without a joint that moves", "one rigid body with a frame for each link"
    ),
    "no mass": Rule(
        "noted",
        "robots without any mass",
        "for kinematics: dynamics are 0; RobotArmNode refuses it",
        mend="every joint is held",
    ),
    "no inertia": Rule(
        "noted",
        "joints that move neither mass nor inertia",
        "only forward dynamics refuses the tree",
        mend="held at 0, or at the next limit",
    ),
    "inertia": Rule(
        "noted",
        "inertias of no solid body: one moment above the sum of the others, `izz` alone",
        "kept as written",
        mend="the nearest physical inertia",
    ),
    "mimic limits": Rule(
        "noted", "limits of a mimic that exclude those of its joint", "not used", ignored=True
    ),
    "argument": Rule("noted", "xacro arguments that are used before their default", "it is taken"),
    "warning": Rule("noted", "warnings of xacro and of MuJoCo's compiler", "repeated"),
    "sensor": Rule("noted", "sensors, cameras, lights, height fields", "left out", ignored=True),
    "contact": Rule("noted", "geoms that can touch", "MIME has no contacts yet", ignored=True),
    "beside": Rule(
        "noted", "bodies that stand still beside a floating base", "left out", ignored=True
    ),
    "gravcomp": Rule(
        "noted",
        "`gravcomp`",
        "a force -c m g at the centre of mass; `actuatorgravcomp`: within the actuator's limit",
    ),
    "mimic": Rule(
        "noted",
        "`<equality><joint>` that are linear or constant",
        "an exact mimic, or a held joint",
    ),
    "renamed": Rule("noted", "sites with the name of a body or a site", "the frame is `site/NAME`"),
    # Reported.
    "degrees": Rule(
        "reported", "limits that look like degrees: multiples of 0.5 from 30 to 720", "kept as rad"
    ),
    "half inertial": Rule(
        "reported",
        "an `<inertial>` without `<mass>`, or without `<inertia>`",
        "no mass, or a mass at a point",
    ),
    "transmission": Rule(
        "reported",
        "transmissions with rotor inertia that drive no single joint, or with `TODO`",
        "their rotor inertias are not used",
        ignored=True,
    ),
    "include": Rule(
        "reported", "`<xacro:include>`s whose pattern matches no file", "left out", ignored=True
    ),
    "open loop": Rule(
        "reported",
        "closed loops with `open_loops=True`",
        "cut: their parts move apart",
        ignored=True,
    ),
    "tendon": Rule("reported", "tendons", "the joints move without them", ignored=True),
    "actuator": Rule(
        "reported",
        "actuators off joints, with state, delay or a law that is not affine",
        "they drive nothing",
        ignored=True,
    ),
    "fluid": Rule("reported", "drag of a fluid", "the robot moves in a vacuum", ignored=True),
    "equality": Rule(
        "reported",
        "other equalities, and inactive ones",
        "the joints move on their own",
        ignored=True,
    ),
    "friction": Rule("reported", "friction loss", "a joint at rest stays; in MuJoCo it creeps"),
    "base passive": Rule(
        "reported",
        "damping, friction, armature and springs of a free joint",
        "the base flies without them",
        ignored=True,
    ),
    "nonlinear": Rule(
        "reported",
        "stiffness and damping that are not linear, springs that yield",
        "the linear part acts",
        ignored=True,
    ),
    "borne": Rule(
        "reported",
        "`actuatorgravcomp` in a file without actuators",
        "the weight is borne, in MuJoCo it is not",
    ),
    "one-sided": Rule(
        "reported", "actuator force ranges that are not symmetric", "the larger is the effort limit"
    ),
    # Refused.
    "malformed": Rule(
        "refused",
        "files that are cut off; entities; attributes without a finite number; an axis of length 0",
        "correct the line",
    ),
    "contradiction": Rule("refused", "a tag twice, saying different things", "delete one of them"),
    "structure": Rule(
        "refused",
        "links and joints that are missing, twice or in a cycle; several roots",
        "correct the names",
    ),
    "joint type": Rule(
        "refused", "planar joints, other floating joints", "split them, or hold them by `lock=`"
    ),
    "negative": Rule(
        "refused",
        "a negative mass, damping, friction or stiffness; a gear ratio of 0",
        "correct the number",
    ),
    "negative moment": Rule(
        "refused",
        "a negative principal moment of a link that moves",
        "correct the inertia",
        mend="the nearest physical inertia",
    ),
    "swapped": Rule(
        "refused", "a lower limit above the upper limit", "correct the limits", mend="swapped"
    ),
    "negative limit": Rule(
        "refused",
        "other effort and velocity limits below 0",
        "correct the limit",
        mend="the magnitude",
    ),
    "xacro": Rule(
        "refused",
        "xacro, which is code, in a `.urdf`",
        "`parse_xacro`, or `--xacro` on the command line",
    ),
    "mesh mass": Rule(
        "refused",
        "bodies whose mass follows from a missing mesh",
        "give the mesh, or an `<inertial>`",
    ),
    "code": Rule("refused", "plug-ins and extensions: they load code", "remove them"),
    "soft": Rule("refused", "flexible and composite bodies, models within models", "remove them"),
    "loop": Rule(
        "refused",
        "closed loops: `connect`, `weld`, a link with two parents",
        "use `subtree=`, `open_loops=True` or, in MJCF, `lock=`",
    ),
    "ball": Rule("refused", "ball joints", "use `lock=` or `subtree=`"),
    "several bodies": Rule(
        "refused", "several free bodies, joints beside a floating base", "use `lock=` or `subtree=`"
    ),
}
"""The table, by the names that findings carry."""
