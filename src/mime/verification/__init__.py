"""Benchmarks that say what they measured: the registry behind `mime verify`."""
