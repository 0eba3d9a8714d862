"""Parameters from logs: what they are, how well they are known, and which are not known at all."""
