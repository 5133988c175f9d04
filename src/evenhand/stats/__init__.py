"""Pure statistical kernels: NumPy arrays in, NumPy arrays out; no data frames, no files, no global state."""
