"""Elements that move themselves over the ground."""
