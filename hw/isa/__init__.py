"""Every encoding of the machine, once."""
