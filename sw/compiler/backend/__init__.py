"""From ``dlc`` to machine words: registers, load slots, steps, instructions, launch arguments."""
