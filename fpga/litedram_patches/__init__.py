"""Changes of LiteDRAM's modules for the clock, off unless a board's file names them (``Board.litedram_patches``).

LiteDRAM is as it comes otherwise. In each cycle the changed modules say what LiteDRAM's own say, or the same a cycle
later; tests compare both. Each file says what limits the clock without it and where it is to be filed upstream; one
that LiteDRAM takes, or that no board needs, goes.
"""
