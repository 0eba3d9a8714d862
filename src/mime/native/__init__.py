"""Machine code made here: LLVM IR text to functions that XLA and Python call."""
