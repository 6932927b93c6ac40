"""Measurements: throughput of the simulated machine, speed of the simulators, size and clock of the units.

Run as ``python -m bench [SUITE …] --json FILE``; what is measured how is in ``docs/measurements.md``.
"""
