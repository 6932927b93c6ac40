"""Loops of ``daedal.kernel`` on a device: their arguments, the checks before a launch, and their calls."""
