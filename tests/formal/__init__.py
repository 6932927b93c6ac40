"""Proofs of small units."""
