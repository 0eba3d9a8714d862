"""The shapes of an MJCF, kept as plain data for whoever draws the robot."""

import numpy as np

from mime.control.kinematics.mjcf.model import Compiled
from mime.control.kinematics.poses import pose_matrix, rpy_of
from mime.control.kinematics.tree import Visual

_FIRST_HIDDEN_GROUP = 3
"""MuJoCo's viewer shows the groups 0 to 2."""


def read_visuals(compiled: Compiled) -> tuple[Visual, ...]:
    """Every shown geom that is a box, a cylinder, a capsule, a sphere or a mesh."""
    model, kinds = compiled.model, compiled.mujoco.mjtGeom
    shapes = {
        int(kinds.mjGEOM_BOX): "box",
        int(kinds.mjGEOM_CYLINDER): "cylinder",
        int(kinds.mjGEOM_CAPSULE): "capsule",
        int(kinds.mjGEOM_SPHERE): "sphere",
        int(kinds.mjGEOM_MESH): "mesh",
    }
    found = []
    for g in range(model.ngeom):
        shape = shapes.get(int(model.geom_type[g]))
        if shape is None or model.geom_group[g] >= _FIRST_HIDDEN_GROUP:
            continue
        if int(model.geom_bodyid[g]) not in compiled.bodies:
            continue  # what stands beside a base that floats
        pos, R, path = (
            np.array(model.geom_pos[g]),
            pose_matrix(np.zeros(3), model.geom_quat[g])[:3, :3],
            None,
        )
        size = _size(shape, np.asarray(model.geom_size[g], float))
        if shape == "mesh":
            mesh = int(model.geom_dataid[g])
            path = compiled.document.mesh_paths.get(model.mesh(mesh).name)
            if path is None:
                continue  # its vertices stand in the XML
            # MuJoCo has moved the mesh into its principal axes: back to the file's own.
            R = R @ pose_matrix(np.zeros(3), model.mesh_quat[mesh])[:3, :3].T
            pos = pos - R @ np.array(model.mesh_pos[mesh])
            size = tuple(float(x) for x in model.mesh_scale[mesh])
        colour = model.geom_rgba[g]
        if model.geom_matid[g] >= 0:
            colour = model.mat_rgba[model.geom_matid[g]]
        x, y, z = (float(v) for v in pos)
        red, green, blue, alpha = (float(v) for v in colour)
        frame = compiled.body_names[int(model.geom_bodyid[g])]
        rgba = (red, green, blue, alpha)
        found.append(Visual(frame, shape, size, (x, y, z), rpy_of(R), rgba, path))
    return tuple(found)


def _size(shape: str, size: np.ndarray) -> tuple[float, ...]:
    """MuJoCo writes half of a length."""
    x, y, z = (float(v) for v in size)
    return {
        "box": (2 * x, 2 * y, 2 * z),
        "cylinder": (x, 2 * y),
        "capsule": (x, 2 * y),
        "sphere": (x,),
        "mesh": (1.0, 1.0, 1.0),
    }[shape]
