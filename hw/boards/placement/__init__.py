"""A placement for ECP5 after nextpnr's placer: the ways through it, and moves of cells that make the slowest shorter.

nextpnr's refinement swaps cells for the sum over all ways, so a single way may stay that crosses the part by way of a
LUT that is far from both of its ends. :func:`daedal.hw.boards.placement.moves.shorten` takes those up one by one.
"""
