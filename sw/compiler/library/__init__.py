"""Kernels that come with Daedal: gradients of embedding operations, and updates of tables by optimizers."""
