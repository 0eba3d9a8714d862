"""MJCF files of our own, with everything that MIME reads, and where those of others are."""

import importlib.util
from pathlib import Path

TETRAHEDRON = """v 0 0 0
v 0.2 0 0
v 0 0.3 0
v 0 0 0.4
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""

PARTS = """<mujocoinclude>
  <default>
    <joint damping="0.3" armature="0.02"/>
    <geom density="500" contype="0" conaffinity="0"/>
    <default class="stiff"><joint stiffness="4" springref="20" frictionloss="0.1"/></default>
  </default>
  <asset><mesh name="wedge" file="wedge.obj" scale="1 0.5 2"/></asset>
</mujocoinclude>
"""

EVERYTHING = """<mujoco model="everything">
  <compiler angle="degree" eulerseq="zyx" meshdir="meshes" autolimits="true"/>
  <option gravity="0.3 -0.5 -9.7" timestep="0.001"/>
  <size memory="1M"/>
  <include file="parts.xml"/>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="1 1 1"/>
    <site name="origin_mark" pos="0.1 0.2 0.3"/>
    <body name="post" pos="0 0 0.2" euler="10 20 30">
      <geom type="box" size="0.1 0.1 0.2"/>
      <frame pos="0.1 0 0" euler="0 0 40">
        <body name="torso" pos="0 0.1 0.5" quat="1 0.2 -0.3 0.4" childclass="stiff">
          <joint name="rootx" type="slide" axis="1 0 0" pos="0.02 0 0" ref="0.05" range="-2 2"/>
          <joint name="roota" type="hinge" axis="0 1 0.2" pos="0 0 -0.1"/>
          <joint name="rootb" type="hinge" axis="0.1 0 1" pos="0.1 0.05 0.02" ref="25"/>
          <geom type="capsule" fromto="0 0 0 0.3 0.1 0" size="0.05"/>
          <geom type="mesh" mesh="wedge" pos="0 0 0.1" euler="5 10 15" rgba="1 0 0 1"/>
          <body name="arm" pos="0.3 0.1 0" xyaxes="1 1 0 0 0 1">
            <joint name="elbow" axis="1 2 3" pos="0.05 0 0" range="-150 150"
                   actuatorfrcrange="-7 7"/>
            <inertial mass="1.5" pos="0.1 0.02 0" euler="20 30 40" diaginertia="0.02 0.03 0.04"/>
            <site name="tool" pos="0.2 0 0" euler="0 90 0"/>
            <site name="arm" pos="0 0 0.1"/>
            <body name="flange" pos="0.2 0 0" euler="0 45 0">
              <geom type="cylinder" size="0.02 0.05" mass="0.2"/>
              <body name="finger" pos="0 0 0.1">
                <joint name="grip" type="slide" axis="0 1 1" range="-0.1 0.2" stiffness="0"/>
                <inertial mass="0.1" pos="0 0.01 0.02"
                          fullinertia="2e-4 3e-4 2.5e-4 1e-5 -2e-5 1.5e-5"/>
              </body>
            </body>
          </body>
        </body>
      </frame>
    </body>
    <body name="second">
      <joint axis="0 1 0" stiffness="2" damping="0"/>
      <geom type="sphere" size="0.1" pos="0 0 -0.3"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="rootx" gear="30" ctrlrange="-1 1" armature="0.001" damping="0.002"/>
    <position name="hold" joint="elbow" kp="12" kv="0.7" forcerange="-3 5" gear="2"/>
    <velocity name="turn" joint="roota" kv="1.5"/>
    <general name="law" joint="rootb" gaintype="affine" gainprm="2 0.3 0.4"
             biastype="affine" biasprm="0.5 -1 -0.2" gear="-3"/>
    <dcmotor name="drive" joint="grip" motorconst="0.05" resistance="1.5" gear="12"
             cogging="0.002 7 0.3"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="0.1 0.2 0.3 0.4 0.05 0.6" qvel="1 2 3 4 5 6" ctrl="1 2 3 4 5"/>
  </keyframe>
  <sensor><jointpos joint="elbow"/></sensor>
</mujoco>
"""


def write_everything(folder: Path) -> Path:
    """The file, its include and its mesh."""
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "wedge.obj").write_text(TETRAHEDRON)
    (folder / "parts.xml").write_text(PARTS)
    file = folder / "everything.xml"
    file.write_text(EVERYTHING)
    return file


def of_package(package: str) -> list[Path]:
    """Every MJCF inside a package, without importing it; none where it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return []
    files = sorted(Path(spec.submodule_search_locations[0]).rglob("*.xml"))
    return [file for file in files if "<mujoco" in file.read_text(errors="replace")]
