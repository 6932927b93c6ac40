"""Every encoding of the machine, once: programs, instructions, registers, launch blocks, completion records."""
