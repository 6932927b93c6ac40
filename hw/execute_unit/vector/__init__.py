"""The vector data path: registers, operands, lanes, forwarding, reductions, stores."""
