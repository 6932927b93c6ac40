"""A class for each of TensorFlow's operators that a device does."""
