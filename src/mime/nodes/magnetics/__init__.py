"""Magnets, their fields, and bodies in them."""
