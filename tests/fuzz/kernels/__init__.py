"""Random kernels as Python source."""
