"""Queues between the units."""
