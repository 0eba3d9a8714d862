"""For people: building a graph, running it with progress and checkpoints, batches on all cores."""
