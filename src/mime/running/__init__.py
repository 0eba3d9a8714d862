"""A graph that runs for people."""
