"""Elements that move others."""
