"""MIME's own benchmarks, one file per element."""
