"""A loop level that takes a bundle in every cycle."""
