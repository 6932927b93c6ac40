"""Saved executables: ``daedal.load``. It runs on NumPy arrays, without PyTorch, xDSL and the compiler's passes."""
