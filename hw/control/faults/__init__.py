"""Which fault a launch has, and what its record says of it."""
