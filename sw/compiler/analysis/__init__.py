"""What passes ask of the IR, without changing it."""
