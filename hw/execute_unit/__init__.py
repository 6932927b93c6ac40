"""The execute unit: tokens to callbacks, vector registers, binary32 lanes."""
