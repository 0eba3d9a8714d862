"""Nodes that command others."""
