"""The Python loop form: a function of plain loops over arrays becomes loops of ``scf``; see docs/kernels.md."""
