"""The system around the core on a board: memory ports, host link, resets, models in place of pins."""
