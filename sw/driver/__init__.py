"""The driver: memory, resident tables and programs, launches and faults, the same for every target."""
