"""Writes the loops of a kernel as ``scf``."""
