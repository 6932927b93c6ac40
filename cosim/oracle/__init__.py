"""The oracle: what a DRAM can move if no request depends on another, beside the same controller as the core.

``traffic.cpp`` is a loop around the verilated controller with a user port for each bank. It issues given bursts,
bounded by a window, in an order that a policy says, and counts the cycles until the last one is done. What is in memory
does not matter to it.
"""
