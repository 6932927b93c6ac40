"""Paths between the machine and memory: AXI masters, the read fabric and the store unit."""
