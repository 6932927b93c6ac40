"""Floating point: the stages of a binary32 lane, and the iterative unit."""
