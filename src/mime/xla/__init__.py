"""All that exists only because of XLA."""
