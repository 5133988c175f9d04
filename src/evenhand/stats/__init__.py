"""Pure statistical kernels from NumPy arrays to NumPy arrays, without data frames, files or global state."""
