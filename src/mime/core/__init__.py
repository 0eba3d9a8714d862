"""The contract: what a node is, how nodes are wired, what one step of a graph does.

All of it is pure: no files, no threads, no clocks, no physics.
"""
