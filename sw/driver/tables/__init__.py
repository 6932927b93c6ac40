"""Tables that stay in device memory, and the tensors and arrays that they come from."""
