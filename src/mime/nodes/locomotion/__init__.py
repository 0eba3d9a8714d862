"""Elements that move themselves over the ground."""

from mime.nodes.locomotion.rolling import PlanarPose as PlanarPose
from mime.nodes.locomotion.rolling import centre_of_curvature as centre_of_curvature
from mime.nodes.locomotion.rolling import radius_of_curvature as radius_of_curvature
