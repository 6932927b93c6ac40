"""The PyTorch front end: graphs, the operations in them that run on the device, and the rest of the graph."""
