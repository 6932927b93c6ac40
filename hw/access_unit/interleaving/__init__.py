"""Bag interleaving: several activations of a level side by side, as contexts."""
