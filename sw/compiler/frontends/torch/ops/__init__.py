"""The operations of PyTorch that run on the device, a class each."""
