"""Physical elements, one a module."""
