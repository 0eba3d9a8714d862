"""Elements that measure others."""
