"""TensorFlow's graphs: which of their operations a device does, and what TensorFlow does around them."""
