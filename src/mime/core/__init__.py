"""What a node is, how nodes are wired, how a graph runs. Knows no physics."""
