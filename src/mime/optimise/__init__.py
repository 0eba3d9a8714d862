"""One optimiser for all questions: the next experiment, gains of a controller, the best member."""
