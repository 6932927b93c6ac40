"""The system around the core on a board: memory ports, host link, resets; with models in place of pins for simulation."""
