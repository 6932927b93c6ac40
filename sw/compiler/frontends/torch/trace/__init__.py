"""A module as a graph of PyTorch operations, and whether that still is the module and fits its inputs."""
