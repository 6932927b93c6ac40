"""Planted faults, and whether the tests notice them: see ``docs/verification/mutations.md``."""
