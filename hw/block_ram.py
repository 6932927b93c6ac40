"""How memories that are meant for block RAM are marked."""

BLOCK_RAM: dict[str, str | int] = {"ram_style": "block", "no_rw_check": 1}
"""Attributes of a memory in block RAM whose word nobody reads in the cycle in which it is written.

Block RAM gives anything then. Without the second attribute, synthesis adds registers and multiplexers that give the
word from before: 170 LUTs for a memory of 128 bits.
"""
