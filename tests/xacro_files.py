"""A xacro file of our own: a package, an include, macros, recursion, conditions, arguments."""

from pathlib import Path

INERTIAL = """<inertial><origin xyz="0.1 0 0"/><mass value="${mass}"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>"""
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
SEGMENT = f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="segment" params="i parent mass">
  <link name="l${{i}}">{INERTIAL}
    <visual><geometry><mesh filename="package://parts/a.stl"/></geometry></visual></link>
  <joint name="j${{i}}" type="revolute"><parent link="${{parent}}"/><child link="l${{i}}"/>
    <origin xyz="${{0.1 + 0.2}} 0 0"/><axis xyz="0 0 1"/>{LIMIT}</joint>
</xacro:macro></robot>
"""
ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="joints" default="2"/>
  <xacro:property name="count" value="$(arg joints)"/>
  <xacro:include filename="$(find parts)/segment.xacro"/>
  <xacro:macro name="chain" params="k parent">
    <xacro:if value="${k &lt; count}">
      <xacro:segment i="${k}" parent="${parent}" mass="${2**k}"/>
      <xacro:chain k="${k + 1}" parent="l${k}"/>
    </xacro:if>
  </xacro:macro>
  <link name="base"/>
  <xacro:chain k="0" parent="base"/>
</robot>
"""
ESCAPE = "${{(lambda f: f.__globals__['os'].{})(load_yaml)}}"
"""Out of the sandbox of xacro's expressions, by the globals of one of its functions."""


def write_arm(folder: Path) -> Path:
    """The arm, and its package some folders down in a workspace beside it."""
    package = folder / "ros" / "deep" / "parts"
    package.mkdir(parents=True)
    (package / "package.xml").write_text("<package/>")
    (package / "segment.xacro").write_text(SEGMENT)
    (package / "a.stl").write_text("")
    (folder / "robot").mkdir()
    file = folder / "robot" / "arm.urdf.xacro"
    file.write_text(ARM)
    return file
