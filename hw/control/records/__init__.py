"""Completion records, and the counters that they show."""
