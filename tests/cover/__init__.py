"""How much of the RTL and of the Python sources the tests reach: see ``docs/verification/coverage.md``."""
